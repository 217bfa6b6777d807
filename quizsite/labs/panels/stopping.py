"""Stopping: the three ways in which a run can end, and how near it came to each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from generation import ModelUnavailable, Step, load_model
from quizsite.labs.clauses import ENDS
from quizsite.labs.panels.kind import Kind, Shown
from quizsite.labs.panels.strip import Token, per_cent, prompt_tokens, run_tokens, visible

SHARE = 0.8  # of the room of a step that its bar takes
LOWEST = 1.5  # per cent of the height, so that each bar can be seen
ROOM = 24  # steps for which there is room at least


@dataclass(frozen=True)
class Ending:
    """A way to end: whether it was this one, and what there is to say of it."""

    name: str
    happened: bool
    words: str


@dataclass(frozen=True)
class EndBar:
    """How likely the end token was at a step."""

    step: int
    chosen: str
    probability: float  # raw; where it is not known, that of the tenth token, which is higher
    is_known: bool
    x: str
    y: str
    width: str
    height: str
    is_made: bool

    @property
    def words(self) -> str:
        return f"{self.probability:.3f}" if self.is_known else f"lower than {self.probability:.3f}"


@dataclass(frozen=True)
class Stopping:
    """A run and its end."""

    prompt: tuple[Token, ...]
    tokens: list[Token]
    endings: list[Ending]
    title: str
    bars: list[EndBar]
    n_unknown: int


def view(shown: Shown) -> Stopping:
    """Lay a run out with what ended it, and what would have."""
    bars = _bars(shown)
    return Stopping(
        prompt=prompt_tokens(shown.setup),
        tokens=run_tokens(shown.steps, None, is_open=shown.is_open),
        endings=[_end_token(bars, shown.finish_reason), _limit(shown), _stop_string(shown)],
        title=_title(shown.finish_reason),
        bars=bars,
        n_unknown=sum(not bar.is_known for bar in bars),
    )


def _title(finish_reason: str) -> str:
    if not finish_reason:
        return "Three ways to end"
    if finish_reason in {"cancelled", "no_candidate"}:
        return f"None of the three: {ENDS[finish_reason]}"
    return f"Ended by {ENDS[finish_reason]}"


def _end_token(bars: Sequence[EndBar], finish_reason: str) -> Ending:
    known = [bar for bar in bars if bar.is_known]
    if finish_reason == "eos" and known:
        words = f"Chosen as token {bars[-1].step}, like any other token; its raw probability was {bars[-1].words}."
    elif known:
        nearest = max(known, key=lambda bar: bar.probability)
        words = f"Not chosen. Its raw probability was highest at step {nearest.step}: {nearest.words}."
    elif bars:
        words = "Not chosen, and at no step among the ten likeliest tokens."
    else:
        words = "An entry of the vocabulary: when it is chosen, the loop ends."
    return Ending("End token", finish_reason == "eos", words)


def _limit(shown: Shown) -> Ending:
    n_steps, limit = len(shown.steps), shown.setup.params.max_new_tokens
    if shown.finish_reason == "length":
        words = f"All {limit} tokens are used. The model never sees this number, so nothing led up to it."
    else:
        words = f"{n_steps} of {limit} tokens used."
    return Ending("Limit", shown.finish_reason == "length", words)


def _stop_string(shown: Shown) -> Ending:
    stop, steps = shown.setup.params.stop, shown.steps
    if not stop:
        return Ending("Stop string", False, "None is given.")
    n_shown = list(accumulate(len(step.shown) for step in steps))
    n_made = list(accumulate(len(step.piece) for step in steps))
    waiting = sum(made > out for made, out in zip(n_made, n_shown, strict=True))
    if shown.finish_reason == "stop":
        hidden = "".join(step.piece for step in steps)[n_shown[-1] :]
        matched = next(text for text in stop if hidden.startswith(text))
        rest = hidden.removeprefix(matched)
        words = f"“{visible(matched)}” was completed by token {len(steps)}. The text ends before it"
        words += f", and “{visible(rest)}”, which came with it, is dropped too." if rest else "."
    else:
        words = f"Not met: {', '.join(f'“{visible(text)}”' for text in stop)}."
    if waiting:
        words += f" Text was held back at {waiting} step{'' if waiting == 1 else 's'}, where one might have begun."
    return Ending("Stop string", shown.finish_reason == "stop", words)


def _bars(shown: Shown) -> list[EndBar]:
    """Return how likely the end token was at each step; none where the model has no end token."""
    try:
        end_id: int | None = getattr(load_model(shown.setup.model), "eos_token_id", None)
    except ModelUnavailable:
        end_id = None
    if end_id is None:
        return []
    bars, room = [], max(ROOM, len(shown.steps))
    for index, step in enumerate(shown.steps):
        probability, is_known = _end_probability(step, end_id)
        height = max(LOWEST, 100 * probability) if is_known else 0.0
        bars.append(
            EndBar(
                step=step.step,
                chosen=visible(step.token),
                probability=probability,
                is_known=is_known,
                x=per_cent(100 * index / room),
                y=per_cent(100 - height),
                width=per_cent(100 * SHARE / room),
                height=per_cent(height),
                is_made=step.token_id == end_id,
            )
        )
    return bars


def _end_probability(step: Step, end_id: int) -> tuple[float, bool]:
    """Return the end token's raw probability, or the lowest one recorded where it is not among those."""
    if step.token_id == end_id:
        return step.probability, True
    rows = step.stages[0].top
    found = next((row.probability for row in rows if row.token_id == end_id), None)
    return (rows[-1].probability, False) if found is None else (found, True)


KIND = Kind(
    name="stopping",
    title="Stopping: end token, limit, stop string",
    about="How a run ended, how likely the end token was at each step, and what a stop string held back.",
    view=view,
    settings=("temperature", "top_k", "top_p", "max_new_tokens", "stop", "seed"),
    open_start={"prompt": "the sky is", "temperature": 1.0, "max_new_tokens": 24},
)
