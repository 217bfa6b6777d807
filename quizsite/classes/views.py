"""The learner's side: my classes, joining one, what it has assigned, and starting on it."""

from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts import tries
from quizsite.accounts.models import User
from quizsite.classes.access import for_members, for_users, may_teach, names_are_hidden
from quizsite.classes.grade_book import GradeBook, Standing, standings
from quizsite.classes.header import look_again
from quizsite.classes.models import Assignment, Class, LastTeacher, Membership
from quizsite.classes.times import Said, said
from quizsite.htmx import HtmxRequest
from quizsite.quizzes import picking


@dataclass(frozen=True)
class Task:
    """An assignment as one learner has it."""

    assignment: Assignment
    opens: Said
    due: Said
    standing: Standing
    is_open: bool
    problem: str = ""

    @property
    def n_left(self) -> int | None:
        allowed = self.assignment.quiz.attempts_allowed
        return None if allowed is None else max(0, allowed - len(self.standing.tries))

    @property
    def shows_score(self) -> bool:
        return self.standing.state == "done" and self.assignment.quiz.shows_now


@never_cache
@require_safe
@for_users
def classes(request: HtmxRequest, user: User) -> HttpResponse:
    """List my classes, and take a code."""
    look_again(request)
    return _classes_page(request, user)


@require_POST
@for_users
def join(request: HtmxRequest, user: User) -> HttpResponse:
    """Lead from a code that was typed to the class that it opens."""
    typed = request.POST.get("code", "")[:40]
    try:
        klass = _class_with(typed, user)
    except tries.TooMany as waiting:
        return _classes_page(request, user, str(waiting.message), typed)
    if not klass:
        return _classes_page(request, user, "No class has this code. Ask for the newest one.", typed)
    return redirect("classes:join-link", code=klass.join_code)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join_link(request: HtmxRequest, code: str) -> HttpResponse:
    """Show the class that a code opens; on POST, join it. Guests and visitors are told nothing of it."""
    if not request.user.is_authenticated or request.user.is_guest:
        return render(request, "classes/join.html", {"next": request.path})
    try:
        klass = _class_with(code, request.user)
    except tries.TooMany as waiting:
        return render(request, "classes/join.html", {"problem": waiting.message}, status=429)
    if not klass:
        problem = "No class has this code. Ask for the newest one."
        return render(request, "classes/join.html", {"problem": problem}, status=404)
    is_in = klass.memberships.filter(user=request.user).exists()
    if request.method == "POST" and not is_in:
        klass.join(request.user)
        look_again(request)
        is_in = True
    return redirect(klass) if is_in else render(request, "classes/join.html", {"klass": klass})


@never_cache
@require_safe
@for_members
def klass_page(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Show what a class has assigned: to a learner their own work, to a teacher how far the class is."""
    if member.role == "teacher" and may_teach(member.user):
        return _teachers_page(request, member.klass)
    return _learners_page(request, member)


@require_POST
@for_members
def leave(request: HtmxRequest, member: Membership) -> HttpResponse:
    """Leave a class; what was done in it stays the learner's own."""
    try:
        member.leave()
    except LastTeacher:
        problem = "You are its only teacher. Make somebody else a teacher first."
        return render(request, "classes/refused.html", {"klass": member.klass, "problem": problem}, status=422)
    look_again(request)
    return redirect("classes:classes")


@require_POST
@for_members
def start(request: HtmxRequest, member: Membership, assignment_id: int) -> HttpResponse:
    """Begin an assignment, or go on with it."""
    found = member.klass.assignments.published().with_quiz()
    assignment = get_object_or_404(found, pk=assignment_id)
    if member.role != "learner":
        raise Http404("teachers take no part")
    try:
        return redirect(assignment.start(member.user))
    except picking.NothingToAsk as nothing:
        return _learners_page(request, member, {assignment.pk: str(nothing)})


def _class_with(code: str, user: User) -> Class | None:
    """Return the class that a code opens; wrong codes are counted, as wrong passwords are.

    Raises
    ------
    tries.TooMany
    """
    counted = f"join/{user.pk}"  # no name of a user has a stroke
    tries.begin(counted, "codes that no class has")
    klass = Class.objects.with_code(code).first()
    if klass:
        tries.forget(counted)
    return klass


def _classes_page(request: HtmxRequest, user: User, problem: str = "", typed: str = "") -> HttpResponse:
    context = {
        "memberships": Membership.objects.filter(user=user).select_related("klass").order_by("klass__name", "klass"),
        "may_teach": may_teach(user),
        "problem": problem,
        "typed": typed,
    }
    return render(request, "classes/classes.html", context, status=422 if problem else 200)


def _learners_page(request: HtmxRequest, member: Membership, problems: dict[int, str] | None = None) -> HttpResponse:
    klass, user = member.klass, member.user
    assignments = list(klass.assignments.published().with_quiz())
    found = standings(assignments, [user])
    extra = dict(user.extra_times.filter(assignment__klass=klass).values_list("assignment", "minutes"))
    now = timezone.now()
    tasks = [
        Task(
            assignment,
            said(assignment.opens, klass.zone),
            said(assignment.due_with(extra.get(assignment.pk, 0)), klass.zone),
            found[user.pk, assignment.pk],
            assignment.opens <= now < assignment.due_with(extra.get(assignment.pk, 0)),
            (problems or {}).get(assignment.pk, ""),
        )
        for assignment in assignments
    ]
    context = {"klass": klass, "member": member, "tasks": tasks}
    return render(request, "classes/class.html", context, status=422 if problems else 200)


def _teachers_page(request: HtmxRequest, klass: Class) -> HttpResponse:
    book = GradeBook(klass, names_are_hidden(request))
    columns = {column.assignment.pk: column for column in book.columns}
    rows = [
        (assignment, columns.get(assignment.pk), said(assignment.opens, klass.zone), said(assignment.due, klass.zone))
        for assignment in klass.assignments.with_quiz()
    ]
    context = {
        "klass": klass,
        "rows": rows,
        "n_learners": len(book.rows),
        "n_to_mark": klass.explanations().waiting().count(),
        "join_url": klass.join_code and request.build_absolute_uri(f"/classes/join/{klass.join_code}/"),
    }
    return render(request, "classes/teach.html", context)
