"""What a search keeps to itself until a question is judged, and the index behind it; a card with its verdict."""

import re
import threading
from html import unescape
from importlib import import_module
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import Option, Question, QuestionVersion, Report, SearchText, Topic
from quizsite.questions.search import index_all
from quizsite.quizzes.models import Answer, SavedQuestion
from tests.quizsite.pages import HTMX
from tests.quizsite.test_attempts import begin, send

pytestmark = pytest.mark.django_db


def publish(slug: str) -> Question:
    """Make a question whose words stand nowhere else: it asks with `quokka` and explains with `wombat`."""
    question = Question.objects.create(slug=slug, topic=Topic.objects.all()[0], level="scenario", status="published")
    version = QuestionVersion.objects.create(
        question=question,
        kind="single_choice",
        title="A quokka?",
        text="Why does the quokka hop?",
        answer="It has a wombat.",
        warning="Never say potoroo.",
        listens_for=["bilby"],
        follow_ups=[{"text": "And a quoll?", "question": None}],
        digest="x",
    )
    for position, text in enumerate(["Its legs", "Its tail"]):
        Option.objects.create(version=version, position=position, text=text, why=f"{text}.", is_key=position == 0)
    version.make_current()
    return question


@pytest.fixture
def quokka(db: None) -> Question:
    return publish("quokka")


def answer(learner: User, question: Question, *, right: bool) -> None:
    assert question.current
    option = question.current.options.get(is_key=right)
    Answer.objects.record(learner, question.current, {"option": str(option.public_id)}, uuid4(), Asking(""))


def page_of(client: Client, **query: str) -> str:
    return client.get(reverse("quizzes:questions"), query).content.decode()


def listed(client: Client, **query: str) -> list[str]:
    return re.findall(r'<h2><a href="/questions/([\w-]+)/">', page_of(client, **query))


@pytest.mark.parametrize("word", ["wombat", "potoroo", "bilby", "quoll"])
def test_what_a_mock_interview_has_not_judged_yet_is_not_searched(
    signed_in: Client, learner: User, quokka: Question, word: str
):
    attempt = begin(learner, "quokka", mode="mock", minutes=20)
    assert quokka.current
    send(signed_in, attempt, option=quokka.current.options.get(is_key=True).public_id)
    before = listed(signed_in, q=word)
    attempt.finish()

    assert before == []
    assert listed(signed_in, q=word) == ["quokka"]


def test_what_another_learner_has_answered_is_not_searched(signed_in: Client, learner: User, quokka: Question):
    answer(User.objects.create_user("eve"), quokka, right=True)

    assert listed(signed_in, q="wombat") == []


def test_words_of_the_question_and_words_of_its_reasons_do_not_match_together(
    signed_in: Client, learner: User, quokka: Question
):
    answer(learner, quokka, right=True)

    assert listed(signed_in, q="hop wombat") == []


def test_the_migration_indexes_the_questions_that_are_there(client: Client, quokka: Question):
    SearchText.objects.all().delete()
    before = listed(client, q="quokka")
    import_module("quizsite.questions.migrations.0004_search").fill(apps, None)

    assert before == []
    assert listed(client, q="quokka") == ["quokka"]


def test_the_index_written_anew_is_the_one_that_versions_write(client: Client, quokka: Question):
    before = set(SearchText.objects.values_list("question", "asked", "reasons"))
    SearchText.objects.filter(question=quokka).update(asked="platypus", reasons="")
    changed = listed(client, q="platypus")
    index_all()

    assert changed == ["quokka"]
    assert set(SearchText.objects.values_list("question", "asked", "reasons")) == before
    assert listed(client, q="platypus") == []


@pytest.mark.parametrize("typed", ["㌖" * 200, "ﷺ" * 200, "ΐ" * 200, "\u202equokka", "\U0010ffff", "quokka " * 500])
def test_letters_that_grow_when_they_are_taken_apart_are_a_search_too(client: Client, quokka: Question, typed: str):
    assert client.get(reverse("quizzes:questions"), {"q": typed}).status_code == 200


def test_signs_in_a_search_survive_on_page_two_and_questions_keep_their_order(client: Client):
    slugs = [publish(f"quokka-{n:02}").slug for n in range(30)]

    first = page_of(client, q="quokka & hop?#+%")
    more = re.search(r'href="(\?[^"]*)">More<', first)
    assert more
    second = client.get(reverse("quizzes:questions") + unescape(more[1])).content.decode()

    assert re.findall(r'<h2><a href="/questions/([\w-]+)/">', first + second) == slugs
    assert 'value="quokka &amp; hop?#+%"' in second


def test_a_card_shows_its_learner_how_it_went_last_time(signed_in: Client, learner: User, quokka: Question):
    answer(learner, quokka, right=True)
    right = page_of(signed_in, q="quokka")
    answer(learner, quokka, right=False)
    wrong = page_of(signed_in, q="quokka")

    assert 'class="chip right"' in right
    assert 'class="chip right"' not in wrong
    assert 'class="chip wrong"' in wrong
    assert 'class="chip wrong"' not in page_of(Client(), q="quokka")


def test_a_report_gives_nothing_of_the_key_away(signed_in: Client, quokka: Question):
    url = reverse("quizzes:report", args=["quokka"])
    said = {"version": quokka.current_id, "reason": "key"}

    pages = [signed_in.post(url, said | {"text": "x" * 1001}, **extra) for extra in (HTMX, {})]
    pages.append(signed_in.post(url, said, **HTMX))

    for page in pages:
        assert not {"wombat", "potoroo", "bilby", "quoll"} & set(re.findall(r"\w+", page.content.decode()))


@pytest.mark.parametrize("name", ["save", "report"])
def test_nothing_is_saved_or_reported_by_a_link_or_from_another_site(learner: User, quokka: Question, name: str):
    client = Client(enforce_csrf_checks=True)
    client.force_login(learner)
    url = reverse(f"quizzes:{name}", args=["quokka"])

    assert client.get(url).status_code == 405
    assert client.post(url, {"saved": "true", "version": quokka.current_id, "reason": "key"}).status_code == 403
    assert not SavedQuestion.objects.exists()
    assert not Report.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_presses_are_one_saved_question_and_one_report(chatbot_elsewhere: Question):
    learner = User.objects.create_user("ada")
    statuses: list[int] = []

    def press() -> None:
        tab = Client()
        tab.force_login(learner)
        said = {"saved": "true", "version": chatbot_elsewhere.current_id, "reason": "key"}
        for name in ("save", "report"):
            url = reverse(f"quizzes:{name}", args=[chatbot_elsewhere.slug])
            statuses.append(tab.post(url, said, **HTMX).status_code)
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [200] * 40
    assert SavedQuestion.objects.count() == 1
    assert Report.objects.count() == 1
