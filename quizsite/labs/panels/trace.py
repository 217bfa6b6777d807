"""A run as the trace shows it: the strip of tokens, the bars of a step, the draw, the loop."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from generation import (
    Candidate,
    Generation,
    Loop,
    ModelUnavailable,
    SamplingParams,
    Step,
    encode_prompt,
    find_loop,
    load_model,
    pieces,
    token_name,
)
from quizsite.labs import engine
from quizsite.labs.clauses import ENDS, Setup
from quizsite.labs.models import Recording, Run

ROWS = 7  # tokens in the table of a step
NUMBER_EACH_FROM = 3  # shorter copies of a loop are numbered 1, 5, 10 …, so that the words stay readable
SPACE = "·"
FILL = 92  # per cent of the column that the longest bar takes


@dataclass(frozen=True)
class Token:
    """A token in the strip."""

    number: int  # its step; 0 in the prompt
    text: str
    is_control: bool = False
    is_forced: bool = False
    tint: str = ""  # "a" or "b" inside a loop
    copy: int = 0  # at the first token of a loop's copy: its number
    is_chosen: bool = False

    @property
    def spoken(self) -> str:
        """What a screen reader says where there is nothing to be seen."""
        return "" if self.text.strip() else "line end" if "\n" in self.text else "space"


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
    """A run as the trace panel shows it, as far as it has come."""

    run: Run
    prompt: list[Token]
    tokens: list[Token]
    is_streaming: bool
    heading: str
    loop: Loop | None
    loop_words: str
    positions: int
    tokens_per_second: str
    multiply_adds: str
    step: StepView | None


@dataclass(frozen=True)
class Replay:
    """A recorded run to be played back in the page: all tokens, and the bars of every step."""

    prompt: list[Token]
    tokens: list[Token]
    steps: list[tuple[int, list[Row]]]
    n_steps: int
    loop: Loop | None
    loop_known: int  # the step at which the loop is long enough to be called one
    text: str


def trace(run: Run, steps: Sequence[Step], chosen: int = 0, streaming: bool = False) -> Trace:
    """Lay a run out, as far as `steps` go; the step `chosen` is opened, or the last if there is no such step."""
    chosen = chosen if chosen <= len(steps) else 0
    recording = run.recording
    loop = None if run.finish_reason == "eos" else find_loop([step.token_id for step in steps])
    opened = steps[(chosen or len(steps)) - 1] if steps else None
    generation = recording.generation if not run.is_open else None
    return Trace(
        run=run,
        prompt=list(prompt_tokens(recording)),
        tokens=_strip(steps, loop, chosen, run.is_open),
        is_streaming=streaming,
        heading=_heading(run, len(steps), generation),
        loop=loop,
        loop_words=_loop_words(loop),
        positions=sum(step.computed_positions for step in steps),
        tokens_per_second=_speed(generation),
        multiply_adds=f"{generation.multiply_adds:,}" if generation and generation.multiply_adds else "",
        step=step_view(opened, recording.params, len(steps)) if opened else None,
    )


def looping_replay() -> Replay:
    """Return the toy's greedy run, long enough to be seen looping; computed by the first who asks."""
    params = SamplingParams(max_new_tokens=18)
    recording = engine.record(Setup("sky", "the sky is", params))
    generation = recording.generation
    assert generation
    ids = generation.token_ids
    known = next((n for n in range(1, len(ids) + 1) if find_loop(ids[:n])), len(ids))
    longest = max(step.stages[0].top[0].probability for step in generation.steps)  # one scale for all steps
    return Replay(
        prompt=list(prompt_tokens(recording)),
        tokens=[strip_token(step, generation.loop) for step in generation.steps],
        steps=[
            (step.step, [_raw_row(row, row.token_id == step.token_id, longest) for row in step.stages[0].top])
            for step in generation.steps
        ],
        n_steps=len(ids),
        loop=generation.loop,
        loop_known=known,
        text=generation.text,
    )


def prompt_tokens(recording: Recording) -> tuple[Token, ...]:
    """Return the prompt as the model reads it, or as it was typed where the model is not here any more."""
    try:
        return _prompt_tokens(recording.model, json.dumps([recording.prompt, recording.chat]))
    except ModelUnavailable:
        return (Token(0, recording.setup.asked),)


@lru_cache(maxsize=256)
def _prompt_tokens(model_name: str, asked: str) -> tuple[Token, ...]:
    prompt, chat = json.loads(asked)
    model = load_model(model_name)
    setup = Setup(model_name, prompt, SamplingParams(), chat)
    ids = encode_prompt(model, setup.encoded_prompt(model), 1)
    return tuple(
        Token(0, piece or token_name(model, token_id), is_control=not piece)
        for token_id, piece in zip(ids, pieces(model, ids), strict=True)
    )


def _strip(steps: Sequence[Step], loop: Loop | None, chosen: int, is_open: bool) -> list[Token]:
    """Return the tokens of a run; what may be a stop string, or was one, keeps its place and not its text."""
    tokens, n_shown, n_made = [], sum(len(step.shown) for step in steps), 0
    for step in steps:
        n_made += len(step.piece)
        token = strip_token(step, loop, chosen)
        if step.piece and n_made > n_shown:
            token = replace(token, text="…" if is_open else "stop", is_control=True)
        tokens.append(token)
    return tokens


def strip_token(step: Step, loop: Loop | None, chosen: int = 0) -> Token:
    """Return a step's token, tinted if it stands in the loop."""
    text, is_control = (step.piece, False) if step.piece else (step.token, True)
    index = step.step - 1
    token = Token(step.step, text, is_control, step.forced, is_chosen=step.step == chosen)
    if loop is None or index < loop.start:
        return token
    copy, place = divmod(index - loop.start, loop.period)
    numbered = place == 0 and (loop.period >= NUMBER_EACH_FROM or copy == 0 or (copy + 1) % 5 == 0)
    return replace(token, tint="ab"[copy % 2], copy=copy + 1 if numbered else 0)


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
        rows.append(
            Row(token_id, _visible(names[token_id]), bars, token_id == step.token_id, bars[-1].role == "hollow")
        )

    shares, end = [], 0.0
    for row in last.top:
        fits = row.probability * 58 > len(row.token) + 1.5
        shares.append(
            Share(
                per_cent(end * 100),
                per_cent(row.probability * 100),
                per_cent((end + row.probability / 2) * 100),
                _visible(row.token) if fits else "",
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
        chosen=_visible(step.token),
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


def _raw_row(candidate: Candidate, is_chosen: bool, longest: float) -> Row:
    role = "chosen" if is_chosen else "kept"
    width = per_cent(candidate.probability / longest * FILL)
    return Row(
        candidate.token_id,
        _visible(candidate.token),
        [Bar(width, f"{candidate.probability:.3f}", role)],
        is_chosen,
        is_out=False,
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


def _heading(run: Run, n_steps: int, generation: Generation | None) -> str:
    tokens = f"{n_steps} token{'' if n_steps == 1 else 's'}"
    if run.is_open:
        return f"Run by hand, {tokens} so far" if run.is_by_hand else "Run, going on"
    if run.failure:
        return f"Run, ended early after {tokens}: {run.failure}"
    if run.finish_reason == "cancelled":
        return f"Run, stopped after {tokens}"
    if run.finish_reason == "length":
        return f"Run, ended by the limit of {tokens}"
    if generation and generation.explanation:
        return f"Run, ended after {tokens}: {generation.explanation}"
    return f"Run, ended by {ENDS[run.finish_reason]} after {tokens}"


def _loop_words(loop: Loop | None) -> str:
    if not loop:
        return ""
    return f"copies of a loop, period {loop.period}, {loop.repeats} full copies from token {loop.start + 1}"


def _speed(generation: Generation | None) -> str:
    if not generation:
        return ""
    seconds = generation.prefill_seconds + generation.decode_seconds
    rate = len(generation.token_ids) / seconds if seconds else 0
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def _visible(token: str) -> str:
    return token.replace(" ", SPACE).replace("\n", "↵") or SPACE


def _signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def per_cent(value: float) -> str:
    return f"{value:.1f}%"
