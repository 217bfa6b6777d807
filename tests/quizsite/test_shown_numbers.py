"""Numbers are drawn for a learner and a try. Both can change while a form is open: it is judged by what it showed."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from quizsite.questions.models import Question
from quizsite.quizzes.models import Answer
from tests.quizsite.pages import HTMX, field
from tests.quizsite.test_kinds import POSITIONS, version_of

pytestmark = pytest.mark.django_db

PASSWORD = "a rather long password"
ACCOUNT = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}

Form = dict[str, str]


@pytest.fixture
def question(db: None) -> Question:
    return version_of(POSITIONS).question


@pytest.fixture
def form(client: Client, question: Question) -> Form:
    """The form of the first try, open in some tab, with the right answer to the numbers that it shows."""
    return read_form(client, question)


def read_form(client: Client, question: Question) -> Form:
    html = client.get(f"{question.get_absolute_url()}?again").content.decode()
    prompt, new = numbers_in(html)
    number = new * prompt + new * (new - 1) // 2
    return {"number": str(number)} | {name: field(html, name) for name in ("token", "version", "asking")}


def numbers_in(html: str) -> tuple[int, int]:
    found = re.search(r"A prompt of ([\d,]+) tokens, an answer of ([\d,]+) tokens", html)
    assert found
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def verdict_of(client: Client, question: Question, form: Form) -> str:
    assert client.post(question.get_absolute_url(), form, **HTMX).status_code == 200
    return Answer.objects.order_by("pk").reverse()[0].verdict


def test_a_form_from_before_a_sign_up_is_judged_by_its_own(client: Client, question: Question, form: Form):
    client.post(reverse("quizzes:sign-up"), ACCOUNT)

    assert verdict_of(client, question, form) == "right"


def test_a_form_from_before_another_tab_was_answered_is_judged_by_its_own(
    client: Client, question: Question, form: Form
):
    other = read_form(client, question)
    assert verdict_of(client, question, other) == "right"

    assert verdict_of(client, question, form) == "right"
    assert read_form(client, question)["number"] != form["number"]


def test_a_number_that_cannot_be_read_leaves_them_as_they_were(client: Client, question: Question, form: Form):
    shown = numbers_in(client.get(question.get_absolute_url()).content.decode())
    verdict_of(client, question, read_form(client, question))

    response = client.post(question.get_absolute_url(), form | {"number": "a few"}, **HTMX)

    assert response.status_code == 422
    assert numbers_in(response.content.decode()) == shown


@pytest.mark.parametrize("forged", ["", "x", ":", '["ada",1]', "WyJhZGEiLDFd:x", "é:\x00", "x" * 50_000])
def test_nobody_chooses_them(client: Client, question: Question, form: Form, forged: str):
    assert verdict_of(client, question, form | {"asking": forged}) == "right"  # the first try's own


def test_those_of_another_question_are_no_ones_here(client: Client, question: Question, form: Form):
    other = Question.objects.published().exclude(pk=question.pk).filter(current__kind="numeric")[0]
    html = client.get(other.get_absolute_url()).content.decode()

    assert verdict_of(client, question, form | {"asking": field(html, "asking")}) == "right"
