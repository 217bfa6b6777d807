"""Taking a quiz: starting, answering, saving while typing, finishing, and what came of it."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts.guests import learner_of
from quizsite.htmx import HtmxRequest, number_in, render_part
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import NotAnswered
from quizsite.questions.models import Topic
from quizsite.questions.validation import LEVELS
from quizsite.quizzes import picking
from quizsite.quizzes.feedback import feedback
from quizsite.quizzes.models import SURE, Attempt, AttemptQuerySet, Closed, ReviewCard, Rule, Slot, Stale, Ungraded
from quizsite.quizzes.results import Results, due_words
from quizsite.quizzes.sessions import sign_in_first, typed_before

LENGTHS = (5, 10, 20)
MOCKS = ((6, 20), (12, 40))  # questions, minutes
N_PAST = 10


@require_safe
def quiz_home(request: HtmxRequest) -> HttpResponse:
    """Offer drills: by level and topic, or from one's weak spots; and what is open."""
    mine = Attempt.objects.by(request.user).with_quiz().exclude(quiz__mode__in=["mock", "review", "assigned"])
    context = {
        "levels": LEVELS,
        "topics": Topic.objects.all(),
        "lengths": LENGTHS,
        "has_cards": ReviewCard.objects.by(request.user).exists(),
        **_open_and_past(mine),
    }
    return render(request, "quizzes/drills.html", context)


@require_safe
def mock_home(request: HtmxRequest) -> HttpResponse:
    """Offer mock interviews, and show the past ones."""
    mine = Attempt.objects.by(request.user).with_quiz().filter(quiz__mode="mock")
    return render(request, "quizzes/mocks.html", {"mocks": MOCKS, **_open_and_past(mine)})


@require_safe
def review_home(request: HtmxRequest) -> HttpResponse:
    """Say what is due for review, now and in the next days."""
    cards = ReviewCard.objects.by(request.user).asked()
    now = timezone.now()
    due = cards.filter(due__lte=now).order_by("question__topic__position").values("question__topic__name")
    by_topic = list(due.annotate(n=Count("pk")))
    coming = cards.filter(due__gt=now).select_related("question__current").order_by("due")[:5]
    context = {
        "n_cards": cards.count(),
        "n_due": sum(row["n"] for row in by_topic),
        "by_topic": by_topic,
        "coming": [(card, due_words(card.due, now)) for card in coming],
        "n_at_once": LENGTHS[-1],
        **_open_and_past(Attempt.objects.by(request.user).with_quiz().filter(quiz__mode="review")),
    }
    return render(request, "quizzes/review.html", context)


@require_POST
def start(request: HtmxRequest) -> HttpResponse:
    """Open an attempt of the quiz that was chosen, or go on with the one that is open."""
    try:
        attempt = picking.start(learner_of(request), _rule(request))
    except picking.NothingToAsk as nothing:
        return render(request, "quizzes/nothing.html", {"why": str(nothing)}, status=422)
    return redirect(attempt)


@require_safe
def attempt(request: HtmxRequest, attempt_id: UUID) -> HttpResponse:
    """Lead to the first question without an answer; once it has ended, show what came of it."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    found = _own(request, attempt_id)
    if not found.finished:
        return redirect((found.undone or found.in_order)[0])
    if not found.is_shown:
        return render(request, "quizzes/held_back.html", {"attempt": found})
    if found.quiz.feedback == "due":
        found.learn()
    results = Results(found)
    ahead = results.ahead_of_last()
    context = {
        "attempt": found,
        "results": results,
        "to_review": [(card, due_words(card.due)) for card in results.to_review()],
        "ahead": ahead,
        "behind": -(ahead or 0),
    }
    return render(request, "quizzes/results.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def slot(request: HtmxRequest, attempt_id: UUID, position: int) -> HttpResponse:
    """Ask one question of an attempt; on POST, judge or keep what was sent. htmx gets only the sitting."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    asked = _slot(request, attempt_id, position)
    if request.method == "POST":
        return _sent(request, asked)
    typed = typed_before(request, request.path)
    if typed and (closed := _closed(asked)):
        return _sitting(request, asked, notice=closed, refused=_words(typed))
    return _sitting(request, asked, typed, notice="This is what you typed before you signed in." if typed else "")


@require_POST
def draft(request: HtmxRequest, attempt_id: UUID, position: int) -> HttpResponse:
    """Keep what is typed so far; the reply holds the token of the next change."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    asked = _slot(request, attempt_id, position)
    context: dict[str, Any] = {"slot": asked}
    try:
        asked.keep(request.POST, _uuid(request.POST.get("token")))
        context["kept"] = timezone.now()
    except Stale:
        context["elsewhere"] = _words(asked.typed) or "nothing"
    except Closed:
        context["problem"] = "The time is up. What was kept before counts."
    except NotAnswered as too_long:
        context["problem"] = str(too_long)
    return render(request, "quizzes/slot.html#kept", context)


@require_POST
def finish(request: HtmxRequest, attempt_id: UUID) -> HttpResponse:
    """End an attempt; what was typed and not sent is judged as it stands."""
    if not request.user.is_authenticated:
        return sign_in_first(request)
    found = _own(request, attempt_id)
    found.finish()
    return redirect(found)


def _sent(request: HtmxRequest, asked: Slot) -> HttpResponse:
    """Judge the answer at once, or keep it until the end, as the quiz has it."""
    found, token = asked.attempt, _uuid(request.POST.get("token"))
    judge = found.quiz.judges_at_once and request.POST.get("do") != "later"
    try:
        if judge:
            asked.take(request.POST, token)
        else:
            asked.keep(request.POST, token)
    except (Stale, Closed):
        return _too_late(request, asked, token)
    except Ungraded as failed:
        failed.report()
        return _sitting(request, asked, request.POST, problem=str(failed))
    except NotAnswered as missing:
        return _sitting(request, asked, request.POST, problem=str(missing))
    shown = asked if judge else found.next_after(asked.position) or asked
    if not request.htmx:
        return redirect(shown)
    response = _sitting(request, shown)
    response["HX-Push-Url"] = shown.get_absolute_url()
    return response


def _too_late(request: HtmxRequest, asked: Slot, token: UUID) -> HttpResponse:
    """Answer a form that came after its answer, after the end, or after something newer was kept."""
    asked = _slot(request, asked.attempt_id, asked.position)
    answer = asked.found_answer
    if answer and answer.token == token and asked.holds(request.POST):  # the same press again
        return _sitting(request, asked) if request.htmx else redirect(asked)
    if closed := _closed(asked):
        return _sitting(request, asked, notice=closed, refused=_words(request.POST))
    newer = _words(asked.typed) or "nothing"
    problem = f"Another tab has kept something newer: {newer}. Press again to have yours, which stands below."
    return _sitting(request, asked, request.POST, problem=problem)


def _closed(asked: Slot) -> str:
    """Say why a slot takes nothing any more; nothing while it does."""
    if asked.found_answer:
        return "This question was answered before. What you sent now does not count."
    return "The time was up when this came. What was kept before counts." if asked.attempt.finished else ""


def _sitting(
    request: HtmxRequest,
    asked: Slot,
    typed: QueryDict | None = None,
    problem: str = "",
    notice: str = "",
    refused: str = "",
) -> HttpResponse:
    """Render a slot before or after its answer; there is no verdict before the quiz shows it."""
    found, version = asked.attempt, asked.version
    context: dict[str, Any] = {
        "attempt": found,
        "slot": asked,
        "following": found.next_after(asked.position),
        "question": version.question,
        "version": version,
        "text": version.text,
        "kind_template": f"questions/kinds/{version.kind}.html",
        "problem": problem,
        "notice": notice,
        "refused": refused,
        "sure": SURE if found.quiz.asks_how_sure else [],
    }
    if found.is_shown and asked.found_answer:
        context |= feedback(version, asked.found_answer, asked.asking)
    else:
        kind = kind_named(version.kind)
        context |= kind.ask(version, asked.asking, asked.typed if typed is None else typed)
    status = 422 if problem else 200
    return render_part(request, "quizzes/slot.html", "quizzes/slot.html#sitting", context, status)


def _own(request: HtmxRequest, attempt_id: UUID) -> Attempt:
    """Return an attempt of this learner, ended if its time is up."""
    found = get_object_or_404(Attempt.objects.by(request.user).with_quiz(), pk=attempt_id)
    found.settle()
    return found


def _slot(request: HtmxRequest, attempt_id: UUID, position: int) -> Slot:
    """Return a slot of an attempt of this learner."""
    found = _own(request, attempt_id)
    for asked in found.in_order:
        if asked.position == position:
            return asked
    raise Http404(f"there is no question {position} in this attempt")


def _open_and_past(mine: AttemptQuerySet) -> dict[str, Any]:
    answered = Count("slots", filter=Q(slots__answer__isnull=False))
    mine = mine.annotate(n_slots=Count("slots"), n_answered=answered)
    for over in mine.open().filter(deadline__lt=timezone.now()):
        over.settle()
    past = mine.exclude(finished=None).annotate(score=Sum("slots__answer__score"))
    return {"open_attempts": mine.open(), "past": past[:N_PAST]}


def _rule(request: HtmxRequest) -> Rule:
    """Read what is to be asked; what is unknown counts as not chosen."""
    data = request.POST
    mode = data.get("mode", "drill")
    if mode == "mock":
        n_questions, minutes = next((m for m in MOCKS if str(m[0]) == data.get("n")), MOCKS[0])
        return Rule("mock", n_questions=n_questions, minutes=minutes)
    if mode == "missed":
        ended = Attempt.objects.by(request.user).exclude(finished=None)
        source = get_object_or_404(ended.select_related("quiz"), pk=_uuid(data.get("source")))
        if not source.is_shown:
            raise Http404("what was wrong in this attempt is not shown yet")
        return Rule("missed", n_questions=picking.MOST_ASKED, source=source.pk)
    if mode == "review":
        return Rule("review", n_questions=LENGTHS[-1])
    level = data.get("level", "")
    topic = Topic.objects.filter(slug=data.get("topic", "")[:50].replace("\x00", "")).first()
    n = number_in(data.get("n"))
    return Rule(
        "weak" if mode == "weak" else "drill",
        level=level if level in dict(LEVELS) else "",
        topic=topic.slug if topic else "",
        n_questions=n if n in LENGTHS else LENGTHS[1],
    )


def _uuid(text: str | None) -> UUID:
    """Read an id; one that cannot be read is nobody's."""
    try:
        return UUID(text or "")
    except ValueError:
        return UUID(int=0)


def _words(typed: QueryDict) -> str:
    """Return the free text in a form, so that it can be copied where the form is refused."""
    words = [typed.get(name, "").strip() for name in ("text", "number")]
    return " ".join(word for word in words if word) or ("a choice" if typed.get("option") else "")
