"""What all goals have: a solution of their own, which meets them."""

from dataclasses import dataclass, field

from quizsite.labs.clauses import Inputs, Settings


@dataclass(frozen=True, kw_only=True)
class GoalBase:
    """A goal lists its clauses: what was wanted, what the run has, whether that holds. All must hold."""

    solution: Settings = field(default_factory=dict)  # settings that differ from the lab's start
    solution_inputs: Inputs = field(default_factory=dict)  # inputs of the panel that differ from it
    solution_forced: dict[int, int] = field(default_factory=dict)  # tokens taken by hand: step → token id
