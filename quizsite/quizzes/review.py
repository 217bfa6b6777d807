"""When a question is due again: FSRS, by the `fsrs` package, over all that a learner has answered to it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from fsrs import Card, Rating, Scheduler

# What was missed comes back within the sitting; what was right comes back in days.
SOON = (timedelta(minutes=10),)
MOST_REPLAYED = 50  # answers; older ones no longer move a card

History = Sequence[tuple[datetime, str, int | None]]  # when, verdict, how sure


def rating_of(verdict: str, sure: int | None) -> Rating:
    """Return how well a question was recalled: wrong, partly, right, and right without a doubt."""
    if verdict == "right":
        return Rating.Easy if sure == 3 else Rating.Good
    return Rating.Hard if verdict == "partly" else Rating.Again


def scheduled(history: History) -> dict[str, Any]:
    """Return the fields of a card after these answers, the oldest first.

    The card is computed anew from all of them, so that a mark that is changed later, or an answer that came
    from another device, counts once and in its place.
    """
    scheduler = _scheduler(fuzz=False)
    card = Card(card_id=0)
    replayed = history[-MOST_REPLAYED:]
    for number, (created, verdict, sure) in enumerate(replayed, start=1):
        if number == len(replayed):
            scheduler = _scheduler(fuzz=settings.REVIEW_FUZZ)
        card, _ = scheduler.review_card(card, rating_of(verdict, sure), created.astimezone(UTC))
    _, last_verdict, last_sure = history[-1]
    return {
        "due": card.due,
        "last_review": card.last_review,
        "stability": card.stability,
        "difficulty": card.difficulty,
        "state": card.state.value,
        "step": card.step,
        "n_reviews": len(history),
        "n_missed": sum(verdict != "right" for _, verdict, _ in history),
        "last_verdict": last_verdict,
        "last_sure": last_sure,
    }


def recall(last_review: datetime, stability: float, now: datetime) -> float:
    """Return the chance that a card is recalled now, from 0 to 1."""
    card = Card(card_id=0, stability=stability, last_review=last_review)
    return _scheduler(fuzz=False).get_card_retrievability(card, now)


def _scheduler(fuzz: bool) -> Scheduler:
    return Scheduler(learning_steps=SOON, relearning_steps=SOON, enable_fuzzing=fuzz)
