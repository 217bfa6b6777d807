"""What a goal is made of: the run that is judged, the clauses that it must fulfil, the verdict over them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from generation import Generation, Model, SamplingParams, encode_chat

Settings = dict[str, float | int | bool | str | list[str]]
Inputs = dict[str, Any]  # what a panel asks beside the settings, by name; plain data
Outcome = dict[str, Any]  # what a panel has measured beside the run; plain data
Chat = list[dict[str, str]]  # messages, each with its role and content
Generate = Callable[[list[SamplingParams]], list[Generation]]  # runs of the lab's model and prompt under other settings

SEEDS_NEEDED = 4  # of a lab's five
SENTENCE_ENDS = (".", "!", "?", "…", "”", '"', ")")


@dataclass(frozen=True)
class Setup:
    """What a run is started with."""

    model: str
    prompt: str
    params: SamplingParams
    chat: Chat = field(default_factory=list)  # in place of the prompt

    @property
    def asked(self) -> str:
        """What the model is asked, in a line."""
        return self.chat[-1]["content"] if self.chat else self.prompt

    def encoded_prompt(self, model: Model) -> str | list[int]:
        """Return what the engine goes on from: text, or the ids of a chat."""
        return encode_chat(model, self.chat) if self.chat else self.prompt


@dataclass(frozen=True)
class Measure:
    """A measured number against the most that is allowed, for the bar."""

    value: float
    limit: float


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
    holds: bool | None  # None while it is being made
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


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run to be judged, and the lab's start against which "same" and "changed" are measured."""

    start: Setup
    setup: Setup
    made: Generation | None  # None where the panel generates nothing
    allowed: tuple[str, ...]
    seeds: tuple[int, ...]
    generate: Generate
    start_inputs: Inputs = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)
    outcome: Outcome = field(default_factory=dict)

    @property
    def generation(self) -> Generation:
        assert self.made, "the goal reads a run, and its panel makes none"
        return self.made

    @property
    def changed(self) -> list[str]:
        """Settings and inputs that differ from the lab's start."""
        before, now = self.start.params.as_dict() | self.start_inputs, self.setup.params.as_dict() | self.inputs
        return [name for name in now if now[name] != before.get(name)]

    def other(self, params: SamplingParams) -> Generation:
        """Return the run of the same model and prompt under other settings."""
        return self.generate([params])[0]


def over_seeds(
    run: Run, clauses: list[Clause], text_clauses: Callable[[Generation], list[Clause]], needed: int
) -> Verdict:
    """Judge the five fixed seeds, once the visible run passes every other clause: luck cures nothing."""
    name = f"Seeds, at least {needed} of {len(run.seeds)}"
    if not all(clause.met for clause in clauses):
        return Verdict((*clauses, Clause(name, "waits", None)))
    seeds = []
    generations = run.generate([replace(run.setup.params, seed=seed) for seed in run.seeds])
    for seed, generation in zip(run.seeds, generations, strict=True):
        failing = [f"{c.name}: {c.value}" for c in text_clauses(generation) if not c.met]
        seeds.append(SeedRun(seed, generation.text, not failing, failing[0] if failing else "holds"))
    holding = sum(bool(seed.holds) for seed in seeds)
    return Verdict(
        (*clauses, Clause(name, f"{holding} of {len(seeds)}", holding >= needed)),
        tuple(seeds),
        f"It holds for {holding} of {len(seeds)} seeds.",
    )


def loops(generation: Generation) -> Clause:
    return Clause("A loop at the end", period(generation) or "none", generation.loop is not None)


def has_no_loop(generation: Generation) -> Clause:
    return Clause("No loop at the end", period(generation) or "none", generation.loop is None)


def period(generation: Generation) -> str:
    return f"period {generation.loop.period}" if generation.loop else ""


def loop_words(generation: Generation) -> str:
    loop = generation.loop
    return f"Period {loop.period}, {loop.repeats} copies, from token {loop.start + 1}." if loop else ""


def ended_by_limit(generation: Generation) -> Clause:
    reason = generation.finish_reason
    return Clause("Ended by the limit alone", ENDS[reason], reason == "length")


def ended_freely(generation: Generation) -> Clause:
    reason = generation.finish_reason
    return Clause("Ended by itself or by the limit", ENDS[reason], reason in {"eos", "length"})


def same_setup(run: Run, *what: str) -> Clause:
    """Compare the run's setup with the lab's start: model, prompt and length, or the parts named."""
    pairs: dict[str, tuple[object, object]] = {
        "model": (run.setup.model, run.start.model),
        "prompt": ((run.setup.prompt.split(), run.setup.chat), (run.start.prompt.split(), run.start.chat)),
        "length": (run.setup.params.max_new_tokens, run.start.params.max_new_tokens),
    }
    wanted = what or tuple(pairs)
    differs = [name for name in wanted if pairs[name][0] != pairs[name][1]]
    *first, last = wanted
    name = f"{', '.join(first)} and {last}".capitalize()
    return Clause(name, f"{listed(differs)} changed" if differs else "same", not differs)


def nothing_taken(run: Run) -> Clause:
    taken = sum(step.forced for step in run.made.steps) if run.made else 0
    return Clause("No token taken by hand", str(taken) if taken else "none", not taken)


def kept_first(generation: Generation) -> int:
    return generation.steps[0].stages[-1].kept


def only_allowed(run: Run) -> Clause:
    others = [name for name in run.changed if name not in run.allowed and name != "prediction"]
    return Clause("Only unlocked settings changed", listed(others) or "yes", not others)


def raised(run: Run, setting: str, limit: float) -> Clause:
    value = run.setup.params.as_dict()[setting]
    return Clause(f"{words(setting)}, at least {limit:g}", f"{value:g}", value >= limit)


def nothing_else_changed(run: Run, setting: str) -> Clause:
    others = [name for name in run.changed if name != setting]
    return Clause("All other settings as at the start", listed(others) or "same", not others)


def at_least(name: str, value: int, limit: int) -> Clause:
    return Clause(f"{name}, at least {limit}", str(value), value >= limit)


def at_most(name: str, value: int, limit: int) -> Clause:
    return Clause(f"{name}, at most {limit}", str(value), value <= limit)


def first_difference(ours: tuple[int, ...], theirs: tuple[int, ...]) -> int:
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False), start=1):
        if a != b:
            return i
    return min(len(ours), len(theirs)) + 1


def words(setting: str) -> str:
    return setting.replace("_", " ").capitalize()


def listed(names: list[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


ENDS = {
    "eos": "its end token",
    "stop": "a stop string",
    "length": "the limit",
    "no_candidate": "no token left",
    "cancelled": "stopped",
    "deadline": "its deadline",
    "nothing": "nothing: no text is made",
}
