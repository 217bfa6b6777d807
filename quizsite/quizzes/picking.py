"""Which questions a quiz asks a learner, and why each of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.questions.kinds import kind_named
from quizsite.questions.models import Question, QuestionQuerySet, QuestionVersion
from quizsite.questions.validation import LEVELS, QuestionSpec
from quizsite.quizzes.models import WAITS, Attempt, Quiz, ReviewCard, Rule, Slot

MOST_WEIGHED = 200  # cards; the weakest of them are asked
MOST_ASKED = 50  # questions of one quiz


class Pick(NamedTuple):
    """A question to be asked, and the reason to tell the learner."""

    version: QuestionVersion
    why: str


class NothingToAsk(Exception):
    """No question fits the rule; the message says why."""


def start(learner: User, rule: Rule) -> Attempt:
    """Open an attempt of the quiz with this rule, or return the one that is open.

    Raises
    ------
    NothingToAsk
    """
    deadline = timezone.now() + timedelta(minutes=rule.minutes) if rule.minutes else None
    return open_attempt(learner, Quiz.objects.of(rule), deadline)


def open_attempt(learner: User, quiz: Quiz, deadline: datetime | None) -> Attempt:
    """Open an attempt of a quiz for somebody who may take it, or return the one that is open.

    Raises
    ------
    NothingToAsk
    """
    for attempt in Attempt.objects.by(learner).open().filter(quiz=quiz):
        attempt.settle()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=learner.pk)  # two presses of Start open one attempt
        mine = Attempt.objects.by(learner).filter(quiz=quiz)
        known = mine.open().first()
        if known:
            return known
        if quiz.attempts_allowed and mine.count() >= quiz.attempts_allowed:
            raise NothingToAsk("No try is left.")
        now = timezone.now()
        picks = PICKERS[quiz.mode](learner, quiz, now)
        if not picks:
            raise NothingToAsk(WHY_NOT[quiz.mode])
        attempt = Attempt.objects.create(learner=learner, quiz=quiz, started=now, deadline=deadline)
        Slot.objects.bulk_create(
            Slot(attempt=attempt, position=at, version=pick.version, why=pick.why)
            for at, pick in enumerate(picks, start=1)
        )
    return attempt


def _drill(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick what is new to the learner, then what they have not seen for longest; easier levels first."""
    found = askable(quiz)
    new = _sample(found.exclude(_answered_by(learner)), quiz.n_questions)
    picks = [Pick(version, "New to you") for version in new]
    if len(picks) < quiz.n_questions:
        cards = _cards(learner, quiz).order_by("last_review")[: quiz.n_questions - len(picks)]
        picks += [Pick(_version_of(card), "Not seen for longest") for card in cards]
    return _by_level(picks)


def _mock(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick from every level in turn, as an interview climbs; what was asked in the last weeks comes last."""
    per_level = [_sample(askable(quiz).filter(level=level), quiz.n_questions) for level, _ in LEVELS]
    recent = set(_cards(learner, quiz).order_by("-last_review").values_list("question_id", flat=True)[:MOST_WEIGHED])
    for versions in per_level:
        versions.sort(key=lambda version: version.question_id in recent)
    picks: list[Pick] = []
    while len(picks) < quiz.n_questions and any(per_level):
        picks += [Pick(versions.pop(0), "") for versions in per_level if versions]
    return _by_level(picks[: quiz.n_questions])


def _missed(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick what was not right in another attempt, as it is asked now."""
    slots = Slot.objects.filter(attempt=quiz.source, attempt__learner=learner).exclude(answer__verdict="right")
    slots = slots.exclude(answer__isnull=False, **{f"answer__{name}": value for name, value in WAITS.items()})
    questions = Question.objects.published().filter(versions__in=slots.values("version")).select_related("current")
    return [Pick(_current(question), "Not right last time") for question in questions[:MOST_ASKED]]


def _review(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick what is due, the longest overdue first."""
    cards = _with_current(ReviewCard.objects.by(learner).due(now)).order_by("due")[: quiz.n_questions]
    return [Pick(_version_of(card), f"Due: recalled with {card.recall(now):.0%} by now") for card in cards]


def _weak(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick what was missed and what is fading, the weakest first; then new questions from the weakest topic."""
    cards = _cards(learner, quiz)
    missed = cards.exclude(last_verdict="right").order_by("last_review")[:MOST_WEIGHED]
    fading = cards.filter(last_verdict="right").order_by("due")[:MOST_WEIGHED]
    weighed = sorted(((*_weakness(card, now), card) for card in (*missed, *fading)), key=lambda found: -found[0])
    picks = [Pick(_version_of(card), why) for weight, why, card in weighed if weight > 0][: quiz.n_questions]
    if weighed and len(picks) < quiz.n_questions:
        topic = weighed[0][2].question.topic
        new = _sample(askable(quiz).filter(topic=topic).exclude(_answered_by(learner)), quiz.n_questions - len(picks))
        picks += [Pick(version, f"New, from {topic}, where you are weakest") for version in new]
    return picks


def _assigned(learner: User, quiz: Quiz, now: datetime) -> list[Pick]:
    """Pick what the teacher has selected, in that order, or what the rule finds, easier levels first."""
    if not quiz.is_selected:
        return _by_level([Pick(version, "") for version in _sample(askable(quiz), quiz.n_questions)])
    places = quiz.places.filter(question__in=assignable()).select_related("question__current")
    questions = [place.question for place in places.prefetch_related("question__current__options")]
    return [Pick(_current(question), "") for question in questions if not cannot_be_asked(question)]


def assignable() -> QuestionQuerySet:
    """Questions that a teacher may select: drafts as well, which nobody else is asked."""
    found = Question.objects.exclude(status="archived").filter(current__isnull=False)
    return found.exclude(current__kind="lab").order_by()


def cannot_be_asked(question: Question) -> str:
    """Say what a draft lacks before it can be asked and judged; nothing if it can."""
    if question.status == "published":
        return ""
    version = _current(question)
    options = [{"text": o.text, "right": o.is_key, "pinned": o.pinned} for o in version.options.all()]
    fields = {name: getattr(version, name) for name in ("title", "kind", "text", "explanation")}
    spec = QuestionSpec.model_validate({**fields, "level": question.level, "options": options, **version.details})
    return "; ".join(message for _, message in kind_named(version.kind).problems(spec))


def _weakness(card: ReviewCard, now: datetime) -> tuple[float, str]:
    """Return how much a question needs to be asked, and why; 0 or less where it does not."""
    forgotten = 1 - card.recall(now)
    if card.last_verdict == "wrong" and card.last_sure == 3:
        return 2 + forgotten, "You were sure, and it was wrong"
    if card.last_verdict == "wrong":
        return 1.5 + forgotten, f"Wrong last time; missed in {card.n_missed} of {card.n_reviews} tries"
    if card.last_verdict == "partly":
        return 1 + forgotten, "Partly right last time"
    part_missed = card.n_missed / card.n_reviews
    why = f"Recalled with {1 - forgotten:.0%} by now"
    why += f"; missed in {card.n_missed} of {card.n_reviews} tries" if card.n_missed else ""
    return forgotten + part_missed / 2 - 0.05, why


def askable(quiz: Quiz) -> QuerySet[Question]:
    """Questions that fit the quiz. Those of kind lab are left out: they are answered by runs, on their own page."""
    found = Question.objects.published().exclude(current__kind="lab").order_by()
    found = found.filter(level=quiz.level) if quiz.level else found
    return found.filter(topic=quiz.topic_id) if quiz.topic_id else found


def _cards(learner: User, quiz: Quiz) -> QuerySet[ReviewCard]:
    cards = _with_current(ReviewCard.objects.by(learner).asked())
    cards = cards.filter(question__level=quiz.level) if quiz.level else cards
    return cards.filter(question__topic=quiz.topic_id) if quiz.topic_id else cards


def _with_current(cards: QuerySet[ReviewCard]) -> QuerySet[ReviewCard]:
    return cards.select_related("question__current", "question__topic")


def _answered_by(learner: User) -> Exists:
    return Exists(ReviewCard.objects.filter(learner=learner, question=OuterRef("pk")))


def _sample(questions: QuerySet[Question], n: int) -> list[QuestionVersion]:
    """Draw questions by chance: a quiz started again asks others."""
    ids = list(questions.values_list("current_id", flat=True))
    drawn = Random().sample(ids, min(n, len(ids)))  # noqa: S311  (nothing secret)
    versions = QuestionVersion.objects.select_related("question").in_bulk(drawn)
    return [versions[pk] for pk in drawn]


def _by_level(picks: Sequence[Pick]) -> list[Pick]:
    order = [level for level, _ in LEVELS]
    return sorted(picks, key=lambda pick: order.index(pick.version.question.level))


def _version_of(card: ReviewCard) -> QuestionVersion:
    return _current(card.question)


def _current(question: Question) -> QuestionVersion:
    assert question.current  # those that are asked have one
    return question.current


PICKERS = {"drill": _drill, "mock": _mock, "missed": _missed, "review": _review, "weak": _weak, "assigned": _assigned}
WHY_NOT = {
    "drill": "No question fits. Choose another level or topic.",
    "mock": "There are no questions yet.",
    "missed": "Nothing is left: all of it was right.",
    "review": "Nothing is due.",
    "weak": "There is nothing to weigh yet. Answer a drill first.",
    "assigned": "None of its questions can be asked at the moment.",
}
