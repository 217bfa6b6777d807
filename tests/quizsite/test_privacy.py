"""Leaving: what is exported, what is left of an account that is deleted, and guests whom nobody can reach."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.models import Recording, Run
from quizsite.questions.models import Question, Report
from quizsite.quizzes.models import Answer, SavedQuestion
from tests.quizsite.pages import HTMX
from tests.quizsite.test_accounts import PASSWORD, practise, sign_in
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, begin, send, token_at, url_of

pytestmark = pytest.mark.django_db

LISTS = ("answers", "attempts", "slots", "review", "saved", "reports", "runs", "labs")


def signed_up(name: str) -> Client:
    User.objects.create_user(name, f"{name}@example.org", PASSWORD)
    client = Client()
    sign_in(client, name=name)
    return client


def do_all(client: Client, name: str) -> None:
    """Leave something of every kind behind, with the learner's name wherever something is typed."""
    learner = User.objects.get(username=name)
    practise(client, EXPLAIN, text=f"this is what {name} wrote about it")
    practise(client, NUMBER, number="12,5")
    open_one = begin(learner, EXPLAIN)
    url = url_of(open_one, name="draft")
    client.post(url, {"token": token_at(client, url), "text": f"what {name} has begun to type"}, **HTMX)
    send(client, begin(learner, CHOICE, mode="weak"), option="")
    SavedQuestion.objects.create(learner=learner, question=Question.objects.get(slug=CHOICE))
    version = Answer.objects.by(learner)[0].version
    Report.objects.create(version=version, learner=learner, reason="unclear", text=f"{name} does not see it")
    client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})
    run(client)


def run(client: Client) -> None:
    """Run something in the open laboratory that nothing else on the site asks for."""
    form = {"do": "run", "prompt": "the sky is blue", "model": "sky", "temperature": "0"}
    assert client.post("/lab/", form).status_code == 302


def exported(client: Client) -> str:
    return client.get(reverse("quizzes:export")).content.decode()


def everything_stored() -> str:
    """Return all that stands in the tables of the database, as text."""
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += [f"{table}: {row}" for row in cursor.fetchall()]
    return "\n".join(rows)


class TestTheExport:
    def test_it_holds_something_of_every_kind_and_nothing_of_another(self):
        mine, other = signed_up("grace"), signed_up("linus")
        do_all(other, "linus")
        do_all(mine, "grace")

        text = exported(mine)

        data = json.loads(text)
        assert [name for name in LISTS if not data[name]] == []
        assert {"this is what grace wrote about it", "12,5"} == {
            answer["response"].get("text") or answer["response"]["typed"] for answer in data["answers"]
        }
        assert "what grace has begun to type" in text
        assert "grace does not see it" in text
        assert data["answers"][0]["question"] == EXPLAIN
        assert data["answers"][0]["question_version"] >= 1
        theirs = json.loads(exported(other))
        ids = [row["id"] for name in ("runs", "attempts") for row in theirs[name]]
        assert not any(their in text for their in ["linus", *ids])

    def test_another_learner_is_reached_by_no_parameter(self):
        mine, other = signed_up("grace"), signed_up("linus")
        do_all(other, "linus")
        pk = User.objects.get(username="linus").pk

        for query in (f"?learner={pk}", f"?user={pk}", "?username=linus"):
            assert "linus" not in mine.get(reverse("quizzes:export") + query).content.decode()

    def test_a_guest_has_one_as_well_and_a_visitor_signs_in_first(self, client: Client):
        assert client.get(reverse("quizzes:export")).status_code == 302
        practise(client, EXPLAIN, text="written by nobody you know")

        assert "written by nobody you know" in exported(client)
        assert reverse("quizzes:account") in client.get(reverse("quizzes:sign-up")).content.decode()

    def test_no_cache_keeps_it(self):
        response = signed_up("grace").get(reverse("quizzes:export"))

        assert "no-store" in response.headers["Cache-Control"]


class TestDeleting:
    def test_no_table_holds_the_name_or_a_word_of_theirs(self):
        client = signed_up("grace")
        do_all(client, "grace")
        Report.objects.all().delete()  # what was written to the authors is theirs now

        client.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert "grace" not in everything_stored()
        assert Answer.objects.count() == 2

    def test_what_others_have_done_stays(self):
        mine, other = signed_up("grace"), signed_up("linus")
        do_all(other, "linus")
        before = exported(other)
        do_all(mine, "grace")

        mine.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert exported(other) == before
        theirs = Run.objects.by(User.objects.get(username="linus")).latest_in(None, "trace")
        assert theirs
        assert other.get(theirs.get_absolute_url()).status_code == 200

    def test_recordings_that_only_they_had_go_and_those_of_the_site_stay(self, client: Client):
        client.get("/")  # replays a recording that no run shows
        of_the_site = Recording.objects.get()
        mine = signed_up("grace")
        run(mine)
        assert Recording.objects.count() == 2

        mine.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert Recording.objects.get() == of_the_site

    def test_their_other_browsers_are_signed_out(self):
        mine, phone = signed_up("grace"), Client()
        sign_in(phone)

        mine.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert phone.get(reverse("quizzes:account")).status_code == 302

    def test_a_run_that_goes_on_is_stopped_first(self):
        client = signed_up("grace")
        client.post("/lab/sky-loop/", {"do": "run", "temperature": "0"}, **HTMX)
        show = engine.show_of(Run.objects.with_recording().get())

        client.post(reverse("quizzes:delete"), {"password": PASSWORD})

        assert show.is_stopped
        assert Run.objects.count() == Recording.objects.count() == 0


class TestGuestsWhomNobodyCanReach:
    def test_a_guest_who_comes_back_within_90_days_each_time_keeps_their_work(self, client: Client):
        practise(client, CHOICE)
        start = timezone.now()
        for days in (60, 120, 180):
            with time_machine.travel(start + timedelta(days=days)):
                call_command("purge", stdout=StringIO())

                assert "Keep my answers" in client.get("/questions/").content.decode()

        with time_machine.travel(start + timedelta(days=180 + 92)):
            assert "Sign in" in client.get("/questions/").content.decode()
            call_command("purge", stdout=StringIO())

        assert Answer.objects.get().learner.username.startswith("deleted-")

    def test_a_session_is_saved_once_a_day(self, client: Client):
        noon = datetime(2026, 3, 14, 12, tzinfo=UTC)
        ends: list[timedelta] = []
        for hours in (0, 1, 2, 24):
            with time_machine.travel(noon + timedelta(hours=hours), tick=False):
                if not ends:
                    practise(client, CHOICE)
                client.get("/questions/")
                ends.append(Session.objects.get().expire_date - noon - timedelta(days=90))

        assert ends == [timedelta(hours=hours) for hours in (0, 0, 0, 24)]

    def test_what_a_guest_only_ran_goes_with_them(self, client: Client):
        run(client)

        with time_machine.travel(timezone.now() + timedelta(days=92)):
            call_command("purge", stdout=StringIO())

        assert User.objects.count() == Run.objects.count() == Recording.objects.count() == 0

    def test_an_account_is_never_purged(self):
        signed_up("grace")

        with time_machine.travel(timezone.now() + timedelta(days=4000)):
            call_command("purge", stdout=StringIO())

        assert User.objects.get().username == "grace"
