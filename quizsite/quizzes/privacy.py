"""What the site holds about a learner: all of it as a file, or gone, while the statistics stay as nobody's."""

from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, ProtectedError, Q, QuerySet
from django.db.models.functions import Coalesce

from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.models import LabResult, Recording, Run
from quizsite.questions.models import Report
from quizsite.quizzes.models import Answer, Attempt, Mark, ReviewCard, SavedQuestion, Slot

FREE_TEXT = ["text", "typed"]  # in a response, what a learner wrote in their own words


def export(learner: User) -> dict[str, Any]:
    """Return everything that the site holds about a learner."""
    slots = Slot.objects.filter(attempt__learner=learner).order_by("attempt__started", "position")
    runs = Run.objects.filter(learner=learner).order_by("created")
    return {
        "account": {
            "username": learner.username,
            "email": learner.email,
            "is_guest": learner.is_guest,
            "joined": learner.date_joined,
            "last_login": learner.last_login,
        },
        "answers": _answers(learner),
        "marks_given": _rows(
            Mark.objects.filter(by=learner), "note", "created", question=F("answer__version__question__slug")
        ),
        "attempts": _rows(
            Attempt.objects.filter(learner=learner),
            *("id", "started", "deadline", "finished"),
            mode=F("quiz__mode"),
            level=F("quiz__level"),
            topic=F("quiz__topic__slug"),
        ),
        "slots": _rows(
            slots,
            *("attempt", "position", "why", "draft", "sure"),
            question=F("version__question__slug"),
            question_version=F("version__number"),
        ),
        "review": _rows(
            ReviewCard.objects.filter(learner=learner).order_by("due"),
            *("due", "last_review", "stability", "difficulty", "state", "step", "n_reviews", "n_missed"),
            *("last_verdict", "last_sure"),
            question_slug=F("question__slug"),
        ),
        "saved": _rows(SavedQuestion.objects.filter(learner=learner), "created", question_slug=F("question__slug")),
        "reports": _rows(
            Report.objects.filter(learner=learner),
            *("reason", "text", "state", "created"),
            question=F("version__question__slug"),
        ),
        "runs": _rows(
            runs,
            *("id", "panel", "inputs", "pace", "n_steps", "finish_reason", "failure", "shared", "created"),
            *("outcome", "verdicts"),
            model=F("recording__model"),
            prompt=F("recording__prompt"),
            chat=F("recording__chat"),
            settings=F("recording__settings"),
            forced=F("recording__forced"),
            lab_slug=F("lab__slug"),
        ),
        "labs": _rows(
            LabResult.objects.filter(learner=learner).order_by("created"),
            *("goal", "run", "created"),
            lab_slug=F("lab__slug"),
        ),
        **{name: rows for part in _apps_above() for name, rows in part.export(learner).items()},
    }


def _answers(learner: User) -> list[dict[str, Any]]:
    """Return a learner's answers; what an assignment still holds back stays out, or this file would tell the key."""
    answers = Answer.objects.filter(learner=learner)
    rows = _rows(
        answers.order_by("created"),
        *("pk", "response", "verdict", "score", "sure", "try_number", "created"),
        question=F("version__question__slug"),
        question_version=F("version__number"),
        attempt=F("slot__attempt"),
        note=F("given_mark__note"),
    )
    shown = set(answers.shown().values_list("pk", flat=True))
    for row in rows:
        if row.pop("pk") not in shown:
            row |= {"verdict": None, "score": None, "note": None}
            row["response"] = {name: value for name, value in row["response"].items() if name != "marks"}
    return rows


def _apps_above() -> list[Any]:
    """Return the modules of apps that this one must not know, which hold something about a learner, too."""
    return [import_module(name) for name in settings.PERSONAL_DATA]


def _rows(found: QuerySet[Any], *names: str, **renamed: F) -> list[dict[str, Any]]:
    return list(found.values(*names, **renamed))


def make_anonymous(learner: User) -> None:
    """Delete a learner: name, texts, runs and plans go; verdicts and scores stay, as nobody's."""
    delete_runs(learner)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=learner.pk)
        answers = Answer.objects.filter(learner=learner)
        for answer in answers.filter(response__has_any_keys=FREE_TEXT):
            answer.response |= {name: "" for name in FREE_TEXT if name in answer.response}
            answer.save(update_fields=["response"])
        answers.update(asking_key="")  # it is the learner's name
        Attempt.objects.filter(learner=learner).open().delete()
        Slot.objects.filter(attempt__learner=learner).update(draft={})
        ReviewCard.objects.filter(learner=learner).delete()
        SavedQuestion.objects.filter(learner=learner).delete()
        Report.objects.filter(learner=learner).update(learner=None)
        Mark.objects.filter(answer__learner=learner).update(note="")
        Mark.objects.filter(by=learner).update(by=None)
        for part in _apps_above():
            part.forget(learner)
        learner.groups.clear()
        learner.user_permissions.clear()
        learner.username, learner.password = f"deleted-{uuid4().hex}", make_password(None)
        learner.email = learner.first_name = learner.last_name = ""
        learner.is_active = learner.is_staff = learner.is_superuser = False
        learner.last_login = None
        learner.save()


def delete_runs(learner: User) -> None:
    """Delete a learner's runs with their results, and the recordings that no other run shows."""
    mine = Run.objects.filter(learner=learner)
    for run in mine.open().with_recording():
        engine.stop(run)
    beside = Run.others.through.objects.filter(run__learner=learner)
    shown = {*mine.values_list("recording", flat=True), *beside.values_list("recording", flat=True)}
    mine.delete()
    with suppress(ProtectedError, IntegrityError):  # somebody is just running the same; then it is theirs
        delete_unused(Recording.objects.filter(pk__in=shown))


def delete_unused(recordings: QuerySet[Recording]) -> int:
    """Delete those of these recordings that no run shows any more."""
    uses = (
        Run.objects.filter(recording=OuterRef("pk")),
        Run.others.through.objects.filter(recording=OuterRef("pk")),
    )
    with transaction.atomic():
        n_deleted, _ = recordings.exclude(Exists(uses[0])).exclude(Exists(uses[1])).delete()
    return n_deleted


def unreachable_guests(now: datetime) -> QuerySet[User]:
    """Return guests whose session has run out: it is saved once a day, and ends so long after it."""
    since = now - timedelta(seconds=settings.SESSION_COOKIE_AGE) - timedelta(days=1)
    guests = User.objects.filter(is_guest=True, is_active=True)
    return guests.alias(last=Coalesce("last_login", "date_joined")).filter(last__lt=since)


def purge_guests(now: datetime) -> tuple[int, int]:
    """Delete unreachable guests without work, and make the others anonymous; return how many of each."""
    works = Q(answers__isnull=False) | Q(attempts__isnull=False)
    with_work = list(unreachable_guests(now).filter(works).distinct())
    for guest in with_work:
        make_anonymous(guest)
    idle = list(unreachable_guests(now))
    for guest in idle:
        guest.delete()
    return len(idle), len(with_work)
