"""`manage.py load_content`: the files' labs and questions into the database, all of them or nothing.

What was changed in the admin since the last load is not overwritten: if the file has changed as well, the
conflict is reported, and a person decides.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from quizsite.content.files import CONTENT_DIR, Content, read_content
from quizsite.labs.models import Lab
from quizsite.questions.models import Question, Topic
from quizsite.questions.validation import QuestionSpec


class Command(BaseCommand):
    help = "Load topics, labs and questions from the content files. Twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)
        parser.add_argument("--prove", action="store_true", help="Run the labs of slow models, too.")

    def handle(self, *args: object, **options: Any) -> None:
        content = read_content(options["folder"], prove_all=options["prove"])
        if content.mistakes:
            listed = "\n".join(str(mistake) for mistake in content.mistakes)
            raise CommandError(f"nothing was changed; mend these first:\n{listed}")
        with transaction.atomic():
            changes = [*_topics(content), *_labs(content), *_questions(content)]
        for change in changes:
            self.stdout.write(change)
        loaded = f"{len(content.questions)} questions and {len(content.labs)} labs"
        n_changed = sum(": conflict" not in change for change in changes)
        self.stdout.write(f"{loaded}: {n_changed} changed" if changes else f"{loaded}: nothing changed")


def _topics(content: Content) -> list[str]:
    changes = []
    for position, (slug, name) in enumerate(content.topics.items()):
        values = {"name": name, "position": position}
        topic, is_new = Topic.objects.get_or_create(slug=slug, defaults=values)
        if is_new or (topic.name, topic.position) != (name, position):
            Topic.objects.filter(pk=topic.pk).update(**values)
            changes.append(f"topic {slug}: {'new' if is_new else 'changed'}")
    return changes


def _labs(content: Content) -> list[str]:
    changes = []
    for slug, spec in sorted(content.labs.items(), key=lambda item: bool(item[1].first_step)):
        first_step = Lab.objects.get(slug=spec.first_step) if spec.first_step else None
        values = spec.model_dump(mode="json") | {"first_step": first_step}
        lab, is_new = Lab.objects.get_or_create(slug=slug, defaults=values)

        def take(lab: Lab = lab, values: dict[str, Any] = values) -> str:
            Lab.objects.filter(pk=lab.pk).update(**values)
            return "changed"

        changes += _settle(f"lab {slug}", lab, lab.spec.digest, spec.digest, is_new, take)
    return changes


def _questions(content: Content) -> list[str]:
    changes = []
    topics = {topic.slug: topic for topic in Topic.objects.all()}
    for slug, spec in content.questions.items():
        values = {"topic": topics[content.topic_of[slug]], "level": spec.level, "status": spec.status}
        question, is_new = Question.objects.select_related("topic", "current").get_or_create(slug=slug, defaults=values)

        def take(question: Question = question, spec: QuestionSpec = spec, values: dict[str, Any] = values) -> str:
            moved = [name for name, value in values.items() if getattr(question, name) != value]
            Question.objects.filter(pk=question.pk).update(**values)
            version = question.revise(spec)
            return ", ".join([*([f"version {version.number}"] if version else []), *moved])

        if is_new:
            take()
        ours = _digest(
            question.current.digest if question.current else "", question.topic.slug, question.level, question.status
        )
        theirs = _digest(spec.digest, content.topic_of[slug], spec.level, spec.status)
        changes += _settle(f"question {slug}", question, ours, theirs, is_new, take)
    return changes


def _settle(name: str, row: Lab | Question, ours: str, theirs: str, is_new: bool, take: Callable[[], str]) -> list[str]:
    """Compare the database with the file and with what was loaded last, and take what changed on one side."""
    loaded, changes = row.loaded_digest, []
    if is_new:
        changes = [f"{name}: new"]
    elif ours != theirs and ours == loaded:
        changes = [f"{name}: {take()}"]
    elif ours != theirs and theirs == loaded:
        return []  # edited in the admin since; the file is as it was
    elif ours != theirs:
        return [f"{name}: conflict, changed here and in its file; nothing was overwritten"]
    type(row).objects.filter(pk=row.pk).exclude(loaded_digest=theirs).update(loaded_digest=theirs)
    return changes


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()
