"""Latency: prefill and decode measured here and now, with the KV cache and without it, beside what is counted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from django import forms

from generation import Generation, Model, SettingError, load_model
from generation.arithmetic import forward_positions, time_to_last_token
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.chart import Chart, Series
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown, Timing

WORDS = ("the", "sky", "is", "blue", "clear")  # a token each, on the toy and on the real model
FEWEST, MOST = 8, 512  # tokens of a prompt
MOST_NEW = 32
NAIVE_PASSES = 8  # without the cache, each of them over the whole sequence
NAIVE_POSITIONS = 1536  # in all of these, so that long prompts do not take half a minute


class LatencyInputs(PanelInputs):
    prompt_tokens = forms.IntegerField(
        label="Prompt, tokens", min_value=FEWEST, max_value=MOST, initial=64, help_text="The same few words in turn."
    )


@dataclass(frozen=True)
class Row:
    """A line of the table: the same with the cache and without it."""

    name: str
    cached: str
    naive: str
    times: str = ""
    note: str = ""


@dataclass(frozen=True)
class Latency:
    """What was counted and measured, or how far that is."""

    prompt_words: str
    words: str
    waits: bool
    problem: str
    counters: list[tuple[str, str]]
    rows: list[Row]
    cut_words: str
    charts: list[Chart]


def prompt_of(n_tokens: int) -> str:
    """Return a text of so many tokens."""
    return " ".join(WORDS[i % len(WORDS)] for i in range(n_tokens))


def asked(setup: Setup, inputs: Inputs) -> Setup:
    """Ask for a run after a prompt of that length; it may be a recording, so it is not the one that is measured."""
    if setup.params.max_new_tokens > MOST_NEW:
        raise SettingError(
            "max_new_tokens",
            f"max_new_tokens must be at most {MOST_NEW} where passes are measured, got {setup.params.max_new_tokens}",
        )
    return replace(setup, prompt=prompt_of(inputs["prompt_tokens"]))


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Measure each pass with the cache, then the first ones without it, and the first pass after other prompts."""
    assert generation
    model = load_model(setup.model)
    n_prompt, n_tokens = len(generation.prompt_ids), len(generation.token_ids)
    n_naive = min(n_tokens, NAIVE_PASSES, max(2, NAIVE_POSITIONS // n_prompt))
    cached = ask.time(_with(setup, use_kv_cache=True))
    naive = ask.time(_with(setup, use_kv_cache=False, max_new_tokens=n_naive))
    prefills = {n_prompt: cached.seconds[0]}
    for length in _other_lengths(n_prompt, model.context_length):
        other = replace(_with(setup, max_new_tokens=1), prompt=prompt_of(length))
        prefills[length] = ask.time(other).seconds[0]
    first, later = _multiply_adds(model, [(n_prompt, n_prompt)]), _multiply_adds(model, [(1, n_prompt + 1)])
    every = [(n, n) for n in range(n_prompt, n_prompt + n_tokens)]
    return {
        "n_prompt": n_prompt,
        "n_tokens": n_tokens,
        "later_passes": n_tokens - 1,
        "positions_cached": _positions(cached),
        "positions_naive": forward_positions(n_prompt, n_tokens, use_kv_cache=False),
        "multiply_adds_cached": cached.generation.multiply_adds or 0,
        "multiply_adds_naive": _multiply_adds(model, every),
        "multiply_adds_first": first,
        "multiply_adds_later": later,
        "naive_passes": n_naive,
        "naive_positions_run": _positions(naive),
        "same_tokens": cached.generation.token_ids[:n_naive] == naive.generation.token_ids,
        "cached_ms": _milliseconds(cached.seconds),
        "naive_ms": _milliseconds(naive.seconds),
        "prefills": [
            [n, *_milliseconds([seconds]), _multiply_adds(model, [(n, n)])] for n, seconds in sorted(prefills.items())
        ],
    }


def _with(setup: Setup, **changes: bool | int) -> Setup:
    return replace(setup, params=replace(setup.params, **changes))  # type: ignore[arg-type]


def _other_lengths(n_prompt: int, context_length: int) -> list[int]:
    """Return half and double the length of a prompt; a quarter where double is too long."""
    longest = min(MOST, context_length - 1)
    return [n_prompt // 2, n_prompt * 2 if n_prompt * 2 <= longest else n_prompt // 4]


def _multiply_adds(model: Model, passes: Sequence[tuple[int, int]]) -> int:
    """Count the multiply-adds of passes, each given by its new positions and by those that they look at."""
    count = getattr(model, "multiply_adds", None)
    return sum(count(n_new, n_total) for n_new, n_total in passes) if count else 0


def _positions(timing: Timing) -> int:
    return sum(step.computed_positions for step in timing.generation.steps)


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [round(1000 * one, 3) for one in seconds]


def view(shown: Shown) -> Latency:
    """Lay out what was measured, or say what is still to come."""
    words, outcome = "", shown.outcome
    if shown.is_open:
        words = "The passes are measured once this run is there."
    elif not shown.generation:
        words = "The run did not come to its end, so nothing was measured. Press Run to have it whole."
    elif not outcome:
        words = "Measuring here and now: with the cache, then without it, then other prompts. That takes some seconds."
    measured = outcome if "cached_ms" in outcome else {}
    return Latency(
        prompt_words=f"{shown.inputs['prompt_tokens']} tokens, “{' '.join(WORDS)}” in turn",
        words=words,
        waits=shown.is_open or bool(shown.generation and not outcome),
        problem=outcome.get("problem", ""),
        counters=_counters(measured) if measured else [],
        rows=_rows(measured) if measured else [],
        cut_words=_cut_words(measured) if measured else "",
        charts=[_passes_chart(measured), _prefill_chart(measured)] if measured else [],
    )


def _counters(found: Outcome) -> list[tuple[str, str]]:
    first, later = found["cached_ms"][0], found["cached_ms"][1:]
    counters = [("to the first token, ms", _number(first))]
    if later:
        typical = median(later)
        formula = time_to_last_token(first, typical, found["n_tokens"])
        counters += [
            ("for each further token, ms (median)", _number(typical)),
            ("to the last token, ms", _number(sum(found["cached_ms"]))),
            (f"by the formula, first + {len(later)} × further, ms", _number(formula)),
        ]
    return counters


def _rows(found: Outcome) -> list[Row]:
    n_prompt, n_tokens, n_naive = found["n_prompt"], found["n_tokens"], found["naive_passes"]
    first, later = _both(found, 0, 1), _both(found, 1, None)
    by_formula = [forward_positions(n_prompt, n_tokens), forward_positions(n_prompt, n_naive, use_kv_cache=False)]
    all_tokens = f"for {'the token' if n_tokens == 1 else f'all {n_tokens} tokens'}"
    rows = [
        Row("Passes that were run, N", f"{n_tokens}", f"{n_naive}"),
        Row(
            "Positions computed in them, counted", f"{found['positions_cached']:,}", f"{found['naive_positions_run']:,}"
        ),
        Row(
            "The same by the formula",
            f"{by_formula[0]:,}",
            f"{by_formula[1]:,}",
            note="P + N − 1 with the cache, N·P + N(N − 1)/2 without; P tokens of prompt",
        ),
        Row(f"Positions {all_tokens}", *_counted(found["positions_cached"], found["positions_naive"])),
        Row(f"Multiply-adds {all_tokens}", *_counted(found["multiply_adds_cached"], found["multiply_adds_naive"])),
        Row("First pass, ms", *_measured(*first), note="prefill: the whole prompt at once, in either case"),
    ]
    if all(later):
        rows.append(
            Row("A later pass, ms (median)", *_measured(*later), note="decode: one token, or all of them again")
        )
    return rows


def _cut_words(found: Outcome) -> str:
    n_tokens, n_naive = found["n_tokens"], found["naive_passes"]
    same = "the same tokens" if found["same_tokens"] else "other tokens, through rounding"
    if n_naive == n_tokens:
        return f"Both runs wrote {same}."
    return (
        f"Without the cache only the first {n_naive} of {n_tokens} passes were run, and they wrote {same}. "
        f"What they all would cost is counted from the sizes of the matrices, as in every run."
    )


def _both(found: Outcome, start: int, end: int | None) -> tuple[float, float]:
    """Return the median of some passes with the cache and without it; 0 where there are none."""
    parts = found["cached_ms"][start:end], found["naive_ms"][start:end]
    cached, naive = (median(part) if part else 0.0 for part in parts)
    return cached, naive


def _counted(cached: int, naive: int) -> tuple[str, str, str]:
    return f"{cached:,}", f"{naive:,}", f"{naive / cached:.1f}" if cached else ""


def _measured(cached: float, naive: float) -> tuple[str, str, str]:
    return _number(cached), _number(naive), f"{naive / cached:.1f}" if cached else ""


def _number(milliseconds: float) -> str:
    return (
        f"{milliseconds:,.0f}"
        if milliseconds >= 100
        else f"{milliseconds:.1f}"
        if milliseconds >= 10
        else f"{milliseconds:.2f}"
    )


def _passes_chart(found: Outcome) -> Chart:
    n_missing = len(found["cached_ms"]) - len(found["naive_ms"])
    return Chart(
        name="passes",
        title="How long each pass took",
        x_name="pass",
        y_name="milliseconds",
        x=range(1, found["n_tokens"] + 1),
        series=[
            Series("with the cache", found["cached_ms"]),
            Series("without it", [*found["naive_ms"], *[None] * n_missing]),
        ],
    )


def _prefill_chart(found: Outcome) -> Chart:
    """Draw the first pass over the length of the prompt, beside the line on which each multiply-add takes as long."""
    lengths, times, counts = zip(*found["prefills"], strict=True)
    at = lengths.index(found["n_prompt"])
    scaled = [times[at] * count / counts[at] for count in counts] if counts[at] else [None] * len(counts)
    return Chart(
        name="prefills",
        title="How long the first pass takes after longer prompts",
        x_name="tokens of prompt",
        y_name="milliseconds",
        x=lengths,
        series=[Series("measured", times), Series("in proportion to the multiply-adds", scaled)],
    )


KIND = Kind(
    name="latency",
    title="Latency: prefill, decode and the cache, measured",
    about="Each pass timed on this server, with the KV cache and without it, beside the counted work.",
    view=view,
    inputs=LatencyInputs,
    asked=asked,
    after=after,
    settings=("max_new_tokens",),
    asks_prompt=False,
    open_start={"max_new_tokens": 16, "temperature": 0.0, "prompt_tokens": 64},
)
