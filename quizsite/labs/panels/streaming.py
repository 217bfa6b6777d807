"""Streaming: one run shown as it is made, and the same run shown all at once at its end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from generation import Generation, Step
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.chart import Chart, Series
from quizsite.labs.panels.kind import Instruments, Kind, Shown
from quizsite.labs.panels.strip import Token, run_tokens

HALF = re.compile("(?:<[0-9A-F]{2}>)+")  # how a token is named that is no whole text


@dataclass(frozen=True)
class Comparison:
    """A run as it is read with streaming and without."""

    text: str  # as far as it can be shown
    n_steps: int
    is_over: bool
    is_whole: bool  # it came to an end of its own, so that there is something to send
    words: str
    rows: list[tuple[str, str, str]]  # what is waited for: streamed, and at the end
    tokens: list[Token]
    holds: list[str]  # where text had to wait, and for what
    chart: Chart | None


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Count the passes until something is seen, and until all is."""
    assert generation
    n_steps, first = len(generation.steps), first_shown(generation.steps)
    return {
        "first_shown": first,
        "first_and_last": f"first {first} instead of {n_steps}, last {n_steps} either way",
        "silent_passes": sum(not step.shown for step in generation.steps),
    }


def view(shown: Shown) -> Comparison:
    """Lay a run out as both readers have it."""
    steps, generation = shown.steps, shown.generation
    is_over = not shown.is_open
    return Comparison(
        text="".join(step.shown for step in steps) if generation is None else generation.text,
        n_steps=len(steps),
        is_over=is_over,
        is_whole=generation is not None,
        words=_words(steps, generation, is_over),
        rows=_rows(steps, generation) if generation and steps else [],
        tokens=run_tokens(steps, None, is_open=shown.is_open),
        holds=_holds(steps),
        chart=_chart(steps) if generation and first_shown(steps) else None,
    )


def first_shown(steps: Sequence[Step]) -> int:
    """Return the pass after which there is something to be seen, from 1; 0 for none."""
    return next((step.step for step in steps if step.shown.strip()), 0)


def _words(steps: Sequence[Step], generation: Generation | None, is_over: bool) -> str:
    first = first_shown(steps)
    if generation:
        n_steps = len(steps)
        if not first:
            return "Nothing that can be seen was made, so there is nothing to stream."
        return f"First character after pass {first} instead of {n_steps}; last one after pass {n_steps} either way."
    if is_over:
        return "The run was broken off: one reader keeps what was streamed, the other one gets nothing."
    if not first:
        return "Neither reader has anything yet."
    return f"One reader has been reading since pass {first}. The other one waits."


def _rows(steps: Sequence[Step], generation: Generation) -> list[tuple[str, str, str]]:
    n_steps, first = len(steps), first_shown(steps)
    if not first:
        return []
    whole = generation.prefill_seconds + generation.decode_seconds
    # the passes after the first one are measured together
    until_first = generation.prefill_seconds + generation.decode_seconds * (first - 1) / max(1, n_steps - 1)
    return [
        ("First character", _after(first, n_steps), _after(n_steps, n_steps)),
        ("Last character", _after(n_steps, n_steps), _after(n_steps, n_steps)),
        ("Computing until the first one", _time(until_first), _time(whole)),
        ("Computing until the last one", _time(whole), _time(whole)),
    ]


def _after(number: int, n_steps: int) -> str:
    return f"after pass {number} of {n_steps}"


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s"


def _holds(steps: Sequence[Step]) -> list[str]:
    """Say after which passes nothing new could be shown, and why; a control token never shows anything."""
    runs: list[tuple[int, int, str]] = []  # first pass, last one, reason
    n_made = n_shown = 0
    for step in steps:
        n_made += len(step.piece)
        n_shown += len(step.shown)
        if step.shown:
            continue
        is_half = not step.piece and HALF.fullmatch(step.token)
        why = "half a character" if is_half else "a stop string may be coming" if n_made > n_shown else ""
        if why and runs and runs[-1][1:] == (step.step - 1, why):
            runs[-1] = (runs[-1][0], step.step, why)
        elif why:
            runs.append((step.step, step.step, why))
    return [f"after {_passes(first, last)}: {why}" for first, last, why in runs]


def _passes(first: int, last: int) -> str:
    return f"pass {first}" if first == last else f"passes {first} to {last}"


def _chart(steps: Sequence[Step]) -> Chart:
    seen = list(accumulate(len(step.shown) for step in steps))
    return Chart(
        name="visible",
        title="What each reader has in front of them",
        x_name="pass",
        y_name="characters that can be read",
        x=range(1, len(steps) + 1),
        series=[Series("streamed", seen), Series("at the end", [0] * (len(seen) - 1) + seen[-1:])],
        digits=0,
    )


KIND = Kind(
    name="streaming",
    title="Streaming: as it is made, or all at once",
    about="One run, read as it is made and read at its end: the same passes, and another wait for the first character.",
    view=view,
    after=after,
    settings=("temperature", "top_k", "top_p", "max_new_tokens", "stop", "seed"),
    open_start={"prompt": "the sky is", "temperature": 1.0, "max_new_tokens": 24},
)
