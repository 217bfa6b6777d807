"""What a request of this site is, and how a view answers htmx with the part that changes."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from quizsite.accounts.models import User


class HtmxRequest(HttpRequest):
    """A request after the middleware: `htmx` is true when htmx sent it."""

    htmx: HtmxDetails
    user: User | AnonymousUser


def number_in(text: str | None) -> int:
    """Return the whole number that an address or a form holds; 0, which nothing has, for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def render_part(request: HtmxRequest, page: str, part: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render the whole page, or for htmx the part of it that changes."""
    response = render(request, part if request.htmx else page, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
