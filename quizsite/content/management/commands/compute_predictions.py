"""`manage.py compute_predictions`: the keys of questions of kind predict, computed anew into their files."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand

from quizsite.content.files import CONTENT_DIR
from quizsite.content.predictions import found_by_engine, written_into
from quizsite.questions.validation import PredictSpec


class Command(BaseCommand):
    help = "Compute the keys of questions of kind predict with the engine and write them into their files."
    requires_system_checks: list[str] = []  # noqa: RUF012  (Django's own declaration)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)

    def handle(self, *args: object, **options: Any) -> None:
        for file in sorted((options["folder"] / "bank").glob("*/*.yaml")):
            data = yaml.safe_load(file.read_text(encoding="utf-8"))
            if isinstance(data, dict) and data.get("kind") == "predict":
                found = found_by_engine(PredictSpec.model_validate(data["predict"] | {"found": []}))
                written_into(file, found)
                self.stdout.write(f"{file.stem}: {found[0].token!r}, {found[0].probability}")
