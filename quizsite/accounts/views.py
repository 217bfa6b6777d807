"""What a learner sees when the server cannot accept who they are."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that the page was too old to be sent, and how to go on."""
    return render(request, "403_csrf.html", status=403)
