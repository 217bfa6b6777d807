"""What a learner takes away as a file."""

from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from quizsite.content.formats.anki import deck_of
from quizsite.htmx import HtmxRequest
from quizsite.questions.models import Question
from quizsite.quizzes.models import ReviewCard


@require_safe
def anki_deck(request: HtmxRequest) -> HttpResponse:
    """Send the questions that the learner has answered; a key leaves the server only after the answer."""
    answered = Exists(ReviewCard.objects.by(request.user).filter(question=OuterRef("pk")))
    questions = Question.objects.published().with_current().filter(answered).exclude(current__kind="lab")
    found = list(questions.prefetch_related("current__options"))
    if not found:
        return render(request, "content/no_deck.html")
    disposition = 'attachment; filename="next-token.apkg"'
    return HttpResponse(deck_of(found), "application/octet-stream", headers={"Content-Disposition": disposition})
