"""Assignments: when they are open, how many tries, what they keep to themselves until then, and who marks what."""

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.classes.models import Assignment, Class
from quizsite.questions.models import Question, QuestionVersion
from quizsite.quizzes import picking
from quizsite.quizzes.models import Answer, Attempt, Mark, ReviewCard
from tests.quizsite.pages import HTMX, same
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, key_of, send, token_at, url_of, wrong_of
from tests.quizsite.test_classes import assign, enrol, make_teacher, signed_in_as

pytestmark = pytest.mark.django_db

OTHER = "empty-answer-and-a-full-bill"  # single choice as well
NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)  # a Friday; clocks in Berlin go forward on Sunday
SAID = "the prompt is read once and each token after that costs a step"


@pytest.fixture
def teacher(db: None) -> User:
    return make_teacher("grace")


@pytest.fixture
def klass(teacher: User) -> Class:
    return Class.objects.open_by(teacher, "Tuesday group", "Europe/Berlin")


@pytest.fixture
def ada(klass: Class) -> User:
    return enrol(klass, "ada")[0]


def form_of(**changed: str) -> dict[str, str]:
    return {
        "title": "Week 1",
        "opens": "2026-03-27T08:00",
        "due": "2026-03-29T23:59",
        "attempts_allowed": "1",
        "counts": "best",
        "feedback": "due",
        "is_selected": "yes",
    } | changed


def hand_in(attempt: Attempt, *right: bool) -> None:
    """Answer each question of an attempt, right or wrong, and hand it in."""
    client = signed_in_as(attempt.learner)
    for position, is_right in enumerate(right, start=1):
        data = {"text": SAID}
        if attempt.in_order[position - 1].version.kind == "single_choice":
            data = {"option": (key_of if is_right else wrong_of)(attempt, position)}
        send(client, attempt, position, **data)
    client.post(reverse("quizzes:finish", args=[attempt.id]))
    attempt.refresh_from_db()


class TestTimes:
    @pytest.mark.parametrize(
        ("typed", "moment"),
        [
            ("2026-03-29T01:30", datetime(2026, 3, 29, 0, 30, tzinfo=UTC)),  # before the clocks go forward
            ("2026-03-29T03:30", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
            ("2026-10-25T03:30", datetime(2026, 10, 25, 2, 30, tzinfo=UTC)),  # after they go back
            ("2026-03-29T02:30", None),  # left out
            ("2026-10-25T02:30", None),  # comes twice
        ],
    )
    def test_a_due_time_is_meant_in_the_zone_of_the_class_also_in_the_nights_when_clocks_change(
        self, klass: Class, teacher: User, typed: str, moment: datetime | None
    ):
        client = signed_in_as(teacher)
        client.cookies["timezone"] = "America/New_York"  # where the teacher sits does not matter
        url = reverse("classes:new-assignment", args=[klass.pk])

        response = client.post(url, form_of(opens="2026-03-01T08:00", due=typed))

        assert [found.due for found in Assignment.objects.all()] == ([moment] if moment else [])
        if not moment:
            assert "The clocks are changed in that hour" in response.content.decode()
            assert f'value="{typed}"' in response.content.decode()  # it stands there to be mended
        else:
            edit = client.get(reverse("classes:edit-assignment", args=[klass.pk, Assignment.objects.get().pk]))
            assert f'value="{typed}"' in edit.content.decode()

    def test_a_learner_reads_it_in_the_zone_of_the_class_and_in_their_own(self, klass: Class, ada: User):
        found = assign(klass, CHOICE)
        Assignment.objects.filter(pk=found.pk).update(due=datetime(2126, 3, 6, 22, 59, tzinfo=UTC))
        client = signed_in_as(ada)
        client.cookies["timezone"] = "Asia/Tokyo"

        html = client.get(klass.get_absolute_url()).content.decode()

        assert "Wed 6 March 2126, 23:59" in html  # of Berlin
        assert "Thu 7 March 2126, 07:59 in Asia/Tokyo" in html

    def test_it_is_taken_between_opening_and_due_and_extra_minutes_lengthen_both_its_times(
        self, klass: Class, teacher: User
    ):
        ada, linus = enrol(klass, "ada", "linus")
        with time_machine.travel(NOON, tick=False):
            found = assign(klass, CHOICE, opens=NOON + timedelta(hours=1), due=NOON + timedelta(hours=3), minutes=20)
            found.give_extra(linus, 30)
        starts: list[tuple[User, int, int | None]] = [
            (ada, 0, None),  # minutes after noon; minutes of the attempt, if there is one
            (ada, 60, 20),
            (linus, 60, 50),
            (ada, 170, 10),
            (linus, 170, 40),
            (ada, 180, None),
            (linus, 190, 20),
            (linus, 210, None),
        ]
        url = reverse("classes:start", args=[klass.pk, found.pk])
        for learner, after, minutes in starts:
            Attempt.objects.all().delete()
            with time_machine.travel(NOON + timedelta(minutes=after), tick=False):
                status = signed_in_as(learner).post(url).status_code
                lengths = [attempt.deadline - attempt.started for attempt in Attempt.objects.all() if attempt.deadline]
            assert (status, lengths) == ((302, [timedelta(minutes=minutes)]) if minutes else (422, [])), after

    def test_more_time_reaches_an_attempt_that_is_open_and_the_feedback_of_all(self, klass: Class, ada: User):
        found = assign(klass, CHOICE)
        attempt = found.start(ada)

        found.give_extra(ada, 45)

        attempt.refresh_from_db()
        assert attempt.deadline == found.quiz.shows_from == found.due + timedelta(minutes=45)
        found.give_extra(ada, 0)
        attempt.refresh_from_db()
        assert attempt.deadline == found.quiz.shows_from == found.due

    def test_what_was_typed_is_judged_at_the_end_though_its_learner_never_comes_back(
        self, klass: Class, teacher: User, ada: User
    ):
        found = assign(klass, CHOICE)
        attempt, client = found.start(ada), signed_in_as(ada)
        url = url_of(attempt, name="draft")
        client.post(url, {"token": token_at(client, url), "option": key_of(attempt)}, **HTMX)

        with time_machine.travel(found.due + timedelta(minutes=1), tick=False):
            html = signed_in_as(teacher).get(reverse("classes:grades", args=[klass.pk])).content.decode()

        assert "1 of 1" in html
        attempt.refresh_from_db()
        assert attempt.finished == found.due


class TestTries:
    @pytest.mark.django_db(transaction=True)
    def test_ten_presses_at_once_open_one_attempt_and_no_more_than_are_allowed(self, transactional_db: None):
        call_command("load_content", verbosity=0)
        klass = Class.objects.open_by(make_teacher("grace"), "Tuesday group", "UTC")
        ada = enrol(klass, "ada")[0]
        found = assign(klass, CHOICE, attempts_allowed=2)
        url = reverse("classes:start", args=[klass.pk, found.pk])
        clients = [signed_in_as(ada) for _ in range(10)]

        def all_press() -> list[int]:
            codes: list[int] = []

            def press(client: Client) -> None:
                codes.append(client.post(url).status_code)
                connection.close()

            threads = [threading.Thread(target=press, args=[client]) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return codes

        for n_expected, status in ((1, 302), (2, 302), (2, 422)):
            assert all_press() == [status] * 10
            assert Attempt.objects.count() == n_expected
            Attempt.objects.update(finished=found.due)

    def test_it_is_opened_through_its_class_alone(self, klass: Class, ada: User):
        attempt, client = assign(klass, CHOICE).start(ada), signed_in_as(ada)

        client.post(reverse("quizzes:start"), {"mode": "assigned"})

        assert Attempt.objects.filter(quiz__mode="assigned").get() == attempt
        assert str(attempt.pk) not in client.get(reverse("quizzes:drills")).content.decode()
        assert str(attempt.pk) in client.get(klass.get_absolute_url()).content.decode()

    def test_what_it_asks_is_fixed_once_somebody_has_begun(self, klass: Class, teacher: User, ada: User):
        found, client = assign(klass, CHOICE), signed_in_as(teacher)
        found.start(ada)
        of = [klass.pk, found.pk]
        number = Question.objects.get(slug=NUMBER)

        changed = form_of(is_selected="no", n_questions="3", title="Another title", due="2126-03-29T23:59")
        client.post(reverse("classes:edit-assignment", args=of), changed)
        codes = [client.post(reverse("classes:questions", args=of), {"question": number.pk}).status_code]
        codes += [
            client.post(reverse("classes:state", args=of), {"do": do}).status_code for do in ("withdraw", "discard")
        ]

        found = Assignment.objects.get()
        found.change({"is_selected": False, "n_questions": 3})  # a form that was opened before
        assert codes == [422] * 3
        assert (found.title, found.due.year, found.status) == ("Another title", 2126, "published")
        assert [place.question.slug for place in found.quiz.places.all()] == [CHOICE]
        assert found.quiz.is_selected


class TestChoosing:
    def test_questions_are_asked_in_the_order_in_which_they_were_ticked_and_moved(
        self, klass: Class, teacher: User, ada: User
    ):
        client = signed_in_as(teacher)
        client.post(reverse("classes:new-assignment", args=[klass.pk]), form_of(due="2126-03-29T23:59"))
        found = Assignment.objects.get()
        of = [klass.pk, found.pk]
        url = reverse("classes:questions", args=of)
        assert client.post(reverse("classes:state", args=of), {"do": "publish"}).status_code == 422  # it asks nothing
        ids = {slug: Question.objects.get(slug=slug).pk for slug in (CHOICE, NUMBER, EXPLAIN)}

        client.post(url, {"question": [ids[CHOICE], ids[NUMBER]]})
        client.post(url, {"question": [ids[NUMBER], ids[EXPLAIN], 0]})
        client.post(url, {"up": ids[EXPLAIN]})
        client.post(url, {"remove": ids[CHOICE]})
        client.post(reverse("classes:state", args=of), {"do": "publish"})

        with time_machine.travel(NOON + timedelta(days=400)):
            attempt = Assignment.objects.get().start(ada)
        assert [slot.version.question.slug for slot in attempt.in_order] == [EXPLAIN, NUMBER]

    def test_a_draft_can_be_assigned_once_it_can_be_judged_and_has_no_page_of_its_own(
        self, klass: Class, teacher: User, ada: User
    ):
        Question.objects.filter(slug__in=[CHOICE, NUMBER]).update(status="draft")
        keyless = Question.objects.get(slug=NUMBER)
        QuestionVersion.objects.filter(question=keyless).update(details={"numeric": None})
        found, client = assign(klass, EXPLAIN, feedback="each"), signed_in_as(teacher)
        found.withdraw()
        url = reverse("classes:questions", args=[klass.pk, found.pk])

        refused = client.post(url, {"question": keyless.pk})
        taken = client.post(url, {"question": Question.objects.get(slug=CHOICE).pk})

        assert (refused.status_code, taken.status_code) == (422, 302)
        chosen = [place.question for place in found.quiz.places.all()]
        found.quiz.select([*chosen, keyless])  # it had its key when it was chosen
        found.publish()
        attempt = found.start(ada)
        assert [slot.version.question.slug for slot in attempt.in_order] == [EXPLAIN, CHOICE]
        hand_in(attempt, True, True)
        mine = signed_in_as(ada)
        page = attempt.in_order[1].version.question.get_absolute_url()
        assert mine.get(page).status_code == 404
        for url in (url_of(attempt, 2), attempt.get_absolute_url()):
            assert page not in mine.get(url).content.decode()

    def test_a_rule_draws_from_what_fits_and_says_how_much_that_is(self, klass: Class, teacher: User, ada: User):
        client = signed_in_as(teacher)
        n_fitting = picking.askable(assign(klass, level="advanced", is_selected=False, n_questions=1).quiz).count()
        url = reverse("classes:new-assignment", args=[klass.pk])
        rule = form_of(is_selected="no", level="advanced", n_questions=str(n_fitting + 1))

        refused = client.post(url, rule)
        preview = client.get(reverse("classes:fitting", args=[klass.pk]), {"level": "advanced", "topic": ""}, **HTMX)

        words = f"{n_fitting} fit this level and topic, {n_fitting + 1} are wanted."
        assert words in refused.content.decode()
        assert f"{n_fitting} published questions fit" in preview.content.decode()
        assert client.post(url, rule | {"n_questions": "4"}).status_code == 302
        attempt = picking.open_attempt(
            ada, Assignment.objects.get(quiz__title="Week 1", quiz__n_questions=4).quiz, None
        )
        assert [slot.version.question.level for slot in attempt.in_order] == ["advanced"] * 4


class TestWhatIsHeldBack:
    """The key of one question is sought on every page that its learner can open, as long as it is not to be seen."""

    @pytest.fixture
    def attempt(self, klass: Class, ada: User) -> Attempt:
        """An attempt that was handed in: one answer right, one wrong, one explained."""
        found = assign(klass, CHOICE, OTHER, EXPLAIN, attempts_allowed=2)
        attempt = found.start(ada)
        hand_in(attempt, True, False, True)
        return attempt

    def pages(self, attempt: Attempt) -> list[str]:
        urls = [attempt.get_absolute_url(), *[slot.get_absolute_url() for slot in attempt.in_order]]
        urls += [slot.version.question.get_absolute_url() for slot in attempt.in_order]
        urls += [
            attempt.quiz.assignment.klass.get_absolute_url(),
            "/quiz/",
            "/review/",
            "/progress/",
            "/account/export/",
        ]
        return [*urls, "/questions/", "/questions/?mine=right", "/questions/?mine=wrong", "/questions/?mine=due", "/"]

    def told(self, client: Client, attempt: Attempt) -> list[str]:
        """Return where a verdict, a key or a reason stands."""
        versions = [slot.version for slot in attempt.in_order]
        secrets = [version.answer[:40] for version in versions] + [version.warning[:30] for version in versions]
        secrets += [option.why[:30] for version in versions for option in version.options.all()]
        secrets += [point["point"][:30] for version in versions for point in version.details.get("rubric", [])]
        secrets = [re.split(r"[`*’'\"]", secret)[0] for secret in secrets]  # as they stand in HTML
        assert min(map(len, secrets)) > 5
        signs = [
            "chip right",
            "chip partly",
            "chip wrong",
            '"verdict": "',
            '"marks"',
            "verdict right",
            'class="wrong"',
            ", wrong<",
        ]
        pages = {url: client.get(url).content.decode() for url in self.pages(attempt)}
        return [f"{url}: {said}" for url, html in pages.items() for said in (*secrets, *signs) if said in html]

    def test_before_it_is_due_no_page_tells(self, attempt: Attempt, ada: User):
        client = signed_in_as(ada)

        assert self.told(client, attempt) == []
        assert not ReviewCard.objects.exists()
        assert "Week by week" not in client.get("/progress/").content.decode()  # which counts what was right
        assert "Has an answer" in client.get(attempt.get_absolute_url()).content.decode()
        assert client.get(reverse("content:anki")).headers["Content-Type"].startswith("text/html")  # there is no deck
        again = client.post(reverse("quizzes:start"), {"mode": "missed", "source": attempt.id})
        marks = client.post(reverse("quizzes:mark", args=[Answer.objects.get(version__kind="explain").pk]))
        assert (again.status_code, marks.status_code) == (404, 404)

    def test_a_search_finds_no_reason_of_it(self, attempt: Attempt, ada: User):
        client, asked = signed_in_as(ada), attempt.in_order[0].version
        options = " ".join(option.text for option in asked.options.all())
        word = max(set(re.findall(r"[a-z]{8,}", asked.answer.lower())) - set(re.findall(r"[a-z]+", options)), key=len)
        url = f"/questions/?q={word}&kind={asked.kind}&topic={asked.question.topic.slug}"
        held_back = same(client.get(url).content)

        with time_machine.travel(attempt.quiz.assignment.due):
            assert asked.question.get_absolute_url() in same(client.get(url).content)
        assert asked.question.get_absolute_url() not in held_back

    def test_when_it_is_due_for_everybody_all_of_it_is_told_and_comes_up_for_review(
        self, attempt: Attempt, klass: Class
    ):
        enrol(klass, "linus")
        assignment = Assignment.objects.get()
        assignment.give_extra(User.objects.get(username="linus"), 60)

        with time_machine.travel(assignment.due + timedelta(minutes=59), tick=False):
            assert self.told(signed_in_as(attempt.learner), attempt) == []
        with time_machine.travel(assignment.due + timedelta(minutes=60), tick=False):
            client = signed_in_as(attempt.learner)
            results = client.get(attempt.get_absolute_url()).content.decode()

            assert "Every answer beside its key" in results
            assert "1 explanation waits for a mark" in results
        verdicts = dict(ReviewCard.objects.values_list("question__slug", "last_verdict"))
        assert verdicts.keys() == {CHOICE, OTHER}  # the explanation waits
        assert verdicts[CHOICE] == "right"

    def test_never_is_never(self, klass: Class, ada: User):
        found = assign(klass, CHOICE, OTHER, EXPLAIN, feedback="never")
        attempt = found.start(ada)
        hand_in(attempt, True, False, True)

        with time_machine.travel(found.due + timedelta(days=400), tick=False):
            assert self.told(signed_in_as(ada), attempt) == []

    def test_at_the_end_is_not_before_the_end_and_at_once_is_at_once(self, klass: Class, ada: User):
        client = signed_in_as(ada)
        for feedback, is_told in (("end", False), ("each", True)):
            attempt = assign(klass, CHOICE, NUMBER, feedback=feedback).start(ada)

            html = send(client, attempt, option=key_of(attempt)).content.decode()
            html += client.get(url_of(attempt)).content.decode()

            assert ("verdict right" in html) == is_told
        client.post(reverse("quizzes:finish", args=[Attempt.objects.get(quiz__feedback="end").id]))
        ended = Attempt.objects.get(quiz__feedback="end")
        assert "Every answer beside its key" in client.get(ended.get_absolute_url()).content.decode()


class TestMarking:
    @pytest.fixture
    def answer(self, klass: Class, ada: User) -> Answer:
        attempt = assign(klass, EXPLAIN, feedback="end").start(ada)
        hand_in(attempt, True)
        return Answer.objects.get()

    def test_it_waits_for_a_mark_and_counts_nothing_until_then(self, answer: Answer, klass: Class, ada: User):
        client = signed_in_as(ada)

        html = client.get(answer.slot.get_absolute_url()).content.decode() if answer.slot else ""

        assert "Waits for a mark" in html
        assert answer.score > 0  # the first guess
        assert "0 of 1, 1 waits for a mark" in client.get(klass.get_absolute_url()).content.decode()
        assert "0 <small>of 1" in client.get(Attempt.objects.get().get_absolute_url()).content.decode()
        assert not ReviewCard.objects.exists()

    def test_the_teachers_mark_decides_and_the_learners_own_stands_beside_it(
        self, answer: Answer, klass: Class, teacher: User, ada: User
    ):
        mine, theirs = signed_in_as(ada), signed_in_as(teacher)
        n_points = len(answer.version.details["rubric"])
        mine.post(reverse("quizzes:mark", args=[answer.pk]), {"point": ["0", "1"]})
        url = reverse("classes:mark", args=[klass.pk, answer.pk])
        assert theirs.get(url).content.decode().count("Learner: said") == 2

        response = theirs.post(url, {"point": ["1", "99", "x"], "note": "Say what the cache holds."})

        answer.refresh_from_db()
        queue = reverse("classes:marking", args=[klass.pk])
        assert response.headers["Location"] == queue  # none is left
        assert url not in theirs.get(queue).content.decode()
        assert url in theirs.get(f"{queue}?marked=1").content.decode()
        assert (answer.response["marks"], answer.response["own"], answer.verdict) == ([1], [0, 1], "partly")
        assert round(answer.score, 3) == round(answer.score.from_float(1 / n_points), 3)
        mine.post(reverse("quizzes:mark", args=[answer.pk]), {"point": [str(at) for at in range(n_points)]})
        answer.refresh_from_db()
        assert answer.response["marks"] == [1]  # to mark oneself changes nothing of it
        html = mine.get(answer.slot.get_absolute_url()).content.decode() if answer.slot else ""
        assert html.count("Marked by the teacher") == 1
        assert html.count("checked") == n_points
        assert "Say what the cache holds." in html
        assert ReviewCard.objects.get().last_verdict == "partly"

    def test_a_second_mark_takes_the_place_of_the_first(self, answer: Answer, teacher: User):
        for points in ("point=0&point=1", "point=2"):
            answer.take_mark(teacher, QueryDict(points), "")

        answer.refresh_from_db()
        assert answer.response["marks"] == [2]
        assert Mark.objects.count() == 1


def test_a_deleted_account_leaves_its_classes_and_the_export_names_them(klass: Class, teacher: User, ada: User):
    found = assign(klass, EXPLAIN, feedback="end")
    found.give_extra(ada, 20)
    hand_in(found.start(ada), True)
    Answer.objects.get().take_mark(teacher, QueryDict("point=0"), "Well said, ada.")
    data = signed_in_as(ada).get(reverse("quizzes:export")).json()
    assert [row["name"] for row in data["classes"]] == ["Tuesday group"]
    assert data["extra_times"] == [{"minutes": 20, "title": "Week 1"}]
    assert data["answers"][0]["note"] == "Well said, ada."
    delete: Callable[[User], Any] = lambda user: signed_in_as(user).post(reverse("quizzes:delete"), {"password": "p"})  # noqa: E731
    for user in (ada, teacher):
        user.set_password("p")
        user.save()
        delete(user)

    assert not klass.memberships.exists()
    assert Class.objects.get().join_code is None  # nobody joins a class that nobody teaches
    assert (Mark.objects.get().by, Mark.objects.get().note) == (None, "")
