"""How far each learner is with each assignment, and what counts of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.classes.models import Assignment, Class, ExtraTime, Membership
from quizsite.quizzes.models import Attempt

STATES = {
    "later": "not open yet",
    "none": "not started",
    "working": "working on it",
    "done": "handed in",
    "missed": "late, nothing handed in",
}


@dataclass(frozen=True)
class Standing:
    """How far somebody is with an assignment: all tries, the oldest first, and the one that counts."""

    state: str
    tries: Sequence[Any] = ()  # attempts with scores
    counted: Any = None

    @property
    def said(self) -> str:
        return STATES[self.state]

    @property
    def score(self) -> Decimal:
        found: Decimal = self.counted.score if self.counted else Decimal()
        return found

    @property
    def running(self) -> Any:
        return next((attempt for attempt in self.tries if not attempt.finished), None)


@dataclass
class Row:
    """A learner's line in the grade book."""

    membership: Membership
    name: str
    standings: list[tuple[Assignment, Standing]] = field(default_factory=list)

    @property
    def sum(self) -> Decimal:
        return sum((standing.score for _, standing in self.standings), Decimal())

    @property
    def most(self) -> int:
        """The points there were to have: those of the tries that count, and of what is missed."""
        return sum(_most(assignment, standing) for assignment, standing in self.standings)


@dataclass(frozen=True)
class Column:
    """An assignment's line at the foot of the grade book."""

    assignment: Assignment
    n_done: int
    n_waiting: int
    mean: Decimal | None


def standing_of(assignment: Assignment, tries: Sequence[Any], extra: int, now: datetime) -> Standing:
    """Say how far somebody is, whose attempts these are."""
    ended = [attempt for attempt in tries if attempt.finished]
    if ended:
        # max keeps the first of equals
        best = max(ended, key=lambda attempt: attempt.score) if assignment.counts == "best" else ended[0]
        return Standing("done", tries, best)
    if tries:
        return Standing("working", tries)
    if now < assignment.opens:
        return Standing("later")
    return Standing("missed" if now >= assignment.due_with(extra) else "none")


def standings(assignments: Sequence[Assignment], learners: Iterable[User]) -> dict[tuple[int, int], Standing]:
    """Return how far each of these learners is with each assignment, by their ids."""
    now = timezone.now()
    ids = [learner.pk for learner in learners]
    Assignment.objects.filter(pk__in=[assignment.pk for assignment in assignments]).settle()
    attempts = Attempt.objects.filter(quiz__assignment__in=assignments, learner__in=ids).with_scores()
    tries: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for attempt in attempts.order_by("started"):
        tries[attempt.learner_id, attempt.quiz_id].append(attempt)
    given = ExtraTime.objects.filter(assignment__in=assignments, learner__in=ids)
    extra = {(row.learner_id, row.assignment_id): row.minutes for row in given}
    return {
        (pk, assignment.pk): standing_of(
            assignment, tries[pk, assignment.quiz_id], extra.get((pk, assignment.pk), 0), now
        )
        for pk in ids
        for assignment in assignments
    }


class GradeBook:
    """All learners of a class and all its published assignments, in as many queries whatever their number."""

    def __init__(self, klass: Class, names_are_hidden: bool) -> None:
        self.assignments = list(klass.assignments.published().with_quiz())
        members = list(klass.memberships.learners())
        found = standings(self.assignments, [member.user for member in members])
        self.rows = [
            Row(member, member.name(names_are_hidden), [(a, found[member.user_id, a.pk]) for a in self.assignments])
            for member in members
        ]
        if names_are_hidden:
            self.rows.sort(key=lambda row: row.membership.number)
        else:
            self.rows.sort(key=lambda row: row.name.casefold())

    @property
    def columns(self) -> list[Column]:
        return [self._column(at, assignment) for at, assignment in enumerate(self.assignments)]

    def _column(self, at: int, assignment: Assignment) -> Column:
        counted = [row.standings[at][1].counted for row in self.rows if row.standings[at][1].counted]
        mean = sum((attempt.score for attempt in counted), Decimal()) / len(counted) if counted else None
        return Column(assignment, len(counted), sum(attempt.n_waiting for attempt in counted), mean)

    def table(self) -> list[list[object]]:
        """Return it for a spreadsheet: a row of titles, then a row a learner."""
        head: list[object] = ["Learner"]
        for assignment in self.assignments:
            head += [f"{assignment.title}: points", f"{assignment.title}: of", f"{assignment.title}: state"]
        rows = [[*head, "Sum", "Sum: of"]]
        for row in self.rows:
            cells: list[object] = [row.name]
            for _, standing in row.standings:
                points = [_short(standing.score), standing.counted.n_slots] if standing.counted else ["", ""]
                cells += [*points, _state(standing)]
            rows.append([*cells, _short(row.sum), row.most])
        return rows


def _most(assignment: Assignment, standing: Standing) -> int:
    if standing.counted:
        n_slots: int = standing.counted.n_slots
        return n_slots
    return assignment.quiz.n_questions if standing.state == "missed" else 0


def _state(standing: Standing) -> str:
    waits = f", {standing.counted.n_waiting} to mark" if standing.counted and standing.counted.n_waiting else ""
    return standing.said + waits


def _short(points: Decimal) -> Decimal:
    """Return points with at most two decimals and no zeros behind them."""
    rounded = points.quantize(Decimal("0.01"))
    return rounded.quantize(Decimal(1)) if rounded == rounded.to_integral() else rounded.normalize()
