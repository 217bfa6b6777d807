"""Goals about how a run ends."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import (
    ENDS,
    SENTENCE_ENDS,
    Clause,
    Run,
    Verdict,
    at_least,
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


@dataclass(frozen=True, kw_only=True)
class EndsBy(GoalBase):
    """A given end: the beginning is that of the lab's start, and the text stops where it should."""

    kind: Literal["ends_by"] = "ends_by"
    reason: Literal["eos", "stop", "length"]
    before: str = ""  # what the start's run writes, and where this one must have ended
    min_tokens: int = 1

    title = "End it this way"
    short = "This end"
    done = "Ended so"

    @property
    def wanted(self) -> str:
        where = f", just before “{self.before}”" if self.before else f", after {self.min_tokens} tokens or more"
        return f"The same beginning as at the start, ended by {ENDS[self.reason]}{where}."

    def judge(self, run: Run) -> Verdict:
        start, ours = run.other(run.start.params), run.generation
        n_same = min(len(start.token_ids), len(ours.token_ids))
        is_same = start.token_ids[:n_same] == ours.token_ids[:n_same]
        clauses = [
            Clause(f"Ended by {ENDS[self.reason]}", ENDS[ours.finish_reason], ours.finish_reason == self.reason),
            Clause("The beginning of the start’s run", "same" if is_same else "another one", is_same),
            at_least("Tokens", len(ours.token_ids), self.min_tokens),
        ]
        if self.before:
            wanted, found, _ = start.text.partition(self.before)
            is_there = bool(found) and ours.text.rstrip() == wanted.rstrip()
            clauses.append(Clause(f"The text ends before “{self.before}”", f"ends in {ours.text[-12:]!r}", is_there))
        return Verdict(
            clauses=(*clauses, same_setup(run, "model", "prompt"), nothing_taken(run), only_allowed(run)),
            summary=f"Ended by {ENDS[self.reason]} after {len(ours.token_ids)} tokens.",
        )
