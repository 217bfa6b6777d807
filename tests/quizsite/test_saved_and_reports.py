"""Beside a question: saving it for later, and telling its authors that something is wrong with it."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.questions.models import Question, QuestionVersion, Report
from quizsite.quizzes.models import SavedQuestion
from tests.quizsite.pages import HTMX

pytestmark = pytest.mark.django_db


def save(client: Client, question: Question, saved: str = "true", **extra: Any) -> Any:
    return client.post(reverse("quizzes:save", args=[question.slug]), {"saved": saved}, **extra)


def report(client: Client, question: Question, extra: dict[str, Any] | None = None, **changes: Any) -> Any:
    data = {"version": question.current_id, "reason": "unclear", "text": "What is a turn?"} | changes
    return client.post(reverse("quizzes:report", args=[question.slug]), data, **(extra or {}))


def test_a_question_is_saved_once_and_let_go_again(signed_in: Client, chatbot: Question):
    saved = [save(signed_in, chatbot) for _ in range(2)]
    page = signed_in.get(chatbot.get_absolute_url()).content.decode()
    n_saved = SavedQuestion.objects.count()
    save(signed_in, chatbot, "false")

    assert {response.url for response in saved} == {chatbot.get_absolute_url()}
    assert n_saved == 1
    assert "Remove from saved" in page
    assert SavedQuestion.objects.count() == 0
    assert "Save for later" in signed_in.get(chatbot.get_absolute_url()).content.decode()


def test_htmx_gets_the_button_alone(signed_in: Client, chatbot: Question):
    html = save(signed_in, chatbot, **HTMX).content.decode()

    assert html.strip().startswith("<form")
    assert html.count("<button") == 1
    assert 'name="saved" value="false"' in html


def test_a_visitor_becomes_a_guest_by_saving_and_not_by_letting_go(client: Client, chatbot: Question):
    save(client, chatbot, "false")
    n_before = User.objects.count()
    save(client, chatbot)

    assert n_before == 0
    assert User.objects.get().is_guest
    assert SavedQuestion.objects.get().learner == User.objects.get()


def test_what_one_learner_saves_is_not_saved_for_another(signed_in: Client, chatbot: Question):
    save(signed_in, chatbot)
    other = Client()
    other.force_login(User.objects.create_user("other"))
    save(other, chatbot, "false")

    assert SavedQuestion.objects.count() == 1
    assert "Save for later" in other.get(chatbot.get_absolute_url()).content.decode()


@pytest.mark.parametrize("do", [save, report])
def test_a_question_that_is_not_published_is_neither_saved_nor_reported(signed_in: Client, chatbot: Question, do: Any):
    Question.objects.filter(pk=chatbot.pk).update(status="archived")

    assert do(signed_in, chatbot).status_code == 404


def test_a_report_names_the_version_that_was_shown(signed_in: Client, learner: User, chatbot: Question):
    shown = chatbot.current
    QuestionVersion.objects.create(question=chatbot, kind="single_choice", title="New", digest="x").make_current()
    assert shown

    response = report(signed_in, chatbot, HTMX, version=shown.pk, text=" A turn\r\nis two things. ")

    kept = Report.objects.get()
    assert "The authors have it now" in response.content.decode()
    assert (kept.version, kept.learner, kept.reason, kept.state) == (shown, learner, "unclear", "open")
    assert kept.text == "A turn\nis two things."


def test_the_same_report_again_changes_nothing_and_answers_the_same(signed_in: Client, chatbot: Question):
    first = report(signed_in, chatbot, HTMX)
    second = report(signed_in, chatbot, HTMX, text="And again")
    other_reason = report(signed_in, chatbot, HTMX, reason="key")

    assert first.content == second.content == other_reason.content
    assert list(Report.objects.order_by("pk").values_list("reason", "text")) == [
        ("unclear", "What is a turn?"),
        ("key", "What is a turn?"),
    ]


def test_a_settled_report_can_be_said_again(signed_in: Client, chatbot: Question):
    report(signed_in, chatbot)
    Report.objects.update(state="mended")
    report(signed_in, chatbot)

    assert Report.objects.count() == 2


def test_without_htmx_a_report_leads_back_to_the_question_with_thanks(client: Client, chatbot: Question):
    response = report(client, chatbot)

    assert response.status_code == 302
    assert response.url == f"{chatbot.get_absolute_url()}?reported#report"
    assert "The authors have it now" in client.get(response.url).content.decode()
    assert User.objects.get().is_guest


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"reason": ""}, "Choose what is wrong."),
        ({"reason": "broken"}, "Choose what is wrong."),  # the site's own
        ({"text": "a <b>" + "x" * 996}, "At most 1,000 letters are read, these are 1,001."),
    ],
)
@pytest.mark.parametrize("extra", [{}, HTMX], ids=["plain", "htmx"])
def test_a_report_that_cannot_be_read_keeps_what_was_typed(
    signed_in: Client, chatbot: Question, changes: dict[str, str], problem: str, extra: dict[str, Any]
):
    response = report(signed_in, chatbot, extra, **{"text": "a <b>", **changes})

    html = response.content.decode()
    assert response.status_code == 422
    assert problem in html
    assert "a &lt;b&gt;" in html
    assert ("<html" in html) == (not extra)
    assert Report.objects.count() == 0


def test_a_thousand_letters_with_line_ends_of_a_browser_are_not_too_many(signed_in: Client, chatbot: Question):
    assert report(signed_in, chatbot, HTMX, text="x\r\n" * 499 + "xx").status_code == 200


@pytest.mark.parametrize("version", ["", "x", "0", "9" * 30, "another question's"])
def test_a_version_of_another_question_is_not_reported(signed_in: Client, chatbot: Question, version: str):
    other = Question.objects.exclude(pk=chatbot.pk).filter(current__isnull=False)[0]
    sent = str(other.current_id) if version == "another question's" else version

    assert report(signed_in, chatbot, version=sent).status_code == 404
    assert Report.objects.count() == 0


def test_twenty_open_reports_of_one_learner_are_enough(signed_in: Client, learner: User, chatbot: Question):
    questions = list(Question.objects.published()[:21])
    for question in questions[:20]:
        report(signed_in, question)

    again = report(signed_in, questions[0], HTMX)
    one_more = report(signed_in, questions[20], HTMX)

    assert again.status_code == 200
    assert one_more.status_code == 422
    assert "20 of your reports are open" in one_more.content.decode()
    assert "What is a turn?" in one_more.content.decode()
    assert Report.objects.count() == 20
    Report.objects.filter(version=questions[0].current).update(state="declined")
    assert report(signed_in, questions[20], HTMX).status_code == 200


@pytest.fixture
def author(client: Client, instructor: User) -> Client:
    client.force_login(instructor)
    return client


def test_an_author_reads_the_queue_and_settles_a_report_by_its_state_alone(
    author: Client, learner: User, chatbot: Question
):
    assert chatbot.current
    Report.objects.say(chatbot.current, learner, "unclear", "<script>alert(1)</script>")
    kept = Report.objects.get()
    change = reverse("admin:questions_report_change", args=[kept.pk])

    queue = author.get(reverse("admin:questions_report_changelist"), {"state__exact": "open"}).content.decode()
    page = author.get(change).content.decode()
    author.post(change, {"state": "mended", "text": "other", "reason": "key"})

    assert change in queue
    assert "<script>alert" not in queue + page
    assert reverse("admin:questions_questionversion_change", args=[kept.version_id]) in page
    assert chatbot.get_absolute_url() in page
    kept.refresh_from_db()
    assert (kept.state, kept.reason, kept.text) == ("mended", "unclear", "<script>alert(1)</script>")
    assert author.get(reverse("admin:questions_report_add")).status_code == 403
    assert author.get(reverse("admin:questions_report_delete", args=[kept.pk])).status_code == 403


def test_a_report_is_not_opened_again_beside_the_same_one(author: Client, learner: User, chatbot: Question):
    assert chatbot.current
    Report.objects.say(chatbot.current, learner, "unclear", "first")
    Report.objects.update(state="mended")
    Report.objects.say(chatbot.current, learner, "unclear", "second")
    first = Report.objects.get(text="first")

    response = author.post(reverse("admin:questions_report_change", args=[first.pk]), {"state": "open"})

    assert response.status_code == 200
    assert "has said the same again since" in response.content.decode()
    assert Report.objects.filter(state="open").count() == 1


def test_a_learner_sees_no_queue(signed_in: Client):
    assert signed_in.get(reverse("admin:questions_report_changelist")).status_code == 302
