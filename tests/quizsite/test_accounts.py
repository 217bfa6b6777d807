"""Becoming an account, coming back to it, and leaving: no work is lost, and nobody else's is seen."""

import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.labs.models import Lab, LabResult, Recording, Run
from quizsite.questions.models import Question, Report
from quizsite.quizzes.joining import move_work
from quizsite.quizzes.models import Answer, Attempt, ReviewCard, SavedQuestion
from tests.quizsite.pages import HTMX, field
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, begin, key_of, send, token_at, url_of, wrong_of

pytestmark = pytest.mark.django_db

PASSWORD = "a rather long password"
NEW = {"username": "ada", "email": "ada@example.org", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def account(db: None) -> User:
    return User.objects.create_user("grace", "grace@example.org", PASSWORD)


@pytest.fixture
def guest(client: Client) -> User:
    """A guest with one answer, in the browser `client`."""
    practise(client, CHOICE)
    return User.objects.get(is_guest=True)


def practise(client: Client, slug: str, **data: Any) -> None:
    """Answer a question on its own page, wrongly if it is a choice."""
    question = Question.objects.with_current().get(slug=slug)
    assert question.current
    html = client.get(f"{question.get_absolute_url()}?again").content.decode()
    option = question.current.options.filter(is_key=False).first()
    data = data or {"option": option and option.public_id}
    form = {"token": field(html, "token"), "version": field(html, "version")}
    assert client.post(question.get_absolute_url(), form | data, **HTMX).status_code == 200


def sign_in(client: Client, name: str = "grace", password: str = PASSWORD, **data: Any) -> Any:
    return client.post(reverse("quizzes:sign-in"), {"username": name, "password": password, **data})


class TestSigningUp:
    def test_the_guest_becomes_the_account_with_all_that_they_did(self, client: Client, guest: User):
        response = client.post(reverse("quizzes:sign-up"), NEW)

        assert response.status_code == 302
        user = User.objects.get()
        assert (user.pk, user.username, user.is_guest) == (guest.pk, "ada", False)
        assert user.check_password(PASSWORD)
        assert Answer.objects.get().learner == user
        assert "ada</a>" in client.get("/").content.decode()

    def test_a_visitor_gets_an_account_of_their_own(self, client: Client):
        client.post(reverse("quizzes:sign-up"), NEW)

        assert not User.objects.get(username="ada").is_guest
        assert client.get(reverse("quizzes:account")).status_code == 200

    @pytest.mark.parametrize("name", ["GRACE", "guest-1", "Deleted-2", "a b", "", "x" * 151])
    def test_a_name_that_is_taken_or_the_sites_own_is_refused(
        self, client: Client, account: User, guest: User, name: str
    ):
        response = client.post(reverse("quizzes:sign-up"), NEW | {"username": name})

        assert response.status_code == 422
        guest.refresh_from_db()
        assert guest.is_guest

    def test_a_weak_password_is_refused_with_its_reason(self, client: Client):
        response = client.post(reverse("quizzes:sign-up"), NEW | {"password1": "12345678", "password2": "12345678"})

        assert response.status_code == 422
        assert "entirely numeric" in response.content.decode()


class TestSigningIn:
    def test_the_guests_work_moves_over_and_the_guest_is_gone(self, client: Client, guest: User, account: User):
        Report.objects.create(version=Answer.objects.get().version, learner=guest, reason="unclear")
        SavedQuestion.objects.create(learner=guest, question=Question.objects.get(slug=NUMBER))
        client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})

        assert sign_in(client).status_code == 302

        assert list(User.objects.all()) == [account]
        for model in (Answer, Run, LabResult, ReviewCard, SavedQuestion, Report):
            assert {row.learner for row in model._default_manager.all()} == {account}, model
        assert "Wrong" in client.get(f"/questions/{CHOICE}/").content.decode()

    def test_tries_are_numbered_after_the_accounts_own(self, client: Client, account: User):
        theirs = Client()
        theirs.force_login(account)
        practise(theirs, CHOICE)
        practise(client, CHOICE)
        practise(client, CHOICE)

        sign_in(client)

        assert sorted(Answer.objects.by(account).values_list("try_number", flat=True)) == [1, 2, 3]

    def test_a_form_that_both_have_sent_is_two_answers(self, account: User):
        guest = User.objects.create_user("guest-x", is_guest=True)
        version = Question.objects.with_current().get(slug=NUMBER).current
        assert version
        token = uuid4()
        for learner in (account, guest):
            Answer.objects.create(
                learner=learner, version=version, token=token, try_number=1, response={}, verdict="wrong", score=0
            )

        move_work(guest, account)

        assert Answer.objects.by(account).count() == 2

    def test_the_accounts_open_attempt_stays_and_the_guests_is_ended(self, account: User):
        guest = User.objects.create_user("guest-x", is_guest=True)
        mine, theirs = begin(account, NUMBER), begin(guest, NUMBER)
        alone = begin(guest, EXPLAIN, CHOICE, mode="mock", minutes=20)

        move_work(guest, account)

        states = {attempt.pk: bool(attempt.finished) for attempt in Attempt.objects.by(account)}
        assert states == {mine.pk: False, theirs.pk: True, alone.pk: False}

    def test_of_two_cards_the_one_reviewed_last_stays(self, account: User):
        guest = User.objects.create_user("guest-x", is_guest=True)
        number, choice = (Question.objects.get(slug=slug) for slug in (NUMBER, CHOICE))
        now = timezone.now()
        for learner, question, days, stability in (
            (account, number, 2, 1.0),
            (guest, number, 1, 2.0),
            (account, choice, 1, 3.0),
            (guest, choice, 2, 4.0),
        ):
            ReviewCard.objects.create(
                learner=learner,
                question=question,
                due=now,
                last_review=now - timedelta(days=days),
                stability=stability,
                difficulty=5,
                state=2,
                n_reviews=1,
                n_missed=0,
                last_verdict="right",
            )

        move_work(guest, account)

        assert set(ReviewCard.objects.values_list("learner", "stability")) == {(account.pk, 2.0), (account.pk, 3.0)}

    def test_a_goal_that_both_have_met_stays_the_accounts(self, client: Client, account: User, loop_lab: Lab):
        theirs = Client()
        theirs.force_login(account)
        for browser in (theirs, client):
            browser.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"})
        kept = LabResult.objects.get(learner=account)

        sign_in(client)

        assert LabResult.objects.get() == kept
        assert Run.objects.by(account).count() == 2

    def test_signing_in_goes_on_where_it_came_from_and_nowhere_else(self, client: Client, account: User):
        assert sign_in(client, next="/review/").headers["Location"] == "/review/"
        for hostile in ("https://example.org/", "//example.org/", "javascript:alert(1)", "\\\\example.org"):
            assert sign_in(Client(), next=hostile).headers["Location"] == "/"

    def test_after_ten_wrong_passwords_the_name_waits_and_the_right_one_is_refused_as_well(
        self, client: Client, account: User
    ):
        for _ in range(10):
            assert sign_in(client, password="wrong").status_code == 422

        response = sign_in(Client())
        assert response.status_code == 422
        assert "Wait 15 minutes" in response.content.decode()
        with time_machine.travel(timezone.now() + timedelta(minutes=16)):
            assert sign_in(client).status_code == 302

    def test_other_names_do_not_wait_with_it(self, client: Client, account: User):
        User.objects.create_user("linus", password=PASSWORD)
        for _ in range(11):
            sign_in(client, name="linus", password="wrong")

        assert sign_in(client).status_code == 302

    def test_signing_out_needs_a_post_and_ends_the_session(self, client: Client, account: User):
        sign_in(client)

        assert client.get(reverse("quizzes:sign-out")).status_code == 405
        client.post(reverse("quizzes:sign-out"))

        assert client.get(reverse("quizzes:account")).status_code == 302


class TestASessionThatEndsInMidQuiz:
    def test_htmx_is_sent_to_the_sign_in_page_and_the_typed_text_is_back_after_it(self, client: Client, account: User):
        sign_in(client)
        attempt = begin(account, EXPLAIN)
        url = url_of(attempt)
        token = token_at(client, url)
        Session.objects.all().delete()

        response = client.post(f"{url}draft/", {"token": token, "text": "typed before the end"}, **HTMX)

        assert response.status_code == 200
        assert response.headers["HX-Redirect"] == f"/account/sign-in/?next={url.replace('/', '%2F')}"
        assert response.content == b""
        assert "What you typed is kept" in client.get(response.headers["HX-Redirect"]).content.decode()
        assert sign_in(client, next=url).headers["Location"] == url
        html = client.get(url).content.decode()
        assert "typed before the end</textarea>" in html
        assert "before you signed in" in html
        assert "typed before the end" not in client.get(url).content.decode()  # once; then it is kept by typing on

    def test_a_plain_post_is_redirected_there_and_back_as_well(self, client: Client, account: User):
        attempt = begin(account, NUMBER)
        response = client.post(url_of(attempt), {"token": "x", "number": "12,5"})
        assert response.headers["Location"].startswith("/account/sign-in/?next=")

        sign_in(client, next=url_of(attempt))

        assert 'value="12,5"' in client.get(url_of(attempt)).content.decode()

    def test_another_who_signs_in_does_not_see_it(self, client: Client, account: User):
        attempt = begin(account, EXPLAIN)
        client.post(url_of(attempt), {"token": "x", "text": "a secret of mine"})
        User.objects.create_user("linus", password=PASSWORD)

        sign_in(client, name="linus")

        assert client.get(url_of(attempt)).status_code == 404
        other = begin(User.objects.get(username="linus"), EXPLAIN)
        assert "a secret of mine" not in client.get(url_of(other)).content.decode()

    def test_the_longest_text_is_no_error(self, client: Client, account: User):
        attempt = begin(account, EXPLAIN)

        assert client.post(url_of(attempt), {"text": "x" * 100_000}).status_code == 302


class TestOwnDays:
    @pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "x" * 4000, "Europe", "\x00", "UTC\r\n"])
    def test_a_zone_that_is_none_counts_as_utc(self, client: Client, name: str):
        client.cookies["timezone"] = name

        assert client.get(reverse("quizzes:progress")).status_code == 200

    def test_the_streak_goes_by_the_learners_midnight(self, signed_in: Client, learner: User):
        attempt = begin(learner, NUMBER, CHOICE)
        with time_machine.travel(datetime(2026, 3, 10, 20, 30, tzinfo=UTC), tick=False):  # Tuesday; 5:30 on Wednesday
            send(signed_in, attempt, number="1")
        with time_machine.travel(datetime(2026, 3, 11, 20, 30, tzinfo=UTC), tick=False):
            send(signed_in, attempt, 2, option=key_of(attempt, 2))

        def streak(moment: datetime, zone: str) -> str:
            signed_in.cookies["timezone"] = zone
            with time_machine.travel(moment, tick=False):
                html = signed_in.get(reverse("quizzes:progress")).content.decode()
            found = re.search(r"in a row</dt><dd>(\d+)</dd>", html)
            assert found
            return found[1]

        noon = datetime(2026, 3, 12, 12, tzinfo=UTC)
        assert [streak(noon, zone) for zone in ("UTC", "Asia/Tokyo")] == ["2", "2"]
        later = datetime(2026, 3, 13, 3, tzinfo=UTC)  # noon of Friday in Tokyo, Thursday evening in New York
        assert [streak(later, zone) for zone in ("UTC", "Asia/Tokyo", "America/New_York")] == ["0", "2", "2"]

    def test_a_night_in_which_the_clocks_change_breaks_no_streak(self, signed_in: Client, learner: User):
        attempt = begin(learner, NUMBER, CHOICE, EXPLAIN)
        berlin = ZoneInfo("Europe/Berlin")
        days = [datetime(2026, 10, day, 23, 45, tzinfo=berlin) for day in (24, 25, 26)]  # the 25th has 25 hours
        sent = [{"number": "1"}, {"option": key_of(attempt, 2)}, {"text": "as well as I can say it"}]
        for position, (moment, data) in enumerate(zip(days, sent, strict=True), start=1):
            with time_machine.travel(moment, tick=False):
                send(signed_in, attempt, position, **data)
        signed_in.cookies["timezone"] = "Europe/Berlin"

        with time_machine.travel(days[-1] + timedelta(minutes=10), tick=False):
            html = signed_in.get(reverse("quizzes:progress")).content.decode()

        assert "days in a row</dt><dd>3</dd>" in html


class TestLeaving:
    def test_the_export_holds_all_that_is_mine_and_nothing_of_others(self, client: Client, account: User):
        other = Client()
        practise(other, EXPLAIN, text="somebody else wrote this down here")
        sign_in(client)
        practise(client, EXPLAIN, text="this is what I wrote about it")
        attempt = begin(account, NUMBER)
        url = url_of(attempt, name="draft")
        client.post(url, {"token": token_at(client, url), "number": "12,5"}, **HTMX)
        client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})

        response = client.get(reverse("quizzes:export"))

        data = json.loads(response.content)
        assert response.headers["Content-Disposition"] == 'attachment; filename="next-token.json"'
        assert data["account"]["username"] == "grace"
        assert [answer["response"]["text"] for answer in data["answers"]] == ["this is what I wrote about it"]
        assert data["slots"][0]["draft"] == {"number": ["12,5"]}
        assert data["runs"][0]["prompt"] == "the sky is"
        assert data["labs"][0]["goal"]
        assert data["review"][0]["question_slug"] == EXPLAIN
        assert "somebody else" not in response.content.decode()

    def test_a_deleted_account_leaves_scores_and_no_word(self, client: Client, account: User):
        sign_in(client)
        practise(client, EXPLAIN, text="this is what I wrote about it")
        practise(client, CHOICE)
        begin(account, NUMBER)
        client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})
        SavedQuestion.objects.create(learner=account, question=Question.objects.get(slug=NUMBER))
        Report.objects.create(version=Answer.objects.all()[0].version, learner=account, reason="unclear", text="Why?")

        response = client.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert "It is deleted" in response.content.decode()
        account.refresh_from_db()
        assert account.username.startswith("deleted-")
        assert (account.email, account.is_active, account.has_usable_password()) == ("", False, False)
        assert Answer.objects.count() == 2
        assert Answer.objects.get(version__kind="explain").response["text"] == ""
        for model in (Run, Recording, LabResult, ReviewCard, SavedQuestion, Attempt):
            assert model._default_manager.count() == 0, model
        assert Report.objects.get().learner is None
        assert client.get(reverse("quizzes:account")).status_code == 302
        assert sign_in(client).status_code == 422

    def test_without_the_password_nothing_is_deleted(self, client: Client, account: User):
        sign_in(client)

        response = client.post(reverse("quizzes:delete"), {"password": "wrong", "sure": "1"})

        assert response.status_code == 422
        assert "Nothing is deleted" in response.content.decode()
        account.refresh_from_db()
        assert account.is_active

    def test_a_guest_deletes_with_a_tick(self, client: Client, guest: User):
        assert client.post(reverse("quizzes:delete")).status_code == 422

        client.post(reverse("quizzes:delete"), {"sure": "1"})

        guest.refresh_from_db()
        assert not guest.is_active
        assert ReviewCard.objects.count() == 0

    def test_the_one_who_runs_the_site_stays(self, client: Client):
        root = User.objects.create_superuser("root", password=PASSWORD)
        client.force_login(root)

        assert client.post(reverse("quizzes:delete"), {"password": PASSWORD}).status_code == 422

    def test_an_attempt_over_what_another_missed_goes_with_its_learner(self, signed_in: Client, learner: User):
        attempt = begin(learner, CHOICE)
        send(signed_in, attempt, option=wrong_of(attempt))
        signed_in.post(reverse("quizzes:start"), {"mode": "missed", "source": attempt.id})

        learner.delete()

        assert Attempt.objects.count() == 0


class TestForgottenPassword:
    def test_the_mail_leads_to_a_new_password(self, client: Client, account: User):
        client.post(reverse("accounts:reset"), {"email": "GRACE@example.org"})
        (message,) = mail.outbox
        found = re.search(r"http://testserver(\S+)", str(message.body))
        assert found

        page = client.get(found[1], follow=True)
        new = {"new_password1": "quite another one", "new_password2": "quite another one"}
        client.post(page.request["PATH_INFO"], new)

        assert sign_in(client, password="quite another one").status_code == 302
        assert "has been used" in Client().get(found[1], follow=True).content.decode()

    def test_an_unknown_address_gets_the_same_page_and_no_mail(self, client: Client, account: User, guest: User):
        known, unknown = (
            client.post(reverse("accounts:reset"), {"email": address})
            for address in ("grace@example.org", "no@one.org")
        )

        assert known.headers["Location"] == unknown.headers["Location"]
        assert len(mail.outbox) == 1


def test_purge_takes_what_nobody_can_reach_and_keeps_scores(client: Client, guest: User, account: User):
    User.objects.create_user("guest-idle", is_guest=True)
    later = timezone.now() + timedelta(days=91)
    fresh = Client()
    with time_machine.travel(later):
        practise(fresh, NUMBER, number="1")
        out = StringIO()

        call_command("purge", stdout=out)

        assert "guests deleted: 1, made anonymous: 1" in out.getvalue()
    assert not User.objects.filter(username="guest-idle").exists()
    guest.refresh_from_db()
    assert guest.username.startswith("deleted-")
    assert Answer.objects.count() == 2
    assert User.objects.filter(is_guest=True, is_active=True).count() == 1
    account.refresh_from_db()
    assert account.is_active
