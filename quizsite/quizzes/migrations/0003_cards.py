"""A card for every question that was answered before there were cards."""

from itertools import groupby
from typing import Any

from django.db import migrations

from quizsite.quizzes.review import scheduled


def make_cards(apps: Any, schema_editor: Any) -> None:
    Answer, ReviewCard = apps.get_model("quizzes", "Answer"), apps.get_model("quizzes", "ReviewCard")
    answers = Answer.objects.order_by("learner_id", "version__question_id", "created", "pk")
    rows = answers.values_list("learner_id", "version__question_id", "created", "verdict", "sure")
    for (learner_id, question_id), group in groupby(rows.iterator(), key=lambda row: row[:2]):
        history = [row[2:] for row in group]
        ReviewCard.objects.create(learner_id=learner_id, question_id=question_id, **scheduled(history))


class Migration(migrations.Migration):
    dependencies = [("quizzes", "0002_attempts")]
    operations = [migrations.RunPython(make_cards, migrations.RunPython.noop)]
