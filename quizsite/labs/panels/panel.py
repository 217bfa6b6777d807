"""What a panel's template is given, and the parts of it that change while a run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.contrib.auth.models import AnonymousUser
from django.template.loader import render_to_string
from django.urls import reverse

from generation import Step
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.forms import RunForm
from quizsite.labs.models import Lab, Run
from quizsite.labs.panels.goal_views import GoalView, goal_views
from quizsite.labs.panels.trace import Trace, trace


@dataclass(frozen=True)
class Panel:
    """All that the panel's template needs."""

    lab: Lab | None
    form: RunForm
    action: str  # where the form posts
    back: str  # the page that the panel is on
    fresh: str = ""  # where the panel is as it was at the start
    trace: Trace | None = None
    goals: list[GoalView] = field(default_factory=list)
    notice: str = ""
    steps: list[tuple[Lab, str]] = field(
        default_factory=list
    )  # the toy's lab and the real model's, with their addresses

    @property
    def is_ready(self) -> bool:
        """Tell whether the lab's model is here."""
        return self.lab is None or self.lab.is_ready

    @property
    def n_met(self) -> int:
        return sum(goal.state == "met" for goal in self.goals)


def lab_panel(
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
    action = lab.get_absolute_url() if lab else reverse("labs:open")
    at = f"{back}?lab={lab.slug}&" if lab and not back.startswith(("/lab/", "/runs/")) else f"{action}?"
    if run:
        engine.settle(run)
    return Panel(
        lab=lab,
        form=form or RunForm(lab=lab, run=run),
        action=action,
        back=back,
        fresh=f"{at}from=start",
        trace=trace(run, engine.steps_of(run), chosen, streaming=_is_streaming(run, learner)) if run else None,
        goals=goal_views(lab, run, learner) if lab else [],
        notice=notice,
        steps=[(step, at.replace(lab.slug, step.slug).rstrip("?&")) for step in steps or lab.steps] if lab else [],
    )


def streaming_panel(run: Run, steps: Sequence[Step]) -> Panel:
    """Return what changes in the panel with each token."""
    form = RunForm(lab=run.lab, run=run)
    return Panel(lab=run.lab, form=form, action="", back="", trace=trace(run, steps, streaming=True))


def waiting_panel(run: Run, place: int) -> Panel:
    """Return the panel of a run that waits for the engine, or that has just come out of the queue."""
    panel = streaming_panel(run, [])
    assert panel.trace
    heading = f"Run, waiting for the engine: place {place} in the queue" if place else panel.trace.heading
    return replace(panel, trace=replace(panel.trace, heading=heading))


def judging_html(run: Run, learner: User | AnonymousUser) -> str:
    """Render the goals while the lab's other runs are on their way."""
    panel = Panel(lab=run.lab, form=RunForm(lab=run.lab, run=run), action="", back="", goals=_goals(run, learner))
    return render_to_string("labs/trace.html#goals", {"panel": panel, "oob": True})


def finished_html(run: Run, learner: User | AnonymousUser, whole: bool) -> str:
    """Render what changes in the panel when a run ends; `whole` sends its tokens again."""
    panel = lab_panel(run.lab, learner, "", run=run)
    return render_to_string("labs/trace.html#finished", {"panel": panel, "oob": True, "whole": whole})


def _is_streaming(run: Run, learner: User | AnonymousUser) -> bool:
    """Tell whether the page opens the run's stream: its owner's pages do, while it goes on or waits for its verdict."""
    goes_on = run.awaits_verdict or (run.is_open and not run.is_by_hand)
    return goes_on and run.learner_id == learner.pk


def _goals(run: Run, learner: User | AnonymousUser) -> list[GoalView]:
    assert run.lab
    return goal_views(run.lab, run, learner)
