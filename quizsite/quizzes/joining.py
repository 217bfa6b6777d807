"""A guest who signs in to an account: what they did as a guest moves over, and the guest is gone."""

from uuid import uuid4

from django.db import transaction
from django.db.models import Max

from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.models import LabResult, Run
from quizsite.questions.models import Report
from quizsite.quizzes.models import Answer, Attempt, ReviewCard, SavedQuestion


def move_work(guest: User, account: User) -> None:
    """Move all work of a guest to an account. What both have once stays the account's; a guest who is gone has none."""
    with transaction.atomic():
        _hold(guest, account)
        for run in Run.objects.by(guest).open().with_recording():
            engine.stop(run)
        _finish_second_attempts(guest, account)
        _move_answers(guest, account)
        _move_cards(guest, account)
        _move_results(guest, account)
        saved = SavedQuestion.objects.filter(learner=account).values("question")
        SavedQuestion.objects.filter(learner=guest).exclude(question__in=saved).update(learner=account)
        _move_reports(guest, account)
        Attempt.objects.by(guest).update(learner=account)
        Run.objects.by(guest).update(learner=account)
        guest.delete()


def _hold(*learners: User) -> None:
    """Lock learners so that nobody waits in a circle: after their attempts, as whoever answers does.

    The key of a learner is not locked: a verdict that is being written holds its run and refers to the learner.
    """
    list(Attempt.objects.filter(learner__in=learners).open().select_for_update().order_by("pk"))
    found = User.objects.filter(pk__in=[learner.pk for learner in learners])
    list(found.select_for_update(no_key=True).order_by("pk"))


def _finish_second_attempts(guest: User, account: User) -> None:
    quizzes = Attempt.objects.by(account).open().values("quiz")
    for attempt in Attempt.objects.by(guest).open().filter(quiz__in=quizzes):
        attempt.finish()


def _move_answers(guest: User, account: User) -> None:
    """Number the guest's tries after the account's."""
    mine = Answer.objects.filter(learner=account)
    last = dict(mine.order_by().values_list("version").annotate(Max("try_number")))
    theirs = Answer.objects.filter(learner=guest)
    tokens = set(mine.filter(token__in=theirs.values("token")).values_list("token", flat=True))
    for answer in theirs.order_by("try_number"):
        answer.learner = account
        answer.try_number += last.get(answer.version_id, 0)
        answer.token = uuid4() if answer.token in tokens else answer.token
        answer.save(update_fields=["learner", "try_number", "token"])


def _move_cards(guest: User, account: User) -> None:
    """Keep of two cards of a question the one that was reviewed last."""
    mine = {card.question_id: card for card in ReviewCard.objects.filter(learner=account)}
    for card in ReviewCard.objects.filter(learner=guest):
        other = mine.get(card.question_id)
        if other and other.last_review >= card.last_review:
            continue
        if other:
            other.delete()
        ReviewCard.objects.filter(pk=card.pk).update(learner=account)


def _move_results(guest: User, account: User) -> None:
    met = set(LabResult.objects.filter(learner=account).values_list("lab", "goal"))
    for result in LabResult.objects.filter(learner=guest):
        if (result.lab_id, result.goal) not in met:
            LabResult.objects.filter(pk=result.pk).update(learner=account)


def _move_reports(guest: User, account: User) -> None:
    said = set(Report.objects.filter(learner=account, state="open").values_list("version", "reason"))
    for report in Report.objects.filter(learner=guest):
        if report.state == "open" and (report.version_id, report.reason) in said:
            continue
        Report.objects.filter(pk=report.pk).update(learner=account)
