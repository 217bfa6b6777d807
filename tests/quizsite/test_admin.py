"""Authoring in the admin: an edit is a new version, a broken question is refused, runs are read-only."""

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs.models import Lab, Run
from quizsite.questions.models import Question, QuestionVersion
from tests.quizsite.author import form_of

pytestmark = pytest.mark.django_db

LIST = "admin:questions_questionversion_changelist"
ADD = "admin:questions_questionversion_add"


NO_KEY = {f"options-{number}-right": "" for number in range(4)}


def change_url(question: Question) -> str:
    return reverse("admin:questions_questionversion_change", args=[question.current_id])


def test_the_list_shows_each_question_by_its_current_version(author: Client):
    html = author.get(reverse(LIST), {"all": ""}).content.decode()

    assert html.count('class="field-topic') == Question.objects.count()


def test_an_edit_of_a_published_question_makes_a_new_version(author: Client, chatbot: Question):
    old = chatbot.current
    assert old
    assert author.get(change_url(chatbot)).status_code == 200

    response = author.post(change_url(chatbot), form_of(chatbot, title="A chatbot says it again"))

    assert response.status_code == 302, response.context["errors"]
    chatbot.refresh_from_db()
    assert chatbot.current
    assert (chatbot.current.number, chatbot.current.title) == (2, "A chatbot says it again")
    assert [option.text for option in chatbot.current.options.all()] == [option.text for option in old.options.all()]
    old.refresh_from_db()
    assert old.title != "A chatbot says it again"
    assert old.options.count() == 4


def test_an_edit_that_changes_only_the_level_makes_none(author: Client, chatbot: Question):
    # a text area normalises nothing, so the content is the same
    author.post(change_url(chatbot), form_of(chatbot))
    n_versions = chatbot.versions.count()
    chatbot.refresh_from_db()

    author.post(change_url(chatbot), form_of(chatbot, level="advanced"))

    chatbot.refresh_from_db()
    assert chatbot.level == "advanced"
    assert chatbot.versions.count() == n_versions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            NO_KEY,
            "exactly one option must be right, got 0",
        ),
        ({"facts": "Z9"}, "facts, row 1: "),
        ({"text": "word " * 70}, "text must stay under 60 words, got 70"),
        ({"listens_for": "one"}, "listens for: 2 to 3 signs are wanted, got 1"),
        ({"slug": "no-plan-before-the-answer"}, "is taken by another question"),
        ({"kind": "numeric"}, "numeric, formula: "),
        ({"kind": "explain"}, "a rubric must have 4 to 7 points, got 0"),
        ({"options-0-why": ""}, "each option needs its reason"),
    ],
)
def test_a_broken_edit_is_refused_in_words_and_keeps_what_was_typed(
    author: Client, chatbot: Question, changes: dict[str, str], message: str
):
    data = form_of(chatbot, warning="A typed warning", **changes)

    response = author.post(change_url(chatbot), data)

    html = response.content.decode()
    assert response.status_code == 200
    assert message in html
    assert "A typed warning" in html
    assert QuestionVersion.objects.filter(number=2).count() == 0


def test_a_new_question_is_made_with_its_options_and_can_be_answered(author: Client, chatbot: Question):
    data = form_of(chatbot, slug="another-one", title="Another one", status="published")

    response = author.post(reverse(ADD), data)

    assert response.status_code == 302, response.context["errors"]
    made = Question.objects.get(slug="another-one")
    assert made.current
    assert made.current.options.count() == 4
    assert Client().get(made.get_absolute_url()).status_code == 200


def test_questions_are_archived_in_bulk_and_never_deleted(author: Client, chatbot: Question):
    data = {"action": "archive", "_selected_action": [chatbot.current_id]}

    author.post(reverse(LIST), data)

    chatbot.refresh_from_db()
    assert chatbot.status == "archived"
    delete = reverse("admin:questions_questionversion_delete", args=[chatbot.current_id])
    assert author.get(delete).status_code == 403


def test_a_lab_whose_solution_fails_cannot_be_saved(author: Client, loop_lab: Lab):
    url = reverse("admin:labs_lab_change", args=[loop_lab.pk])
    html = author.get(url).content.decode()
    assert "Bring the loop on" in html
    data = {
        "slug": loop_lab.slug,
        "title": loop_lab.title,
        "panel": "trace",
        "facts": "S2",
        "model": "sky",
        "prompt": "the sky is",
        "start": '{"temperature": 0.7, "max_new_tokens": 48, "seed": 17}',
        "allowed": "temperature",
        "seeds": "[17, 6, 9, 19, 5]",
        "goals": '[{"kind": "reproduce_loop", "solution": {"temperature": 1.5}}]',
    }

    refused = author.post(url, data)
    accepted = author.post(url, data | {"goals": '[{"kind": "reproduce_loop", "solution": {"temperature": 0.0}}]'})

    assert "a solution must meet its goal" in refused.content.decode()
    assert accepted.status_code == 302


def test_runs_can_be_looked_at_but_not_changed(author: Client, loop_lab: Lab):
    Client().post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"})
    run = Run.objects.get()

    page = author.get(reverse("admin:labs_run_change", args=[run.pk]))

    assert page.status_code == 200
    assert 'name="finish_reason"' not in page.content.decode()
    assert author.post(reverse("admin:labs_run_change", args=[run.pk]), {"n_steps": 1}).status_code == 403
    assert author.get(reverse("admin:labs_run_add")).status_code == 403


@pytest.mark.parametrize("name", [LIST, ADD, "admin:labs_lab_changelist", "admin:labs_run_changelist"])
def test_a_learner_is_sent_to_the_sign_in_page(signed_in: Client, name: str):
    response = signed_in.get(reverse(name))

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("admin:login"))


def test_making_an_instructor_twice_gives_a_new_password(instructor: User, capsys: pytest.CaptureFixture[str]):
    call_command("make_instructor", "grace")

    out = capsys.readouterr().out
    assert "new password for grace" in out
    password = out.splitlines()[0].split(": ")[1]
    assert Client().login(username="grace", password=password)
    assert not instructor.is_superuser


def test_a_second_author_is_told_and_nothing_is_overwritten(author: Client, chatbot: Question):
    url, data = change_url(chatbot), form_of(chatbot)
    author.post(url, data | {"title": "The title of the first"})

    response = author.post(url, data | {"title": "The title of the second"})

    html = response.content.decode()
    assert "Version 2 was saved since you opened version 1." in html
    assert "The title of the second" in html
    chatbot.refresh_from_db()
    assert chatbot.current
    assert chatbot.current.title == "The title of the first"


def test_saving_says_whether_there_is_a_new_version(author: Client, chatbot: Question):
    changed = author.post(change_url(chatbot), form_of(chatbot, title="Another title"), follow=True)
    chatbot.refresh_from_db()
    same = author.post(change_url(chatbot), form_of(chatbot), follow=True)

    assert "is saved as version 2" in changed.content.decode()
    assert "the text is as it was" in same.content.decode()


def test_a_lab_is_not_deleted(author: Client, loop_lab: Lab):
    assert author.post(reverse("admin:labs_lab_delete", args=[loop_lab.pk]), {"post": "yes"}).status_code == 403
