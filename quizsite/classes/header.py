"""Whether the head of a page leads to the classes: only for those who are in one or may open one."""

from functools import partial
from typing import Any

from quizsite.classes.models import MAY_TEACH, Membership
from quizsite.htmx import HtmxRequest

KEPT = "in_classes"  # in the session, so that no page asks the database again


def in_classes(request: HtmxRequest) -> dict[str, Any]:
    return {"in_classes": partial(_is_in_classes, request)}


def look_again(request: HtmxRequest) -> None:
    """Ask the database for the next page: somebody has joined a class, or left one."""
    request.session.pop(KEPT, None)


def _is_in_classes(request: HtmxRequest) -> bool:
    user = request.user
    if not user.is_authenticated or user.is_guest:
        return False
    if KEPT not in request.session:
        request.session[KEPT] = Membership.objects.filter(user=user).exists() or user.has_perm(MAY_TEACH)
    is_in: bool = request.session[KEPT]
    return is_in
