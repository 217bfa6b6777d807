"""Goals about two runs beside each other. B is the side that the learner sets; A stands."""

from dataclasses import dataclass, replace
from typing import Literal

from generation import SamplingParams
from quizsite.labs.clauses import (
    Clause,
    Run,
    Verdict,
    at_least,
    first_difference,
    loops,
    only_allowed,
    over_seeds,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase
from quizsite.labs.goals.loops import CureLoop


@dataclass(frozen=True, kw_only=True)
class CureBeside(CureLoop):
    """A loops, and B on the same random numbers does not: the cure of a loop, with the illness beside it."""

    kind: Literal["cure_beside"] = "cure_beside"  # type: ignore[assignment]

    title = "Cure it beside the loop"
    wanted = "A loops as it stands. Set B so that it does not, for at least four of five seeds."

    def judge(self, run: Run) -> Verdict:
        b_params = params_of_b(run)
        clauses = [
            replace(loops(run.generation), name="A loops"),
            *self._text_clauses(run.other(b_params)),
            same_setup(run),
            only_allowed(run),
            Clause(
                f"Settings of B changed, at most {self.max_changed}",
                str(len(run.changed)),
                len(run.changed) <= self.max_changed,
            ),
        ]
        beside = replace(run, setup=replace(run.setup, params=b_params))
        return over_seeds(beside, clauses, self._text_clauses, needed=4)


@dataclass(frozen=True, kw_only=True)
class SameTextBeside(GoalBase):
    """B is set otherwise than A, and writes the same tokens."""

    kind: Literal["same_text_beside"] = "same_text_beside"
    min_temperature: float = 0.5  # of B
    min_new_tokens: int = 12

    title = "Other settings, the same text"
    short = "Same text"
    done = "Shown"
    wanted = "Set B to sample, and have it write what greedy A writes."

    def judge(self, run: Run) -> Verdict:
        b_params = params_of_b(run)
        ours, theirs = run.generation.token_ids, run.other(b_params).token_ids
        same = ours == theirs
        return Verdict(
            clauses=(
                Clause(
                    f"Temperature of B, at least {self.min_temperature:g}",
                    f"{b_params.temperature:g}",
                    b_params.temperature >= self.min_temperature,
                ),
                at_least("New tokens of A", len(ours), self.min_new_tokens),
                Clause("The same tokens", "yes" if same else f"differ at token {first_difference(theirs, ours)}", same),
                same_setup(run),
                only_allowed(run),
            ),
            summary=f"{len(ours)} tokens, the same in both.",
        )


def params_of_b(run: Run) -> SamplingParams:
    """Return the settings of side B, as the panel has run them."""
    return SamplingParams(**run.outcome["settings_of_b"])
