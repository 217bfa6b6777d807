"""Goals about repetition: making a loop, curing it, and remedies that do not help."""

from dataclasses import dataclass, replace
from typing import Literal

from generation import Generation
from quizsite.labs.clauses import (
    SEEDS_NEEDED,
    Clause,
    Measure,
    Run,
    SeedRun,
    Verdict,
    at_least,
    at_most,
    ended_by_limit,
    ended_freely,
    has_no_loop,
    loop_words,
    loops,
    nothing_else_changed,
    nothing_taken,
    only_allowed,
    over_seeds,
    period,
    raised,
    same_setup,
)
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class ReproduceLoop(GoalBase):
    """The run ends in a loop, with the limit as its only end."""

    kind: Literal["reproduce_loop"] = "reproduce_loop"
    min_new_tokens: int = 36

    title = "Reproduce the loop"
    short = "Reproduce"
    done = "Reproduced"
    wanted = "Run until the model repeats itself to the limit."

    def judge(self, run: Run) -> Verdict:
        generation = run.generation
        return Verdict(
            clauses=(
                loops(generation),
                at_least("New tokens", len(generation.token_ids), self.min_new_tokens),
                ended_by_limit(generation),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=loop_words(generation),
        )


@dataclass(frozen=True, kw_only=True)
class CureLoop(GoalBase):
    """The same model and prompt without a loop and still readable, by the allowed settings alone."""

    kind: Literal["cure_loop"] = "cure_loop"
    max_changed: int = 2
    min_new_tokens: int = 48
    min_new_tokens_before_end: int = 12
    max_seq_rep_4: float = 0.2
    max_surprisal: float | None = None  # bits a token; None where gibberish is not to be feared

    title = "Cure it"
    short = "Cure"
    done = "Cured"
    wanted = "No loop at the end, for at least four of five seeds."

    def judge(self, run: Run) -> Verdict:
        clauses = [
            *self._text_clauses(run.generation),
            same_setup(run),
            nothing_taken(run),
            only_allowed(run),
            at_most("Settings changed", len(run.changed), self.max_changed),
        ]
        return over_seeds(run, clauses, self._text_clauses, needed=SEEDS_NEEDED)

    def _text_clauses(self, generation: Generation) -> list[Clause]:
        n_tokens = len(generation.token_ids)
        if generation.finish_reason == "eos":
            length = at_least("New tokens before the end", n_tokens, self.min_new_tokens_before_end)
        else:
            length = at_least("New tokens", n_tokens, self.min_new_tokens)
        rep = generation.seq_rep_4
        clauses = [
            has_no_loop(generation),
            Clause(
                f"Repeated 4-grams, at most {self.max_seq_rep_4:.2f}",
                f"{rep:.2f}",
                rep <= self.max_seq_rep_4,
                Measure(rep, self.max_seq_rep_4),
            ),
            length,
            ended_freely(generation),
        ]
        if self.max_surprisal is not None:
            surprisal = sum(step.surprisal for step in generation.steps) / n_tokens
            clauses.append(
                Clause(
                    f"Mean surprisal, at most {self.max_surprisal:g} bits",
                    f"{surprisal:.2f}",
                    surprisal <= self.max_surprisal,
                    Measure(surprisal, self.max_surprisal),
                )
            )
        return clauses


@dataclass(frozen=True, kw_only=True)
class StillLoops(GoalBase):
    """A remedy that does not help: the setting is raised, all else is as at the start, the loop stays."""

    kind: Literal["still_loops"] = "still_loops"
    setting: Literal["repetition_penalty", "presence_penalty", "frequency_penalty"]
    at_least: float

    title = "It loops all the same"
    short = "Loop stays"
    done = "Shown"
    wanted = "Raise the setting, and the loop stays."

    def judge(self, run: Run) -> Verdict:
        return Verdict(
            clauses=(
                raised(run, self.setting, self.at_least),
                loops(run.generation),
                ended_by_limit(run.generation),
                same_setup(run),
                nothing_taken(run),
                nothing_else_changed(run, self.setting),
            ),
            summary=loop_words(run.generation),
        )


@dataclass(frozen=True, kw_only=True)
class BreaksAnswer(GoalBase):
    """What a remedy costs: the setting is raised, and what the text needed to repeat is gone."""

    kind: Literal["breaks_answer"] = "breaks_answer"
    setting: Literal["repetition_penalty", "presence_penalty", "frequency_penalty"]
    at_least: float
    expected: str  # the start's run writes it

    title = "Break the answer"
    short = "Break it"
    done = "Broken"
    wanted = "Raise the setting until the text no longer says what it said."

    def judge(self, run: Run) -> Verdict:
        is_written = self.expected in run.other(run.start.params).text
        return Verdict(
            clauses=(
                raised(run, self.setting, self.at_least),
                Clause(f"The start writes “{self.expected}”", "yes" if is_written else "no", is_written),
                Clause(
                    f"This run does not write “{self.expected}”",
                    "it does" if self.expected in run.generation.text else "gone",
                    self.expected not in run.generation.text,
                ),
                same_setup(run),
                nothing_taken(run),
                nothing_else_changed(run, self.setting),
            ),
            summary=f"Under the penalty “{self.expected}” is gone.",
        )


@dataclass(frozen=True, kw_only=True)
class LoopRate(GoalBase):
    """Settings under which some seeds loop and others do not: a loop is a rate, so it can be measured."""

    kind: Literal["loop_rate"] = "loop_rate"
    min_looping: int
    max_looping: int

    title = "Make it loop now and then"
    short = "Now and then"
    done = "Measured"
    wanted = "Some of the five seeds loop, and some do not."

    def judge(self, run: Run) -> Verdict:
        generations = run.generate([replace(run.setup.params, seed=seed) for seed in run.seeds])
        seeds = [
            SeedRun(seed, made.text, made.loop is not None, period(made) or "no loop")
            for seed, made in zip(run.seeds, generations, strict=True)
        ]
        looping = sum(seed.holds is True for seed in seeds)
        return Verdict(
            clauses=(
                Clause(
                    f"Looping seeds, {self.min_looping} to {self.max_looping} of {len(seeds)}",
                    str(looping),
                    self.min_looping <= looping <= self.max_looping,
                ),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            seeds=tuple(seeds),
            summary=f"{looping} of {len(seeds)} runs loop: a rate of {looping / len(seeds):.0%}.",
        )
