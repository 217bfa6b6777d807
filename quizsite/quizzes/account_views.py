"""Signing up, in and out. A guest's work comes along."""

from django.contrib.auth import logout
from django.db import IntegrityError, transaction
from django.forms import BaseForm
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from quizsite.accounts.forms import SignInForm, SignUpForm
from quizsite.accounts.models import User
from quizsite.htmx import HtmxRequest
from quizsite.quizzes.joining import move_work
from quizsite.quizzes.sessions import enter, is_kept


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HtmxRequest) -> HttpResponse:
    """Make an account; a guest becomes it, with all that they have done."""
    guest = _guest_of(request)
    if request.user.is_authenticated and not guest:
        return redirect("quizzes:account")
    form = SignUpForm(request.POST or None, instance=guest)
    if form.is_valid():
        account = form.save(commit=False)
        account.is_guest = False
        try:
            with transaction.atomic():
                account.save()
                enter(request, account)
            return redirect(_next(request))
        except IntegrityError:  # two took it at the same moment
            form.add_error("username", f"The name {account.username} is taken.")
    return _form_page(request, "accounts/sign_up.html", form, guest)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HtmxRequest) -> HttpResponse:
    """Sign in to an account; what was done as a guest moves to it."""
    guest = _guest_of(request)
    if request.user.is_authenticated and not guest:
        return redirect(_next(request))
    form = SignInForm(request, request.POST or None)
    if form.is_valid():
        with transaction.atomic():  # or the guest's session could be gone, and their work not moved
            if guest:
                move_work(guest, form.get_user())
            enter(request, form.get_user())
        return redirect(_next(request))
    return _form_page(request, "accounts/sign_in.html", form, guest)


@require_POST
def sign_out(request: HtmxRequest) -> HttpResponse:
    logout(request)
    return redirect("quizzes:front")


def _form_page(request: HtmxRequest, page: str, form: BaseForm, guest: User | None) -> HttpResponse:
    wanted = _next(request)
    context = {"form": form, "next": wanted, "has_work": bool(guest), "is_kept": is_kept(request, wanted)}
    return render(request, page, context, status=422 if form.errors else 200)


def _guest_of(request: HtmxRequest) -> User | None:
    return request.user if request.user.is_authenticated and request.user.is_guest else None


def _next(request: HtmxRequest) -> str:
    """Return where to go on; only to a page of this site."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours and wanted.startswith("/") else "/"
