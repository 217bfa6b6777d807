"""What classes hold about a learner, for the account page: in the file of all data, and gone with the account."""

from typing import Any

from django.db.models import F

from quizsite.accounts.models import User
from quizsite.classes.models import ExtraTime, LastTeacher, Membership


def export(learner: User) -> dict[str, Any]:
    memberships = Membership.objects.filter(user=learner).order_by("joined")
    extra = ExtraTime.objects.filter(learner=learner)
    return {
        "classes": list(memberships.values("role", "number", "joined", name=F("klass__name"))),
        "extra_times": list(extra.values("minutes", title=F("assignment__quiz__title"))),
    }


def forget(learner: User) -> None:
    """Take a learner out of all classes; one that has no teacher left lets nobody in any more."""
    for member in Membership.objects.filter(user=learner).select_related("klass", "user"):
        try:
            member.leave()
        except LastTeacher:
            member.klass.close()
            Membership.objects.filter(klass=member.klass, user=learner).delete()
    ExtraTime.objects.filter(learner=learner).delete()
