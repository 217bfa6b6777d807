"""A lab's goals as a learner stands with them."""

from dataclasses import asdict, dataclass, field
from typing import Any

from django.contrib.auth.models import AnonymousUser

from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.models import Lab, LabResult, Run
from quizsite.labs.panels.strip import per_cent
from quizsite.labs.validation import OVER_SEEDS


@dataclass(frozen=True)
class GoalView:
    """A goal beside the run: met, missed by this run, or not tried yet."""

    title: str
    short: str
    state: str  # "met", "unmet" or "open"
    chip: str
    summary: str = ""
    failing: list[dict[str, Any]] = field(default_factory=list)
    holding: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    seeds: list[dict[str, Any]] = field(default_factory=list)


def goal_views(lab: Lab, run: Run | None, learner: User | AnonymousUser) -> list[GoalView]:
    """Return the lab's goals as the learner stands with them, and why this run misses one."""
    results = {
        result.goal: result
        for result in LabResult.objects.filter(lab=lab, learner=learner.pk or 0).select_related("run")
    }
    conclusion = engine.conclusion_of(run) if run and run.lab_id == lab.pk else None
    waiting_seeds = [asdict(seed) for seed in conclusion.seed_runs()] if conclusion else []
    views = []
    for goal in lab.spec.goals:
        verdict = run.verdicts.get(goal.kind) if run and run.lab_id == lab.pk else None
        clauses = verdict["clauses"] if verdict else []
        parts = {
            "failing": [clause | {"bar": _limit_bar(clause)} for clause in clauses if clause["met"] is False],
            "holding": [clause for clause in clauses if clause["met"]],
            "waiting": [clause for clause in clauses if clause["met"] is None],
        }
        seeds = verdict["seeds"] if verdict else []
        if verdict and not parts["failing"] and not parts["waiting"]:
            views.append(GoalView(goal.title, goal.short, "met", goal.done, verdict["summary"], seeds=seeds))
        elif goal.kind in results:
            summary = results[goal.kind].run.verdicts.get(goal.kind, {}).get("summary", "")
            views.append(
                GoalView(goal.title, goal.short, "met", goal.done, f"An earlier run. {summary}", **parts, seeds=seeds)
            )
        elif verdict:
            views.append(GoalView(goal.title, goal.short, "unmet", "Not yet", "", **parts, seeds=seeds))
        else:
            wanted = "Being judged: its other runs are on their way." if conclusion else goal.wanted
            seeds = waiting_seeds if goal.kind in OVER_SEEDS else []
            views.append(GoalView(goal.title, goal.short, "open", "Not yet", wanted, seeds=seeds))
    return views


def _limit_bar(clause: dict[str, Any]) -> dict[str, str] | None:
    """Return a measured number, its limit and the distance between them as a bar."""
    if not clause["measure"]:
        return None
    value, limit = clause["measure"]["value"], clause["measure"]["limit"]
    longest = max(1.0, value)
    return {
        "limit": per_cent(100 * limit / longest),
        "over": per_cent(100 * (value - limit) / longest),
        "at_most": f"at most {limit:.2f}",
        "over_by": f"over by {value - limit:.2f}",
        "words": f"{value:.2f}, over the limit of {limit:.2f} by {value - limit:.2f}",
    }
