"""Asking and answering: verdicts, reasons, one answer for one intent, and nothing given away before it."""

import re
import threading
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from quizsite.accounts.models import User
from quizsite.content.files import CONTENT_DIR
from quizsite.labs.models import Lab, LabResult
from quizsite.questions.kinds.choices import shuffled
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import ImmutableError, Option, Question, QuestionVersion
from quizsite.quizzes.models import Answer
from tests.quizsite.pages import HTMX, field, options

pytestmark = pytest.mark.django_db

QUICK_LABS = sorted(path.stem for path in (CONTENT_DIR / "labs").glob("sky-*.yaml"))


def answer(client: Client, question: Question, option: Option, **extra: Any) -> Any:
    url = question.get_absolute_url()
    html = client.get(f"{url}?again").content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": option.public_id}
    return client.post(url, data, **extra)


def key_of(question: Question) -> Option:
    assert question.current
    return question.current.options.get(is_key=True)


def wrong_of(question: Question) -> Option:
    assert question.current
    option = question.current.options.filter(is_key=False).first()
    assert option
    return option


def test_the_right_option_is_judged_right_with_a_reason_for_every_option(client: Client, chatbot: Question):
    html = answer(client, chatbot, key_of(chatbot), **HTMX).content.decode()

    assert "<strong>Right</strong>" in html
    assert chatbot.current
    for option in chatbot.current.options.all():
        assert escape(option.why.split(".")[0].split("’")[0][:40]) in html.replace("\n", " ")
    assert "The answer in 60 seconds" in html
    assert "What the interviewer listens for" in html
    assert reverse("quizzes:question", args=["penalty-alone-does-not-cure"]) in html


def test_a_wrong_option_is_judged_wrong_and_the_key_is_shown(client: Client, chatbot: Question):
    html = answer(client, chatbot, wrong_of(chatbot), **HTMX).content.decode()

    assert "<strong>Wrong</strong>" in html
    assert "Wrong, your choice" in html
    assert html.count('class="choice right"') == 1


def test_htmx_gets_the_question_alone_and_a_plain_post_is_redirected(client: Client, chatbot: Question):
    part = answer(client, chatbot, key_of(chatbot), **HTMX).content.decode()
    plain = answer(client, chatbot, key_of(chatbot))

    assert part.lstrip().startswith("<article")
    assert plain.status_code == 302
    assert plain.url == f"{chatbot.get_absolute_url()}#main"


def test_a_visitor_becomes_a_guest_with_the_first_answer_and_the_answer_is_there_afterwards(
    client: Client, chatbot: Question
):
    client.get(chatbot.get_absolute_url())
    assert User.objects.count() == 0

    answer(client, chatbot, key_of(chatbot))

    (guest,) = User.objects.all()
    assert guest.is_guest
    assert not guest.has_usable_password()
    assert "<strong>Right</strong>" in client.get(chatbot.get_absolute_url()).content.decode()
    listed = [client.get(reverse("quizzes:questions"), {"page": page}).content.decode() for page in range(1, 9)]
    assert "Right</span>" in "".join(listed)


def test_becoming_a_guest_leaves_the_other_forms_of_the_page_valid(chatbot: Question, loop_lab: Lab):
    client = Client(enforce_csrf_checks=True)
    html = client.get(chatbot.get_absolute_url()).content.decode()
    csrf = field(html, "csrfmiddlewaretoken")
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": key_of(chatbot).public_id}

    first = client.post(chatbot.get_absolute_url(), data | {"csrfmiddlewaretoken": csrf}, **HTMX)
    second = client.post(loop_lab.get_absolute_url(), {"csrfmiddlewaretoken": csrf, "temperature": "0"}, **HTMX)

    assert (first.status_code, second.status_code) == (200, 200)
    assert User.objects.count() == 1


def test_a_page_too_old_to_be_sent_says_so(chatbot: Question):
    response = Client(enforce_csrf_checks=True).post(chatbot.get_absolute_url(), {})

    assert response.status_code == 403
    assert "This page is too old to be sent" in response.content.decode()


def test_the_same_form_sent_again_is_the_same_answer(client: Client, chatbot: Question):
    url = chatbot.get_absolute_url()
    html = client.get(url).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": key_of(chatbot).public_id}

    replies = [client.post(url, data | {"option": option}, **HTMX) for option in options(html)]

    assert Answer.objects.count() == 1
    assert len({reply.content.decode().split("<form")[0] for reply in replies}) == 1


def test_a_new_form_is_a_new_try_and_the_first_one_stays(signed_in: Client, learner: User, chatbot: Question):
    answer(signed_in, chatbot, wrong_of(chatbot))
    answer(signed_in, chatbot, key_of(chatbot))

    tries = Answer.objects.by(learner).order_by("try_number")
    assert [(one.try_number, one.verdict, float(one.score)) for one in tries] == [(1, "wrong", 0), (2, "right", 1)]


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_posts_of_one_form_are_one_answer_of_one_guest(chatbot_elsewhere: Question):
    client = Client()
    url = chatbot_elsewhere.get_absolute_url()
    html = client.get(url).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": options(html)[0]}
    statuses: list[int] = []

    def press() -> None:
        tab = Client()
        tab.cookies.load(client.cookies.output(header="", sep=";"))
        statuses.append(tab.post(url, data, **HTMX).status_code)
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [200] * 20
    assert User.objects.count() == 1
    assert Answer.objects.count() == 1


@pytest.mark.parametrize(
    "slug", ["chatbot-repeats-one-sentence", "long-prompt-short-prompt", "penalty-alone-does-not-cure"]
)
def test_nothing_before_the_answer_gives_it_away(client: Client, slug: str):
    question = Question.objects.get(slug=slug)
    version = question.current
    assert version
    texts = [version.answer, version.warning, version.explanation, *version.listens_for]
    texts += [option.why for option in version.options.all()] + [f["text"] for f in version.follow_ups]
    secrets = [" ".join(text.split())[:40] for text in texts if text]
    bad = {"token": uuid4(), "version": version.pk, "option": uuid4()}

    pages = [
        client.get(question.get_absolute_url()),
        client.get(question.get_absolute_url(), **HTMX),
        client.get(reverse("quizzes:questions")),
        client.get(reverse("quizzes:front")),
        client.post(question.get_absolute_url(), bad, **HTMX),
    ]

    for page in pages:
        shown = " ".join(page.content.decode().split()) + str(page.headers)
        assert "is_key" not in shown
        for secret in secrets:
            assert escape(secret) not in shown
            assert secret not in shown


def test_the_order_of_options_is_the_learners_own_and_stays(chatbot: Question):
    def order(client: Client) -> tuple[str, ...]:
        return tuple(options(client.get(f"{chatbot.get_absolute_url()}?again").content.decode()))

    clients = [Client() for _ in range(12)]
    orders = [order(client) for client in clients]
    answer(clients[0], chatbot, key_of(chatbot))

    assert [order(client) for client in clients] == orders
    assert len(set(orders)) > 3
    assert all(sorted(one) == sorted(orders[0]) for one in orders)


def test_a_pinned_option_keeps_its_place(chatbot: Question):
    version = chatbot.current
    assert version
    last = list(version.options.all())[-1]
    Option.objects.filter(pk=last.pk).update(pinned=True)

    assert {shuffled(version, Asking(f"learner {n}"))[-1] for n in range(20)} == {last}


BAD_POSTS: list[dict[str, Any]] = [
    {},
    {"token": "x"},
    {"token": uuid4()},
    {"token": uuid4(), "option": "x"},
    {"token": uuid4(), "option": "\x00"},
    {"token": uuid4(), "option": uuid4(), "version": "9" * 100},
    {"token": uuid4(), "option": "🙂" * 10_000, "version": "-1"},
    {"token": uuid4(), "option": ["a", "b"], "version": "²"},
]


@pytest.mark.parametrize("data", BAD_POSTS)
def test_whatever_is_sent_is_answered_in_words_and_costs_no_try(
    client: Client, chatbot: Question, data: dict[str, Any]
):
    response = client.post(chatbot.get_absolute_url(), data, **HTMX)

    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert Answer.objects.count() == 0
    assert User.objects.count() == 0


def test_an_answer_belongs_to_its_learner(client: Client, chatbot: Question):
    answer(client, chatbot, key_of(chatbot))

    assert "<strong>" not in Client().get(chatbot.get_absolute_url()).content.decode()


def test_an_answer_keeps_the_version_that_was_answered(client: Client, chatbot: Question):
    answer(client, chatbot, key_of(chatbot))
    old = chatbot.current
    assert old
    new = QuestionVersion.objects.create(question=chatbot, kind=old.kind, title="New", text="New text?", digest="x")
    new.make_current()

    html = client.get(chatbot.get_absolute_url()).content.decode()

    assert "The question has been changed since" in html
    assert "New text?" not in html


def test_a_form_of_an_older_version_is_judged_by_that_version(client: Client, chatbot: Question):
    html = client.get(chatbot.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": key_of(chatbot).public_id}
    QuestionVersion.objects.create(question=chatbot, kind="single_choice", title="New", digest="x").make_current()

    response = client.post(chatbot.get_absolute_url(), data, **HTMX)

    assert "<strong>Right</strong>" in response.content.decode()


def test_a_version_and_its_options_are_written_once(chatbot: Question):
    version = chatbot.current
    assert version
    version.text = "Other"

    with pytest.raises(ImmutableError):
        version.save()
    with pytest.raises(ImmutableError):
        version.options.all()[0].save()
    with pytest.raises(ImmutableError):
        version.delete()


@pytest.mark.parametrize("status", ["draft", "archived"])
def test_only_published_questions_are_there(client: Client, chatbot: Question, status: str):
    Question.objects.filter(pk=chatbot.pk).update(status=status)

    assert client.get(chatbot.get_absolute_url()).status_code == 404
    assert chatbot.get_absolute_url() not in client.get(reverse("quizzes:questions")).content.decode()


def test_a_lab_question_waits_for_the_runs_and_costs_no_try_before(signed_in: Client, learner: User):
    question = Question.objects.get(slug="penalty-alone-does-not-cure")
    html = signed_in.get(question.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "do": "check"}

    early = signed_in.post(question.get_absolute_url(), data, **HTMX)
    signed_in.post(reverse("labs:lab", args=["sky-penalty"]), {"repetition_penalty": "1.3"})
    done = signed_in.post(question.get_absolute_url(), data, **HTMX)

    assert early.status_code == 422
    assert "Your runs do not show it yet. Still to do: it loops all the same." in early.content.decode()
    assert "<strong>Right</strong>" in done.content.decode()
    assert LabResult.objects.get().learner == learner


def test_a_lab_question_given_up_is_wrong_and_shows_the_answer(signed_in: Client):
    question = Question.objects.get(slug="sampling-that-behaves-like-greedy")
    html = signed_in.get(question.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "do": "give_up"}

    html = signed_in.post(question.get_absolute_url(), data, **HTMX).content.decode()

    assert "<strong>Wrong</strong>" in html
    assert "Not shown" in html


def test_the_list_filters_by_level_and_ignores_a_level_that_is_none(client: Client):
    all_of_them = client.get(reverse("quizzes:questions"), {"level": "nonsense"}).content.decode()
    scenarios = client.get(reverse("quizzes:questions"), {"level": "scenario", "page": "x"}).content.decode()

    listed = re.findall(r'class="card".*?href="/questions/([^/]+)/"', scenarios, re.DOTALL)
    assert all_of_them.count('class="card"') == 25
    assert len(listed) == 25
    assert set(Question.objects.filter(slug__in=listed).values_list("level", flat=True)) == {"scenario"}


def test_the_front_page_counts_what_is_there_and_leads_to_a_question_not_answered(client: Client, chatbot: Question):
    before = client.get(reverse("quizzes:front")).content.decode()
    answer(client, chatbot, key_of(chatbot))
    after = client.get(reverse("quizzes:front")).content.decode()

    n_scenarios = Question.objects.published().filter(level="scenario").count()
    assert before.count(" questions, none answered yet") == 5
    assert f"1 of {n_scenarios} answered" in after
    assert f'href="{chatbot.get_absolute_url()}"' not in after
    assert "Six words, stuck since token 6" in before


def test_the_number_of_queries_does_not_grow_with_the_bank(
    client: Client, chatbot: Question, django_assert_max_num_queries: Any
):
    answer(client, chatbot, key_of(chatbot))
    for number in range(40):
        copy = Question.objects.create(slug=f"copy-{number}", topic=chatbot.topic, level="scenario", status="published")
        QuestionVersion.objects.create(
            question=copy, kind="single_choice", title=f"Copy {number}", text="Why?", digest="x"
        ).make_current()
    client.get(reverse("quizzes:front"))  # computes the run that the front page replays

    with django_assert_max_num_queries(5):
        client.get(reverse("quizzes:questions"))
    with django_assert_max_num_queries(8):
        client.get(reverse("quizzes:front"))
    client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})
    with django_assert_max_num_queries(8):
        client.get(chatbot.get_absolute_url())


def test_the_form_of_one_question_does_not_answer_another(client: Client, chatbot: Question):
    other = Question.objects.get(slug="long-prompt-short-prompt")
    html = client.get(chatbot.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "option": key_of(chatbot).public_id}
    client.post(chatbot.get_absolute_url(), data, **HTMX)
    html = client.get(other.get_absolute_url()).content.decode()
    data |= {"version": field(html, "version"), "option": key_of(other).public_id}

    response = client.post(other.get_absolute_url(), data, **HTMX)

    assert response.status_code == 422
    assert "This form has been used for another question" in response.content.decode()


def test_the_next_question_is_one_not_answered_of_the_same_level_first(client: Client, chatbot: Question):
    answer(client, chatbot, key_of(chatbot))

    after = client.get(reverse("quizzes:next"), {"after": chatbot.slug})
    other = Question.objects.get(slug=after["Location"].split("/")[2])
    assert other != chatbot
    assert other.level == chatbot.level
    rest = Question.objects.published().exclude(pk__in=[chatbot.pk, other.pk])
    rest.update(status="archived")
    answer(client, other, key_of(other))
    assert client.get(reverse("quizzes:next"), {"after": "\x00nowhere"})["Location"] == reverse("quizzes:questions")


@pytest.mark.parametrize("slug", QUICK_LABS)
def test_every_panel_stands_beside_a_question(signed_in: Client, chatbot: Question, slug: str):
    lab = Lab.objects.get(slug=slug)
    QuestionVersion.objects.filter(question=chatbot).update(lab=lab)

    before = signed_in.get(chatbot.get_absolute_url()).content.decode()
    inputs = {name: value for name, value in lab.spec.start_inputs.items() if name in lab.allowed}
    response = signed_in.post(lab.get_absolute_url(), {"do": "run", "back": chatbot.get_absolute_url(), **inputs})
    after = signed_in.get(chatbot.get_absolute_url()).content.decode()

    assert lab.title in before
    assert response.status_code == 302
    assert response.url == f"{chatbot.get_absolute_url()}?lab={slug}#lab"  # type: ignore[attr-defined]
    assert 'id="lab-body"' in after
