"""A guest who signs in to an account: what they did as a guest moves over, and the guest is gone."""

from uuid import uuid4

from django.db import transaction
from django.db.models import Max

from quizsite.accounts.models import User
from quizsite.labs.models import LabResult, Run
from quizsite.questions.models import Report
from quizsite.quizzes.models import Answer, Attempt, ReviewCard, SavedQuestion


def move_work(guest: User, account: User) -> None:
    """Move all work of a guest to an account. What both have once stays the account's."""
    for attempt in Attempt.objects.by(guest).open():
        if Attempt.objects.by(account).open().filter(quiz=attempt.quiz_id).exists():
            attempt.finish()
    with transaction.atomic():
        for pk in sorted((guest.pk, account.pk)):  # always in one order, so that two sign-ins cannot lock each other
            User.objects.select_for_update().get(pk=pk)
        _move_answers(guest, account)
        _move_cards(guest, account)
        Attempt.objects.filter(learner=guest).update(learner=account)
        Run.objects.filter(learner=guest).open().update(finish_reason="cancelled")
        Run.objects.filter(learner=guest).update(learner=account)
        met = LabResult.objects.filter(learner=account).values_list("lab", "goal")
        for result in LabResult.objects.filter(learner=guest):
            if (result.lab_id, result.goal) not in met:
                LabResult.objects.filter(pk=result.pk).update(learner=account)
        saved = SavedQuestion.objects.filter(learner=account).values("question")
        SavedQuestion.objects.filter(learner=guest).exclude(question__in=saved).update(learner=account)
        _move_reports(guest, account)
        guest.delete()


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


def _move_reports(guest: User, account: User) -> None:
    said = set(Report.objects.filter(learner=account, state="open").values_list("version", "reason"))
    for report in Report.objects.filter(learner=guest):
        if report.state == "open" and (report.version_id, report.reason) in said:
            continue
        Report.objects.filter(pk=report.pk).update(learner=account)
