"""A question as its learners would see it, before it is saved: for its author alone."""

from typing import Any
from uuid import uuid4

from csp.constants import SELF
from csp.decorators import csp_replace
from django.contrib.auth.decorators import login_required, permission_required
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST

from quizsite.htmx import HtmxRequest, number_in
from quizsite.labs.frame import lab_panel
from quizsite.questions.authoring import VersionForm, in_words
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import Question, QuestionVersion, Topic
from quizsite.questions.validation import QuestionSpec, lacks
from quizsite.quizzes.feedback import feedback
from quizsite.quizzes.models import Answer, graded


@require_POST
@login_required(login_url="admin:login")
@permission_required(["questions.change_questionversion"], raise_exception=True)
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]
def preview(request: HtmxRequest) -> HttpResponse:
    """Render question, verdict and lab from what is typed in the author's form, and what is missing."""
    opened = QuestionVersion.objects.filter(pk=number_in(request.GET.get("version"))).first()
    form = VersionForm(request.POST, instance=opened)
    form.question = opened.question if opened else None
    form.fields["status"].required = False
    if not form.is_valid() or not form.spec:
        return render(request, "authoring/preview.html", {"problems": _problems(form)})
    context: dict[str, Any] = {"problems": form.lacks, "warnings": form.warnings, "version": form.instance}
    missing = {path[0] for path, _ in lacks(form.spec)}
    if missing.isdisjoint(KEYS):
        return _as_saved(request, form.spec, context)
    return render(request, "authoring/preview.html", context)


KEYS = {"options", "numeric", "items", "accepted", "rubric", "predict", "lab"}  # without which nothing can be asked


def _as_saved(request: HtmxRequest, spec: QuestionSpec, context: dict[str, Any]) -> HttpResponse:
    """Save the question, render it, and take it back: what is seen is what would be saved."""
    with transaction.atomic():
        topic = Topic.objects.first() or Topic.objects.create(slug="topic", name="Topic")
        question = Question.objects.create(slug=uuid4().hex, topic=topic, level=spec.level)
        version = question.revise(spec)
        assert version
        response = render(request, "authoring/preview.html", context | _seen(request, question, version))
        transaction.set_rollback(True)
    return response


def _seen(request: HtmxRequest, question: Question, version: QuestionVersion) -> dict[str, Any]:
    """Return the question before its answer, and after one that is right."""
    kind, asking = kind_named(version.kind), Asking("preview")
    right = kind.right(version, asking)
    grade = graded(version, right)
    answer = Answer(pk=0, version=version, response=right, verdict=grade.verdict, score=float(grade.score))
    panel = None
    if version.lab:
        lab = version.lab.step_to_show("")
        panel = lab_panel(lab.spec.kind, lab, request.user, lab.get_absolute_url(), steps=version.lab.steps)
    common = {"question": question, "version": version, "kind_template": f"questions/kinds/{version.kind}.html"}
    common["text"] = version.text
    asked = common | kind.ask(version, asking, QueryDict())
    answered = common | feedback(version, answer, asking)
    return {
        "asked": render_to_string("authoring/preview.html#asked", asked, request),
        "answered": render_to_string("authoring/preview.html#answered", answered, request),
        "panel": panel,
    }


def _problems(form: VersionForm) -> list[str]:
    found = []
    for name, errors in form.errors.items():
        said = [str(error) for error in errors]
        where = form.fields[name].label or name.replace("_", " ") if name in form.fields else ""
        found += [text if name in text or not where else in_words((str(where).lower(),), text) for text in said]
    return found
