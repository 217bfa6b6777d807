"""The texts that are searched, and each database's own index over them."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from quizsite.questions.search import texts_of

INDEX = {
    "postgresql": [  # vectors are kept: made anew for each row that a common word brings up, they take seconds
        "ALTER TABLE questions_searchtext"
        " ADD COLUMN asked_vector tsvector GENERATED ALWAYS AS (to_tsvector('english', asked)) STORED,"
        " ADD COLUMN reasons_vector tsvector GENERATED ALWAYS AS (to_tsvector('english', reasons)) STORED",
        "CREATE INDEX questions_search_asked ON questions_searchtext USING gin (asked_vector)",
    ],
    "sqlite": [
        "CREATE VIRTUAL TABLE questions_search USING fts5(asked, reasons, content='questions_searchtext',"
        " content_rowid='question_id', tokenize='porter unicode61', prefix='3')",
        "CREATE TRIGGER questions_search_insert AFTER INSERT ON questions_searchtext BEGIN"
        " INSERT INTO questions_search (rowid, asked, reasons) VALUES (new.question_id, new.asked, new.reasons); END",
        "CREATE TRIGGER questions_search_delete AFTER DELETE ON questions_searchtext BEGIN"
        " INSERT INTO questions_search (questions_search, rowid, asked, reasons)"
        " VALUES ('delete', old.question_id, old.asked, old.reasons); END",
        "CREATE TRIGGER questions_search_update AFTER UPDATE ON questions_searchtext BEGIN"
        " INSERT INTO questions_search (questions_search, rowid, asked, reasons)"
        " VALUES ('delete', old.question_id, old.asked, old.reasons);"
        " INSERT INTO questions_search (rowid, asked, reasons) VALUES (new.question_id, new.asked, new.reasons); END",
    ],
}
DROP = {  # on PostgreSQL columns and indexes go with their table
    "postgresql": [],
    "sqlite": [
        "DROP TRIGGER questions_search_insert",
        "DROP TRIGGER questions_search_delete",
        "DROP TRIGGER questions_search_update",
        "DROP TABLE questions_search",
    ],
}


def make_index(apps: Any, schema_editor: Any) -> None:
    for statement in INDEX[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def drop_index(apps: Any, schema_editor: Any) -> None:
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def fill(apps: Any, schema_editor: Any) -> None:
    Question, SearchText = (apps.get_model("questions", name) for name in ("Question", "SearchText"))  # noqa: N806
    for question in Question.objects.filter(current__isnull=False).select_related("current"):
        texts = texts_of(question.current, question.current.options.all())
        SearchText.objects.create(question=question, **texts)


class Migration(migrations.Migration):
    dependencies = [("questions", "0003_reports")]
    operations = [
        migrations.CreateModel(
            name="SearchText",
            fields=[
                (
                    "question",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="questions.question",
                    ),
                ),
                ("asked", models.TextField()),
                ("reasons", models.TextField()),
            ],
        ),
        migrations.RunPython(make_index, drop_index),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
