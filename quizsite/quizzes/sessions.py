"""A session that ends in the middle of a quiz: sign in first, then go on with what was typed."""

from contextlib import suppress
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from quizsite.accounts.guests import BACKEND
from quizsite.accounts.models import User
from quizsite.htmx import HtmxRequest
from quizsite.questions.kinds.kind import NotAnswered
from quizsite.quizzes.models import fields_of

KEPT = "typed"  # in the session of a visitor, and after the sign-in for the one who signed in


def sign_in_first(request: HtmxRequest) -> HttpResponse:
    """Lead to the sign-in page and keep what was typed. htmx must not swap that page into a card."""
    page = request.path.removesuffix("draft/").removesuffix("finish/")
    with suppress(NotAnswered):  # what is too long to be an answer is not kept
        if request.method == "POST" and (typed := fields_of(request.POST)):
            request.session[KEPT] = {"path": page, "fields": typed}
    url = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': page})}"
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def enter(request: HtmxRequest, account: User) -> None:
    """Sign in a visitor or a guest. Django empties the session of a guest; what was typed before stays in it."""
    kept = request.session.get(KEPT)
    login(request, account, BACKEND)
    if kept:
        request.session[KEPT] = kept


def is_kept(request: HtmxRequest, path: str) -> bool:
    """Tell whether something that was typed at a page waits for the sign-in."""
    return KEPT in request.session and request.session[KEPT]["path"] == path


def typed_before(request: HtmxRequest, path: str) -> QueryDict | None:
    """Return what was typed at a page before its learner had to sign in, once."""
    if not is_kept(request, path):
        return None
    typed = QueryDict(mutable=True)
    for name, values in request.session.pop(KEPT)["fields"].items():
        typed.setlist(name, values)
    return typed
