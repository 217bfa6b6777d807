"""The list of questions: filtered, searched, a page at a time."""

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from quizsite.htmx import HtmxRequest
from quizsite.questions.models import Question, QuestionQuerySet, Topic
from quizsite.questions.search import words_in
from quizsite.questions.validation import KINDS, LEVELS
from quizsite.quizzes.models import Answer, ReviewCard, ReviewCardQuerySet, SavedQuestion

PAGE_SIZE = 25
LONGEST_SEARCH = 200  # letters
MINE = [
    ("new", "Not answered yet"),
    ("due", "Due for review"),
    ("wrong", "Not right last time"),
    ("right", "Right last time"),
    ("saved", "Saved for later"),
]


@require_safe
def questions(request: HtmxRequest) -> HttpResponse:
    """List the published questions that fit what is chosen; what is unknown counts as not chosen."""
    topics = [(topic.slug, topic.name) for topic in Topic.objects.all()]
    offered = {"level": LEVELS, "topic": topics, "kind": KINDS, "mine": MINE}
    chosen = {name: _chosen(request, name, choices) for name, choices in offered.items()}
    typed = request.GET.get("q", "")[:LONGEST_SEARCH].strip()
    found = _filtered(request, chosen).search(typed, _unlocked(request))
    page = Paginator(list(found.values_list("pk", flat=True)), PAGE_SIZE).get_page(request.GET.get("page"))
    verdict = Subquery(_cards(request).values("last_verdict")[:1])
    kept = {name: value for name, value in {**chosen, "q": typed}.items() if value}
    levels = {"levels": 1} if "levels" in request.GET else {}
    context = {
        "page": page,
        "questions": Question.objects.with_current().annotate(verdict=verdict).filter(pk__in=list(page)),
        "offered": [(name, choices, chosen[name]) for name, choices in offered.items()],
        "typed": typed,
        "has_words": bool(words_in(typed)),
        "mine": chosen["mine"],
        "is_filtered": bool(kept),
        "levels_are_asked_for": bool(levels),
        "shows_levels": bool(levels or chosen["level"]),
        "query": urlencode(kept | levels),
        "query_without_levels": urlencode(kept),
    }
    return render(request, "quizzes/questions.html", context)


def _chosen(request: HtmxRequest, name: str, choices: list[tuple[str, str]]) -> str:
    value = request.GET.get(name, "")
    return value if value in dict(choices) else ""


def _filtered(request: HtmxRequest, chosen: dict[str, str]) -> QuestionQuerySet:
    found = Question.objects.published()
    if chosen["level"]:
        found = found.filter(level=chosen["level"])
    if chosen["topic"]:
        found = found.filter(topic__slug=chosen["topic"])
    if chosen["kind"]:
        found = found.filter(current__kind=chosen["kind"])
    cards = _cards(request)
    of_mine = {
        "new": ~Exists(cards),
        "due": Exists(cards.due()),
        "wrong": Exists(cards.exclude(last_verdict="right")),
        "right": Exists(cards.filter(last_verdict="right")),
        "saved": Exists(SavedQuestion.objects.filter(learner=request.user.pk, question=OuterRef("pk"))),
    }
    return found.filter(of_mine[chosen["mine"]]) if chosen["mine"] else found


def _unlocked(request: HtmxRequest) -> QuerySet[Any]:
    """Return the ids of the questions that the learner has answered as they are now."""
    answered = Answer.objects.by(request.user).shown().values("version")
    return Question.objects.filter(current__in=answered).order_by().values("pk")


def _cards(request: HtmxRequest) -> ReviewCardQuerySet:
    return ReviewCard.objects.by(request.user).filter(question=OuterRef("pk"))
