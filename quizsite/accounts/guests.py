"""Guests: a visitor becomes a learner with the first answer or run, without being asked for anything."""

from uuid import uuid4

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password

from quizsite.accounts.models import User
from quizsite.htmx import HtmxRequest

GUEST_KEY = "guest"
BACKEND = "django.contrib.auth.backends.ModelBackend"


def learner_key(request: HtmxRequest) -> str:
    """Return what names this learner for shuffles: the same before and after a visitor becomes a guest.

    It also opens the session, so that two first posts of one page meet in the same guest.
    """
    if request.user.is_authenticated:
        return request.user.username
    key: str = request.session.setdefault(GUEST_KEY, uuid4().hex)
    return f"guest-{key}"


def learner_of(request: HtmxRequest) -> User:
    """Return who is learning; a visitor becomes a guest who lives in the browser's session.

    Django's `login` would give the session a new key and the forms a new CSRF token. A guest gains no
    right by it, and the other forms of the page, in this tab or another, must stay valid.
    """
    if request.user.is_authenticated:
        return request.user
    defaults = {"is_guest": True, "password": make_password(None)}  # None: no password fits
    guest, _ = User.objects.get_or_create(username=learner_key(request), defaults=defaults)
    request.session[SESSION_KEY] = str(guest.pk)
    request.session[BACKEND_SESSION_KEY] = BACKEND
    request.session[HASH_SESSION_KEY] = guest.get_session_auth_hash()
    request.user = guest
    return guest
