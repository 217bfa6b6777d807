"""Assignments as a teacher makes them: when and how, which questions, more time for one, given out or withdrawn."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.classes.access import for_teachers, names_are_hidden
from quizsite.classes.forms import AssignmentForm, ExtraForm, first_problem
from quizsite.classes.models import Assignment, Class, InUse
from quizsite.classes.times import said
from quizsite.htmx import HtmxRequest, number_in
from quizsite.questions.models import Question, Topic
from quizsite.questions.validation import KINDS, LEVELS, STATUSES
from quizsite.quizzes import picking
from quizsite.quizzes.models import Quiz

PAGE_SIZE = 25
BEGUN = "Somebody has begun it: what it asks stays as it is."


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_teachers
def new_assignment(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Make a draft; its questions are chosen on the next page."""
    with timezone.override(klass.zone):
        form = AssignmentForm(request.POST or None)
        if form.is_valid():
            made = Assignment.objects.make(klass, form.cleaned_data)
            page = "questions" if made.quiz.is_selected else "assignment"
            return redirect(f"classes:{page}", klass.pk, made.pk)
        return _form_page(request, klass, form)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_teachers
def edit_assignment(request: HtmxRequest, klass: Class, assignment_id: int) -> HttpResponse:
    """Change an assignment; who is at it has the new times at once."""
    found = _of(klass, assignment_id)
    with timezone.override(klass.zone):
        form = AssignmentForm(request.POST or None, assignment=found)
        if form.is_valid():
            found.change(form.cleaned_data)
            return redirect("classes:assignment", klass.pk, found.pk)
        return _form_page(request, klass, form, found)


@never_cache
@require_safe
@for_teachers
def fitting(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Say how many questions fit a rule, while it is being chosen."""
    level = request.GET.get("level", "")
    topic = Topic.objects.filter(slug=request.GET.get("topic", "")[:50]).first()
    found = picking.askable(Quiz(level=level if level in dict(LEVELS) else "", topic=topic))
    return render(request, "classes/assignment_form.html#fitting", {"n_fitting": found.count()})


@never_cache
@require_safe
@for_teachers
def assignment(request: HtmxRequest, klass: Class, assignment_id: int) -> HttpResponse:
    """Show an assignment as it will be taken."""
    return _assignment_page(request, klass, _of(klass, assignment_id))


@require_POST
@for_teachers
def state(request: HtmxRequest, klass: Class, assignment_id: int) -> HttpResponse:
    """Give an assignment out, take it back, or delete it; the last two only while nobody has begun."""
    found = _of(klass, assignment_id)
    wanted = request.POST.get("do", "")
    try:
        if wanted == "publish":
            if not found.n_fitting:
                return _assignment_page(request, klass, found, "It asks nothing yet. Choose its questions first.")
            found.publish()
        elif wanted == "withdraw":
            found.withdraw()
        elif wanted == "discard":
            found.discard()
            return redirect(klass)
    except InUse:
        return _assignment_page(request, klass, found, "Somebody has begun it: it stays with the class.")
    return redirect("classes:assignment", klass.pk, found.pk)


@require_POST
@for_teachers
def extra(request: HtmxRequest, klass: Class, assignment_id: int) -> HttpResponse:
    """Give one learner more time."""
    found = _of(klass, assignment_id)
    learners = klass.memberships.learners()
    chosen = learners.filter(pk=number_in(request.POST.get("member"))).first()
    if not chosen:
        return _assignment_page(request, klass, found, "Choose a learner of this class.")
    form = ExtraForm(request.POST)
    if not form.is_valid():
        return _assignment_page(request, klass, found, f"Extra minutes: {first_problem(form)}")
    found.give_extra(chosen.user, form.cleaned_data["minutes"])
    return redirect("classes:assignment", klass.pk, found.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_teachers
def questions(request: HtmxRequest, klass: Class, assignment_id: int) -> HttpResponse:
    """Choose questions by filter and tick, and put them in order."""
    found = _of(klass, assignment_id)
    problems: list[str] = []
    if request.method == "POST":
        problems = _chosen(found, request.POST)
        if not problems:
            return redirect(request.get_full_path())
    return _questions_page(request, klass, found, problems)


def _of(klass: Class, assignment_id: int) -> Assignment:
    return get_object_or_404(klass.assignments.with_quiz(), pk=assignment_id)


def _form_page(
    request: HtmxRequest, klass: Class, form: AssignmentForm, found: Assignment | None = None
) -> HttpResponse:
    fitting = picking.askable(found.quiz if found else Quiz()).count()
    context = {"klass": klass, "form": form, "assignment": found, "n_fitting": fitting}
    return render(request, "classes/assignment_form.html", context, status=422 if form.errors else 200)


def _assignment_page(request: HtmxRequest, klass: Class, found: Assignment, problem: str = "") -> HttpResponse:
    is_hidden = names_are_hidden(request)
    minutes = dict(found.extra_times.values_list("learner", "minutes"))
    members = [(m, m.name(is_hidden), minutes.get(m.user_id, 0)) for m in klass.memberships.learners()]
    members.sort(key=lambda row: row[0].number if is_hidden else 0)
    context = {
        "klass": klass,
        "assignment": found,
        "opens": said(found.opens, klass.zone),
        "due": said(found.due, klass.zone),
        "shows_from": found.quiz.shows_from and said(found.quiz.shows_from, klass.zone),
        "places": found.quiz.places.select_related("question__current"),
        "members": members,
        "extended": [row for row in members if row[2]],
        "has_begun": found.has_begun,
        "problem": problem,
    }
    return render(request, "classes/assignment.html", context, status=422 if problem else 200)


def _chosen(found: Assignment, data: QueryDict) -> list[str]:
    """Add what is ticked, move or remove what a button says; return why not, if so."""
    if found.has_begun or not found.quiz.is_selected:
        return [BEGUN if found.has_begun else "A rule chooses its questions."]
    chosen = [place.question for place in found.quiz.places.select_related("question")]
    known = {question.pk for question in chosen}
    up, out = number_in(data.get("up")), number_in(data.get("remove"))
    for at, question in enumerate(chosen):
        if question.pk == up and at:
            chosen[at - 1], chosen[at] = question, chosen[at - 1]
    chosen = [question for question in chosen if question.pk != out]
    ticked = [number_in(value) for value in data.getlist("question")[: picking.MOST_ASKED]]
    offered = picking.assignable().select_related("current").prefetch_related("current__options").in_bulk(ticked)
    new = [offered[pk] for pk in dict.fromkeys(ticked) if pk in offered and pk not in known]
    lacking = [f"{question.current}: {why}" for question in new if (why := picking.cannot_be_asked(question))]
    if len(chosen) + len(new) > picking.MOST_ASKED:
        return [f"At most {picking.MOST_ASKED} questions can be asked, these are {len(chosen) + len(new)}."]
    if not lacking:
        found.quiz.select([*chosen, *new])
    return lacking


def _questions_page(request: HtmxRequest, klass: Class, found: Assignment, problems: list[str]) -> HttpResponse:
    offered: dict[str, list[tuple[str, str]]] = {
        "level": LEVELS,
        "topic": [(topic.slug, topic.name) for topic in Topic.objects.all()],
        "kind": KINDS,
        "status": STATUSES[:2],
    }
    wanted = {name: request.GET.get(name, "") for name in offered}
    wanted = {name: value for name, value in wanted.items() if value in dict(offered[name])}
    typed = request.GET.get("q", "")[:200].strip()
    lookups = {"level": "level", "topic": "topic__slug", "kind": "current__kind", "status": "status"}
    places = list(found.quiz.places.select_related("question__current", "question__topic"))
    fits = picking.assignable().filter(**{lookups[name]: value for name, value in wanted.items()})
    fits = fits.search(typed, Question.objects.none()).exclude(pk__in=[place.question_id for place in places])
    ids = list(fits.order_by("topic__position", "slug").values_list("pk", flat=True))
    page = Paginator(ids, PAGE_SIZE).get_page(request.GET.get("page"))
    by_id = Question.objects.with_current().in_bulk(list(page))
    query = QueryDict(mutable=True)
    query.update({**wanted, **({"q": typed} if typed else {})})
    context: dict[str, Any] = {
        "klass": klass,
        "assignment": found,
        "places": places,
        "page": page,
        "questions": [by_id[pk] for pk in page],
        "offered": [(name, choices, wanted.get(name, "")) for name, choices in offered.items()],
        "typed": typed,
        "query": query.urlencode(),
        "problems": problems,
        "is_fixed": found.has_begun or not found.quiz.is_selected,
    }
    return render(request, "classes/questions.html", context, status=422 if problems else 200)
