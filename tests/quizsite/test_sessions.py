"""Sessions: what was typed before a sign-in, how often a password may be tried, whose clock a page shows."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts import tries
from quizsite.accounts.models import User
from quizsite.labs.models import Run
from tests.quizsite.pages import HTMX
from tests.quizsite.test_accounts import NEW, PASSWORD, practise, sign_in
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, begin, url_of

pytestmark = pytest.mark.django_db

ADMIN = "/admin/login/"
FORGED = ("Mars/Olympus", "../../etc/passwd", "x" * 4000, "", "Asia")


@pytest.fixture
def account(db: None) -> User:
    return User.objects.create_user("grace", "grace@example.org", PASSWORD)


@pytest.fixture
def instructor(account: User) -> User:
    account.is_staff = True
    account.save()
    return account


def sessions() -> str:
    return str([session.get_decoded() for session in Session.objects.all()])


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("quizzes:account")).status_code == 200


class TestWhatWasTyped:
    @pytest.mark.parametrize("becomes", ["sign-in", "sign-up"])
    def test_it_survives_a_guest_who_came_between(self, client: Client, account: User, becomes: str):
        attempt = begin(account, NUMBER)
        client.post(url_of(attempt), {"token": "x", "number": "12,5"})
        practise(client, CHOICE)  # as a guest

        if becomes == "sign-in":
            sign_in(client)
        else:
            client.post(reverse("quizzes:sign-up"), NEW)
            attempt = begin(User.objects.get(username="ada"), NUMBER)
            return_to(client, url_of(attempt))

        assert 'value="12,5"' in client.get(url_of(attempt)).content.decode()

    def test_who_signs_in_after_a_sign_out_has_nothing_of_it(self, client: Client, account: User):
        attempt = begin(account, EXPLAIN)
        client.post(url_of(attempt), {"token": "x", "text": "a secret of mine"})
        sign_in(client)
        client.post(reverse("quizzes:sign-out"))
        User.objects.create_user("linus", password=PASSWORD)

        sign_in(client, name="linus")

        assert "a secret of mine" not in sessions()

    def test_who_signs_in_at_the_admin_from_a_session_of_another_has_nothing_of_it(self, client: Client, account: User):
        attempt = begin(account, EXPLAIN)
        client.post(url_of(attempt), {"token": "x", "text": "a secret of mine"})
        sign_in(client)
        User.objects.create_superuser("linus", password=PASSWORD)

        client.post(f"{ADMIN}?next=/admin/", {"username": "linus", "password": PASSWORD})

        assert client.get("/admin/").status_code == 200
        assert "a secret of mine" not in sessions()

    def test_a_password_that_was_typed_is_kept_nowhere(self, client: Client):
        response = client.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert response.headers["Location"] == reverse("quizzes:account")
        assert PASSWORD not in sessions()

    @pytest.mark.parametrize(
        ("typed", "is_said"), [({"text": "half a thought"}, True), ({}, False), ({"text": "x" * 20_001}, False)]
    )
    def test_the_page_says_so_only_if_it_is_kept(
        self, client: Client, account: User, typed: dict[str, str], is_said: bool
    ):
        response = client.post(url_of(begin(account, EXPLAIN)), typed, **HTMX)

        html = client.get(response.headers["HX-Redirect"]).content.decode()

        assert ("What you typed is kept" in html) == is_said

    def test_the_way_back_leads_through_the_other_form_as_well(self, client: Client):
        html = client.get(f"{reverse('quizzes:sign-in')}?next=/review/").content.decode()

        assert f'href="{reverse("quizzes:sign-up")}?next={quote("/review/")}"' in html
        assert client.post(reverse("quizzes:sign-up"), NEW | {"next": "/review/"}).headers["Location"] == "/review/"


def return_to(client: Client, path: str) -> None:
    """Have what was typed wait at another page: the new account's own attempt."""
    session = client.session
    session["typed"] |= {"path": path}
    session.save()


class TestTries:
    def test_a_try_without_a_password_is_none(self, client: Client, account: User):
        for _ in range(9):
            sign_in(client, password="wrong")
        sign_in(client, password="")
        sign_in(client, password="wrong")

        assert sign_in(client).status_code == 422

    def test_a_right_password_starts_the_count_again(self, client: Client, account: User):
        for _ in range(3):
            for _ in range(9):
                sign_in(client, password="wrong")
            assert sign_in(client).status_code == 302
            client.post(reverse("quizzes:sign-out"))

    def test_the_message_says_how_long(self, client: Client, account: User):
        start = datetime(2026, 3, 14, 12, tzinfo=UTC)
        with time_machine.travel(start, tick=False) as clock:
            for _ in range(10):
                sign_in(client, password="wrong")
            waits = []
            for minutes in (0, 3, 14):
                clock.move_to(start + timedelta(minutes=minutes))
                found = re.search(r"Wait [^.]*", sign_in(client).content.decode())
                waits.append(found and found[0])

        assert waits == ["Wait 15 minutes", "Wait 12 minutes", "Wait 1 minute"]

    def test_a_name_in_other_letters_is_the_same_name(self, client: Client, account: User):
        for name in ("grace", "GRACE", "Grace", "gracE") * 3:
            sign_in(client, name=name, password="wrong")

        assert sign_in(client).status_code == 422

    def test_both_doors_count_together(self, client: Client, instructor: User):
        for _ in range(5):
            sign_in(client, password="wrong")
            client.post(ADMIN, {"username": "grace", "password": "wrong"})

        response = client.post(ADMIN, {"username": "grace", "password": PASSWORD})

        assert "Wait 15 minutes" in response.content.decode()
        assert not is_signed_in(client)

    def test_staff_sign_in_at_the_admin(self, client: Client, instructor: User):
        client.post(f"{ADMIN}?next=/admin/", {"username": "grace", "password": PASSWORD})

        assert client.get("/admin/").status_code == 200

    def test_a_learners_right_password_opens_no_admin(self, client: Client, account: User):
        response = client.post(ADMIN, {"username": "grace", "password": PASSWORD})

        assert "for a staff account" in response.content.decode()
        assert not is_signed_in(client)

    def test_deleting_an_account_counts_its_wrong_passwords(self, client: Client, account: User):
        client.force_login(account)
        for _ in range(10):
            client.post(reverse("quizzes:delete"), {"password": "wrong"})

        response = client.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert "Wait 15 minutes" in response.content.decode()
        account.refresh_from_db()
        assert account.is_active

    def test_a_flood_of_other_names_does_not_push_out_the_one_that_waits(self, client: Client, account: User):
        for _ in range(10):
            sign_in(client, password="wrong")
        for number in range(1000):
            tries.begin(f"name-{number}")

        assert sign_in(client).status_code == 422


class TestOwnTime:
    @pytest.fixture
    def run_url(self, client: Client) -> str:
        client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})
        run = Run.objects.get()
        Run.objects.update(created=datetime(2026, 7, 1, 20, 30, tzinfo=UTC))
        return run.get_absolute_url()

    @pytest.mark.parametrize(
        ("cookie", "shown"),
        [
            ("Asia/Tokyo", "2 July 2026, 05:30 JST"),
            ("Asia%2FTokyo", "2 July 2026, 05:30 JST"),
            ("Europe/Berlin", "1 July 2026, 22:30 CEST"),
            *((name, "1 July 2026, 20:30 UTC") for name in FORGED),
        ],
    )
    def test_a_run_is_dated_in_the_zone_of_its_reader(self, client: Client, run_url: str, cookie: str, shown: str):
        client.cookies["timezone"] = cookie

        assert shown in client.get(run_url).content.decode()

    def test_a_zone_is_one_requests_alone(self, client: Client, run_url: str):
        client.cookies["timezone"] = "Asia/Tokyo"
        client.get(run_url)
        client.get("/runs/nowhere/")
        del client.cookies["timezone"]

        assert "20:30 UTC" in client.get(run_url).content.decode()
        assert timezone.get_current_timezone_name() == "UTC"


def test_a_sign_in_gives_the_session_another_key_and_the_forms_another_token(account: User):
    client = Client(enforce_csrf_checks=True)
    client.get(reverse("quizzes:sign-in"))
    before: dict[str, Any] = {name: client.cookies[name].value for name in client.cookies}
    client.cookies["sessionid"] = client.session.session_key or ""

    sign_in(client, csrfmiddlewaretoken=before["csrftoken"])

    assert is_signed_in(client)
    assert client.cookies["csrftoken"].value != before["csrftoken"]
    stale = client.post(reverse("quizzes:account"), {"csrfmiddlewaretoken": before["csrftoken"]})
    assert stale.status_code == 403
    assert "too old to be sent" in stale.content.decode()
