"""Goals about where a model looks."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import Clause, Run, Verdict, nothing_taken, only_allowed, same_setup
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class FindHead(GoalBase):
    """A layer and head in which one position looks most at a given earlier one."""

    kind: Literal["find_head"] = "find_head"
    position: int  # from 1, as the target
    target: int
    min_weight: float

    title = "Find the head"
    short = "Head"
    done = "Found"

    @property
    def wanted(self) -> str:
        """What the learner is asked for."""
        return (
            f"A layer and head in which position {self.position} looks most at position {self.target}, "
            f"with a weight of {self.min_weight:g} or more."
        )

    def judge(self, run: Run) -> Verdict:
        triangle: list[list[float]] = run.outcome.get("triangle", [])
        row = triangle[self.position - 1] if self.position <= len(triangle) else []
        most = max(row, default=0.0)
        looks_at = row.index(most) + 1 if row else 0
        weight = row[self.target - 1] if self.target <= len(row) else 0.0
        if row:
            found = f"position {looks_at}, “{run.outcome['tokens'][looks_at - 1].strip()}”, with {most:.3f}"
        else:
            found = run.outcome.get("problem", "there is no map of it")
        short_by = f", short by {self.min_weight - weight:.3f}" if weight < self.min_weight else ""
        head = f"Layer {run.inputs['layer']}, head {run.inputs['head']}"
        return Verdict(
            clauses=(
                Clause(
                    f"Position {self.position} looks most at position {self.target}", found, looks_at == self.target
                ),
                Clause(
                    f"Weight there, at least {self.min_weight:g}",
                    f"{weight:.3f}{short_by}",
                    weight >= self.min_weight,
                ),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"{head}: position {self.position} looks most at {self.target}, with {weight:.3f}.",
        )
