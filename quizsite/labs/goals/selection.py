"""Goals about how a token is chosen: order, cuts, sampling that is greedy, a token taken by hand."""

from dataclasses import dataclass, replace
from typing import Literal

from generation import Generation, SamplingParams
from quizsite.labs.clauses import (
    Clause,
    Run,
    Verdict,
    at_least,
    first_difference,
    kept_first,
    nothing_taken,
    only_allowed,
    over_seeds,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class SameAsGreedy(GoalBase):
    """Sampling that five seeds cannot tell from greedy decoding."""

    kind: Literal["same_as_greedy"] = "same_as_greedy"
    min_temperature: float = 0.01

    title = "Sample, and write the greedy text"
    short = "Five seeds"
    done = "Shown"
    wanted = "Five seeds, one text: the greedy one."

    def judge(self, run: Run) -> Verdict:
        params = run.setup.params
        greedy = run.other(SamplingParams(max_new_tokens=params.max_new_tokens, use_kv_cache=params.use_kv_cache))

        def text_clauses(generation: Generation) -> list[Clause]:
            same = generation.token_ids == greedy.token_ids
            first = first_difference(generation.token_ids, greedy.token_ids)
            return [Clause("The greedy text", "same" if same else f"differs at token {first}", same)]

        clauses = [
            Clause(
                f"Temperature, at least {self.min_temperature:g}",
                f"{params.temperature:g}",
                params.temperature >= self.min_temperature,
            ),
            *text_clauses(run.generation),
            same_setup(run),
            nothing_taken(run),
            only_allowed(run),
        ]
        return over_seeds(run, clauses, text_clauses, needed=len(run.seeds))


@dataclass(frozen=True, kw_only=True)
class EarlyWrongToken(GoalBase):
    """One token taken by hand near the start, and the text that follows it is another one."""

    kind: Literal["early_wrong_token"] = "early_wrong_token"
    within: int = 3  # steps
    looked_at: int = 12  # tokens after it
    min_different: int = 5

    title = "Bend the text with one token"
    short = "Bend it"
    done = "Bent"
    wanted = "Press a token in the table of an early step: it is taken, and the run goes on from it."

    def judge(self, run: Run) -> Verdict:
        taken = [step for step in run.generation.steps if step.forced]
        greedy = run.other(replace(run.setup.params, temperature=0))
        at = taken[0].step if taken else 0
        ours = run.generation.token_ids[at : at + self.looked_at]
        theirs = greedy.token_ids[at : at + self.looked_at]
        different = sum(a != b for a, b in zip(ours, theirs, strict=False)) if taken else 0
        where = ", ".join(f"step {step.step}" for step in taken) or "none"
        return Verdict(
            clauses=(
                Clause(
                    f"One token taken, in the first {self.within} steps", where, len(taken) == 1 and at <= self.within
                ),
                Clause(
                    "Not the likeliest token",
                    f"rank {taken[0].rank}" if taken else "none",
                    bool(taken) and taken[0].rank > 1,
                ),
                at_least(f"Different among the next {self.looked_at} tokens", different, self.min_different),
                same_setup(run),
                only_allowed(run),
            ),
            summary=f"{taken[0].token} at step {at} changed {different} of the next {len(ours)} tokens."
            if taken
            else "",
        )


@dataclass(frozen=True, kw_only=True)
class OrderMatters(GoalBase):
    """Settings under which truncating first and heating first keep different tokens."""

    kind: Literal["order_matters"] = "order_matters"

    title = "Make the order matter"
    short = "Order"
    done = "Shown"
    wanted = "At step 1, temperature before truncation and after it keep different tokens."

    def judge(self, run: Run) -> Verdict:
        params = run.setup.params
        other = run.other(replace(params, temperature_last=not params.temperature_last))
        ours, theirs = kept_first(run.generation), kept_first(other)
        before, after = (theirs, ours) if params.temperature_last else (ours, theirs)
        return Verdict(
            clauses=(
                Clause("Kept at step 1, temperature first and last", f"{before} and {after}", before != after),
                same_setup(run, "model", "prompt"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"Temperature first keeps {before}, temperature last keeps {after}.",
        )


@dataclass(frozen=True, kw_only=True)
class ExactlyNSurvive(GoalBase):
    """A cut that leaves a given number of tokens at the first step."""

    kind: Literal["exactly_n_survive"] = "exactly_n_survive"
    n: int

    title = "Leave exactly that many"
    short = "Exactly"
    done = "Exactly"
    wanted = "Look at the last column of step 1: how many are not out?"

    def judge(self, run: Run) -> Verdict:
        kept = kept_first(run.generation)
        return Verdict(
            clauses=(
                Clause(f"Tokens left at step 1, exactly {self.n}", str(kept), kept == self.n),
                same_setup(run, "model", "prompt"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"{kept} tokens are left at step 1.",
        )
