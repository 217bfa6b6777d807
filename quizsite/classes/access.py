"""Whose class it is: every page of a class is found through a membership, or is not there."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.classes.models import MAY_TEACH, Membership
from quizsite.htmx import HtmxRequest

View = Callable[..., HttpResponse]
HIDDEN = "names_are_hidden"  # in the session: no page shows a name while a screen is projected


def may_teach(user: User) -> bool:
    return user.has_perm(MAY_TEACH)


def names_are_hidden(request: HtmxRequest) -> bool:
    return bool(request.session.get(HIDDEN))


def for_users(view: View) -> View:
    """Give a view the one who is signed in; others sign in first."""

    @wraps(view)
    def answer(request: HtmxRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            is_page = request.method in {"GET", "HEAD"}
            return redirect_to_login(request.path if is_page else reverse("classes:classes"))
        return view(request, request.user, *args, **kwargs)

    return answer


def for_members(view: View) -> View:
    """Give a view the membership in the class of its address."""

    @for_users
    @wraps(view)
    def answer(request: HtmxRequest, user: User, class_id: int, **kwargs: Any) -> HttpResponse:
        found = Membership.objects.select_related("klass", "user")
        return view(request, get_object_or_404(found, user=user, klass__pk=class_id), **kwargs)

    return answer


def for_teachers(view: View) -> View:
    """Give a view the class of its address, if the one who asks teaches it and still may teach."""

    @for_members
    @wraps(view)
    def answer(request: HtmxRequest, member: Membership, **kwargs: Any) -> HttpResponse:
        if member.role != "teacher" or not may_teach(member.user):
            raise Http404("this page is for teachers of the class")
        return view(request, member.klass, **kwargs)

    return answer
