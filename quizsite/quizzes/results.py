"""What an attempt has shown: scores by level and topic, confidence against results, and a report in words."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Sum
from django.utils import timezone

from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Said
from quizsite.questions.validation import LEVELS
from quizsite.quizzes.models import SURE, Answer, Attempt, ReviewCard, Slot

SAID_SURE = {1: 50, 2: 75, 3: 95}  # per cent
MARKS = {1: (1, 0), 2: (2, -2), 3: (3, -6)}  # for a right and for a wrong answer; partly lies between them
FEW = 20  # answers; fewer are a hint, not a finding
WELL, BADLY = 0.8, 0.5  # shares of a topic's marks
N_TO_REVIEW = 3


@dataclass(frozen=True)
class Tally:
    """Marks earned in a part of the questions."""

    name: str
    score: float
    n: int

    @property
    def share(self) -> float:
        return self.score / self.n

    @property
    def width(self) -> str:
        return f"{100 * self.share:.1f}%"


@dataclass(frozen=True)
class Confidence:
    """Answers given with one degree of confidence."""

    said: int  # per cent
    n: int
    n_right: int

    @property
    def share(self) -> int:
        return round(100 * self.n_right / self.n)

    @property
    def x(self) -> str:
        """Its place in the plot, whose edges are 40 % and 100 % sure."""
        return f"{(self.said - 40) / 0.6:.1f}%"

    @property
    def y(self) -> str:
        return f"{100 - self.share}%"

    @property
    def radius(self) -> int:
        return min(14, 7 + self.n)

    @property
    def n_wrong(self) -> int:
        return self.n - self.n_right

    @property
    def is_too_sure(self) -> bool:
        return self.n >= 3 and self.share < self.said - 20


@dataclass(frozen=True)
class Row:
    """A slot of a finished attempt, for the table of results."""

    slot: Slot
    answer: Answer | None
    said: Said | None

    @property
    def verdict(self) -> str:
        return self.answer.verdict if self.answer and not self.waits else ""

    @property
    def waits(self) -> bool:
        return self.answer is not None and self.answer.waits

    @property
    def sure(self) -> int | None:
        return SAID_SURE.get(self.answer.sure or 0) if self.answer else None


class Results:
    """A finished attempt, read once from the database."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.rows = [_row(slot) for slot in attempt.in_order]

    @property
    def n(self) -> int:
        return len(self.rows)

    @cached_property
    def score(self) -> float:
        return sum(_score(row) for row in self.rows)

    @property
    def n_missed(self) -> int:
        return sum(row.verdict != "right" and not row.waits for row in self.rows)

    @property
    def n_unmarked(self) -> int:
        """Explanations that their learner has not marked yet, where that decides."""
        answers = [row.answer for row in self.rows if row.answer and not row.answer.is_assigned]
        return sum(answer.response.get("is_marked") is False for answer in answers)

    @property
    def n_waiting(self) -> int:
        """Explanations that wait for a teacher's mark."""
        return sum(row.waits for row in self.rows)

    @property
    def _judged(self) -> list[Row]:
        return [row for row in self.rows if not row.waits]

    @property
    def minutes(self) -> int:
        assert self.attempt.finished
        return max(1, round((self.attempt.finished - self.attempt.started).total_seconds() / 60))

    @cached_property
    def by_level(self) -> list[Tally]:
        names = dict(LEVELS)
        found = _tallies((names[row.slot.version.question.level], _score(row)) for row in self._judged)
        order = [name for _, name in LEVELS]
        return sorted(found, key=lambda tally: order.index(tally.name))

    @cached_property
    def by_topic(self) -> list[Tally]:
        return _tallies((row.slot.version.question.topic.name, _score(row)) for row in self._judged)

    @cached_property
    def confidence(self) -> list[Confidence]:
        return confidence_of((row.answer.sure, row.verdict == "right") for row in self.rows if row.answer)

    @property
    def n_with_confidence(self) -> int:
        return sum(part.n for part in self.confidence)

    @property
    def certainty_marks(self) -> str:
        """Marks that reward knowing what one knows: 1, 2 or 3 if right, 0, −2 or −6 if wrong."""
        marks = sum(_certainty_mark(row.answer) for row in self.rows if row.answer and row.answer.sure)
        return f"{round(marks, 1):g}".replace("-", "−")

    @property
    def best_possible_marks(self) -> int:
        return 3 * self.n_with_confidence

    @property
    def headline(self) -> str:
        """The report's first sentence: what is strong, then what is not."""
        if not self._judged:
            return "It waits for a teacher’s marks."
        strong, weak = _names(self._strong), _names(self._weak)
        is_gap = "are the gaps" if len(self._weak) > 1 else "is the gap"
        too_sure = [row for row in self.rows if row.verdict == "wrong" and row.sure == 95]
        if strong and weak:
            return f"You are at home in {strong}. {weak} {is_gap}."
        if too_sure:
            return f"You are too sure: {len(too_sure)} wrong at 95%."
        if weak:
            return f"{weak} {is_gap}: begin there."
        return f"You are at home in {strong}." if strong else "Half of each topic is there. Now the other half."

    @property
    def report(self) -> str:
        """What an interviewer would write down: strengths, what would be caught, what was left open."""
        right = [row.slot.version.title for row in self.rows if row.verdict == "right"]
        caught = [row.slot.version.title for row in self.rows if row.verdict == "wrong"]
        left = sum(row.answer is None for row in self.rows)
        sentences = [f"Answers without a slip: {_quoted(right[-2:])}."] if right else []
        sentences += [f"Would be caught on {_quoted(caught[:2])}."] if caught else []
        sentences += [f"Left {left} of {self.n} without an answer."] if left else []
        return " ".join(sentences)

    @property
    def _strong(self) -> list[Tally]:
        return [tally for tally in self.by_topic if tally.share >= WELL]

    @property
    def _weak(self) -> list[Tally]:
        weak = [tally for tally in self.by_topic if tally.share < BADLY]
        return sorted(weak, key=lambda tally: tally.share)

    def ahead_of_last(self) -> float | None:
        """Return by how many marks it is better than the last attempt of the same quiz."""
        attempt = self.attempt
        ended = Attempt.objects.filter(learner=attempt.learner_id, quiz=attempt.quiz_id).exclude(finished=None)
        last = ended.filter(started__lt=attempt.started).first()
        if not last:
            return None
        score = Answer.objects.filter(slot__attempt=last).judged().aggregate(score=Sum("score"))["score"]
        return self.score - float(score or 0)

    def to_review(self) -> list[ReviewCard]:
        """Return cards of what was missed, the next due first."""
        missed = [row.slot.version.question_id for row in self.rows if row.answer and row.verdict != "right"]
        cards = ReviewCard.objects.by(self.attempt.learner).filter(question__in=missed)
        return list(cards.asked().select_related("question__current").order_by("due")[:N_TO_REVIEW])


def confidence_of(answers: Iterable[tuple[int | None, bool]]) -> list[Confidence]:
    """Return, for each degree of confidence that was given, how many answers were right."""
    right: dict[int, list[bool]] = defaultdict(list)
    for sure, is_right in answers:
        if sure:
            right[sure].append(is_right)
    return [Confidence(SAID_SURE[sure], len(right[sure]), sum(right[sure])) for sure, _ in SURE if right[sure]]


def due_words(due: datetime, now: datetime | None = None) -> str:
    """Say when a card is due, by the learner's own days."""
    now = now or timezone.now()
    days = (timezone.localdate(due) - timezone.localdate(now)).days
    if due <= now:
        return "Due now"
    return {0: "Today", 1: "Tomorrow"}.get(days, f"In {days} days")


def _row(slot: Slot) -> Row:
    answer = slot.found_answer
    said = kind_named(slot.version.kind).said(slot.version, answer.response) if answer else None
    if said and answer and answer.waits:
        said = said._replace(mine="Explained")
    return Row(slot, answer, said)


def _score(row: Row) -> float:
    return float(row.answer.score) if row.answer and not row.waits else 0.0


def _certainty_mark(answer: Answer) -> float:
    right, wrong = MARKS[answer.sure or 1]
    return wrong + float(answer.score) * (right - wrong)


def _tallies(scores: Iterable[tuple[str, float]]) -> list[Tally]:
    found: dict[str, list[float]] = defaultdict(list)
    for name, score in scores:
        found[name].append(score)
    return [Tally(name, sum(parts), len(parts)) for name, parts in found.items()]


def _names(tallies: Sequence[Tally]) -> str:
    return " and ".join(tally.name for tally in tallies[:2])


def _quoted(titles: Sequence[str]) -> str:
    return " and ".join(f"“{title.rstrip('.')}”" for title in titles)
