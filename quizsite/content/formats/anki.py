"""A deck for Anki: one note a question, under ids that stay, so that a later import brings the notes up to date."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from itertools import count
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import genanki
from django.http import QueryDict
from django.template.loader import render_to_string

from quizsite.labs.panels.strip import visible
from quizsite.questions.formulas import FormulaError
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.choices import shuffled
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import Question, QuestionVersion, Report

MODEL_ID, DECK_ID = 1_320_367_537, 2_009_403_003  # drawn once, ours alone: Anki knows note type and deck by them
ASKING = Asking("anki")  # the same order of options, and the same numbers, in every export
DESIGNED = datetime(2026, 12, 1, 13, tzinfo=UTC)  # of note.html and CSS: a change there shows in Anki if this is newer
CSS = """
.card { max-width: 40rem; margin: 0 auto; padding: 1rem; font: 18px/1.5 system-ui, sans-serif; text-align: start;
  overflow-wrap: anywhere; color: #14181b; background: #fff; }
.ask { font: 500 22px/1.35 Georgia, serif; }
h2 { margin: 1.4em 0 .3em; font-size: 15px; }
ul, ol { padding-inline-start: 1.3em; }
li { margin-block: .4em; }
pre, code { font: 15px/1.5 ui-monospace, monospace; white-space: pre-wrap; }
.key { font-weight: 600; color: #0f6b3c; }
.warns { color: #ad2118; }
.why, .hint { font-size: 15px; color: #465057; }
.why { display: block; }
a { color: #2749d1; }
.nightMode.card, .night_mode.card { color: #e9eded; background: #171b1e; }
.nightMode .key, .night_mode .key { color: #74d69f; }
.nightMode .warns, .night_mode .warns { color: #ff9a90; }
.nightMode :is(.why, .hint), .night_mode :is(.why, .hint) { color: #b4bec2; }
.nightMode a, .night_mode a { color: #9db2ff; }
"""
MODEL = genanki.Model(
    MODEL_ID,
    "Next Token question",
    fields=[{"name": "Question"}, {"name": "Answer"}],
    templates=[{"name": "Question", "qfmt": "{{Question}}", "afmt": "{{FrontSide}}<hr id=answer>{{Answer}}"}],
    css=CSS,
)
READ_BY_ANKI = str.maketrans({mark: f"&#{ord(mark)};" for mark in "{}["})  # {{field}}, {{c1::gap}}, [sound:], [latex]


def deck_of(questions: Iterable[Question]) -> bytes:
    """Return a package of these questions: the same content is the same bytes, newer content has a newer date.

    A question whose key cannot be computed is left out, and its authors hear of it.
    """
    deck, newest = genanki.Deck(DECK_ID, "Next Token"), DESIGNED
    for question in questions:
        assert question.current  # published questions have one
        try:
            deck.add_note(_note(question, question.current))
        except FormulaError as failed:
            Report.objects.broken(question.current, str(failed))
        newest = max(newest, question.current.created)
    return _packed(genanki.Package(deck), newest.timestamp())


def _note(question: Question, version: QuestionVersion) -> genanki.Note:
    content = _content(version)
    fields = [
        render_to_string(f"content/note.html#{side}", content).strip().translate(READ_BY_ANKI)
        for side in ("front", "back")
    ]
    tags = [question.topic.slug, question.level, version.kind]
    return genanki.Note(MODEL, fields, guid=genanki.guid_for("next-token", question.slug), tags=tags)


def _content(version: QuestionVersion) -> dict[str, Any]:
    """Return what both sides show: the question as its kind puts it, and what the key needs beside the version."""
    kind = kind_named(version.kind)
    content: dict[str, Any] = {"version": version, "text": version.text}
    content |= kind.ask(version, ASKING, QueryDict())
    if version.kind in {"single_choice", "multiple_choice"}:
        content["options"] = shuffled(version, ASKING)
    elif version.kind == "numeric":
        response = kind.read(version, QueryDict("number=0"), None, ASKING)  # whatever one answers, the key is shown
        content |= kind.show(version, response, ASKING)
    elif version.kind == "predict":
        found = version.details["predict"]["found"]
        content["found"] = [(visible(option["token"]), option["probability"]) for option in found]
        content["options"] = [visible(token) for _, token, _ in content["options"]]
    return content


def _packed(package: genanki.Package, made: float) -> bytes:
    """Write a package in memory: genanki's own writer leaves the notes behind in a temporary file."""
    with closing(sqlite3.connect(":memory:")) as collection:
        package.write_to_db(collection.cursor(), made, count(int(made * 1000)))
        collection.commit()
        notes = collection.serialize()
    packed = BytesIO()
    with ZipFile(packed, "w") as files:
        files.writestr(ZipInfo("collection.anki2"), notes, ZIP_DEFLATED)  # ZipInfo: without the time of day
        files.writestr(ZipInfo("media"), "{}")
    return packed.getvalue()
