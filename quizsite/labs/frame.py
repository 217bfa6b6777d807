"""What every panel stands in: settings, buttons, counters, goals; and the parts that change while a run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.contrib.auth.models import AnonymousUser
from django.template.loader import render_to_string
from django.urls import reverse

from generation import Generation, Loop, Step
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.clauses import ENDS, Inputs
from quizsite.labs.exports import Export, exports
from quizsite.labs.forms import RunForm
from quizsite.labs.goal_views import GoalView, goal_views
from quizsite.labs.models import Lab, Run
from quizsite.labs.panels import KINDS
from quizsite.labs.panels.kind import Edit, Kind, Other, Shown
from quizsite.labs.panels.strip import loop_of
from quizsite.labs.panels.trace import loop_words
from quizsite.labs.presets import presets_of


@dataclass(frozen=True)
class Counter:
    """A number above its name."""

    name: str
    value: str
    is_looping: bool = False
    is_roomy: bool = False  # shown only where there is room


@dataclass(frozen=True)
class Panel:
    """All that the templates of a panel need."""

    kind: Kind
    lab: Lab | None
    form: RunForm
    action: str  # where the form posts
    back: str  # the page that the panel is on
    fresh: str = ""  # where the panel is as it was at the start
    run: Run | None = None
    view: object = None  # what the kind's own template shows
    heading: str = ""
    loop: Loop | None = None
    counters: list[Counter] = field(default_factory=list)
    is_streaming: bool = False
    goals: list[GoalView] = field(default_factory=list)
    notice: str = ""
    is_authors: bool = False  # who sees it may make a lab or a question of the run
    steps: list[tuple[Lab, str]] = field(default_factory=list)  # the toy's lab and the real model's, with addresses

    @property
    def presets(self) -> tuple[Edit, ...]:
        return () if self.lab else presets_of(self.kind)

    @property
    def exports(self) -> list[Export]:
        """The run that is shown, in the words of other engines."""
        return exports(self.run.recording.setup) if self.run and self.kind.generates and self.is_ready else []

    @property
    def opens_at(self) -> str:
        """Where the run can be changed freely: in the open laboratory, with its prompt and settings."""
        if not self.run or not self.lab or self.run.recording.chat:
            return ""
        return f"{open_address(self.kind)}?like={self.run.pk}"

    @property
    def is_ready(self) -> bool:
        """Tell whether the lab's model is here."""
        return self.lab is None or self.lab.is_ready

    @property
    def n_met(self) -> int:
        return sum(goal.state == "met" for goal in self.goals)

    @property
    def is_solved(self) -> bool:
        return bool(self.goals) and self.n_met == len(self.goals)

    @property
    def loop_words(self) -> str:
        return loop_words(self.loop)


def lab_panel(
    kind: Kind,
    lab: Lab | None,
    learner: User | AnonymousUser,
    back: str,
    *,
    form: RunForm | None = None,
    run: Run | None = None,
    chosen: int = 0,
    notice: str = "",
    steps: Sequence[Lab] = (),
) -> Panel:
    """Return the panel of a lab, or of the open laboratory, with the run that it last showed.

    `steps` are the labs that lead to one another; those of the lab itself where nothing is said.
    """
    action = lab.get_absolute_url() if lab else open_address(kind)
    at = f"{back}?lab={lab.slug}&" if lab and not back.startswith(("/lab/", "/runs/")) else f"{action}?"
    if run:
        engine.settle(run)
    panel = Panel(
        kind=kind,
        lab=lab,
        form=form or RunForm(kind=kind, lab=lab, run=run, offered=_offered(run)),
        action=action,
        back=back,
        fresh=f"{at}from=start",
        goals=goal_views(lab, run, learner) if lab else [],
        notice=notice,
        is_authors=learner.is_staff and learner.has_perms(["labs.add_lab", "questions.add_questionversion"]),
        steps=[(step, at.replace(lab.slug, step.slug).rstrip("?&")) for step in steps or lab.steps] if lab else [],
    )
    return _with_run(panel, run, engine.steps_of(run), chosen, _is_streaming(run, learner)) if run else panel


def open_address(kind: Kind) -> str:
    """Return where a panel stands in the open laboratory."""
    return reverse("labs:open") if kind is next(iter(KINDS.values())) else reverse("labs:panel", args=[kind.name])


def streaming_panel(run: Run, steps: Sequence[Step]) -> Panel:
    """Return what changes in the panel with each token."""
    form = RunForm(kind=run.kind, lab=run.lab, run=run)
    panel = Panel(kind=run.kind, lab=run.lab, form=form, action="", back="")
    return _with_run(panel, run, steps, 0, is_streaming=True)


def waiting_html(run: Run, place: int) -> str:
    """Render a run's place in the queue, or that it is going on."""
    panel = streaming_panel(run, [])
    if place:
        panel = replace(panel, heading=f"Run, waiting for the engine: place {place} in the queue")
    return render_to_string("labs/panel.html#heading", {"panel": panel, "oob": True})


def concluding_html(run: Run, learner: User | AnonymousUser) -> str:
    """Render what comes after a run as far as it has come: what the panel asks for, the runs behind the goals."""
    panel = streaming_panel(run, engine.steps_of(run))
    if run.lab:
        panel = replace(panel, goals=goal_views(run.lab, run, learner))
    return render_to_string("labs/panel.html#concluding", {"panel": panel, "oob": True})


def finished_html(run: Run, learner: User | AnonymousUser, whole: bool) -> str:
    """Render what changes in the panel when a run ends; `whole` sends its body again."""
    panel = lab_panel(run.kind, run.lab, learner, "", run=run)
    whole = whole or not run.kind.appends
    return render_to_string("labs/panel.html#finished", {"panel": panel, "oob": True, "whole": whole})


def shown_of(run: Run, steps: Sequence[Step], chosen: int = 0) -> Shown:
    """Return what a panel's view reads of a run."""
    return Shown(
        setup=run.recording.setup,
        steps=steps,
        generation=run.recording.generation if run.ended_by_itself else None,
        finish_reason=run.finish_reason,
        inputs=run.inputs,
        outcome=run.outcome or {},
        others=_others(run),
        chosen=chosen,
    )


def _with_run(panel: Panel, run: Run, steps: Sequence[Step], chosen: int, is_streaming: bool) -> Panel:
    shown = shown_of(run, steps, chosen)
    loop = None if run.finish_reason == "eos" else loop_of(steps)
    return replace(
        panel,
        run=run,
        view=run.kind.view(shown),
        heading=_heading(run, len(steps), shown.generation),
        loop=loop,
        counters=_counters(steps, shown.generation, loop) if run.kind.generates else [],
        is_streaming=is_streaming,
    )


def _offered(run: Run | None) -> Inputs | None:
    """Return the inputs with which a panel goes on after a run that has ended by itself."""
    if not run or not run.kind.next_inputs:
        return None
    shown = shown_of(run, engine.steps_of(run))
    return run.kind.next_inputs(shown) if shown.generation else None


def _others(run: Run) -> list[Other]:
    """Return the runs that the panel has asked for, as far as they have come."""
    conclusion = engine.conclusion_of(run)
    if conclusion:
        return [Other(live.recording.setup, live.steps, live.generation) for live in conclusion.others]
    if not run.kind.has_more or run.is_open:
        return []
    found = [(recording.setup, recording.generation) for recording in run.all_others()]
    return [Other(setup, generation.steps, generation) for setup, generation in found if generation]


def _is_streaming(run: Run, learner: User | AnonymousUser) -> bool:
    """Tell whether the page opens the run's stream: its owner's pages do, while it goes on or waits for its verdict."""
    goes_on = run.awaits_verdict or (run.is_open and not run.is_by_hand)
    return goes_on and run.learner_id == learner.pk


def _counters(steps: Sequence[Step], generation: Generation | None, loop: Loop | None) -> list[Counter]:
    counters = [
        Counter("forward passes", str(len(steps))),
        Counter("positions computed", str(sum(step.computed_positions for step in steps))),
    ]
    if generation and generation.multiply_adds:
        counters.append(Counter("multiply-adds", f"{generation.multiply_adds:,}", is_roomy=True))
    if generation:
        counters.append(Counter("tokens/s", _speed(generation)))
    return [*counters, Counter("loop period", str(loop.period) if loop else "none", is_looping=bool(loop))]


def _speed(generation: Generation) -> str:
    seconds = generation.prefill_seconds + generation.decode_seconds
    rate = len(generation.token_ids) / seconds if seconds else 0
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def _heading(run: Run, n_steps: int, generation: Generation | None) -> str:
    tokens = f"{n_steps} token{'' if n_steps == 1 else 's'}"
    if run.finish_reason == "nothing":
        return "What you asked for"
    if run.is_open:
        return f"Run by hand, {tokens} so far" if run.is_by_hand else "Run, going on"
    if run.failure:
        return f"Run, ended early after {tokens}: {run.failure}"
    if run.finish_reason == "cancelled":
        return f"Run, stopped after {tokens}"
    if run.finish_reason == "length":
        return f"Run, ended by the limit of {tokens}"
    if generation and generation.explanation:
        return f"Run, ended after {tokens}: {generation.explanation}"
    return f"Run, ended by {ENDS[run.finish_reason]} after {tokens}"
