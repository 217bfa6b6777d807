"""Intervene: take another token at a step, and read how the text goes on from it beside the original."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from generation import Generation, Step
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.kind import Instruments, Kind, Shown
from quizsite.labs.panels.strip import Token, loop_of, prompt_tokens, run_token, run_tokens
from quizsite.labs.panels.trace import StepView, step_view


@dataclass(frozen=True)
class Pair:
    """A step of both runs; None where one of them has ended before it."""

    number: int
    original: Token | None
    new: Token | None

    @property
    def differs(self) -> bool:
        return (self.original and self.original.text) != (self.new and self.new.text)


@dataclass(frozen=True)
class Taken:
    """A token taken by hand, against the one that the model took."""

    step: int
    token: str
    rank: int
    surprisal: str
    instead_of: str


@dataclass(frozen=True)
class Intervention:
    """The run with the tokens taken by hand, the original, and a step of the run."""

    prompt: tuple[Token, ...]
    tokens: list[Token]
    step: StepView | None
    taken: list[Taken]
    pairs: list[Pair]
    n_after: int  # tokens after the first one taken
    n_different: int  # of these, those that the original does not have there


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Run the original, in which no token was taken by hand."""
    assert generation
    original = ask.record(setup)
    return {"n_different": _n_different(generation.steps, original.steps)}


def view(shown: Shown) -> Intervention:
    """Lay both runs out, token by token."""
    steps = shown.steps
    original: Sequence[Step] = shown.others[0].steps if shown.others else ()
    chosen = shown.chosen if shown.chosen <= len(steps) else 0
    opened = steps[(chosen or len(steps)) - 1] if steps else None
    forced = [step for step in steps if step.forced]
    return Intervention(
        prompt=prompt_tokens(shown.setup),
        tokens=run_tokens(steps, loop_of(steps), chosen, shown.is_open),
        step=step_view(opened, shown.setup.params, len(steps)) if opened else None,
        taken=[_taken(step, original) for step in forced],
        pairs=_pairs(steps, original) if forced and original else [],
        n_after=max(len(steps), len(original)) - forced[0].step if forced and original else 0,
        n_different=_n_different(steps, original) if original else 0,
    )


def _taken(step: Step, original: Sequence[Step]) -> Taken:
    instead = original[step.step - 1].token if step.step <= len(original) else ""
    return Taken(step.step, step.token, step.rank, f"{step.surprisal:.1f}", instead)


def _pairs(steps: Sequence[Step], original: Sequence[Step]) -> list[Pair]:
    ours, theirs = ([run_token(step, None) for step in found] for found in (steps, original))
    pairs = []
    for index in range(max(len(ours), len(theirs))):
        before = theirs[index] if index < len(theirs) else None
        now = ours[index] if index < len(ours) else None
        if now and (before is None or before.text != now.text):
            now = replace(now, is_changed=True)
        pairs.append(Pair(index + 1, before, now))
    return pairs


def _n_different(steps: Sequence[Step], original: Sequence[Step]) -> int:
    """Return how many tokens after the first one taken are not those of the original."""
    at = next((step.step for step in steps if step.forced), None)
    if at is None:
        return 0
    ours, theirs = ([step.token_id for step in found[at:]] for found in (steps, original))
    same = sum(a == b for a, b in zip(ours, theirs, strict=False))
    return max(len(ours), len(theirs)) - same


KIND = Kind(
    name="intervene",
    title="Intervene: one token taken by hand",
    about="Choose another token at any step; the text goes on from it beside the original.",
    view=view,
    after=after,
    open_start={"prompt": "the sky is", "max_new_tokens": 24},
)
