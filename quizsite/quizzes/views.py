"""The learner's pages: the front page, the list of questions, a question."""

from contextlib import suppress
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.core.signing import BadSignature, Signer
from django.db.models import Case, Count, Exists, Min, OuterRef, Q, When
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts.guests import learner_key, learner_of
from quizsite.htmx import HtmxRequest, number_in, render_part
from quizsite.labs.frame import lab_panel
from quizsite.labs.models import Lab, Run
from quizsite.labs.replay import looping_replay
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking, NotAnswered
from quizsite.questions.models import Question, QuestionVersion, Report
from quizsite.questions.validation import LEVELS
from quizsite.quizzes.feedback import feedback
from quizsite.quizzes.models import Answer, Attempt, ReviewCard, SavedQuestion, Ungraded

FRONT_LAB = "sky-penalty"


@require_safe
def front(request: HtmxRequest) -> HttpResponse:
    """Say what this is, beside a run that is already looping, and lead to the first question."""
    learner_key(request)  # the page can start a run
    levels = _levels(request)
    context = {
        "replay": looping_replay(),
        "penalty_lab": Lab.objects.filter(slug=FRONT_LAB).first(),
        "levels": levels,
        "open_attempt": Attempt.objects.by(request.user).running().with_quiz().first(),
        "n_due": sum(level["due"] for level in levels),
    }
    return render(request, "quizzes/front.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def question(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show a question with its lab; on POST, judge the answer. htmx gets only the question."""
    saved = Exists(SavedQuestion.objects.filter(learner=request.user.pk, question=OuterRef("pk")))
    asked = get_object_or_404(Question.objects.published().with_current().annotate(is_saved=saved), slug=slug)
    if request.method == "POST":
        return _answered(request, asked)
    again = "again" in request.GET
    answer = None if again else Answer.objects.by(request.user).to(asked).shown().newest_first().first()
    return _question_page(request, asked, answer)


@require_safe
def next_question(request: HtmxRequest) -> HttpResponse:
    """Lead to a question that the learner has not answered, of the level of `after` if there is one."""
    after = Question.objects.published().filter(slug=request.GET.get("after", "")[:80]).first()
    found = _next_question(request, after)
    return redirect(found) if found else redirect("quizzes:questions")


@require_POST
def mark(request: HtmxRequest, answer_id: int) -> HttpResponse:
    """Keep how a learner has marked an explanation of their own."""
    answer = get_object_or_404(Answer.objects.by(request.user).shown().newest_first(), pk=answer_id)
    if answer.version.kind != "explain":
        raise Http404(f"a question of kind {answer.version.kind} is not marked by its learner")
    answer.mark(request.POST)
    if answer.slot:
        return redirect(answer.slot)
    asked = Question.objects.with_current().get(pk=answer.version.question_id)
    return _question_page(request, asked, answer) if request.htmx else redirect(f"{asked.get_absolute_url()}#main")


def _answered(request: HtmxRequest, asked: Question) -> HttpResponse:
    version = asked.versions.filter(pk=number_in(request.POST.get("version"))).first() or asked.current
    assert version
    learner = request.user if request.user.is_authenticated else None
    try:
        token = UUID(request.POST.get("token", ""))
        asking = _asking(request, version)
        response = kind_named(version.kind).read(version, request.POST, learner, asking)
        answer = Answer.objects.record(learner_of(request), version, response, token, asking)
    except ValueError:
        return _question_page(request, asked, None, "This form cannot be read. Choose again.", 422)
    except Ungraded as failed:
        failed.report()
        return _question_page(request, asked, None, str(failed), 422)
    except NotAnswered as missing:
        return _question_page(request, asked, None, str(missing), 422)
    if not request.htmx:
        shown = f"?{urlencode({'lab': request.GET['lab']})}" if "lab" in request.GET else ""
        return redirect(f"{asked.get_absolute_url()}{shown}#main")
    return _question_page(request, asked, answer)


def _question_page(
    request: HtmxRequest, asked: Question, answer: Answer | None, problem: str = "", status: int = 200
) -> HttpResponse:
    """Render a question before or after its answer; the key is in the context only after it."""
    version = answer.version if answer else asked.current
    assert version
    asking = answer.asking if answer and answer.asking_key else _asking(request, version)
    context: dict[str, Any] = {
        "question": asked,
        "version": version,
        "text": version.text,
        "kind_template": f"questions/kinds/{version.kind}.html",
        "problem": problem,
        "is_saved": getattr(asked, "is_saved", False),
        "reasons": Report.OFFERED,
        "is_reported": "reported" in request.GET,
    }
    if answer:
        context |= feedback(version, answer, asking)
    else:
        context |= kind_named(version.kind).ask(version, asking, request.POST)
        context |= {"token": uuid4(), "asking": _signer(version).sign_object([asking.key, asking.number])}
    if version.lab and not request.htmx:
        at_start = request.GET.get("from") == "start"
        lab = version.lab.step_to_show(request.GET.get("lab", ""))
        run = None if at_start else Run.objects.by(request.user).latest_in(lab, lab.panel)
        context["panel"] = lab_panel(lab.spec.kind, lab, request.user, request.path, run=run, steps=version.lab.steps)
    return render_part(request, "quizzes/question.html", "quizzes/question.html#question", context, status)


def _asking(request: HtmxRequest, version: QuestionVersion) -> Asking:
    """Return to whom the question is put; each try draws its numbers anew.

    A form says for whom and which try its numbers were drawn: it may be sent after a sign-in, or after another
    try in another tab, and is judged by the numbers that it showed.
    """
    with suppress(BadSignature):
        return Asking(*_signer(version).unsign_object(request.POST.get("asking", "")))
    n_before = 0
    if version.kind == "numeric":
        n_before = Answer.objects.by(request.user).filter(version=version).count()
    return Asking(learner_key(request), n_before + 1)


def _signer(version: QuestionVersion) -> Signer:
    return Signer(salt=f"the asking of {version.pk}")


def _next_question(request: HtmxRequest, after: Question | None) -> Question | None:
    """Return a question that the learner has not answered, of the same level if there is one."""
    found = Question.objects.published()
    if request.user.is_authenticated:
        answered = Answer.objects.by(request.user).values("version__question")
        found = found.exclude(pk__in=answered)
    if not after:
        return found.order_by(Case(When(level="scenario", then=0), default=1), "pk").first()
    return found.exclude(pk=after.pk).order_by(Case(When(level=after.level, then=0), default=1), "pk").first()


def _levels(request: HtmxRequest) -> list[dict[str, Any]]:
    """Return each level that has questions: how many, how many answered and due, and one of them as a taste."""
    rows = Question.objects.published().order_by().values("level").annotate(n=Count("pk"), first=Min("pk"))
    by_level = {row["level"]: row for row in rows}
    mine = ReviewCard.objects.by(request.user).filter(question__status="published").order_by()
    is_due = Q(due__lte=timezone.now()) & ~Q(question__current__kind="lab")
    counted = mine.values("question__level").annotate(n=Count("pk"), due=Count("pk", filter=is_due))
    cards = {row["question__level"]: row for row in counted}
    firsts = Question.objects.with_current().in_bulk([row["first"] for row in by_level.values()])
    return [
        {
            "slug": slug,
            "name": name,
            "n": by_level[slug]["n"],
            "answered": cards[slug]["n"] if slug in cards else 0,
            "due": cards[slug]["due"] if slug in cards else 0,
            "taste": firsts[by_level[slug]["first"]].current,
        }
        for slug, name in LEVELS
        if slug in by_level
    ]
