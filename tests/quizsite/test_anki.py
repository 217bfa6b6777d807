"""The deck for Anki: only what its learner has answered, each note under an id that stays."""

import sqlite3
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.questions.models import Option, Question, QuestionVersion
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


def notes(client: Client, folder: Path) -> dict[str, list[str]]:
    """Return the fields of each note in the deck, by its guid, and with its tags at the end."""
    response = client.get(URL)
    assert response.headers["Content-Disposition"] == 'attachment; filename="next-token.apkg"'
    collection = folder / "collection.anki2"
    collection.write_bytes(zipfile.ZipFile(BytesIO(response.content)).read("collection.anki2"))
    connection = sqlite3.connect(collection)
    rows = connection.execute("SELECT guid, flds, tags FROM notes").fetchall()
    connection.close()
    return {guid: [*fields.split("\x1f"), tags] for guid, fields, tags in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_question_in_front_and_its_key_behind(
    signed_in: Client, learner: User, tmp_path: Path, kind: str
):
    answered(learner, KINDS[kind])
    version = Question.objects.with_current().get(slug=KINDS[kind]).current
    assert version

    ((front, back, tags),) = notes(signed_in, tmp_path).values()

    assert kind in tags.split()
    assert "60 seconds" in back
    assert "60 seconds" not in front
    if kind in {"single_choice", "multiple_choice"}:
        assert front.count("<li>") == version.options.count()
        assert back.count("Right: ") == version.options.filter(is_key=True).count()
    elif kind == "numeric":
        assert "{" not in front
    elif kind == "short_text":
        assert version.details["accepted"][0] in back
    elif kind == "predict":
        assert version.details["predict"]["prompt"][:12] in front
        assert version.details["predict"]["found"][0]["token"] in back
    elif kind == "ordering":
        assert back.index(version.details["items"][0][:20]) < back.index(version.details["items"][-1][:20])
    else:
        assert back.count('class="key"') == len(version.details["rubric"])


def test_only_what_i_have_answered_is_in_my_deck(signed_in: Client, learner: User, tmp_path: Path):
    answered(learner, KINDS["numeric"])
    answered(User.objects.create_user("bob"), KINDS["explain"], KINDS["predict"])

    assert len(notes(signed_in, tmp_path)) == 1


def test_an_empty_deck_says_so(client: Client, signed_in: Client):
    for browser in (Client(), signed_in):
        response = browser.get(URL)
        assert response.status_code == 200
        assert "Your deck is empty" in response.content.decode()
    assert reverse("content:anki") == URL


def test_the_same_question_is_the_same_note_also_in_a_later_version(
    signed_in: Client, learner: User, tmp_path: Path, chatbot: Question
):
    answered(learner, *KINDS.values())
    first, again = notes(signed_in, tmp_path), notes(signed_in, tmp_path)
    version = QuestionVersion.objects.create(question=chatbot, kind="single_choice", title="New", text="Quite new?")
    version.make_current()

    later = notes(signed_in, tmp_path)

    assert first == again
    assert first.keys() == later.keys()
    assert [guid for guid in first if first[guid] != later[guid]] == [
        guid for guid in later if "Quite new?" in later[guid][0]
    ]


def test_what_an_author_wrote_is_neither_markup_nor_a_template_of_anki(
    signed_in: Client, learner: User, tmp_path: Path, chatbot: Question
):
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script> {{FrontSide}} {{c1::x}} [a](javascript:alert(1))"
    version = QuestionVersion.objects.create(
        question=chatbot, kind="single_choice", title="x", text=hostile, answer=hostile, listens_for=[hostile]
    )
    Option.objects.create(version=version, text=hostile, why=hostile, is_key=True)
    version.make_current()
    answered(learner, chatbot.slug)

    ((front, back, _),) = notes(signed_in, tmp_path).values()

    for html in (front, back):
        assert "<script" not in html
        assert "<img" not in html
        assert "{{" not in html
        assert 'href="javascript' not in html


def test_the_number_of_queries_does_not_grow_with_the_deck(
    signed_in: Client, learner: User, django_assert_max_num_queries: Any
):
    answered(learner, *Question.objects.values_list("slug", flat=True))

    with django_assert_max_num_queries(4):
        signed_in.get(URL)
