"""The laboratory's pages: the open lab, a lab, a run."""

from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from generation import PromptError, missing_models
from quizsite.accounts.guests import learner_key, learner_of
from quizsite.htmx import HtmxRequest, number_in, render_part
from quizsite.labs import engine
from quizsite.labs.clauses import Inputs
from quizsite.labs.forms import DEFAULT_PACE, RunForm
from quizsite.labs.frame import Panel, lab_panel, open_address, shown_of
from quizsite.labs.models import Lab, NotNow, Recording, Run
from quizsite.labs.panels import KINDS
from quizsite.labs.panels.kind import Kind
from quizsite.labs.panels.trace import step_rows
from quizsite.labs.presets import presets_of


@require_http_methods(["GET", "HEAD", "POST"])
def open_lab(request: HtmxRequest) -> HttpResponse:
    """Show the open laboratory with its first panel; a POST starts a run."""
    return _open_panel(request, next(iter(KINDS.values())))


@require_http_methods(["GET", "HEAD", "POST"])
def open_panel(request: HtmxRequest, name: str) -> HttpResponse:
    """Show another panel of the open laboratory."""
    if name not in KINDS:
        raise Http404(f"there is no panel {name}")
    return _open_panel(request, KINDS[name])


@require_http_methods(["GET", "HEAD", "POST"])
def lab_page(request: HtmxRequest, slug: str) -> HttpResponse:
    """Show a lab; a POST starts a run and shows it coming. htmx gets only the panel."""
    lab = get_object_or_404(Lab, slug=slug)
    return _panel_page(request, lab.spec.kind, lab, {})


@require_safe
def run_page(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Show a run again, to its owner or to anybody once it is shared; `step` opens one of its steps."""
    run = get_object_or_404(Run.objects.with_recording().visible_to(request.user), pk=run_id)
    engine.settle(run)
    chosen = number_in(request.GET.get("step"))
    learner_key(request)  # the page can start a run
    is_owner = run.learner == request.user
    learner = request.user if is_owner else AnonymousUser()  # another's goals are not this run's
    panel = lab_panel(run.kind, run.lab, learner, run.get_absolute_url(), run=run, chosen=chosen)
    context = {"panel": panel, "run": run, "is_owner": is_owner}
    return render_part(request, "labs/run.html", run.kind.step_part, context)


@require_safe
def run_steps(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Send some steps of a run as lines of a list, `from` a step on; the last line asks for the next ones."""
    run = get_object_or_404(Run.objects.with_recording().visible_to(request.user), pk=run_id)
    found = step_rows(engine.steps_of(run), number_in(request.GET.get("from")))
    return render(request, "panels/trace.html#rows", {"list": found, "run": run})


@require_safe
def run_picture(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Send a run as a picture for slides."""
    run = get_object_or_404(Run.objects.with_recording().visible_to(request.user), pk=run_id)
    if not run.kind.picture:
        raise Http404(f"the panel {run.kind.name} has no picture")
    engine.settle(run)
    picture = run.kind.picture(shown_of(run, engine.steps_of(run)))
    context = {"picture": picture}
    return render(request, f"panels/{run.kind.name}.svg", context, content_type="image/svg+xml")


@require_POST
def stop_run(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Stop a run; it keeps the tokens that it has."""
    run = get_object_or_404(Run.objects.with_recording().by(request.user), pk=run_id)
    engine.stop(run)
    return HttpResponse(status=204) if request.htmx else redirect(run)  # the run's stream shows its end


@require_POST
def take_token(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Take another token at a step of a run: a new run goes on from there, the old one stays."""
    run = get_object_or_404(Run.objects.with_recording().visible_to(request.user), pk=run_id)
    form = RunForm(kind=run.kind, lab=run.lab, run=run)
    step, typed, posted = number_in(request.POST.get("step")), request.POST.get("typed"), request.POST.get("token_id")
    try:
        token_id = engine.token_typed(run, typed) if typed is not None else number_in(posted)
    except PromptError as error:
        panel = lab_panel(run.kind, run.lab, request.user, _page_of(request), run=run, chosen=step, notice=str(error))
        return _show(request, {}, panel, status=422)
    recording = engine.with_token(run, step, token_id) if token_id or typed is not None or posted == "0" else None
    if recording is None:
        raise Http404("there is no such step or token")
    return _started(request, form, recording, run.inputs, int(DEFAULT_PACE), {})


@require_POST
def share_run(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Let anybody with the link see a run, or nobody again."""
    run = get_object_or_404(Run.objects.with_recording().by(request.user), pk=run_id)
    run.shared = request.POST.get("shared") == "true"
    run.save(update_fields=["shared"])
    return redirect(run)


def _open_panel(request: HtmxRequest, kind: Kind) -> HttpResponse:
    panels = [(other, open_address(other)) for other in KINDS.values()]
    found = list(Lab.objects.defer("goals", "explanation", "hints"))
    of_panel = [lab for lab in found if lab.panel == kind.name]
    sections = [(f"Labs with {kind.name}", of_panel), ("Other labs", [lab for lab in found if lab not in of_panel])]
    context: dict[str, object] = {
        "labs": [(title, labs) for title, labs in sections if labs],
        "missing_models": missing_models(),
        "panels": panels,
    }
    return _panel_page(request, kind, None, context)


def _panel_page(request: HtmxRequest, kind: Kind, lab: Lab | None, context: dict[str, object]) -> HttpResponse:
    if request.method == "POST":
        return _pressed(request, kind, lab, context)
    learner_key(request)  # the page can start a run
    like = _run_like(request, kind) if lab is None else None
    if like:
        form = RunForm(kind=kind, run=like)
        return _show(request, context, lab_panel(kind, None, request.user, _page_of(request), form=form))
    at_start = request.GET.get("from") == "start"
    run = None if at_start else Run.objects.by(request.user).latest_in(lab, kind.name)
    return _show(request, context, lab_panel(kind, lab, request.user, _page_of(request), run=run))


def _run_like(request: HtmxRequest, kind: Kind) -> Run | None:
    """Return the run whose settings the open laboratory is asked to start from, if the learner may see it."""
    try:
        wanted = UUID(request.GET.get("like", ""))
    except ValueError:
        return None
    return Run.objects.with_recording().visible_to(request.user).filter(pk=wanted, panel=kind.name).first()


def _pressed(request: HtmxRequest, kind: Kind, lab: Lab | None, context: dict[str, object]) -> HttpResponse:
    """Run or Step was pressed: start a run, or show the next token of the one by hand."""
    edits = kind.edits if lab else (*kind.edits, *presets_of(kind))
    edit = next((edit.change for edit in edits if edit.name == request.POST.get("do")), None)
    if edit:
        form = RunForm(edit(request.POST.dict()), kind=kind, lab=lab)
        last = Run.objects.by(request.user).latest_in(lab, kind.name)
        return _show(request, context, lab_panel(kind, lab, request.user, _page_of(request), form=form, run=last))
    form = RunForm(request.POST, kind=kind, lab=lab)
    if request.POST.get("do") == "look":
        return render(request, "labs/panel.html#idle", {"panel": {"form": form, "action": request.path}})
    if form.is_valid():
        pace = None if request.POST.get("do") == "step" else int(form.pace)
        return _started(request, form, form.recording(), form.inputs, pace, context)
    last = Run.objects.by(request.user).latest_in(lab, kind.name)
    panel = lab_panel(kind, lab, request.user, _page_of(request), form=form, run=last, notice=form.problem)
    return _show(request, context, panel, status=422)


def _started(
    request: HtmxRequest,
    form: RunForm,
    recording: Recording,
    inputs: Inputs,
    pace: int | None,
    context: dict[str, object],
) -> HttpResponse:
    """Start a run and show it coming; without JavaScript, send the browser to the finished run."""
    back, kind, lab = _page_of(request), form.kind, form.lab
    try:
        run = engine.press(learner_of(request), lab, kind, recording, inputs, pace)
    except NotNow as error:
        last = Run.objects.by(request.user).latest_in(lab, kind.name)
        panel = lab_panel(kind, lab, request.user, back, form=form, run=last, notice=str(error))
        response = _show(request, context, panel, status=429)
        response["Retry-After"] = str(error.retry_after)
        return response
    if request.htmx:
        return _show(request, context, lab_panel(kind, lab, request.user, back, form=form, run=run))
    if run.is_open and not run.is_by_hand:
        engine.finish(run)
    engine.conclude_now(run)
    # a refresh starts nothing; a run's page would show the old run
    if back.startswith("/runs/"):
        return redirect(run)
    query = f"?lab={lab.slug}" if lab and lab.get_absolute_url() != back else ""
    return redirect(f"{back}{query}#lab")


def _show(request: HtmxRequest, context: dict[str, object], panel: Panel, status: int = 200) -> HttpResponse:
    return render_part(request, "labs/lab.html", "labs/panel.html#panel", context | {"panel": panel}, status)


def _page_of(request: HtmxRequest) -> str:
    """Return the page of this site that the panel is on, without its query."""
    try:
        path = urlsplit(request.POST.get("back") or request.headers.get("HX-Current-URL") or request.path).path
    except ValueError:
        path = request.path
    is_ours = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if is_ours else request.path
