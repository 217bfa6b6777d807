"""The goals of a lab: plain Python over recorded runs, never over what a browser posts.

Each goal lists its clauses: what was wanted, what the run has, whether that holds. A run meets a goal
when all clauses hold. A new goal is one class here, in `Goal`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from generation import Generation, SamplingParams

Settings = dict[str, float | int | bool]
Generate = Callable[[SamplingParams], Generation]  # a run of the lab's model and prompt under other settings

SEEDS_NEEDED = 4  # of a lab's five


@dataclass(frozen=True)
class Setup:
    """What a run is started with."""

    model: str
    prompt: str
    params: SamplingParams


@dataclass(frozen=True)
class Measure:
    """A measured number against the most that is allowed, for the bar."""

    value: float
    limit: float

    @property
    def over(self) -> float:
        return max(0.0, self.value - self.limit)


@dataclass(frozen=True)
class Clause:
    """One condition of a goal. `met` is None while it waits for the others."""

    name: str
    value: str
    met: bool | None
    measure: Measure | None = None


@dataclass(frozen=True)
class SeedRun:
    """One of the five small runs behind a verdict."""

    seed: int
    text: str
    holds: bool
    reason: str


@dataclass(frozen=True)
class Verdict:
    """A goal judged over a run."""

    clauses: tuple[Clause, ...]
    seeds: tuple[SeedRun, ...] = ()
    summary: str = ""

    @property
    def is_met(self) -> bool:
        return all(clause.met for clause in self.clauses)

    @property
    def failing(self) -> list[Clause]:
        return [clause for clause in self.clauses if clause.met is False]

    @property
    def holding(self) -> list[Clause]:
        return [clause for clause in self.clauses if clause.met]

    @property
    def waiting(self) -> list[Clause]:
        return [clause for clause in self.clauses if clause.met is None]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run to be judged, and the lab's start against which "same" and "changed" are measured."""

    start: Setup
    setup: Setup
    generation: Generation
    allowed: tuple[str, ...]
    seeds: tuple[int, ...]
    generate: Generate

    @property
    def changed(self) -> list[str]:
        """Settings that differ from the lab's start."""
        before, now = self.start.params.as_dict(), self.setup.params.as_dict()
        return [name for name in now if now[name] != before[name]]

    @property
    def is_forced(self) -> bool:
        return any(step.forced for step in self.generation.steps)


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
                _loops(generation),
                _at_least("New tokens", len(generation.token_ids), self.min_new_tokens),
                _ended_by_limit(generation),
                _same_setup(run),
                _only_allowed(run),
            ),
            summary=_loop_words(generation),
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
            _same_setup(run),
            _only_allowed(run),
            _at_most("Settings changed", len(run.changed), self.max_changed),
        ]
        return _over_seeds(run, clauses, self._text_clauses, needed=SEEDS_NEEDED)

    def _text_clauses(self, generation: Generation) -> list[Clause]:
        n_tokens = len(generation.token_ids)
        if generation.finish_reason == "eos":
            length = _at_least("New tokens before the end", n_tokens, self.min_new_tokens_before_end)
        else:
            length = _at_least("New tokens", n_tokens, self.min_new_tokens)
        rep = generation.seq_rep_4
        clauses = [
            _has_no_loop(generation),
            Clause(
                f"Repeated 4-grams, at most {self.max_seq_rep_4:.2f}",
                f"{rep:.2f}",
                rep <= self.max_seq_rep_4,
                Measure(rep, self.max_seq_rep_4),
            ),
            length,
            _ended_freely(generation),
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
    setting: str
    at_least: float

    title = "It loops all the same"
    short = "Loop stays"
    done = "Shown"
    wanted = "Raise the setting, and the loop stays."

    def judge(self, run: Run) -> Verdict:
        value = run.setup.params.as_dict()[self.setting]
        others = [name for name in run.changed if name != self.setting]
        return Verdict(
            clauses=(
                Clause(f"{_words(self.setting)}, at least {self.at_least:g}", f"{value:g}", value >= self.at_least),
                _loops(run.generation),
                _ended_by_limit(run.generation),
                _same_setup(run),
                Clause("All other settings as at the start", _listed(others) or "same", not others),
            ),
            summary=_loop_words(run.generation),
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
        greedy = run.generate(SamplingParams(max_new_tokens=params.max_new_tokens, use_kv_cache=params.use_kv_cache))

        def text_clauses(generation: Generation) -> list[Clause]:
            same = generation.token_ids == greedy.token_ids
            first = _first_difference(generation.token_ids, greedy.token_ids)
            return [Clause("The greedy text", "same" if same else f"differs at token {first}", same)]

        clauses = [
            Clause(
                f"Temperature, at least {self.min_temperature:g}",
                f"{params.temperature:g}",
                params.temperature >= self.min_temperature,
            ),
            *text_clauses(run.generation),
            _same_setup(run),
            _only_allowed(run),
        ]
        return _over_seeds(run, clauses, text_clauses, needed=len(run.seeds))


Goal = ReproduceLoop | CureLoop | StillLoops | SameAsGreedy


def _over_seeds(
    run: Run, clauses: list[Clause], text_clauses: Callable[[Generation], list[Clause]], needed: int
) -> Verdict:
    """Judge the five fixed seeds, once the visible run passes every other clause: luck cures nothing."""
    name = f"Seeds, at least {needed} of {len(run.seeds)}"
    if not all(clause.met for clause in clauses):
        return Verdict((*clauses, Clause(name, "waits", None)))
    seeds = []
    for seed in run.seeds:
        generation = run.generate(replace(run.setup.params, seed=seed))
        failing = [f"{c.name}: {c.value}" for c in text_clauses(generation) if not c.met]
        seeds.append(SeedRun(seed, generation.text, not failing, failing[0] if failing else "holds"))
    holding = sum(seed.holds for seed in seeds)
    return Verdict(
        (*clauses, Clause(name, f"{holding} of {len(seeds)}", holding >= needed)),
        tuple(seeds),
        f"It holds for {holding} of {len(seeds)} seeds.",
    )


def _loops(generation: Generation) -> Clause:
    return Clause("A loop at the end", _period(generation) or "none", generation.loop is not None)


def _has_no_loop(generation: Generation) -> Clause:
    return Clause("No loop at the end", _period(generation) or "none", generation.loop is None)


def _period(generation: Generation) -> str:
    return f"period {generation.loop.period}" if generation.loop else ""


def _loop_words(generation: Generation) -> str:
    loop = generation.loop
    return f"Period {loop.period}, {loop.repeats} copies, from token {loop.start + 1}." if loop else ""


def _ended_by_limit(generation: Generation) -> Clause:
    reason = generation.finish_reason
    return Clause("Ended by the limit alone", ENDS[reason], reason == "length")


def _ended_freely(generation: Generation) -> Clause:
    reason = generation.finish_reason
    return Clause("Ended by itself or by the limit", ENDS[reason], reason in {"eos", "length"})


def _same_setup(run: Run) -> Clause:
    differs = []
    if run.setup.model != run.start.model:
        differs.append("model")
    if run.setup.prompt.split() != run.start.prompt.split():
        differs.append("prompt")
    if run.setup.params.max_new_tokens != run.start.params.max_new_tokens:
        differs.append("length")
    if run.is_forced:
        differs.append("forced tokens")
    return Clause("Model, prompt and length", f"{_listed(differs)} changed" if differs else "same", not differs)


def _only_allowed(run: Run) -> Clause:
    others = [name for name in run.changed if name not in run.allowed]
    return Clause("Only unlocked settings changed", _listed(others) or "yes", not others)


def _at_least(name: str, value: int, limit: int) -> Clause:
    return Clause(f"{name}, at least {limit}", str(value), value >= limit)


def _at_most(name: str, value: int, limit: int) -> Clause:
    return Clause(f"{name}, at most {limit}", str(value), value <= limit)


def _first_difference(ours: tuple[int, ...], theirs: tuple[int, ...]) -> int:
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False), start=1):
        if a != b:
            return i
    return min(len(ours), len(theirs)) + 1


def _words(setting: str) -> str:
    return setting.replace("_", " ").capitalize()


def _listed(names: list[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


ENDS = {
    "eos": "its end token",
    "stop": "a stop string",
    "length": "the limit",
    "no_candidate": "no token left",
    "cancelled": "stopped",
    "deadline": "its deadline",
}
