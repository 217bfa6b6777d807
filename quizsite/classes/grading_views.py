"""Marking explanations by their rubric, and the grade book."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from quizsite.classes.access import for_teachers, names_are_hidden
from quizsite.classes.grade_book import GradeBook
from quizsite.classes.models import Assignment, Class, Membership
from quizsite.classes.spreadsheets import csv_of
from quizsite.htmx import HtmxRequest
from quizsite.questions.kinds import explain
from quizsite.quizzes.models import Answer, AnswerQuerySet, Mark

PAGE_SIZE = 25


@never_cache
@require_safe
@for_teachers
def grades(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Show what counts, learners by assignments."""
    is_hidden = names_are_hidden(request)
    return render(request, "classes/grades.html", {"klass": klass, "book": GradeBook(klass, is_hidden)})


@never_cache
@require_safe
@for_teachers
def grades_csv(request: HtmxRequest, klass: Class) -> HttpResponse:
    """Send the grade book for a spreadsheet, with names or without as it is shown."""
    text = csv_of(GradeBook(klass, names_are_hidden(request)).table())
    disposition = f'attachment; filename="grades-{klass.pk}.csv"'
    return HttpResponse(text, "text/csv; charset=utf-8", headers={"Content-Disposition": disposition})


@never_cache
@require_safe
@for_teachers
def marking(request: HtmxRequest, klass: Class) -> HttpResponse:
    """List the explanations that wait for a mark, question by question; or those that have one."""
    is_hidden = names_are_hidden(request)
    Assignment.objects.filter(klass=klass).settle()
    found, is_marked = klass.explanations(), "marked" in request.GET
    found = found.judged() if is_marked else found.waiting()
    page = Paginator(_in_order(found), PAGE_SIZE).get_page(request.GET.get("page"))
    members = _members(klass, [answer.learner_id for answer in page])
    rows = [(answer, _name(members, answer, is_hidden)) for answer in page]
    query = "marked=1" if is_marked else ""
    context = {"klass": klass, "page": page, "rows": rows, "is_marked": is_marked, "query": query}
    return render(request, "classes/marking.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@for_teachers
def mark(request: HtmxRequest, klass: Class, answer_id: int) -> HttpResponse:
    """Show an explanation beside its rubric; on POST, keep the marks and go on to the next that waits."""
    answer = get_object_or_404(klass.explanations(), pk=answer_id)
    if request.method == "POST":
        assert request.user.is_authenticated
        answer.take_mark(request.user, request.POST, request.POST.get("note", "")[: Mark.LONGEST].strip())
        return _next_after(klass, answer)
    is_hidden = names_are_hidden(request)
    context: dict[str, Any] = {
        "klass": klass,
        "answer": answer,
        "assignment": answer.slot and answer.slot.attempt.quiz,
        "version": answer.version,
        "name": _name(_members(klass, [answer.learner_id]), answer, is_hidden),
        "longest": Mark.LONGEST,
        "n_waiting": klass.explanations().waiting().count(),
        **explain.show(answer.version, answer.response, answer.asking),
    }
    return render(request, "classes/mark.html", context)


def _in_order(answers: AnswerQuerySet) -> AnswerQuerySet:
    """Put answers to one question after each other, in no order of names."""
    of_quiz = ("slot__attempt__quiz__assignment__due", "slot__attempt__quiz")
    return answers.order_by(*of_quiz, "version", "asking_key", "pk")


def _next_after(klass: Class, answer: Answer) -> HttpResponse:
    """Lead to another answer that waits: to the same question, if there is one."""
    waiting = _in_order(klass.explanations().waiting())
    following = waiting.filter(version=answer.version_id).first() or waiting.first()
    return redirect("classes:mark", klass.pk, following.pk) if following else redirect("classes:marking", klass.pk)


def _members(klass: Class, learner_ids: list[int]) -> dict[int, Membership]:
    found = klass.memberships.filter(user__in=learner_ids).select_related("user")
    return {member.user_id: member for member in found}


def _name(members: dict[int, Membership], answer: Answer, is_hidden: bool) -> str:
    return members[answer.learner_id].name(is_hidden)
