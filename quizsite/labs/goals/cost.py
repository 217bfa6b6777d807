"""Goals about what a run costs."""

from dataclasses import dataclass, replace
from typing import Literal

from quizsite.labs.clauses import (
    Clause,
    Measure,
    Run,
    Verdict,
    nothing_taken,
    only_allowed,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase

ROUNDING = 1e-9  # so that a ratio of exactly 3 is not missed by a last binary digit


@dataclass(frozen=True, kw_only=True)
class CacheChangesCost(GoalBase):
    """Two runs that differ in the KV cache alone: the same tokens, and many times the arithmetic."""

    kind: Literal["cache_changes_cost"] = "cache_changes_cost"
    min_ratio: float

    title = "The same tokens at many times the cost"
    short = "Cost"
    done = "Shown"
    wanted = "Switch the cache off. The run with the cache is made for you beside it."

    def judge(self, run: Run) -> Verdict:
        params = run.setup.params
        cached = run.other(replace(params, use_kv_cache=True))
        ratio = (run.generation.multiply_adds or 0) / (cached.multiply_adds or 1)
        same = run.generation.token_ids == cached.token_ids
        return Verdict(
            clauses=(
                Clause("The KV cache is off", "on" if params.use_kv_cache else "off", not params.use_kv_cache),
                Clause("The same tokens with it and without", "yes" if same else "no", same),
                Clause(
                    f"Multiply-adds, at least {self.min_ratio:g} times as many",
                    f"{ratio:.1f} times",
                    ratio >= self.min_ratio,
                ),
                same_setup(run, "model", "prompt"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"{len(cached.token_ids)} tokens, the same ones, at {ratio:.1f} times the multiply-adds.",
        )


@dataclass(frozen=True, kw_only=True)
class ReachRatio(GoalBase):
    """One cost is many times another: two numbers that the panel has measured."""

    kind: Literal["reach_ratio"] = "reach_ratio"
    over: str  # keys of the panel's outcome
    under: str
    over_words: str  # the same in words, inside a sentence
    under_words: str
    at_least: float
    at_most: float | None = None  # where more than enough would be no answer

    title = "Reach the ratio"
    short = "Ratio"
    done = "Reached"

    @property
    def wanted(self) -> str:
        """What the learner is asked for."""
        top = f" and at most {self.at_most:g}" if self.at_most is not None else ""
        return f"Make {self.over_words} at least {self.at_least:g}{top} times {self.under_words}."

    def judge(self, run: Run) -> Verdict:
        over, under = run.outcome.get(self.over, 0), run.outcome.get(self.under, 0)
        ratio = over / under if under else 0.0
        is_enough = bool(under) and ratio >= self.at_least - ROUNDING
        short_by = "" if is_enough else f", short by {self.at_least - ratio:.2f}"
        what = f"{self.over_words[0].upper()}{self.over_words[1:]}"
        clauses = [
            Clause(
                f"{what}, at least {self.at_least:g} times {self.under_words}",
                f"{ratio:.2f}{short_by}" if under else f"nothing to compare with: {self.under_words} is 0",
                is_enough,
            )
        ]
        if self.at_most is not None:
            is_few = ratio <= self.at_most + ROUNDING
            bar = Measure(ratio, self.at_most)
            clauses.append(Clause(f"And at most {self.at_most:g} times", f"{ratio:.2f}", is_few, bar))
        return Verdict(
            clauses=(*clauses, same_setup(run, "model", "prompt"), nothing_taken(run), only_allowed(run)),
            summary=f"{what}: {ratio:.2f} times {self.under_words}.",
        )
