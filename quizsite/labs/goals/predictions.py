"""The goal of having said beforehand what a run will show. It is judged on counts and tokens, never on seconds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from quizsite.labs.clauses import Clause, Run, Verdict, nothing_taken, only_allowed, same_setup
from quizsite.labs.goals.goal import GoalBase

PREDICTION = "prediction"  # the input that holds it: the number of the chosen answer, from 0

Measured = int | str | bool

MEASURES: dict[str, Callable[[Run], Measured]] = {
    "forward_passes": lambda run: run.generation.forward_passes,
    "computed_positions": lambda run: sum(step.computed_positions for step in run.generation.steps),
    "last_input_length": lambda run: run.generation.steps[-1].input_length,
    "n_scored": lambda run: run.generation.steps[0].stages[0].kept,
    "same_with_cache": lambda run: (
        run.other(replace(run.setup.params, use_kv_cache=True)).token_ids == run.generation.token_ids
    ),
    "first_token": lambda run: run.generation.steps[0].token,
    "n_tokens": lambda run: len(run.generation.token_ids),
    "finish_reason": lambda run: run.generation.finish_reason,
    "loops": lambda run: run.generation.loop is not None,
}


@dataclass(frozen=True, kw_only=True)
class PredictedFirst(GoalBase):
    """A prediction is committed before the run, and the run bears it out."""

    kind: Literal["predicted_first"] = "predicted_first"
    question: str
    answers: list[str]  # in the learner's words
    values: list[int | str | bool]  # what each answer says of the measure
    measure: str  # of MEASURES, or a key of the panel's outcome
    shown: str = "{}"  # the measured value in words

    title = "Say it before you run it"
    short = "Predict"
    done = "Predicted"
    wanted = "Choose an answer first; the run then shows who is right."

    def judge(self, run: Run) -> Verdict:
        chosen = run.inputs.get(PREDICTION)
        said, claimed = "nothing", None
        if isinstance(chosen, int) and 0 <= chosen < len(self.values):
            said, claimed = self.answers[chosen], self.values[chosen]
        measured = MEASURES[self.measure](run) if self.measure in MEASURES else run.outcome.get(self.measure)
        words = {True: "yes", False: "no"}[measured] if isinstance(measured, bool) else measured
        is_right = (type(claimed), claimed) == (type(measured), measured)  # for Python, 1 is True
        return Verdict(
            clauses=(
                Clause("A prediction before the run", said, claimed is not None),
                Clause("What the run shows", self.shown.format(words), claimed is not None and is_right),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"Said before it ran: {said}.",
        )
