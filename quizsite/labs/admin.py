"""Labs in the admin, tried before they are saved; runs can be looked at, not changed."""

from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, get_args
from uuid import UUID

from csp.constants import SELF
from csp.decorators import csp_replace
from django import forms
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.db.models import TextField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST

from generation import ModelUnavailable, SamplingParams
from quizsite.htmx import number_in
from quizsite.labs import engine
from quizsite.labs.clauses import Verdict
from quizsite.labs.goals import Goal
from quizsite.labs.goals.goal import GoalBase
from quizsite.labs.models import Lab, Run
from quizsite.labs.next_tokens import changed_settings, known_models
from quizsite.labs.panels import KINDS
from quizsite.labs.text_fields import LinesField, YamlField, area
from quizsite.labs.validation import LabSpec, prove

SETTINGS = list(SamplingParams().as_dict())


class LabForm(forms.ModelForm[Lab]):
    """A lab's form: what is well written is run as well, once Django has made the row of it."""

    panel = forms.ChoiceField(choices=[(name, kind.title) for name, kind in KINDS.items()], initial="trace")
    model = forms.ChoiceField(help_text="On sky a lab is proved at once; on a real model it takes its time.")
    facts = LinesField(help_text="One to three ids, one a line.", widget=area(2))
    chat = YamlField(list, help_text="In place of the prompt: a list of messages, each with role and content.")
    start = YamlField(dict, help_text="Settings at the start, as in temperature: 0.7, one a line. Others are neutral.")
    inputs = YamlField(dict, help_text="Inputs of the panel at the start, where it has some.")
    allowed = LinesField(required=False, widget=area(3))
    seeds = YamlField(list, help_text="Five, where a goal is judged over seeds: [17, 6, 9, 19, 5].")
    goals = YamlField(list, widget=area(10))
    hints = LinesField(required=False, help_text="Three of growing help, one a line, without a number of the solution.")

    class Meta:
        model = Lab
        fields = (
            *("title", "slug", "panel", "model", "prompt", "chat", "facts", "start", "inputs", "allowed", "seeds"),
            *("goals", "hints", "explanation", "first_step"),
        )

    is_proved = True  # before it is saved

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["goals"] = [_written(goal) for goal in self.instance.goals]
        self.fields["model"].choices = [(name, name) for name in known_models()]  # type: ignore[attr-defined]
        inputs = {name for kind in KINDS.values() for name in kind.inputs.base_fields}
        self.fields["allowed"].help_text = f"What the learner may change, one a line: {', '.join(SETTINGS)}; or an "
        self.fields["allowed"].help_text += f"input of the panel: {', '.join(sorted(inputs))}."

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.is_proved and not self.errors and self.instance.is_ready:
            for where, message in prove(self.instance.spec, engine.run_shared):
                self.add_error(None, f"{'.'.join(map(str, where))}: {message}")


class TriedForm(LabForm):
    """The same form, to be tried and not saved."""

    is_proved = False


class GoalHelp(NamedTuple):
    """A kind of goal, for whoever writes one."""

    kind: str
    wanted: str
    numbers: list[str]  # its own, with what they are where nothing is said


class Tried(NamedTuple):
    """A goal judged over the start or over its solution, and whether that is as it should be."""

    what: str
    verdict: Verdict
    is_as_wanted: bool


@admin.register(Lab)
class LabAdmin(admin.ModelAdmin[Lab]):
    form = LabForm
    change_form_template = "authoring/lab.html"
    list_display = ["title", "slug", "panel", "model", "prompt"]
    list_filter = ["panel", "model"]
    search_fields = ["title", "slug", "prompt"]
    formfield_overrides = {TextField: {"widget": area(3)}}
    prepopulated_fields = {"slug": ["title"]}
    fieldsets = [
        (None, {"fields": ["title", "slug", ("panel", "model"), "prompt", "facts"]}),
        ("What the learner starts from", {"fields": ["start", "allowed", "seeds"]}),
        ("Goals", {"fields": ["goals"]}),
        ("Help", {"fields": ["hints", "explanation", "first_step"]}),
        ("Chat and inputs of a panel", {"fields": ["chat", "inputs"]}),
    ]

    class Media:
        js = (forms.Script("authoring.js", defer=True),)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Begin with what the address says, or with a run of one's own."""
        run = run_named(request)
        if not run:
            return dict(super().get_changeform_initial_data(request))
        setup = run.recording.setup
        begun: dict[str, Any] = {"panel": run.panel, "model": setup.model, "prompt": setup.prompt, "chat": setup.chat}
        begun |= {"start": changed_settings(setup.params), "inputs": run.inputs}
        return begun | {"allowed": ["temperature"], "goals": [{"kind": "", "solution": {"temperature": 0}}]}

    def has_delete_permission(self, request: HttpRequest, obj: Lab | None = None) -> bool:
        return False  # what learners have shown in it would go with it

    def get_urls(self) -> list[URLPattern]:
        tried = path("try/", self.admin_site.admin_view(try_lab), name="labs_lab_try")
        return [tried, *super().get_urls()]

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        context = {"goal_kinds": [_help(goal) for goal in get_args(Goal)]}
        return super().changeform_view(request, object_id, form_url, context | (extra_context or {}))


@require_POST
@permission_required("labs.change_lab", raise_exception=True)
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})
def try_lab(request: HttpRequest) -> HttpResponse:
    """Run the start and each solution of a lab, as typed or as saved, and show every clause."""
    problems: list[str] = []
    tried: list[Tried] = []
    lab = Lab.objects.filter(pk=number_in(request.GET.get("lab"))).first()
    form = TriedForm(request.POST, instance=_of_slug(request))
    if lab or form.is_valid():
        try:
            tried = _runs((lab or form.instance).spec)
        except (ValueError, ModelUnavailable) as error:
            problems = [str(error)]
    else:
        problems = [f"{name}: {text}" for name, texts in form.errors.items() for text in texts]
    return render(request, "authoring/tried.html", {"problems": problems, "tried": tried})


def run_named(request: HttpRequest) -> Run | None:
    """Return the author's own run that the address names, if there is one."""
    with suppress(ValueError):
        return Run.objects.by(request.user).with_recording().filter(pk=UUID(request.GET.get("run", ""))).first()
    return None


def _of_slug(request: HttpRequest) -> Lab | None:
    """Return the lab whose form this is, so that its own slug is not taken."""
    return Lab.objects.filter(slug=request.POST.get("slug", "")).first()


def _runs(spec: LabSpec) -> list[Tried]:
    start = spec.judge(spec.start_params, record=engine.run_shared)
    is_start_fit = not all(verdict.is_met for verdict in start)
    tried = [
        Tried(f"{goal.title}, at the start", verdict, is_start_fit)
        for goal, verdict in zip(spec.goals, start, strict=True)
    ]
    for number, goal in enumerate(spec.goals):
        verdict = spec.judge_solution(number, engine.run_shared)
        tried.append(Tried(f"{goal.title}, with its solution", verdict, verdict.is_met))
    return tried


def _written(goal: dict[str, Any]) -> dict[str, Any]:
    """Return a goal as one would write it: its kind first, and nothing that is empty."""
    return {"kind": goal["kind"]} | {name: value for name, value in goal.items() if value not in ({}, [], None, "")}


def _help(goal: Any) -> GoalHelp:
    common = {field.name for field in fields(GoalBase)} | {"kind"}
    numbers = [
        f"{field.name}: {field.default}" if field.default is not MISSING else field.name
        for field in fields(goal)
        if field.name not in common
    ]
    return GoalHelp(goal.kind, goal.wanted, numbers)


@admin.register(Run)
class RunAdmin(admin.ModelAdmin[Run]):
    list_display = ["id", "lab", "recording", "n_steps", "finish_reason", "created"]
    list_filter = ["finish_reason", "lab"]
    list_select_related = ["lab", "recording"]
    date_hierarchy = "created"
    exclude = ["learner"]  # who ran it is not an author's business

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False
