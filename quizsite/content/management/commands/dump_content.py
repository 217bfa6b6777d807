"""`manage.py dump_content`: labs and questions out of the database into files, one for each.

A file that says the same is left as it is, with its comments. One that was changed since the last load is not
overwritten: it is named, with both sides.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from quizsite.content.dumping import dump
from quizsite.content.files import CONTENT_DIR


class Command(BaseCommand):
    help = "Write topics, labs and questions into the content files. Twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)

    def handle(self, *args: object, **options: Any) -> None:
        changes = dump(options["folder"])
        for change in changes:
            self.stdout.write(str(change))
        n_written = sum(change.what == "written" for change in changes)
        self.stdout.write(f"{options['folder']}: {n_written} files written" if n_written else "nothing changed")
