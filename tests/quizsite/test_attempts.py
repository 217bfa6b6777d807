"""Drills, mock interviews and reviews: one answer of a slot, nothing lost while typing, time by the server's clock."""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.questions.models import Question, QuestionVersion, Report
from quizsite.quizzes import picking
from quizsite.quizzes.models import Answer, Attempt, Quiz, ReviewCard, Rule, Slot
from tests.quizsite.pages import HTMX, field, same

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
CHOICE = "chatbot-repeats-one-sentence"  # single choice
NUMBER = "tokens-sent-over-a-chat"
EXPLAIN = "why-the-bill-has-this-shape"


def begin(learner: User, *slugs: str, mode: str = "drill", minutes: int | None = None) -> Attempt:
    """Open an attempt that asks just these questions."""
    quiz = Quiz.objects.of(Rule(mode, n_questions=len(slugs), minutes=minutes))
    deadline = timezone.now() + timedelta(minutes=minutes) if minutes else None
    attempt = Attempt.objects.create(learner=learner, quiz=quiz, deadline=deadline)
    for position, slug in enumerate(slugs, start=1):
        version = Question.objects.with_current().get(slug=slug).current
        assert version
        Slot.objects.create(attempt=attempt, position=position, version=version)
    return attempt


def url_of(attempt: Attempt, position: int = 1, name: str = "slot") -> str:
    return reverse(f"quizzes:{name}", args=[attempt.id, position])


def token_at(client: Client, url: str) -> str:
    return field(client.get(url.removesuffix("draft/")).content.decode(), "token")


def key_of(attempt: Attempt, position: int = 1) -> str:
    return str(attempt.in_order[position - 1].version.options.get(is_key=True).public_id)


def wrong_of(attempt: Attempt, position: int = 1) -> str:
    option = attempt.in_order[position - 1].version.options.filter(is_key=False).first()
    assert option
    return str(option.public_id)


def send(client: Client, attempt: Attempt, position: int = 1, **data: Any) -> Any:
    url = url_of(attempt, position)
    return client.post(url, {"token": token_at(client, url), **data}, **HTMX)


def test_a_drill_starts_at_once_for_a_visitor_and_asks_ten_questions(client: Client):
    response = client.post(reverse("quizzes:start"), {"mode": "drill"}, follow=True)

    (attempt,) = Attempt.objects.all()
    assert attempt.learner.is_guest
    assert attempt.slots.count() == 10
    assert response.redirect_chain[-1][0] == url_of(attempt)
    assert "Question 1 of 10" in response.content.decode()
    assert attempt.slots.exclude(version__kind="lab").count() == 10


def test_starting_again_goes_on_with_what_is_open(signed_in: Client, learner: User):
    for _ in range(2):
        signed_in.post(reverse("quizzes:start"), {"mode": "drill"})

    assert Attempt.objects.by(learner).count() == 1


@pytest.mark.django_db(transaction=True)
def test_twenty_presses_of_start_open_one_attempt(transactional_db: None):
    call_command("load_content", verbosity=0)
    learner = User.objects.create_user("ada")
    failures: list[BaseException] = []

    def press() -> None:
        try:
            picking.start(learner, Rule("drill"))
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert Attempt.objects.count() == 1


def test_a_drill_is_of_its_level_and_topic_and_unknown_ones_count_as_not_chosen(signed_in: Client, learner: User):
    signed_in.post(reverse("quizzes:start"), {"mode": "drill", "level": "advanced", "topic": "selection", "n": "5"})
    signed_in.post(reverse("quizzes:start"), {"mode": "no\x00ne", "level": "\x00", "topic": "’", "n": "-7"})

    narrow, wide = Attempt.objects.by(learner).order_by("started")
    assert {(s.version.question.level, s.version.question.topic.slug) for s in narrow.in_order} == {
        ("advanced", "selection")
    }
    assert narrow.slots.count() <= 5
    assert (wide.quiz.level, wide.quiz.topic, wide.slots.count()) == ("", None, 10)


def test_an_answer_in_a_drill_is_judged_at_once_with_its_reasons(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER)

    html = send(signed_in, attempt, option=key_of(attempt)).content.decode()

    assert "<strong>Right</strong>" in html
    assert "The answer in 60 seconds" in html
    assert url_of(attempt, 2) in html


def test_before_the_answer_nothing_of_the_key_leaves_the_server(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, mode="mock", minutes=20)
    whys = [option.why[:30] for option in attempt.in_order[0].version.options.all()]

    before = signed_in.get(url_of(attempt)).content.decode()
    sent = send(signed_in, attempt, option=key_of(attempt)).content.decode()
    again = signed_in.get(url_of(attempt)).content.decode()

    for html in (before, sent, again):
        assert "verdict" not in html
        assert not any(why in html for why in whys)
        assert "The answer in 60 seconds" not in html


def test_the_same_form_sent_twice_is_one_answer_and_the_same_reply(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER)
    data = {"token": token_at(signed_in, url_of(attempt)), "option": wrong_of(attempt)}

    first = signed_in.post(url_of(attempt), data, **HTMX)
    second = signed_in.post(url_of(attempt), data, **HTMX)

    assert Answer.objects.count() == 1
    assert same(first.content) == same(second.content)
    assert "<strong>Wrong</strong>" in second.content.decode()
    card = ReviewCard.objects.get()
    assert card.n_reviews == 1  # what is sent again does not count again


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_posts_of_a_slot_are_one_answer_and_identical_replies(transactional_db: None):
    call_command("load_content", verbosity=0)
    learner = User.objects.create_user("ada")
    attempt = begin(learner, CHOICE, NUMBER)
    client = Client()
    client.force_login(learner)
    data = {"token": token_at(client, url_of(attempt)), "option": wrong_of(attempt)}
    replies: list[str] = []

    def press() -> None:
        tab = Client()
        tab.cookies.load(client.cookies.output(header="", sep=";"))
        replies.append(same(tab.post(url_of(attempt), data, **HTMX).content))
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Answer.objects.count() == 1
    assert len(replies) == 20
    assert len(set(replies)) == 1


def test_another_choice_in_the_same_form_after_the_answer_does_not_count_and_is_told_so(
    signed_in: Client, learner: User
):
    attempt = begin(learner, CHOICE, NUMBER)
    data = {"token": token_at(signed_in, url_of(attempt)), "option": wrong_of(attempt)}
    signed_in.post(url_of(attempt), data, **HTMX)

    html = signed_in.post(url_of(attempt), data | {"option": key_of(attempt)}, **HTMX).content.decode()

    assert Answer.objects.get().verdict == "wrong"
    assert "<strong>Wrong</strong>" in html
    assert "What you sent now does not count" in html


def test_a_later_tab_cannot_change_the_answer_and_its_text_is_shown(signed_in: Client, learner: User):
    attempt = begin(learner, NUMBER, CHOICE)
    old = token_at(signed_in, url_of(attempt))
    signed_in.post(url_of(attempt, name="draft"), {"token": old, "number": "12"})
    send(signed_in, attempt, number="12")

    html = signed_in.post(url_of(attempt), {"token": old, "number": "977"}, **HTMX).content.decode()

    assert Answer.objects.get().response["typed"] == "12"
    assert "answered before" in html
    assert "977" in html


def test_what_is_typed_is_kept_and_stands_there_on_another_device(signed_in: Client, learner: User):
    attempt = begin(learner, NUMBER, EXPLAIN, "rule-sent-and-still-broken", "order-of-an-agents-turn")
    elsewhere = Client()
    elsewhere.force_login(learner)
    first = attempt.in_order[2].version.options.all()[1]
    html = signed_in.get(url_of(attempt, 4)).content.decode()
    places = re.findall(r'name="(place-[0-9a-f]+)"', html)
    typed: list[dict[str, Any]] = [
        {"number": "12,5"},
        {"text": "The <b>bill</b>\ngrows"},
        {"option": [str(first.public_id)]},
        {name: str(len(places) - at) for at, name in enumerate(places)},
    ]

    for position, data in enumerate(typed, start=1):
        url = url_of(attempt, position, "draft")
        assert "Kept at" in signed_in.post(url, {"token": token_at(signed_in, url), **data}, **HTMX).content.decode()

    pages = [elsewhere.get(url_of(attempt, position)).content.decode() for position in range(1, 5)]
    assert 'value="12,5"' in pages[0]
    assert "The &lt;b&gt;bill&lt;/b&gt;\ngrows</textarea>" in pages[1]
    assert re.search(rf'value="{first.public_id}"\s+checked', pages[2])
    assert re.findall(r'<option value="(\d)" selected', pages[3]) == [
        str(len(places) - at) for at in range(len(places))
    ]
    assert Answer.objects.count() == 0


def test_an_older_tab_does_not_overwrite_what_a_newer_one_has_kept(signed_in: Client, learner: User):
    attempt = begin(learner, EXPLAIN)
    url = url_of(attempt, name="draft")
    old = token_at(signed_in, url)
    signed_in.post(url, {"token": old, "text": "from the newer tab"}, **HTMX)

    html = signed_in.post(url, {"token": old, "text": ""}, **HTMX).content.decode()

    assert attempt.slots.get().typed["text"] == "from the newer tab"
    assert "from the newer tab" in html  # it is told what stands there
    mine = {"token": field(html, "token"), "text": "mine after all"}
    assert "Kept at" in signed_in.post(url, mine, **HTMX).content.decode()
    assert attempt.slots.get().typed["text"] == "mine after all"


def test_an_answer_from_an_older_tab_is_asked_again_with_its_text_kept(signed_in: Client, learner: User):
    attempt = begin(learner, EXPLAIN)
    url = url_of(attempt)
    old = token_at(signed_in, url)
    signed_in.post(f"{url}draft/", {"token": old, "text": "from the newer tab"}, **HTMX)

    refused = signed_in.post(url, {"token": old, "text": "from the older tab, and long enough"}, **HTMX)

    html = refused.content.decode()
    assert refused.status_code == 422
    assert Answer.objects.count() == 0
    assert "from the newer tab" in html
    assert "from the older tab, and long enough</textarea>" in html
    sent = {"token": field(html, "token"), "text": "from the older tab, and long enough"}
    assert signed_in.post(url, sent, **HTMX).status_code == 200
    assert Answer.objects.get().response["text"] == "from the older tab, and long enough"


def test_a_form_of_one_question_is_nothing_to_another(signed_in: Client, learner: User):
    attempt = begin(learner, NUMBER, EXPLAIN)
    token = token_at(signed_in, url_of(attempt, 1))

    signed_in.post(url_of(attempt, 2), {"token": token, "text": "meant for the first question"}, **HTMX)

    assert Answer.objects.count() == 0
    assert not attempt.slots.get(position=2).has_draft


@pytest.mark.parametrize("token", ["", "x", "\x00", str(UUID(int=0)), str(UUID(int=7, version=4))])
def test_a_forged_token_keeps_nothing(signed_in: Client, learner: User, token: str):
    attempt = begin(learner, CHOICE)

    response = signed_in.post(url_of(attempt), {"token": token, "option": key_of(attempt)}, **HTMX)

    assert response.status_code == 422
    assert Answer.objects.count() == 0


def test_another_learners_attempt_is_not_there(client: Client, signed_in: Client, learner: User):
    attempt = begin(User.objects.create_user("bob"), CHOICE)
    urls = [attempt.get_absolute_url(), url_of(attempt), url_of(attempt, name="draft")]
    urls += [reverse("quizzes:finish", args=[attempt.id])]

    for url in urls:
        for method in ("get", "head", "post"):
            assert getattr(signed_in, method)(url).status_code in {404, 405}, (method, url)
    assert signed_in.post(reverse("quizzes:start"), {"mode": "missed", "source": attempt.id}).status_code == 404
    attempt.refresh_from_db()
    assert attempt.finished is None


def test_later_leaves_a_question_open_and_goes_on(signed_in: Client, learner: User):
    attempt = begin(learner, NUMBER, CHOICE)

    response = send(signed_in, attempt, number="1", do="later")

    assert response["HX-Push-Url"] == url_of(attempt, 2)
    assert Answer.objects.count() == 0
    assert attempt.slots.get(position=1).typed["number"] == "1"


def test_a_drill_ends_with_its_last_answer_and_shows_each_beside_its_key(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER)
    send(signed_in, attempt, option=key_of(attempt))
    html = send(signed_in, attempt, 2, number="1").content.decode()

    results = signed_in.get(attempt.get_absolute_url()).content.decode()

    assert "See the results" in html
    assert Attempt.objects.get().finished
    assert re.sub(r"<[^>]+>", "", results.split('class="score number"')[1].split("</p>")[0]).endswith("1 of 2")
    assert "Every answer beside its key" in results
    assert "Drill the 1 I missed" in results
    assert "1 of 1" in results.split("By topic")[1]


def test_only_what_was_wrong_is_asked_again(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER, EXPLAIN)
    send(signed_in, attempt, option=key_of(attempt))
    send(signed_in, attempt, 2, number="1")
    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))

    signed_in.post(reverse("quizzes:start"), {"mode": "missed", "source": attempt.id})

    again = Attempt.objects.get(quiz__mode="missed")
    assert {slot.version.question.slug for slot in again.in_order} == {NUMBER, EXPLAIN}


def test_finishing_judges_what_was_typed_and_not_sent(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER, EXPLAIN, mode="mock", minutes=20)
    for position, data in ((1, {"option": key_of(attempt), "sure": "3"}), (2, {"number": "nonsense"})):
        url = url_of(attempt, position, "draft")
        signed_in.post(url, {"token": token_at(signed_in, url), **data}, **HTMX)

    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))

    answer = Answer.objects.get()  # what cannot be read as an answer is none
    assert (answer.slot, answer.verdict, answer.sure) == (attempt.slots.get(position=1), "right", 3)
    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))
    assert Answer.objects.count() == 1


def test_nothing_is_taken_after_the_end(signed_in: Client, learner: User):
    attempt = begin(learner, EXPLAIN, mode="mock", minutes=20)
    token = token_at(signed_in, url_of(attempt))
    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))

    html = signed_in.post(url_of(attempt), {"token": token, "text": "too late, but mine"}, **HTMX).content.decode()
    kept = signed_in.post(url_of(attempt, name="draft"), {"token": token, "text": "also late"}, **HTMX)

    assert "The time was up" in html
    assert "too late, but mine" in html
    assert "The time is up" in kept.content.decode()
    assert Answer.objects.count() == 0
    assert not attempt.slots.get().has_draft


@pytest.mark.django_db(transaction=True)
def test_saving_and_finishing_at_once_leave_no_text_that_is_not_judged(transactional_db: None):
    call_command("load_content", verbosity=0)
    learner = User.objects.create_user("ada")
    attempt = begin(learner, EXPLAIN, mode="mock", minutes=20)
    client = Client()
    client.force_login(learner)
    token = token_at(client, url_of(attempt))
    text = "prompts are read in one parallel pass"

    def post(url: str, **data: Any) -> None:
        tab = Client()
        tab.cookies.load(client.cookies.output(header="", sep=";"))
        tab.post(url, data, **HTMX)
        connection.close()

    finish = reverse("quizzes:finish", args=[attempt.id])
    calls: list[tuple[str, dict[str, Any]]] = [(url_of(attempt, name="draft"), {"token": token, "text": text})]
    calls += [(finish, {})] * 3
    threads = [threading.Thread(target=post, args=[url], kwargs=data) for url, data in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    slot = attempt.slots.get()
    assert slot.has_draft == Answer.objects.filter(slot=slot).exists()


class TestTime:
    def test_the_server_ends_a_mock_interview_and_counts_what_was_typed_before(self, signed_in: Client, learner: User):
        with time_machine.travel(NOON, tick=False):
            attempt = begin(learner, CHOICE, NUMBER, mode="mock", minutes=20)
            url = url_of(attempt, name="draft")
            data = {"token": token_at(signed_in, url), "option": key_of(attempt)}
        with time_machine.travel(NOON + timedelta(minutes=20, seconds=3), tick=False):
            signed_in.post(url, data, **HTMX)  # typed before the end, and a little late on its way
        with time_machine.travel(NOON + timedelta(minutes=20, seconds=6), tick=False):
            newest = str(attempt.slots.get(position=1).token)
            signed_in.post(url, {"token": newest, "option": wrong_of(attempt)}, **HTMX)

            html = signed_in.get(attempt.get_absolute_url()).content.decode()

        attempt.refresh_from_db()
        assert attempt.finished == NOON + timedelta(minutes=20)
        assert Answer.objects.get().verdict == "right"
        assert "in 20 of 20 minutes" in html

    def test_a_reload_does_not_restart_the_clock(self, signed_in: Client, learner: User):
        with time_machine.travel(NOON, tick=False):
            attempt = begin(learner, CHOICE, mode="mock", minutes=20)
            assert 'data-seconds="1200"' in signed_in.get(url_of(attempt)).content.decode()
        with time_machine.travel(NOON + timedelta(minutes=12), tick=False):
            signed_in.post(reverse("quizzes:start"), {"mode": "mock", "n": "1", "minutes": "90"})

            assert 'data-seconds="480"' in signed_in.get(url_of(attempt)).content.decode()

    def test_an_interview_that_ran_out_is_not_gone_on_with(self, signed_in: Client, learner: User):
        with time_machine.travel(NOON, tick=False):
            signed_in.post(reverse("quizzes:start"), {"mode": "mock", "n": "6"})
        with time_machine.travel(NOON + timedelta(hours=9), tick=False):
            signed_in.post(reverse("quizzes:start"), {"mode": "mock", "n": "6"})

            old, new = Attempt.objects.by(learner).order_by("started")
            assert old.finished == NOON + timedelta(minutes=20)
            assert new.seconds_left == 20 * 60


def test_order_and_numbers_are_the_same_after_a_reload_and_when_seen_again(signed_in: Client, learner: User):
    attempt = begin(learner, CHOICE, NUMBER)
    before = [signed_in.get(url_of(attempt, position)).content.decode() for position in (1, 2)]
    reloaded = [signed_in.get(url_of(attempt, position)).content.decode() for position in (1, 2)]
    send(signed_in, attempt, option=key_of(attempt))
    after = signed_in.get(url_of(attempt)).content.decode()

    texts = [option.text.split("`")[0][:25] for option in attempt.in_order[0].version.options.all()]
    assert [html.split("<h1")[1].split("<form")[0] for html in before] == [
        html.split("<h1")[1].split("<form")[0] for html in reloaded
    ]
    order = [sorted(texts, key=html.find) for html in (before[0], reloaded[0], after)]
    assert order[0] == order[1] == order[2]
    question_page = signed_in.get(attempt.in_order[0].version.question.get_absolute_url()).content.decode()
    assert sorted(texts, key=question_page.find) == order[0]


def test_a_question_that_cannot_be_judged_costs_no_try_and_its_authors_hear_of_it(signed_in: Client, learner: User):
    attempt = begin(learner, NUMBER)
    version = attempt.in_order[0].version
    broken = version.details | {"numeric": version.details["numeric"] | {"formula": "1 / 0"}}
    QuestionVersion.objects.filter(pk=version.pk).update(details=broken)

    for _ in range(2):
        response = send(signed_in, attempt, number="77")
        assert response.status_code == 422
        assert 'value="77"' in response.content.decode()
    practice = signed_in.get(version.question.get_absolute_url()).content.decode()
    data = {"token": field(practice, "token"), "version": version.pk, "number": "77"}
    assert signed_in.post(version.question.get_absolute_url(), data, **HTMX).status_code == 422

    report = Report.objects.get()
    assert (report.reason, report.version, report.learner) == ("broken", version, None)
    assert "1 / 0" in report.text
    assert Answer.objects.count() == 0
    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))
    assert Attempt.objects.get().finished


def test_marks_of_an_explanation_move_its_card_and_its_results(signed_in: Client, learner: User):
    attempt = begin(learner, EXPLAIN)
    send(signed_in, attempt, text="I have not the least idea about this")
    answer = Answer.objects.get()
    n_points = len(answer.version.details["rubric"])
    assert "marked by a first guess" in signed_in.get(attempt.get_absolute_url()).content.decode()

    url = reverse("quizzes:mark", args=[answer.pk])
    response = signed_in.post(url, {"point": list(range(n_points))}, **HTMX)

    assert response.headers["Location"] == url_of(attempt)
    card = ReviewCard.objects.get()
    assert (card.n_reviews, card.last_verdict, card.n_missed) == (1, "right", 0)
    assert "marked by a first guess" not in signed_in.get(attempt.get_absolute_url()).content.decode()


def test_the_number_of_queries_of_a_slot_does_not_grow_with_the_attempt(
    signed_in: Client, learner: User, django_assert_max_num_queries: Any
):
    slugs = list(Question.objects.published().exclude(current__kind="lab").values_list("slug", flat=True)[:50])
    attempt = begin(learner, *slugs)

    with django_assert_max_num_queries(6):
        signed_in.get(url_of(attempt, 25))
    signed_in.post(reverse("quizzes:finish", args=[attempt.id]))
    with django_assert_max_num_queries(8):
        signed_in.get(attempt.get_absolute_url())


@pytest.mark.parametrize("name", ["drills", "mock", "review", "progress"])
def test_the_homes_of_quizzes_are_there_for_a_visitor(client: Client, name: str):
    assert client.get(reverse(f"quizzes:{name}")).status_code == 200
    assert User.objects.count() == 0  # to look makes nobody a guest


def test_a_visitor_with_nothing_due_or_weak_is_told_so(client: Client):
    for mode, words in (("review", "Nothing is due."), ("weak", "There is nothing to weigh yet.")):
        response = client.post(reverse("quizzes:start"), {"mode": mode})
        assert response.status_code == 422
        assert words in response.content.decode()
