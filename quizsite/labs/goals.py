"""The goals of a lab: plain Python over recorded runs, never over what a browser posts.

Each goal lists its clauses: what was wanted, what the run has, whether that holds. A run meets a goal
when all clauses hold. A new goal is one class here, in `Goal`.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from generation import Generation, SamplingParams
from quizsite.labs.clauses import (
    ENDS,
    SEEDS_NEEDED,
    SENTENCE_ENDS,
    Clause,
    Measure,
    Run,
    Settings,
    Verdict,
    at_least,
    at_most,
    ended_by_limit,
    ended_freely,
    first_difference,
    has_no_loop,
    kept_first,
    loop_words,
    loops,
    nothing_else_changed,
    nothing_taken,
    only_allowed,
    over_seeds,
    raised,
    same_setup,
)


@dataclass(frozen=True, kw_only=True)
class ReproduceLoop:
    """The run ends in a loop, with the limit as its only end."""

    kind: Literal["reproduce_loop"] = "reproduce_loop"
    solution: Settings = field(default_factory=dict)
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
class CureLoop:
    """The same model and prompt without a loop and still readable, by the allowed settings alone."""

    kind: Literal["cure_loop"] = "cure_loop"
    solution: Settings = field(default_factory=dict)
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
class StillLoops:
    """A remedy that does not help: the setting is raised, all else is as at the start, the loop stays."""

    kind: Literal["still_loops"] = "still_loops"
    solution: Settings = field(default_factory=dict)
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
class SameAsGreedy:
    """Sampling that five seeds cannot tell from greedy decoding."""

    kind: Literal["same_as_greedy"] = "same_as_greedy"
    solution: Settings = field(default_factory=dict)
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
class EarlyWrongToken:
    """One token taken by hand near the start, and the text that follows it is another one."""

    kind: Literal["early_wrong_token"] = "early_wrong_token"
    solution: Settings = field(default_factory=dict)
    solution_forced: dict[int, int] = field(default_factory=dict)  # step → token id
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
class CutOff:
    """The limit ends the run in the middle of a sentence."""

    kind: Literal["cut_off"] = "cut_off"
    solution: Settings = field(default_factory=dict)

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
class EndsByItself:
    """The same beginning as at the lab's start, and now the model's own end."""

    kind: Literal["ends_by_itself"] = "ends_by_itself"
    solution: Settings = field(default_factory=dict)

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
class OrderMatters:
    """Settings under which truncating first and heating first keep different tokens."""

    kind: Literal["order_matters"] = "order_matters"
    solution: Settings = field(default_factory=dict)

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
class ExactlyNSurvive:
    """A cut that leaves a given number of tokens at the first step."""

    kind: Literal["exactly_n_survive"] = "exactly_n_survive"
    solution: Settings = field(default_factory=dict)
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


@dataclass(frozen=True, kw_only=True)
class CacheChangesCost:
    """Two runs that differ in the KV cache alone: the same tokens, and many times the arithmetic."""

    kind: Literal["cache_changes_cost"] = "cache_changes_cost"
    solution: Settings = field(default_factory=dict)
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
class BreaksAnswer:
    """What a remedy costs: the setting is raised, and what the text needed to repeat is gone."""

    kind: Literal["breaks_answer"] = "breaks_answer"
    solution: Settings = field(default_factory=dict)
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


Goal = (
    ReproduceLoop
    | CureLoop
    | StillLoops
    | BreaksAnswer
    | SameAsGreedy
    | EarlyWrongToken
    | CutOff
    | EndsByItself
    | OrderMatters
    | ExactlyNSurvive
    | CacheChangesCost
)
