"""Goals about what a run costs."""

from dataclasses import dataclass, replace
from typing import Literal

from quizsite.labs.clauses import (
    Clause,
    Run,
    Verdict,
    nothing_taken,
    only_allowed,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase


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
