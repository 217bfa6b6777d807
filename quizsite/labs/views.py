"""The laboratory's pages: the open lab, a lab, a run."""

from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from quizsite.accounts.guests import learner_key, learner_of
from quizsite.htmx import HtmxRequest, number_in, render_part
from quizsite.labs import engine
from quizsite.labs.forms import RunForm
from quizsite.labs.models import Lab, Run, TooManyRuns
from quizsite.labs.panels import Panel, lab_panel


@require_http_methods(["GET", "HEAD", "POST"])
def open_lab(request: HtmxRequest) -> HttpResponse:
    """Show the open laboratory, with every lab beside it; a POST starts a run."""
    return _panel_page(request, None, {"labs": Lab.objects.all()})


@require_http_methods(["GET", "HEAD", "POST"])
def lab_page(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show a lab; a POST starts a run and shows it coming. htmx gets only the panel."""
    return _panel_page(request, get_object_or_404(Lab, slug=slug), {})


@require_safe
def run_page(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Show a run again, to its owner or to anybody once it is shared; `step` opens one of its steps."""
    run = get_object_or_404(Run.objects.with_recording().visible_to(request.user), pk=run_id)
    engine.settle(run)
    chosen = number_in(request.GET.get("step"))
    learner_key(request)  # the page can start a run
    is_owner = run.learner == request.user
    learner = request.user if is_owner else AnonymousUser()  # another's goals are not this run's
    panel = lab_panel(run.lab, learner, run.get_absolute_url(), run=run, chosen=chosen)
    context = {"panel": panel, "run": run, "is_owner": is_owner}
    return render_part(request, "labs/run.html", "labs/trace.html#step", context)


@require_POST
def stop_run(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Stop a run; it keeps the tokens that it has."""
    run = get_object_or_404(Run.objects.with_recording().by(request.user), pk=run_id)
    engine.stop(run)
    return HttpResponse(status=204) if request.htmx else redirect(run)  # the run's stream shows its end


@require_POST
def share_run(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Let anybody with the link see a run, or nobody again."""
    run = get_object_or_404(Run.objects.with_recording().by(request.user), pk=run_id)
    run.shared = request.POST.get("shared") == "true"
    run.save(update_fields=["shared"])
    return redirect(run)


def _panel_page(request: HtmxRequest, lab: Lab | None, context: dict[str, object]) -> HttpResponse:
    if request.method == "POST":
        return _pressed(request, lab, context)
    learner_key(request)  # the page can start a run
    at_start = request.GET.get("from") == "start"
    run = None if at_start else Run.objects.by(request.user).latest_in(lab)
    return _show(request, context, lab_panel(lab, request.user, _page_of(request), run=run))


def _pressed(request: HtmxRequest, lab: Lab | None, context: dict[str, object]) -> HttpResponse:
    """Run or Step was pressed: start a run, or show the next token of the one by hand."""
    form, back = RunForm(request.POST, lab=lab), _page_of(request)
    if not form.is_valid():
        last = Run.objects.by(request.user).latest_in(lab)
        return _show(request, context, lab_panel(lab, request.user, back, form=form, run=last), status=422)
    pace = None if request.POST.get("do") == "step" else int(form.pace)
    try:
        run = engine.press(learner_of(request), lab, form.recording(), pace)
    except TooManyRuns as error:
        last = Run.objects.by(request.user).latest_in(lab)
        panel = lab_panel(lab, request.user, back, form=form, run=last, notice=str(error))
        response = _show(request, context, panel, status=429)
        response["Retry-After"] = str(error.retry_after)
        return response
    if request.htmx:
        return _show(request, context, lab_panel(lab, request.user, back, form=form, run=run))
    if not run.is_by_hand:
        engine.finish(run)
    return redirect(f"{back}#lab")  # a refresh starts nothing


def _show(request: HtmxRequest, context: dict[str, object], panel: Panel, status: int = 200) -> HttpResponse:
    return render_part(request, "labs/lab.html", "labs/trace.html#panel", context | {"panel": panel}, status)


def _page_of(request: HtmxRequest) -> str:
    """Return the page of this site that the panel is on, without its query."""
    back = request.POST.get("back") or (request.htmx.current_url_abs_path if request.htmx else "") or request.path
    path = urlsplit(back).path
    is_ours = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if is_ours else request.path
