"""`manage.py load_content`: the files' labs and questions into the database, all of them or nothing."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from quizsite.content.files import CONTENT_DIR, Content, read_content
from quizsite.labs.models import Lab
from quizsite.questions.models import Question, Topic


class Command(BaseCommand):
    help = "Load topics, labs and questions from the content files. Twice changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", type=Path, default=CONTENT_DIR)

    def handle(self, *args: object, **options: Any) -> None:
        content = read_content(options["folder"])
        if content.mistakes:
            listed = "\n".join(str(mistake) for mistake in content.mistakes)
            raise CommandError(f"nothing was changed; mend these first:\n{listed}")
        with transaction.atomic():
            changes = [*_topics(content), *_labs(content), *_questions(content)]
        for change in changes:
            self.stdout.write(change)
        loaded = f"{len(content.questions)} questions and {len(content.labs)} labs"
        self.stdout.write(f"{loaded}: {len(changes)} changed" if changes else f"{loaded}: nothing changed")


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
    for slug, spec in content.labs.items():
        values = spec.model_dump(mode="json")
        lab = Lab.objects.filter(slug=slug).first()
        if lab is None:
            Lab.objects.create(slug=slug, **values)
            changes.append(f"lab {slug}: new")
        elif lab.spec != spec:
            Lab.objects.filter(pk=lab.pk).update(**values)
            changes.append(f"lab {slug}: changed")
    return changes


def _questions(content: Content) -> list[str]:
    changes = []
    topics = {topic.slug: topic for topic in Topic.objects.all()}
    for slug, spec in content.questions.items():
        values = {"topic": topics[content.topic_of[slug]], "level": spec.level, "status": spec.status}
        question, is_new = Question.objects.get_or_create(slug=slug, defaults=values)
        is_moved = any(getattr(question, name) != value for name, value in values.items())
        if is_moved:
            Question.objects.filter(pk=question.pk).update(**values)
        version = question.revise(spec)
        if version:
            changes.append(f"question {slug}: {'new' if is_new else f'version {version.number}'}")
        elif is_moved:
            changes.append(f"question {slug}: {', '.join(values)} changed")
    return changes
