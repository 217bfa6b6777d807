"""How far a learner has come: by topic and level, week by week, in a row of days, in the laboratory."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, F, Q
from django.db.models.functions import TruncDate, TruncWeek
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.labs.models import Lab, LabResult
from quizsite.questions.models import Question, Topic
from quizsite.questions.validation import LEVELS
from quizsite.quizzes.models import Answer, ReviewCard
from quizsite.quizzes.results import SAID_SURE, Confidence

N_WEEKS = 8
RIGHT = Q(verdict="right")


@dataclass(frozen=True)
class Part:
    """A topic or a level: how many of its questions were right when last answered."""

    name: str
    n: int
    n_answered: int
    n_right: int

    @property
    def width(self) -> str:
        return f"{100 * self.n_right / self.n:.1f}%" if self.n else "0%"

    @property
    def width_answered(self) -> str:
        return f"{100 * self.n_answered / self.n:.1f}%" if self.n else "0%"


@dataclass(frozen=True)
class Week:
    """A week of answers to a topic."""

    start: date
    n: int
    n_right: int

    @property
    def height(self) -> str:
        return f"{100 * self.n_right / self.n:.0f}%" if self.n else "0%"

    @property
    def top(self) -> str:
        return f"{100 - 100 * self.n_right / self.n:.0f}%" if self.n else "100%"


def by_level(learner: User) -> list[Part]:
    return _parts(learner, "level", LEVELS)


def by_topic(learner: User) -> list[Part]:
    return _parts(learner, "topic", Topic.objects.values_list("pk", "name"))


def _parts(learner: User, field: str, names: Iterable[tuple[Any, str]]) -> list[Part]:
    published = Question.objects.published().order_by().values(field).annotate(n=Count("pk"))
    n_of = {row[field]: row["n"] for row in published}
    cards = ReviewCard.objects.by(learner).filter(question__status="published").values(f"question__{field}")
    counted = cards.annotate(n=Count("pk"), right=Count("pk", filter=Q(last_verdict="right")))
    mine = {row[f"question__{field}"]: row for row in counted}
    nothing = {"n": 0, "right": 0}
    found = [(name, n_of.get(key, 0), mine.get(key, nothing)) for key, name in names]
    return [Part(name, n, row["n"], row["right"]) for name, n, row in found if n]


def weeks(learner: User) -> list[tuple[str, list[Week]]]:
    """Return each topic with its last weeks, the newest first, by the learner's own Mondays."""
    today = timezone.localdate()
    monday = today - timedelta(days=today.weekday())
    starts = [monday - timedelta(weeks=back) for back in range(N_WEEKS)]
    since = timezone.make_aware(datetime.combine(starts[-1], time.min))
    answers = Answer.objects.by(learner).shown().judged().filter(created__gte=since).order_by()
    rows = (
        answers.values(topic=F("version__question__topic__name"), week=TruncWeek("created"))
        .annotate(n=Count("pk"), right=Count("pk", filter=RIGHT))
        .order_by("version__question__topic__position")
    )
    found: dict[str, dict[date, Week]] = {}
    for row in rows:
        start = timezone.localdate(row["week"])
        found.setdefault(row["topic"], {})[start] = Week(start, row["n"], row["right"])
    return [(topic, [by_start.get(s, Week(s, 0, 0)) for s in starts]) for topic, by_start in found.items()]


def streak(learner: User) -> int:
    """Return on how many local days in a row there was an answer, up to today or yesterday."""
    days = Answer.objects.by(learner).order_by().values_list(TruncDate("created"), flat=True).distinct()
    answered = set(days)
    day = timezone.localdate()
    if day not in answered:
        day -= timedelta(days=1)
    length = 0
    while day - timedelta(days=length) in answered:
        length += 1
    return length


def labs(learner: User) -> dict[str, Any]:
    """Return the labs whose goals are all met, and one that is not."""
    met = dict(LabResult.objects.filter(learner=learner).order_by().values_list("lab").annotate(n=Count("pk")))
    every = list(Lab.objects.only("slug", "title", "goals"))
    solved = [lab for lab in every if met.get(lab.pk, 0) >= len(lab.goals)]
    begun = [lab for lab in every if 0 < met.get(lab.pk, 0) < len(lab.goals)]
    left = [lab for lab in every if lab.pk not in met]
    return {"n": len(every), "solved": solved, "next": next(iter(begun + left), None)}


def confidence(learner: User) -> list[Confidence]:
    """Return how often answers were right, for each degree of confidence."""
    rows = Answer.objects.by(learner).shown().exclude(sure=None).order_by("sure").values("sure")
    counted = rows.annotate(n=Count("pk"), right=Count("pk", filter=RIGHT))
    return [Confidence(SAID_SURE[row["sure"] or 1], row["n"], row["right"]) for row in counted]
