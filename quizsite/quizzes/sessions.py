"""A session that ends in the middle of a quiz: sign in first, then go on with what was typed."""

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from quizsite.htmx import HtmxRequest


def sign_in_first(request: HtmxRequest) -> HttpResponse:
    """Lead to the sign-in page."""
    url = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': request.path})}"
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def typed_before(request: HtmxRequest, path: str) -> QueryDict | None:
    """Return what was typed at a page before its learner had to sign in."""
    return None
