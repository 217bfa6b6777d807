"""Coming back from the sign-in page too late: what was typed is shown, and nothing that counts has changed."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.quizzes.models import Answer, Attempt
from tests.quizsite.pages import HTMX
from tests.quizsite.test_attempts import EXPLAIN, NUMBER, begin, send, token_at, url_of

pytestmark = pytest.mark.django_db

PASSWORD = "a rather long password"
TYPED = "what I was typing when it ended"


@pytest.fixture
def account(db: None) -> User:
    return User.objects.create_user("grace", password=PASSWORD)


def sign_in(client: Client) -> None:
    client.post(reverse("quizzes:sign-in"), {"username": "grace", "password": PASSWORD})


def type_without_session(client: Client, attempt: Attempt) -> None:
    """Open a question, lose the session, and go on typing."""
    url = url_of(attempt)
    token = token_at(client, url)
    Session.objects.all().delete()
    response: Any = client.post(f"{url}draft/", {"token": token, "text": TYPED, "number": "7"}, **HTMX)
    assert "HX-Redirect" in response.headers


def test_after_the_time_is_up_it_is_shown_and_does_not_count(client: Client, account: User):
    sign_in(client)
    attempt = begin(account, EXPLAIN, NUMBER, mode="mock", minutes=20)
    type_without_session(client, attempt)

    with time_machine.travel(timezone.now() + timedelta(minutes=30)):
        sign_in(client)
        html = client.get(url_of(attempt)).content.decode()

    assert "The time was up when this came" in html
    assert TYPED in html
    assert "before you signed in" not in html
    assert not Answer.objects.exists()


def test_after_the_question_was_answered_elsewhere_it_is_shown_beside_the_verdict(client: Client, account: User):
    sign_in(client)
    attempt = begin(account, NUMBER, EXPLAIN)
    type_without_session(client, attempt)
    sign_in(client)
    elsewhere = Client()
    elsewhere.force_login(account)
    send(elsewhere, attempt, number="1")

    html = client.get(url_of(attempt)).content.decode()

    assert "What you sent now does not count" in html
    assert TYPED in html
    assert Answer.objects.get().response["typed"] == "1"
