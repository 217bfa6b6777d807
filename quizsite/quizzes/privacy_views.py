"""The account page: address, password, all data as a file, and an end to it."""

from django.contrib.auth import logout
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts import tries
from quizsite.accounts.forms import EmailForm
from quizsite.accounts.models import User
from quizsite.htmx import HtmxRequest
from quizsite.quizzes import privacy
from quizsite.quizzes.sessions import sign_in_first


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HtmxRequest) -> HttpResponse:
    """Show what can be changed, taken along or ended; on POST, keep another e-mail address."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    form = EmailForm(request.POST or None, instance=User.objects.get(pk=request.user.pk))
    if request.method == "POST" and form.is_valid():
        form.save()
        return redirect(f"{reverse('quizzes:account')}?kept=address")
    return render(request, "accounts/account.html", {"form": form}, status=422 if form.errors else 200)


@never_cache
@require_safe
def export(request: HtmxRequest) -> HttpResponse:
    """Send everything that the site holds about the learner."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    disposition = 'attachment; filename="next-token.json"'
    return JsonResponse(
        privacy.export(request.user), json_dumps_params={"indent": 1}, headers={"Content-Disposition": disposition}
    )


@require_POST
def delete(request: HtmxRequest) -> HttpResponse:
    """Delete the account: with its password, or for a guest with a tick."""
    if not request.user.is_authenticated:
        return redirect("quizzes:account")  # what was typed is a password, and is kept nowhere
    learner = request.user
    problem = _against(learner, request)
    if problem:
        context = {"form": EmailForm(instance=learner), "problem": problem}
        return render(request, "accounts/account.html", context, status=422)
    logout(request)
    privacy.make_anonymous(User.objects.get(pk=learner.pk))
    return render(request, "accounts/deleted.html")


def _against(learner: User, request: HtmxRequest) -> str:
    """Say what stands against deleting an account; nothing if nothing does."""
    if learner.is_superuser:
        return "This account runs the site. Let another one take its rights first."
    if learner.is_guest:
        return "" if request.POST.get("sure") else "Tick the box first: what you did cannot be brought back."
    try:
        tries.begin(learner.username)
    except tries.TooMany as waiting:
        return str(waiting.message)
    if not learner.check_password(request.POST.get("password", "")):
        return "This is not the password. Nothing is deleted."
    return ""
