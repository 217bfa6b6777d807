"""A guest's work that moves to an account: also when the button is pressed twice, or something still goes on."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from quizsite.accounts.models import User
from quizsite.classes.models import ExtraTime, Membership
from quizsite.labs import engine
from quizsite.labs.models import LabResult, Run
from quizsite.questions.models import Report
from quizsite.quizzes.joining import move_work
from quizsite.quizzes.models import Answer, Attempt, Mark, ReviewCard, SavedQuestion
from tests.quizsite.pages import HTMX
from tests.quizsite.test_accounts import NEW, PASSWORD, practise, sign_in
from tests.quizsite.test_attempts import CHOICE, NUMBER, begin, send, token_at, url_of

pytestmark = pytest.mark.django_db

MOVED = {Answer, Attempt, Run, LabResult, ReviewCard, SavedQuestion, Report}
OF_ACCOUNTS = {LogEntry, Membership, ExtraTime, Mark}  # no guest has any


@pytest.fixture
def account(db: None) -> User:
    return User.objects.create_user("grace", "grace@example.org", PASSWORD)


@pytest.fixture
def guest(client: Client) -> User:
    """A guest with one answer, in the browser `client`."""
    practise(client, CHOICE)
    return User.objects.get(is_guest=True)


def at_once(*presses: Callable[[], Any]) -> list[Any]:
    """Do all of it in parallel, and return what came of each."""
    results: list[Any] = []
    start = threading.Barrier(len(presses))

    def run(press: Callable[[], Any]) -> None:
        start.wait()
        try:
            results.append(press())
        except BaseException as error:
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(press,)) for press in presses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_whatever_belongs_to_a_learner_is_known_to_move():
    assert {field.related_model for field in User._meta.related_objects} == {*MOVED, *OF_ACCOUNTS}


def test_a_guest_who_has_moved_already_is_moved_once(guest: User, account: User):
    second = User.objects.get(pk=guest.pk)  # as another request has read it

    move_work(guest, account)
    move_work(second, account)

    assert Answer.objects.by(account).count() == 1
    assert list(User.objects.all()) == [account]


@pytest.mark.django_db(transaction=True)
def test_two_presses_of_sign_in_move_the_work_once(transactional_db: None):
    call_command("load_content", verbosity=0)
    account = User.objects.create_user("grace", password=PASSWORD)
    client = Client()
    practise(client, CHOICE)
    browsers = [Client(), Client()]  # one browser: two requests under one session
    for browser in browsers:
        browser.cookies.update(client.cookies)

    responses = at_once(*(partial(sign_in, browser) for browser in browsers))

    assert [getattr(response, "status_code", response) for response in responses] == [302, 302]
    assert Answer.objects.by(account).count() == 1
    assert list(User.objects.all()) == [account]


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_a_name_at_the_same_moment_one_has_it(transactional_db: None, settings: Settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]  # slow: both have looked before

    responses = at_once(*[lambda: Client().post(reverse("quizzes:sign-up"), NEW)] * 2)

    assert sorted(getattr(response, "status_code", 500) for response in responses) == [302, 422]
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_other_tabs_send_during_a_sign_in_is_no_error(transactional_db: None):
    call_command("load_content", verbosity=0)
    account = User.objects.create_user("grace", password=PASSWORD)
    for _ in range(8):
        first, second, third = tabs = [Client(), Client(), Client()]
        practise(first, CHOICE)
        attempt = begin(User.objects.exclude(pk=account.pk).latest("pk"), NUMBER, CHOICE)
        url = url_of(attempt)
        form = {"token": token_at(first, url), "number": "12"}
        for tab in tabs:
            tab.cookies.update(first.cookies)

        responses = at_once(
            partial(sign_in, first),
            partial(second.post, url, form, **HTMX),
            partial(third.post, "/lab/sky-loop/", {"do": "run", "temperature": "0"}),
        )

        assert {getattr(response, "status_code", repr(response)) for response in responses} <= {200, 302, 403, 404}
        assert Attempt.objects.get(pk=attempt.pk).learner == account


def test_what_the_guest_typed_and_did_not_send_is_judged_with_the_attempt_that_ends(
    client: Client, guest: User, account: User
):
    begin(account, NUMBER)
    theirs = begin(guest, NUMBER)
    url = url_of(theirs, name="draft")
    client.post(url, {"token": token_at(client, url), "number": "12,5"}, **HTMX)

    sign_in(client)

    answer = Answer.objects.get(slot__attempt=theirs)
    assert (answer.learner, answer.response["typed"]) == (account, "12,5")
    assert ReviewCard.objects.by(account).filter(question__slug=NUMBER).exists()


def test_an_attempt_that_only_the_guest_had_goes_on_in_the_account(client: Client, guest: User, account: User):
    attempt = begin(guest, NUMBER, CHOICE)
    send(client, attempt, number="1")

    sign_in(client)

    assert "Question 2 of 2" in client.get(attempt.get_absolute_url(), follow=True).content.decode()
    assert send(client, attempt, 2, option="").status_code == 422
    assert Attempt.objects.by(account).open().count() == 1


def test_a_run_that_goes_on_is_stopped_where_it_is_and_keeps_its_tokens(client: Client, account: User):
    client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"}, **HTMX)
    show = engine.show_of(Run.objects.with_recording().get())
    show.live.wait(3)
    show.n_steps = 3

    sign_in(client)

    run = Run.objects.get()
    assert (run.learner, run.finish_reason, run.n_steps) == (account, "cancelled", 3)
    assert show.is_stopped


def test_the_work_stays_the_guests_while_the_password_is_wrong(client: Client, guest: User, account: User):
    assert sign_in(client, password="wrong").status_code == 422

    assert Answer.objects.get().learner == guest
    assert "Keep my answers" in client.get("/").content.decode()
