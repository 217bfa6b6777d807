"""A deck for Anki: one note a question, under ids that stay, so that a later import brings the notes up to date."""

from collections.abc import Iterable
from io import BytesIO
from typing import Any

import genanki
from django.http import QueryDict
from django.template.loader import render_to_string

from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import Question, QuestionVersion

MODEL_ID, DECK_ID = 1_607_392_319, 2_059_400_110  # chosen once; Anki knows note type and deck by them
ASKING = Asking("anki")  # the same order of options, and the same numbers, in every export
CSS = """
.card { font: 18px/1.5 system-ui, sans-serif; text-align: start; max-width: 40rem; margin: 0 auto; padding: 1rem;
  color: #14181b; background: #fff; }
.card.nightMode { color: #e9eded; background: #171b1e; }
h1 { font: 500 22px/1.3 Georgia, serif; } h2 { font-size: 15px; margin: 1.2em 0 .3em; }
li { margin-block: .3em; } .key { font-weight: 600; } .why { display: block; font-size: 15px; opacity: .8; }
code { font-family: ui-monospace, monospace; }
"""
MODEL = genanki.Model(
    MODEL_ID,
    "Next Token question",
    fields=[{"name": "Question"}, {"name": "Answer"}],
    templates=[
        {"name": "Question", "qfmt": "{{Question}}", "afmt": "{{FrontSide}}<hr id=answer>{{Answer}}"},
    ],
    css=CSS,
)


def deck_of(questions: Iterable[Question], made: float) -> bytes:
    """Return a package with these questions; `made` is the time that Anki is told, in seconds since 1970."""
    deck = genanki.Deck(DECK_ID, "Next Token")
    for question in questions:
        assert question.current  # published questions have one
        deck.add_note(_note(question, question.current))
    package = BytesIO()
    genanki.Package(deck).write_to_file(package, timestamp=made)
    return package.getvalue()


def _note(question: Question, version: QuestionVersion) -> genanki.Note:
    context = _content(version)
    front, back = (_field(render_to_string(f"content/note.html#{side}", context)) for side in ("front", "back"))
    tags = [question.topic.slug, question.level, version.kind]
    return genanki.Note(MODEL, [front, back], guid=genanki.guid_for("next-token", question.slug), tags=tags)


def _content(version: QuestionVersion) -> dict[str, Any]:
    """Return what both sides show: the kind's own words for the question, and its key."""
    kind, details = kind_named(version.kind), version.details
    content: dict[str, Any] = {"version": version, "text": version.text, "key": []}
    content |= kind.ask(version, ASKING, QueryDict())
    if version.kind in {"single_choice", "multiple_choice"}:
        whys = {option.public_id: option for option in version.options.all()}
        content["options"] = [whys[offered["id"]] for offered in content["options"]]
    elif version.kind == "numeric":
        shown = kind.show(version, kind.read(version, QueryDict("number=0"), None, ASKING), ASKING)
        content |= {"key": [f"{shown['key']} {shown['unit']}"], "working": shown["working"]}
    elif version.kind == "ordering":
        content["key"] = details["items"]
    elif version.kind == "short_text":
        content["key"] = details["accepted"]
    elif version.kind == "explain":
        content["key"] = [part["point"] for part in details["rubric"]]
    elif version.kind == "predict":
        content["key"] = [f"`{details['predict']['found'][0]['token']}`"]
    return content


def _field(html: str) -> str:
    """Return a field's HTML in which no author's braces are a template of Anki."""
    return html.strip().replace("{{", "&#123;&#123;").replace("}}", "&#125;&#125;")
