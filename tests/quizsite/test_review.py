"""What comes back when, and why a question was picked."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import time_machine
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from fsrs import Rating

from quizsite.accounts.models import User
from quizsite.questions.kinds import kind_named
from quizsite.questions.models import Question
from quizsite.quizzes import picking, review
from quizsite.quizzes.models import Answer, Attempt, ReviewCard, Rule, Slot
from quizsite.quizzes.results import Results, due_words
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, begin, key_of, send

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("verdict", "sure", "rating"),
    [
        ("wrong", None, Rating.Again),
        ("wrong", 3, Rating.Again),
        ("partly", 3, Rating.Hard),
        ("right", None, Rating.Good),
        ("right", 2, Rating.Good),
        ("right", 3, Rating.Easy),
    ],
)
def test_a_verdict_is_a_rating_and_only_what_was_right_and_sure_is_easy(verdict: str, sure: int | None, rating: Rating):
    assert review.rating_of(verdict, sure) == rating


def test_what_was_wrong_comes_back_in_minutes_and_what_was_right_in_days_and_sure_ones_later():
    due = {
        (verdict, sure): review.scheduled([(NOON, verdict, sure)])["due"] - NOON
        for verdict, sure in (("wrong", None), ("partly", None), ("right", None), ("right", 3))
    }

    assert due["wrong", None] == timedelta(minutes=10)
    assert due["partly", None] == timedelta(minutes=15)
    assert DAY <= due["right", None] < due["right", 3]


def test_intervals_grow_with_each_right_answer_and_shrink_with_a_wrong_one():
    history: list[tuple[datetime, str, int | None]] = []
    intervals, now = [], NOON
    for verdict in ("right", "right", "right", "wrong"):
        history.append((now, verdict, None))
        due = review.scheduled(history)["due"]
        intervals.append(due - now)
        now = due

    assert intervals[0] < intervals[1] < intervals[2]
    assert intervals[3] == timedelta(minutes=10)
    assert review.scheduled(history)["n_reviews"] == 4
    assert review.scheduled(history)["n_missed"] == 1


def test_an_answer_from_any_zone_counts_at_its_moment():
    tokyo = NOON.astimezone(datetime.now().astimezone().tzinfo)

    assert review.scheduled([(tokyo, "right", None)]) == review.scheduled([(NOON, "right", None)])


def test_the_chance_to_recall_is_nine_in_ten_once_the_stability_has_passed():
    assert review.recall(NOON, 5.0, NOON) == 1
    assert review.recall(NOON, 5.0, NOON + 5 * DAY) == pytest.approx(0.9)
    assert review.recall(NOON, 5.0, NOON - DAY) == 1  # a clock that was set back makes nothing certain


@pytest.mark.django_db
class TestCards:
    def test_every_answer_moves_its_card_once(self, signed_in: Client, learner: User):
        with time_machine.travel(NOON, tick=False):
            attempt = begin(learner, CHOICE, NUMBER)
            send(signed_in, attempt, option=key_of(attempt))

        card = ReviewCard.objects.get()
        assert (card.last_review, card.n_reviews, card.last_verdict) == (NOON, 1, "right")
        assert card.due > NOON + DAY

    def test_due_ones_are_counted_on_the_pages_and_asked_the_longest_overdue_first(
        self, signed_in: Client, learner: User
    ):
        for slug, days in ((CHOICE, 3), (NUMBER, 9), (EXPLAIN, 0)):
            card(learner, slug, last=NOON - days * DAY, stability=1, due=NOON - days * DAY)
        card(learner, "yes-nine-is-a", last=NOON, stability=9, due=NOON + 9 * DAY)

        with time_machine.travel(NOON, tick=False):
            front, home = (signed_in.get(path).content.decode() for path in ("/", "/review/"))
            signed_in.post(reverse("quizzes:start"), {"mode": "review"})

        assert "Review what is due, 3" in front
        assert "3 due now" in home
        assert "In 9 days" in home
        attempt = Attempt.objects.get()
        assert [slot.version.question.slug for slot in attempt.in_order] == [NUMBER, CHOICE, EXPLAIN]
        assert all(slot.why.startswith("Due: recalled with ") for slot in attempt.in_order)

    def test_a_question_that_is_no_longer_asked_is_not_due(self, signed_in: Client, learner: User):
        card(learner, CHOICE, last=NOON - DAY, stability=1, due=NOON)
        Question.objects.filter(slug=CHOICE).update(status="archived")

        assert ReviewCard.objects.by(learner).due().count() == 0
        assert "Nothing is due" in signed_in.get("/review/").content.decode()

    @pytest.mark.parametrize(
        ("due", "words"),
        [(-DAY, "Due now"), (timedelta(hours=3), "Today"), (timedelta(hours=13), "Tomorrow"), (3 * DAY, "In 3 days")],
    )
    def test_when_it_is_due_is_said_in_days(self, due: timedelta, words: str):
        assert due_words(NOON + due, NOON) == words


@pytest.mark.django_db
class TestPicking:
    def test_weak_spots_come_in_their_order_each_with_its_reason(self, learner: User):
        with time_machine.travel(NOON, tick=False):
            card(learner, CHOICE, verdict="wrong", sure=3, last=NOON - DAY)
            card(learner, NUMBER, verdict="wrong", n_missed=2, n_reviews=3, last=NOON - DAY)
            card(learner, EXPLAIN, verdict="partly", last=NOON - DAY)
            card(learner, "yes-nine-is-a", last=NOON - 30 * DAY, stability=2)
            card(learner, "corrected-at-noon", last=NOON, stability=90)  # known well

            attempt = picking.start(learner, Rule("weak"))

        slots = attempt.in_order
        assert [slot.version.question.slug for slot in slots[:4]] == [CHOICE, NUMBER, EXPLAIN, "yes-nine-is-a"]
        assert [slot.why for slot in slots[:3]] == [
            "You were sure, and it was wrong",
            "Wrong last time; missed in 2 of 3 tries",
            "Partly right last time",
        ]
        assert slots[3].why.startswith("Recalled with ")
        assert "corrected-at-noon" not in {slot.version.question.slug for slot in slots}
        topic = slots[0].version.question.topic
        for slot in slots[4:]:
            assert slot.why == f"New, from {topic}, where you are weakest"
            assert slot.version.question.topic == topic

    def test_a_drill_asks_what_is_new_first_and_then_what_was_not_seen_for_longest(self, learner: User):
        topic = Question.objects.get(slug="corrected-at-noon").topic
        asked = Question.objects.published().filter(topic=topic).exclude(current__kind="lab")
        slugs = list(asked.values_list("slug", flat=True))
        for number, slug in enumerate(slugs[1:]):
            card(learner, slug, last=NOON - number * DAY)

        attempt = picking.start(learner, Rule("drill", topic=topic.slug, n_questions=5))

        picked = {slot.version.question.slug: slot.why for slot in attempt.in_order}
        assert picked[slugs[0]] == "New to you"
        assert set(picked) - {slugs[0]} == set(slugs[-4:])

    def test_a_mock_interview_mixes_all_levels_and_climbs(self, learner: User):
        attempt = picking.start(learner, Rule("mock", n_questions=12, minutes=40))

        levels = [slot.version.question.level for slot in attempt.in_order]
        order = ["beginner", "intermediate", "advanced", "scenario", "ai-engineering"]
        assert set(levels) == set(order)
        assert levels == sorted(levels, key=order.index)
        assert max(map(levels.count, order)) - min(map(levels.count, order)) <= 1
        assert all(slot.why == "" for slot in attempt.in_order)

    def test_the_number_of_queries_does_not_grow_with_the_cards(
        self, learner: User, django_assert_max_num_queries: object
    ):
        for slug in Question.objects.exclude(current__kind="lab").values_list("slug", flat=True):
            card(learner, slug, verdict="wrong", last=NOON)

        with django_assert_max_num_queries(16):  # type: ignore[operator]
            picking.start(learner, Rule("weak"))


@pytest.mark.django_db
class TestReport:
    def test_confidence_is_set_against_results(self, learner: User):
        attempt = begin(learner, CHOICE, NUMBER, EXPLAIN, "corrected-at-noon", mode="mock", minutes=20)
        for position, sure, score in ((1, 3, 1), (2, 3, 0), (3, 1, 0.5), (4, 2, 1)):
            give(attempt.in_order[position - 1], sure, score)
        attempt.finish()

        results = Results(Attempt.objects.get())

        assert [(part.said, part.n, part.n_right) for part in results.confidence] == [
            (50, 1, 0),
            (75, 1, 1),
            (95, 2, 1),
        ]
        assert results.score == 2.5
        # sure: 3 and −6; a guess that is half right: half of 1; fairly sure and right: 2
        assert results.certainty_marks == "−0.5"
        assert results.best_possible_marks == 12
        assert [(part.x, part.y) for part in results.confidence] == [
            ("16.7%", "100%"),
            ("58.3%", "0%"),
            ("91.7%", "50%"),
        ]

    def test_the_headline_names_what_is_strong_and_what_is_not(self, learner: User):
        attempt = begin(learner, CHOICE, NUMBER, mode="mock", minutes=20)
        give(attempt.in_order[0], None, 1)
        give(attempt.in_order[1], None, 0)
        attempt.finish()

        results = Results(Attempt.objects.get())

        assert results.headline == "You are at home in Selection. Cost and latency is the gap."
        assert "Would be caught on" in results.report

    def test_it_is_compared_with_the_last_one_of_the_same_quiz(self, learner: User):
        for score in (0, 1):
            attempt = begin(learner, CHOICE)
            give(attempt.in_order[0], None, score)
            attempt.finish()

        assert Results(attempt).ahead_of_last() == 1


def give(slot: Slot, sure: int | None, score: float) -> None:
    """Keep an answer as if it had been judged so."""
    sent = {"numeric": "number=1", "explain": "text=one+two+three+four+five"}
    option = slot.version.options.first()
    typed = QueryDict(sent.get(slot.version.kind, f"option={option and option.public_id}"))
    Answer.objects.create(
        learner=slot.attempt.learner,
        version=slot.version,
        slot=slot,
        token=uuid4(),
        try_number=1 + Answer.objects.filter(version=slot.version).count(),
        response=kind_named(slot.version.kind).read(slot.version, typed, slot.attempt.learner, slot.asking),
        verdict={0: "wrong", 1: "right"}.get(score, "partly"),  # type: ignore[call-overload]
        score=score,
        sure=sure,
    )


def card(
    learner: User,
    slug: str,
    *,
    last: datetime,
    verdict: str = "right",
    sure: int | None = None,
    stability: float = 5,
    due: datetime | None = None,
    n_reviews: int = 1,
    n_missed: int = 0,
) -> ReviewCard:
    return ReviewCard.objects.create(
        learner=learner,
        question=Question.objects.get(slug=slug),
        due=due or last + stability * DAY,
        last_review=last,
        stability=stability,
        difficulty=5,
        state=2,
        n_reviews=n_reviews,
        n_missed=n_missed,
        last_verdict=verdict,
        last_sure=sure,
    )
