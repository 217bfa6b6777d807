"""The list of questions: what each filter keeps, what a search finds, and what it does not give away."""

import re
from collections.abc import Iterable
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.questions.models import Option, Question, QuestionVersion, SearchText, Topic
from quizsite.quizzes.models import ReviewCard, SavedQuestion
from tests.quizsite.pages import field

pytestmark = pytest.mark.django_db

ODD_SEARCHES = [
    "",
    "'",
    '"',
    '"""',
    "a OR b",
    "NEAR(a b)",
    "-a",
    "a*",
    "*",
    "title:a",
    "(",
    "\\",
    "%",
    "\x00",
    "\ud800",
]
ODD_SEARCHES += ["x" * 10_000, "كيف حالك", "😀", "हिन्दी", "²", "ﬁ", "' & !x:*", "<b>", "_" * 9, "a " * 5000, "0.7", "½"]


def page_of(client: Client, **chosen: Any) -> str:
    response = client.get(reverse("quizzes:questions"), chosen)
    assert response.status_code == 200
    return response.content.decode()


def listed(html: str) -> list[str]:
    return re.findall(r'<h2><a href="/questions/([^/]+)/"', html)


def all_listed(client: Client, **chosen: Any) -> set[str]:
    """Return what is on all pages, following each page's link to the next."""
    html = page_of(client, **chosen)
    found = listed(html)
    while link := re.search(r'href="(\?[^"]*)">More</a>', html):
        html = client.get(reverse("quizzes:questions") + unescape(link[1])).content.decode()
        found += listed(html)
    assert len(found) == len(set(found))
    return set(found)


def slugs(questions: Iterable[Question]) -> set[str]:
    return {question.slug for question in questions}


def give(learner: User, question: Question, verdict: str, due_in_days: int) -> None:
    """Give a card as answers would leave it."""
    now = timezone.now()
    ReviewCard.objects.create(
        learner=learner,
        question=question,
        due=now + timedelta(days=due_in_days),
        last_review=now,
        stability=5,
        difficulty=5,
        state=2,
        n_reviews=1,
        n_missed=0,
        last_verdict=verdict,
    )


def answer(client: Client, question: Question) -> None:
    url = question.get_absolute_url()
    html = client.get(f"{url}?again").content.decode()
    assert question.current
    option = question.current.options.all()[0].public_id
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": option}
    assert client.post(url, data).status_code == 302


@pytest.fixture
def gnu(db: None) -> Question:
    """A question whose words are in no other one: one asks with `gnu`, one explains with `okapi`."""
    question = Question.objects.create(slug="of-a-gnu", topic=Topic.objects.all()[0], level="advanced")
    Question.objects.filter(pk=question.pk).update(status="published")
    revise(question, "Why does the gnu repeat itself?", "An okapi would.")
    return question


def revise(question: Question, text: str, reason: str) -> None:
    version = QuestionVersion.objects.create(
        question=question, kind="single_choice", title="Animals", text=text, answer=reason, digest=uuid4().hex
    )
    for at, (option, why) in enumerate([("A zorilla", "No quagga here."), ("A capybara", "Because of the axolotl.")]):
        Option.objects.create(version=version, position=at, text=option, why=why, is_key=at == 1)
    version.make_current()


@pytest.mark.parametrize(
    ("name", "value", "of"),
    [
        ("level", "advanced", {"level": "advanced"}),
        ("topic", "cost", {"topic__slug": "cost"}),
        ("kind", "numeric", {"current__kind": "numeric"}),
    ],
)
def test_a_filter_keeps_what_it_says_on_every_page(client: Client, name: str, value: str, of: dict[str, str]):
    wanted = slugs(Question.objects.published().filter(**of))

    assert wanted
    assert all_listed(client, **{name: value}) == wanted


def test_mine_lists_by_the_last_verdict_by_what_is_due_and_by_what_is_saved(signed_in: Client, learner: User):
    right, partly, wrong, saved = Question.objects.published().exclude(current__kind="lab")[:4]
    give(learner, right, "right", due_in_days=3)
    give(learner, partly, "partly", due_in_days=3)
    give(learner, wrong, "wrong", due_in_days=-1)
    SavedQuestion.objects.create(learner=learner, question=saved)
    other = User.objects.create_user("other")
    give(other, saved, "wrong", due_in_days=-1)

    found = {mine: all_listed(signed_in, mine=mine) for mine in ("right", "wrong", "due", "saved", "new")}

    assert found["right"] == {right.slug}
    assert found["wrong"] == {partly.slug, wrong.slug}
    assert found["due"] == {wrong.slug}
    assert found["saved"] == {saved.slug}
    assert found["new"] == slugs(Question.objects.published()) - slugs([right, partly, wrong])


def test_to_a_visitor_everything_is_new_and_nothing_is_due(client: Client):
    assert all_listed(client, mine="new") == slugs(Question.objects.published())
    for mine in ("right", "wrong", "due", "saved"):
        html = page_of(client, mine=mine)
        assert listed(html) == []
        assert "No question fits" in html


def test_what_is_due_here_is_what_the_front_page_counts(signed_in: Client, learner: User):
    of_a_lab = Question.objects.published().filter(current__kind="lab")[0]
    asked = Question.objects.published().exclude(current__kind="lab")[0]
    give(learner, of_a_lab, "right", due_in_days=-1)
    give(learner, asked, "right", due_in_days=-1)

    assert all_listed(signed_in, mine="due") == {asked.slug}


def test_filters_and_search_hold_together_and_on_the_next_page(client: Client):
    scenarios, about_models = all_listed(client, level="scenario"), all_listed(client, q="model")

    found = all_listed(client, level="scenario", q="model")

    assert found == scenarios & about_models
    assert 0 < len(found) < min(len(scenarios), len(about_models))
    assert len(about_models) > 25


def test_what_is_unknown_counts_as_not_chosen(client: Client):
    n_all = Question.objects.published().count()

    html = page_of(client, level="hard", topic="x", kind="y", mine="z", page="minus one", nonsense="1")

    assert f'<span class="number">{n_all}</span> questions' in html
    assert len(listed(html)) == 25
    assert "hard" not in html


def test_the_number_of_questions_is_that_of_all_pages(client: Client, gnu: Question):
    html = page_of(client, q="gnu")

    assert '<span class="number">1</span> question' in html
    assert listed(html) == [gnu.slug]


@pytest.mark.parametrize("words", ["gnu", "GNU REPEATS", "gnu capyb", "Gnu, zorilla?", "the gnu", "gnú"])
def test_a_search_finds_title_text_and_options_in_any_form_of_the_words(client: Client, gnu: Question, words: str):
    assert listed(page_of(client, q=words)) == [gnu.slug]


@pytest.mark.parametrize("words", ["gnu giraffe", "gn", "nu"])
def test_all_words_must_be_there_and_a_short_one_as_it_is(client: Client, gnu: Question, words: str):
    assert gnu.slug not in all_listed(client, q=words)


def test_a_word_between_signs_is_found(client: Client, gnu: Question):
    revise(gnu, "Is prefill/decode_step of gnu.example.org at 0.73 a `top_gnat`?", "Yes.")

    for words in ("decode gnu", "prefill/decode_step", "0.73 gnu", "gnat", "example.org"):
        assert gnu.slug in all_listed(client, q=words)


@pytest.mark.parametrize("reason", ["okapi", "axolotl", "quagga"])
def test_a_search_finds_a_reason_only_once_the_question_is_answered(signed_in: Client, gnu: Question, reason: str):
    before = listed(page_of(signed_in, q=reason))
    answer(signed_in, gnu)

    assert before == []
    assert listed(page_of(signed_in, q=reason)) == [gnu.slug]
    assert listed(page_of(Client(), q=reason)) == []


def test_an_answer_to_an_older_version_unlocks_no_reason_of_the_newer(signed_in: Client, gnu: Question):
    answer(signed_in, gnu)
    revise(gnu, "Why does the gnu repeat itself?", "A wombat would.")
    before = listed(page_of(signed_in, q="wombat"))
    answer(signed_in, gnu)

    assert before == []
    assert listed(page_of(signed_in, q="wombat")) == [gnu.slug]
    assert listed(page_of(signed_in, q="okapi")) == []


def test_a_new_version_and_a_question_that_goes_are_followed(client: Client, gnu: Question):
    revise(gnu, "Why does the emu repeat itself?", "An okapi would.")
    found = listed(page_of(client, q="gnu")), listed(page_of(client, q="emu"))
    SearchText.objects.filter(question=gnu).delete()

    assert found == ([], [gnu.slug])
    assert listed(page_of(client, q="emu")) == []


@pytest.mark.parametrize("status", ["draft", "archived"])
def test_a_search_finds_published_questions_alone(client: Client, gnu: Question, status: str):
    Question.objects.filter(pk=gnu.pk).update(status=status)

    assert listed(page_of(client, q="gnu")) == []


@pytest.mark.parametrize("typed", ODD_SEARCHES, ids=lambda typed: ascii(typed)[:12])
def test_nothing_that_is_typed_breaks_a_search(signed_in: Client, gnu: Question, typed: str):
    answer(signed_in, gnu)
    typed_bytes = typed.encode("utf-8", "surrogatepass")

    assert signed_in.get(reverse("quizzes:questions"), {"q": typed_bytes}).status_code == 200


def test_a_search_without_a_word_says_so(client: Client):
    html = page_of(client, q="?!")

    assert "no word to search for" in html
    assert len(listed(html)) == 25


def test_what_is_typed_is_text_in_the_page(client: Client):
    html = page_of(client, q='"><script>alert(1)</script>')

    assert "<script>alert" not in html


def test_levels_are_shown_only_when_asked_for(client: Client):
    chip = '<span class="chip">Scenario</span>'
    hidden = page_of(client, topic="cost")
    (link,) = re.findall(r'href="(\?[^"]*)">Show levels</a>', hidden)
    asked_for = client.get(reverse("quizzes:questions") + unescape(link)).content.decode()

    assert chip not in hidden
    assert chip in asked_for
    assert listed(asked_for) == listed(hidden)
    assert "levels=1" in re.findall(r'href="(\?[^"]*)">More</a>', asked_for)[0]
    assert chip in page_of(client, level="scenario")


def test_a_question_says_its_level_only_when_asked(client: Client, chatbot: Question):
    html = client.get(chatbot.get_absolute_url()).content.decode()

    level = re.search(r"<details[^>]*>\s*<summary[^>]*>Level</summary>.*?</details>", html, re.DOTALL)
    assert level
    assert "Scenario" in level[0]
    assert "Scenario" not in html.replace(level[0], "")


def test_numbers_that_are_not_drawn_yet_are_left_open_in_the_list(client: Client):
    drawn = [
        question
        for question in Question.objects.published().filter(current__kind="numeric").select_related("current")
        if question.current and question.current.details["numeric"]["parameters"]
    ]
    assert drawn

    first = drawn[0].current
    assert first
    html = page_of(client, kind="numeric", q=first.title)

    name = next(iter(first.details["numeric"]["parameters"]))
    assert drawn[0].slug in listed(html)
    assert f"{{{name}}}" not in html


def test_the_number_of_queries_does_not_grow(
    signed_in: Client, learner: User, chatbot: Question, django_assert_max_num_queries: Any
):
    for question in Question.objects.published():
        give(learner, question, "wrong", due_in_days=-1)
        SavedQuestion.objects.create(learner=learner, question=question)

    for chosen in ({}, {"mine": "wrong"}, {"mine": "saved", "q": "temperature", "level": "advanced"}):
        with django_assert_max_num_queries(5):
            page_of(signed_in, **chosen)
