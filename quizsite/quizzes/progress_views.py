"""The progress page."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from quizsite.htmx import HtmxRequest
from quizsite.quizzes import progress


@require_safe
def progress_page(request: HtmxRequest) -> HttpResponse:
    """Show how far the learner has come, by their own days."""
    if not request.user.is_authenticated:
        return render(request, "quizzes/progress.html", {})
    learner = request.user
    confidence = progress.confidence(learner)
    context = {
        "by_level": progress.by_level(learner),
        "by_topic": progress.by_topic(learner),
        "weeks": progress.weeks(learner),
        "streak": progress.streak(learner),
        "labs": progress.labs(learner),
        "confidence": confidence,
        "n_with_confidence": sum(part.n for part in confidence),
    }
    return render(request, "quizzes/progress.html", context)
