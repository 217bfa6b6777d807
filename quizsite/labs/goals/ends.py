"""Goals about how a run ends."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import (
    ENDS,
    SENTENCE_ENDS,
    Clause,
    Run,
    Verdict,
    ended_by_limit,
    nothing_taken,
    only_allowed,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class CutOff(GoalBase):
    """The limit ends the run in the middle of a sentence."""

    kind: Literal["cut_off"] = "cut_off"

    title = "Have it cut off"
    short = "Cut off"
    done = "Cut off"
    wanted = "The limit ends the run inside a sentence."

    def judge(self, run: Run) -> Verdict:
        text = run.generation.text.rstrip()
        return Verdict(
            clauses=(
                ended_by_limit(run.generation),
                Clause(
                    "An unfinished sentence", f"ends in {text[-12:]!r}", bool(text) and not text.endswith(SENTENCE_ENDS)
                ),
                same_setup(run, "model", "prompt"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"Cut after {len(run.generation.token_ids)} tokens.",
        )


@dataclass(frozen=True, kw_only=True)
class EndsByItself(GoalBase):
    """The same beginning as at the lab's start, and now the model's own end."""

    kind: Literal["ends_by_itself"] = "ends_by_itself"

    title = "Let it end by itself"
    short = "Own end"
    done = "Ended by itself"
    wanted = "The same beginning, up to the model’s own end token."

    def judge(self, run: Run) -> Verdict:
        start = run.other(run.start.params).token_ids
        ours, reason = run.generation.token_ids, run.generation.finish_reason
        return Verdict(
            clauses=(
                Clause("Ended by its end token", ENDS[reason], reason == "eos"),
                Clause(
                    f"The same first {len(start)} tokens",
                    "yes" if ours[: len(start)] == start else "no",
                    ours[: len(start)] == start,
                ),
                same_setup(run, "model", "prompt"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"It ends after {len(ours)} tokens.",
        )
