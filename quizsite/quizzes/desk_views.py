"""What a learner does with a question beside answering it: save it for later, say that something is wrong with it."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from quizsite.accounts.guests import learner_of
from quizsite.htmx import HtmxRequest, number_in, render_part
from quizsite.questions.models import Question, Report, TooManyReports
from quizsite.quizzes.models import SavedQuestion


@require_POST
def save(request: HtmxRequest, slug: str) -> HttpResponse:
    """Keep a question for later, or no longer."""
    question = get_object_or_404(Question.objects.published(), slug=slug)
    is_saved = request.POST.get("saved") == "true"
    if is_saved:
        SavedQuestion.objects.get_or_create(learner=learner_of(request), question=question)
    else:
        SavedQuestion.objects.filter(learner=request.user.pk, question=question).delete()
    if not request.htmx:
        return redirect(question)
    return render(request, "quizzes/question.html#save", {"question": question, "is_saved": is_saved})


@require_POST
def report(request: HtmxRequest, slug: str) -> HttpResponse:
    """Put what is wrong with the version that was shown into its authors' queue."""
    question = get_object_or_404(Question.objects.published().with_current(), slug=slug)
    version = get_object_or_404(question.versions, pk=number_in(request.POST.get("version")))
    reason = request.POST.get("reason", "")
    text = request.POST.get("text", "").replace("\r\n", "\n").strip()  # a line's end counts once, as in the browser
    problem = _problem(reason, text)
    if not problem:
        try:
            Report.objects.say(version, learner_of(request), reason, text)
        except TooManyReports as error:
            problem = str(error)
    if problem:
        typed = {"problem": problem, "reason": reason, "report_text": text}
        context = {"question": question, "version": version, "reasons": Report.OFFERED} | typed
        return render_part(request, "quizzes/report.html", "quizzes/report.html#report", context, 422)
    if not request.htmx:
        return redirect(f"{question.get_absolute_url()}?reported#report")
    return render(request, "quizzes/report.html#report", {"question": question, "is_reported": True})


def _problem(reason: str, text: str) -> str:
    """Say what keeps a report from being understood; nothing if nothing does."""
    if reason not in dict(Report.OFFERED):
        return "Choose what is wrong."
    if len(text) > Report.LONGEST:
        return f"At most {Report.LONGEST:,} letters are read, these are {len(text):,}."
    return ""
