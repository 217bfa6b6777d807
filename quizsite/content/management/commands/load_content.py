"""`manage.py load_content`: the files' labs and questions into the database, all of them or nothing.

What was changed in the admin since the last load is not overwritten: if the file has changed as well, the
conflict is reported with both sides, and a person decides: `--take-file SLUG` or `--keep SLUG`.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from quizsite.content.files import CONTENT_DIR, read_content
from quizsite.content.loading import CONFLICT, Choice, load


class Command(BaseCommand):
    help = "Load topics, labs and questions from the content files. Twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)
        parser.add_argument("--prove", action="store_true", help="Run the labs of slow models, too.")
        parser.add_argument("--take-file", nargs="+", default=[], metavar="SLUG", help="In a conflict, take the file.")
        parser.add_argument("--keep", nargs="+", default=[], metavar="SLUG", help="In a conflict, keep what is here.")

    def handle(self, *args: object, **options: Any) -> None:
        content = read_content(options["folder"], prove_all=options["prove"])
        if content.mistakes:
            listed = "\n".join(str(mistake) for mistake in content.mistakes)
            raise CommandError(f"nothing was changed; mend these first:\n{listed}")
        with transaction.atomic():
            changes = load(content, Choice(files=options["take_file"], database=options["keep"]))
        for change in changes:
            self.stdout.write(str(change))
        loaded = f"{len(content.questions)} questions and {len(content.labs)} labs"
        n_changed = sum(change.what != CONFLICT for change in changes)
        self.stdout.write(f"{loaded}: {n_changed} changed" if changes else f"{loaded}: nothing changed")
