"""A class as its teacher keeps it: name and zone, join code, roster, and names hidden from a projector."""

from django.contrib.auth.models import Permission
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts.models import User
from quizsite.classes.access import HIDDEN, for_teachers, for_users, may_teach, names_are_hidden
from quizsite.classes.forms import ClassForm
from quizsite.classes.header import look_again
from quizsite.classes.models import MAY_TEACH, ROLES, Class, LastTeacher
from quizsite.htmx import HtmxRequest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_users
def new_class(request: HtmxRequest, user: User) -> HttpResponse:
    """Open a class."""
    if not may_teach(user):
        raise Http404("this page is for teachers")
    form = ClassForm(request.POST or None, initial={"time_zone": request.COOKIES.get("timezone", "UTC")})
    if form.is_valid():
        klass = Class.objects.open_by(user, form.cleaned_data["name"], form.cleaned_data["time_zone"])
        look_again(request)
        return redirect(klass)
    return render(request, "classes/class_form.html", {"form": form}, status=422 if form.errors else 200)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_teachers
def edit_class(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Give a class another name or zone; moments that were typed before stay the moments they are."""
    form = ClassForm(request.POST or None, instance=klass)
    if form.is_valid():
        form.save()
        return redirect(klass)
    name = Class.objects.get(pk=klass.pk).name  # the form has written on the class
    context = {"form": form, "klass": klass, "name": name}
    return render(request, "classes/class_form.html", context, status=422 if form.errors else 200)


@require_POST
@for_teachers
def code(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Renew the join code, or close the class."""
    if request.POST.get("do") == "close":
        klass.close()
    else:
        klass.renew_code()
    return redirect(klass)


@never_cache
@require_safe
@for_teachers
def roster(request: HtmxRequest, klass: Class) -> HttpResponse:
    """List who is in a class."""
    return _roster_page(request, klass)


@require_POST
@for_teachers
def member(request: HtmxRequest, klass: Class, membership_id: int) -> HttpResponse:
    """Remove somebody from a class, or give them another role."""
    found = get_object_or_404(klass.memberships.select_related("klass", "user"), pk=membership_id)
    wanted = request.POST.get("do", "")
    try:
        if wanted == "remove":
            found.leave()
        elif wanted == "teacher" and not may_teach(found.user):
            return _roster_page(request, klass, "Only an account of the group Teachers can teach.")
        elif wanted in dict(ROLES):
            found.become(wanted)
    except LastTeacher:
        return _roster_page(request, klass, "A class keeps at least one teacher.")
    return redirect("classes:roster", klass.pk)


@require_POST
@for_teachers
def names(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Hide the names on all pages of this browser, or show them again."""
    request.session[HIDDEN] = request.POST.get("hide") == "yes"
    back = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(back, None) and back.startswith("/")
    return redirect(back if is_ours else klass.get_absolute_url())


def _roster_page(request: HtmxRequest, klass: Class, problem: str = "") -> HttpResponse:
    is_hidden = names_are_hidden(request)
    members = list(klass.memberships.select_related("user"))
    order = {True: lambda found: found.number, False: lambda found: found.user.username.casefold()}[is_hidden]
    may = _who_may_teach(klass)
    rows = [(found, found.name(is_hidden), found.user_id in may) for found in sorted(members, key=order)]
    context = {"klass": klass, "rows": rows, "is_hidden": is_hidden, "problem": problem}
    return render(request, "classes/roster.html", context, status=422 if problem else 200)


def _who_may_teach(klass: Class) -> set[int]:
    """Return the ids of those in a class who could be its teachers, in one query."""
    app, name = MAY_TEACH.split(".")
    right = Permission.objects.filter(content_type__app_label=app, codename=name)
    allowed = Q(groups__permissions__in=right) | Q(user_permissions__in=right) | Q(is_superuser=True)
    return set(User.objects.filter(allowed, memberships__klass=klass).values_list("pk", flat=True))
