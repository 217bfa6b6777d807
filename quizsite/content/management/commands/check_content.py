"""`manage.py check_content`: prove the content files without a database."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from quizsite.content.coverage import bank_gaps, gaps
from quizsite.content.files import CONTENT_DIR, read_content
from quizsite.content.predictions import wrong_keys


class Command(BaseCommand):
    help = "Check every content file and run every lab's start and solution. Reads the files alone."
    requires_system_checks: list[str] = []  # noqa: RUF012  (Django's own declaration)
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)
        parser.add_argument("--all", action="store_true", help="Fail if a lab's model is not here.")

    def handle(self, *args: object, **options: Any) -> None:
        content = read_content(options["folder"], prove_all=True)
        mistakes = content.mistakes or wrong_keys(content)
        if mistakes:
            raise CommandError("\n".join(str(mistake) for mistake in mistakes))
        missing = [*gaps(content.labs), *bank_gaps(content.questions)] if options["folder"] == CONTENT_DIR else []
        if missing:
            raise CommandError("\n".join(missing))
        if content.unproved and options["all"]:
            raise CommandError(f"{len(content.unproved)} labs cannot be proved: their models are not here (make model)")
        if content.unproved:
            self.stdout.write(f"NOT PROVED: {len(content.unproved)} labs, whose models are not here (make model)")
        facts = {fact for lab in content.labs.values() for fact in lab.facts}
        facts |= {fact for question in content.questions.values() for fact in question.facts}
        self.stdout.write(
            f"{len(content.questions)} questions and {len(content.labs)} labs are valid; "
            f"they cover {len(facts)} facts: {', '.join(sorted(facts, key=lambda f: (f[0], int(f[1:]))))}"
        )
