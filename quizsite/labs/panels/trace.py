"""Trace: every step of a run as bars, stage after stage, and the draw that chose the token."""

from collections.abc import Sequence
from dataclasses import dataclass

from generation import Loop, SamplingParams, Step
from quizsite.labs.panels.kind import Kind, Shown
from quizsite.labs.panels.strip import Token, loop_of, per_cent, prompt_tokens, run_tokens, visible

ROWS = 7  # tokens in the table of a step
LIST_ROWS = 25  # steps of the list that are sent at once
FILL = 92  # per cent of the column that the longest bar takes


@dataclass(frozen=True)
class Bar:
    """A probability as a bar: the width in per cent, and the words beside it."""

    width: str
    words: str
    role: str = ""  # "", "kept", "chosen" or "hollow"


@dataclass(frozen=True)
class Column:
    """A stage in the table of a step."""

    title: str
    note: str


@dataclass(frozen=True)
class Row:
    """A token in the table of a step."""

    token_id: int
    token: str
    bars: list[Bar]
    is_chosen: bool
    is_out: bool


@dataclass(frozen=True)
class Share:
    """A survivor's part of the line from 0 to 1 on which u falls."""

    x: str
    width: str
    middle: str
    name: str  # empty where it does not fit
    is_chosen: bool


@dataclass(frozen=True)
class StepView:
    """A step as bars, and the draw below them."""

    number: int
    of: int
    input_length: int
    columns: list[Column]
    rows: list[Row]
    shares: list[Share]
    chosen: str
    u: float
    u_at: str
    u_anchor: str
    draw_words: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """A run as the trace shows it."""

    prompt: tuple[Token, ...]
    tokens: list[Token]
    loop: Loop | None
    loop_words: str
    step: StepView | None


def view(shown: Shown) -> Trace:
    """Lay a run out; the step that was opened is shown, or the last."""
    steps = shown.steps
    chosen = shown.chosen if shown.chosen <= len(steps) else 0
    loop = None if shown.finish_reason == "eos" else loop_of(steps)
    opened = steps[(chosen or len(steps)) - 1] if steps else None
    return Trace(
        prompt=prompt_tokens(shown.setup),
        tokens=run_tokens(steps, loop, chosen, shown.is_open),
        loop=loop,
        loop_words=loop_words(loop),
        step=step_view(opened, shown.setup.params, len(steps)) if opened else None,
    )


@dataclass(frozen=True)
class StepRow:
    """A step as a line of the list of all steps."""

    number: int
    token: str
    is_forced: bool
    probability: str
    final: str
    rank: int
    entropy: str
    kept: int
    u: str


@dataclass(frozen=True)
class StepRows:
    """Some steps of the list, and where the next ones begin; 0 after the last."""

    rows: list[StepRow]
    next: int


def step_rows(steps: Sequence[Step], first: int) -> StepRows:
    """Return the lines of the list from a step on, as many as come into view at once."""
    first = max(first, 1)
    part = steps[first - 1 : first - 1 + LIST_ROWS]
    rows = [
        StepRow(
            number=step.step,
            token=visible(step.token),
            is_forced=step.forced,
            probability=f"{step.probability:.3f}",
            final=f"{step.final_probability:.3f}",
            rank=step.rank,
            entropy=f"{step.entropy:.2f}",
            kept=step.stages[-1].kept,
            u=f"{step.u:.3f}",
        )
        for step in part
    ]
    return StepRows(rows, first + LIST_ROWS if first + LIST_ROWS <= len(steps) else 0)


def loop_words(loop: Loop | None) -> str:
    """Say what the tints mean."""
    if not loop:
        return ""
    return f"copies of a loop, period {loop.period}, {loop.repeats} full copies from token {loop.start + 1}"


def step_view(step: Step, params: SamplingParams, n_steps: int) -> StepView:
    """Lay a step out as bars on one scale, dropped tokens kept in their rows."""
    last = step.stages[-1]
    by_stage = [{row.token_id: row.probability for row in stage.top} for stage in step.stages]
    names = {row.token_id: row.token for stage in step.stages for row in stage.top} | {step.token_id: step.token}
    ids = [row.token_id for row in (*last.top, *step.stages[0].top)]
    ids = list(dict.fromkeys([step.token_id, *ids] if step.token_id not in by_stage[-1] else ids))[:ROWS]
    ids.sort(key=lambda i: -by_stage[0].get(i, 0))
    longest = max(max(found.values()) for found in by_stage)

    rows = []
    for token_id in ids:
        bars: list[Bar] = []
        before = 0.0
        for number, (stage, found) in enumerate(zip(step.stages, by_stage, strict=True)):
            probability = found.get(token_id)
            if probability is not None:
                role = ""
                if stage is last:
                    role = "chosen" if token_id == step.token_id else "kept"
                bars.append(Bar(per_cent(probability / longest * FILL), f"{probability:.3f}", role))
                before = probability
            elif stage.kept > len(stage.top):
                bars.append(Bar("0%", "lower"))
            else:
                seen_before = number and bars[-1].role != "hollow"
                width = per_cent(before / longest * FILL) if seen_before else bars[-1].width
                bars.append(Bar(width, "out", "hollow"))
        rows.append(Row(token_id, visible(names[token_id]), bars, token_id == step.token_id, bars[-1].role == "hollow"))

    shares, end = [], 0.0
    for row in last.top:
        fits = row.probability * 58 > len(row.token) + 1.5
        shares.append(
            Share(
                per_cent(end * 100),
                per_cent(row.probability * 100),
                per_cent((end + row.probability / 2) * 100),
                visible(row.token) if fits else "",
                row.token_id == step.token_id,
            )
        )
        end += row.probability
    greedy = params.is_greedy
    return StepView(
        number=step.step,
        of=n_steps,
        input_length=step.input_length,
        columns=[_column(stage.name, stage.kept, stage.dropped_mass, params) for stage in step.stages],
        rows=rows,
        shares=shares,
        chosen=visible(step.token),
        u=step.u,
        u_at=per_cent(step.u * 100),
        u_anchor="" if step.u < 0.08 else "end" if step.u > 0.92 else "mid",
        draw_words=(
            "Greedy takes the longest bar, wherever u falls."
            if greedy
            else f"The draw u falls in its share, {step.final_probability:.1%} of the line."
        ),
        notes=step.notes,
    )


def _column(name: str, kept: int, dropped: float, params: SamplingParams) -> Column:
    cut = f"{kept:,} kept, {dropped:.0%} cut"
    match name:
        case "raw":
            return Column("Raw", f"{kept:,} scored")
        case "greedy":
            return Column("Greedy", "longest bar wins")
        case "temperature":
            shape = "steeper" if params.temperature < 1 else "flatter"
            return Column(f"Temperature {params.temperature:g}", f"same order, {shape}")
        case "repetition_penalty":
            moved = "lowered" if params.repetition_penalty > 1 else "raised"
            return Column(f"Penalty {params.repetition_penalty:g}", f"seen tokens {moved}")
        case "frequency_penalty":
            return Column(f"Frequency {_signed(params.frequency_penalty)}", "for each time seen")
        case "presence_penalty":
            return Column(f"Presence {_signed(params.presence_penalty)}", "once if seen")
        case "no_repeat_ngram_size":
            return Column(f"No {params.no_repeat_ngram_size}-gram twice", cut)
        case "min_p":
            return Column(f"Min-p {params.min_p:g}", cut)
        case "top_k":
            return Column(f"Top-k {str(params.top_k)[:12]}", cut)
        case "top_p":
            return Column(f"Top-p {params.top_p:g}", cut)
        case _:
            raise ValueError(f"stage {name!r} has no words for its column")


def _signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


KIND = Kind(
    name="trace",
    title="Trace: every step of a run",
    about="Each token with the bars that led to it, after each setting, and the draw.",
    view=view,
    appends=True,
    open_start={"temperature": 0.7, "max_new_tokens": 32, "prompt": "the sky is"},
)
