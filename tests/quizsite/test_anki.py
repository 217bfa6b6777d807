"""The deck for Anki: only what its learner has answered, each note under an id that stays."""

import json
import re
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.content.formats.anki import DECK_ID, MODEL_ID
from quizsite.questions.models import Option, Question, QuestionVersion, Report
from quizsite.quizzes.models import ReviewCard
from quizsite.quizzes.review import scheduled

pytestmark = pytest.mark.django_db

URL = "/account/deck.apkg"
KINDS = {
    "single_choice": "chatbot-repeats-one-sentence",
    "multiple_choice": "rule-sent-and-still-broken",
    "numeric": "tokens-sent-over-a-chat",
    "ordering": "order-of-an-agents-turn",
    "short_text": "turn-five-on-another-machine",
    "explain": "why-the-bill-has-this-shape",
    "predict": "yes-nine-is-a",
}


def answered(learner: User, *slugs: str) -> None:
    for question in Question.objects.filter(slug__in=slugs):
        card = scheduled([(timezone.now(), "right", None)])
        ReviewCard.objects.create(learner=learner, question=question, **card)


def rows(package: bytes, query: str) -> list[Any]:
    """Ask the collection inside a package."""
    with closing(sqlite3.connect(":memory:")) as collection:
        collection.deserialize(zipfile.ZipFile(BytesIO(package)).read("collection.anki2"))
        return collection.execute(query).fetchall()


def notes(client: Client) -> dict[str, list[str]]:
    """Return the fields of each note in the deck, by its guid, and with its tags at the end."""
    found = rows(client.get(URL).content, "SELECT guid, flds, tags FROM notes")
    return {guid: [*fields.split("\x1f"), tags] for guid, fields, tags in found}


def revised(question: Question, kind: str, **content: Any) -> QuestionVersion:
    version = QuestionVersion.objects.create(question=question, kind=kind, title="x", **content)
    version.make_current()
    return version


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_question_in_front_and_its_key_behind(signed_in: Client, learner: User, kind: str):
    answered(learner, KINDS[kind])
    version = Question.objects.with_current().get(slug=KINDS[kind]).current
    assert version

    ((front, back, tags),) = notes(signed_in).values()

    assert tags.split() == [version.question.topic.slug, version.question.level, kind]
    assert "60 seconds" in back
    assert "60 seconds" not in front
    listens, _, warning = back.partition("What makes the interviewer wince")
    assert listens.rpartition("listens for")[2].count("<li>") == len(version.listens_for)
    assert 'class="warns"' in warning
    if kind in {"single_choice", "multiple_choice"}:
        assert front.count("<li>") == back.count('class="why"') == version.options.count()
        assert back.count("Right: ") == version.options.filter(is_key=True).count()
        assert "Right: " not in front
    elif kind == "numeric":
        assert "&#123;" not in front  # each parameter has its number
        assert re.search(rf'class="key">[\d,.]+ {version.details["numeric"]["unit"]}<', back)
    elif kind == "short_text":
        assert version.details["accepted"][0] in back
    elif kind == "predict":
        assert version.details["predict"]["prompt"][:12] in front
        assert f"Right: <code>·prime</code> {version.details['predict']['found'][0]['probability']:.3f}" in back
        assert "Right: " not in front
    elif kind == "ordering":
        assert back.index(version.details["items"][0][:20]) < back.index(version.details["items"][-1][:20])
    else:
        assert back.count('class="key"') == len(version.details["rubric"])


def test_the_deck_comes_as_a_file_that_anki_opens(signed_in: Client, learner: User):
    answered(learner, *KINDS.values())

    response = signed_in.get(URL)

    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"] == 'attachment; filename="next-token.apkg"'
    assert zipfile.ZipFile(BytesIO(response.content)).testzip() is None
    ((models, decks),) = rows(response.content, "SELECT models, decks FROM col")
    assert list(json.loads(models)) == [str(MODEL_ID)]
    assert json.loads(decks)[str(DECK_ID)]["name"] == "Next Token"
    assert rows(response.content, "SELECT count(*), count(DISTINCT nid) FROM cards") == [(len(KINDS), len(KINDS))]
    assert rows(response.content, "SELECT DISTINCT mid FROM notes") == [(MODEL_ID,)]


def test_a_deck_leaves_no_file_behind(
    signed_in: Client, learner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    answered(learner, KINDS["numeric"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    signed_in.get(URL)

    assert list(tmp_path.iterdir()) == []


def test_only_what_i_have_answered_is_in_my_deck(signed_in: Client, learner: User):
    answered(learner, KINDS["numeric"])
    answered(User.objects.create_user("bob"), KINDS["explain"], KINDS["predict"])

    ((_, _, tags),) = notes(signed_in).values()

    assert "numeric" in tags.split()


def test_labs_and_what_is_no_longer_published_are_left_out(signed_in: Client, learner: User, chatbot: Question):
    lab = Question.objects.published().filter(current__kind="lab").first()
    assert lab
    answered(learner, lab.slug, chatbot.slug, KINDS["numeric"])
    Question.objects.filter(pk=chatbot.pk).update(status="archived")

    assert len(notes(signed_in)) == 1


def test_an_empty_deck_says_so_and_where_to_begin(client: Client, signed_in: Client):
    for browser in (Client(), signed_in):
        response = browser.get(URL)
        assert response.status_code == 200
        assert "Your deck is empty" in response.content.decode()
        assert reverse("quizzes:drills") in response.content.decode()


def test_the_same_content_is_the_same_file_on_another_day(signed_in: Client, learner: User):
    answered(learner, *KINDS.values())
    first = signed_in.get(URL).content

    with time_machine.travel(timezone.now() + timedelta(days=3)):
        assert signed_in.get(URL).content == first


def test_a_new_version_is_the_same_note_with_a_newer_date(signed_in: Client, learner: User, chatbot: Question):
    answered(learner, *KINDS.values())
    first, first_dates = notes(signed_in), rows(signed_in.get(URL).content, "SELECT DISTINCT mod FROM notes")

    with time_machine.travel(timezone.now() + timedelta(days=3), tick=False):
        revised(chatbot, "single_choice", text="Quite new?")
    later, later_dates = notes(signed_in), rows(signed_in.get(URL).content, "SELECT DISTINCT mod FROM notes")

    assert first.keys() == later.keys()
    (changed,) = [guid for guid in first if first[guid] != later[guid]]
    assert "Quite new?" in later[changed][0]
    assert later_dates > first_dates  # Anki takes over what is newer


HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(1)</script> {{FrontSide}} {{c1::x}} {{{Answer}}} "
    "[a](javascript:alert(1)) [sound:x.mp3] [latex]x[/latex] `{{Tags}}`"
)
HOSTILE_DETAILS: dict[str, dict[str, Any]] = {
    "single_choice": {},
    "multiple_choice": {},
    "numeric": {
        "numeric": {"parameters": {}, "formula": "1", "unit": HOSTILE, "tolerance": 0, "decimals": 0, "traps": []}
    },
    "ordering": {"items": [HOSTILE, "b", "c"]},
    "short_text": {"accepted": [HOSTILE], "ignore_case": True, "near": []},
    "explain": {"rubric": [{"point": HOSTILE, "words": []}]},
    "predict": {
        "predict": {
            "prompt": HOSTILE,
            "model": HOSTILE,
            "step": 1,
            "settings": {HOSTILE: HOSTILE},
            "found": [{"token": HOSTILE, "probability": 0.5}],
        }
    },
}


@pytest.mark.parametrize("kind", HOSTILE_DETAILS)
def test_what_an_author_wrote_is_neither_markup_nor_read_by_anki(
    signed_in: Client, learner: User, chatbot: Question, kind: str
):
    texts = dict.fromkeys(("text", "answer", "warning", "explanation"), HOSTILE)
    version = revised(chatbot, kind, **texts, listens_for=[HOSTILE], details=HOSTILE_DETAILS[kind])
    Option.objects.create(version=version, text=HOSTILE, why=HOSTILE, is_key=True)
    answered(learner, chatbot.slug)

    ((front, back, _),) = notes(signed_in).values()

    for html in (front, back):
        assert "FrontSide" in html
        for live in ("<script", "<img", "{{", "}}{", "[sound", "[latex", 'href="javascript'):
            assert live not in html


def test_lines_of_code_stay_lines_and_a_line_end_can_be_seen(signed_in: Client, learner: User):
    answered(learner, "token-not-appended", "after-the-last-number")

    fronts = "".join(front for front, _, _ in notes(signed_in).values())

    assert "<pre><code>for step in range(20):\n    out.append" in fronts
    assert "<code>↵</code>" in fronts


def test_a_key_that_cannot_be_computed_costs_its_note_alone_and_its_authors_hear_of_it(
    signed_in: Client, learner: User, chatbot: Question
):
    broken = {"parameters": {}, "formula": "1 / 0", "unit": "tokens", "tolerance": 0, "decimals": 0, "traps": []}
    version = revised(chatbot, "numeric", text="How many?", details={"numeric": broken})
    answered(learner, chatbot.slug, KINDS["explain"])

    for _ in range(2):
        assert len(notes(signed_in)) == 1

    report = Report.objects.get(version=version)
    assert report.reason == "broken"
    assert "1 / 0" in report.text


def test_the_number_of_queries_does_not_grow_with_the_deck(signed_in: Client, learner: User):
    answered(learner, KINDS["single_choice"])
    with CaptureQueriesContext(connection) as for_one:
        signed_in.get(URL)

    others = Question.objects.exclude(slug=KINDS["single_choice"])
    answered(learner, *others.values_list("slug", flat=True))
    with CaptureQueriesContext(connection) as for_all:
        signed_in.get(URL)

    assert len(for_all) == len(for_one)
