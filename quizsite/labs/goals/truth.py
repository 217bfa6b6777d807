"""Goals about what a text says of itself."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import Clause, Measure, Run, Verdict, nothing_taken, only_allowed, same_setup
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class StatedAgainstMeasured(GoalBase):
    """The text states a high confidence, and the tokens of its answer had a low probability."""

    kind: Literal["stated_against_measured"] = "stated_against_measured"
    min_stated: float  # per cent
    max_probability: float  # of the answer's tokens, on average, raw

    title = "Sure in words, unsure in numbers"
    short = "Stated"
    done = "Shown"
    wanted = "A high percentage in the text, over tokens that had a low probability."

    def judge(self, run: Run) -> Verdict:
        stated, measured = run.outcome.get("stated_per_cent"), run.outcome.get("answer_probability")
        is_low = measured is not None and measured <= self.max_probability
        return Verdict(
            clauses=(
                Clause(
                    f"The text states a confidence, at least {self.min_stated:g} %",
                    "none" if stated is None else f"{stated:g} %",
                    stated is not None and stated >= self.min_stated,
                ),
                Clause(
                    f"Mean probability of the answer’s tokens, at most {self.max_probability:.2f}",
                    "no tokens" if measured is None else f"{measured:.2f}",
                    is_low,
                    None if measured is None else Measure(measured, self.max_probability),
                ),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"The text says {stated or 0:g} %; the tokens of its answer averaged {measured or 0:.2f}.",
        )
