"""Compare: two settings side by side on the same prompt and the same random numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from generation import Generation, SamplingParams, SettingError, Step, distinct_n, parse_setting, seq_rep_n
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.chart import Chart, Series
from quizsite.labs.panels.kind import Edit, Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import Token, loop_of, prompt_tokens, run_tokens, visible
from quizsite.labs.panels.trace import StepView, step_view

SIDE_B = {  # what B may set for itself: input → setting; all else is as in A
    "b_temperature": "temperature",
    "b_top_k": "top_k",
    "b_top_p": "top_p",
    "b_min_p": "min_p",
    "b_repetition_penalty": "repetition_penalty",
    "b_temperature_last": "temperature_last",
}


class SettingField(forms.CharField):
    """A setting of side B, read and judged by the engine's own rules."""

    def __init__(self, setting: str, label: str) -> None:
        neutral = getattr(SamplingParams(), setting)
        super().__init__(label=label, initial=neutral, widget=forms.TextInput(attrs={"inputmode": "decimal"}))
        self.setting = setting

    def clean(self, value: object) -> object:
        try:
            parsed = parse_setting(self.setting, str(value))
            replace(SamplingParams(), **{self.setting: parsed})  # type: ignore[arg-type]
        except SettingError as error:
            raise ValidationError(str(error)) from None
        return parsed


class CompareInputs(PanelInputs):
    b_temperature = SettingField("temperature", "B: temperature")
    b_top_k = SettingField("top_k", "B: top-k")
    b_top_p = SettingField("top_p", "B: top-p")
    b_min_p = SettingField("min_p", "B: min-p")
    b_repetition_penalty = SettingField("repetition_penalty", "B: repetition penalty")
    b_temperature_last = forms.BooleanField(label="B: temperature last", required=False, initial=False)


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    name: str
    settings: str
    is_looping: bool | None  # None while it goes on
    prompt: tuple[Token, ...]
    tokens: list[Token]
    step: StepView | None  # where the two part
    n_kept: int
    counters: list[tuple[str, str, bool]]  # name, value, whether it tells of a loop
    waits: bool


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other."""

    sides: list[Side]
    parts_at: int  # the first step at which they differ; 0 while they do not
    words: str
    chart: Chart | None


def side_b(setup: Setup, inputs: Inputs) -> Setup:
    """Return what B runs: A's setup with B's own settings."""
    return replace(setup, params=replace(setup.params, **{to: inputs[name] for name, to in SIDE_B.items()}))


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Run B, and say where it leaves A."""
    assert generation
    b_setup = side_b(setup, inputs)
    other = ask.record(b_setup)
    looping = [name for name, run in (("A", generation), ("B", other)) if run.loop]
    return {
        "settings_of_b": b_setup.params.as_dict(),
        "parts_at": _parts_at(generation.steps, other.steps),
        "looping": " and ".join(looping) or "neither",
    }


def view(shown: Shown) -> Comparison:
    """Lay both runs out, with the step at which they part."""
    b_setup = side_b(shown.setup, shown.inputs)
    b_steps: Sequence[Step] = shown.others[0].steps if shown.others else ()
    b_generation = shown.others[0].generation if shown.others else None
    both = [(shown.setup, shown.steps, shown.generation), (b_setup, b_steps, b_generation)]
    parts_at = _parts_at(shown.steps, b_steps)
    is_over = bool(shown.outcome)
    if parts_at:
        words = f"The first difference is at token {parts_at}. Read on from there."
    elif is_over:
        words = "Both runs wrote the same tokens."
    else:
        words = "Both use the same random number at each step, so every difference comes from the settings."
    return Comparison(
        sides=[
            _side(name, ours, theirs, steps, generation, parts_at)
            for name, (ours, steps, generation), theirs in zip("AB", both, (b_setup, shown.setup), strict=True)
        ],
        parts_at=parts_at,
        words=words,
        chart=_chart(shown.steps, b_steps) if is_over and b_steps else None,
    )


def _side(
    name: str, setup: Setup, other: Setup, steps: Sequence[Step], generation: Generation | None, parts_at: int
) -> Side:
    loop = loop_of(steps)
    tokens = run_tokens(steps, loop)
    step = None
    if parts_at and parts_at <= len(steps):
        tokens[parts_at - 1] = replace(tokens[parts_at - 1], is_changed=True)
        step = step_view(steps[parts_at - 1], setup.params, len(steps))
    return Side(
        name=name,
        settings=_settings_words(setup.params, other.params),
        is_looping=loop is not None if generation else None,
        prompt=prompt_tokens(setup),
        tokens=tokens,
        step=step,
        n_kept=steps[parts_at - 1].stages[-1].kept if step else 0,
        counters=_counters(steps) if steps else [],
        waits=generation is None,
    )


def _settings_words(ours: SamplingParams, theirs: SamplingParams) -> str:
    """Name the settings in which two sides differ, and the temperature in any case."""
    mine, other, neutral = ours.as_dict(), theirs.as_dict(), SamplingParams().as_dict()
    said = [name for name in mine if name == "temperature" or mine[name] != other[name]]
    words = []
    for name in said:
        value = mine[name]
        is_off = name != "temperature" and value == neutral[name]
        text = "off" if is_off else "on" if value is True else f"{value:g}"
        words.append(f"{name.replace('_', ' ').replace('top ', 'top-').replace('min p', 'min-p')} {text}")
    return ", ".join(words)


def _counters(steps: Sequence[Step]) -> list[tuple[str, str, bool]]:
    ids = [step.token_id for step in steps]
    loop = loop_of(steps)
    surprisal = sum(step.surprisal for step in steps) / len(steps)
    return [
        ("loop period", str(loop.period) if loop else "none", bool(loop)),
        ("repeated 4-grams", f"{seq_rep_n(ids, 4):.2f}", False),
        ("mean surprisal, bits", f"{surprisal:.2f}", False),
        ("different tokens", f"{round(distinct_n(ids, 1) * len(ids))} of {len(ids)}", False),
    ]


def _chart(ours: Sequence[Step], theirs: Sequence[Step]) -> Chart:
    n_steps = max(len(ours), len(theirs))
    lines = [[step.surprisal for step in steps] + [None] * (n_steps - len(steps)) for steps in (ours, theirs)]
    return Chart(
        name="surprisal",
        title="How surprising each token was",
        x_name="token",
        y_name="surprisal in bits",
        x=range(1, n_steps + 1),
        series=[Series("A", lines[0]), Series("B", lines[1])],
    )


def _parts_at(ours: Sequence[Step], theirs: Sequence[Step]) -> int:
    """Return the first step at which two runs differ, as far as both have come; 0 while there is none."""
    pairs = zip(ours, theirs, strict=False)
    return next((number for number, (a, b) in enumerate(pairs, start=1) if a.token_id != b.token_id), 0)


def swapped(posted: dict[str, Any]) -> dict[str, Any]:
    """Give A the settings of B, and B those of A."""
    ours = {to: posted.get(name, "") for name, to in SIDE_B.items()}
    return posted | ours | {name: posted.get(to, "") for name, to in SIDE_B.items()}


def copied(posted: dict[str, Any]) -> dict[str, Any]:
    """Give B the settings of A, too."""
    return posted | {name: posted.get(to, "") for name, to in SIDE_B.items()}


@dataclass(frozen=True)
class Placed:
    """A token in the picture."""

    x: float
    y: float
    width: float
    token: Token


@dataclass(frozen=True)
class Picture:
    """Both runs as a picture of its own."""

    height: float
    prompt: str
    comparison: Comparison
    sides: list[tuple[float, Side, list[Placed]]]  # where each begins


COLUMN, GAP, MARGIN = 600.0, 32.0, 24.0  # pixels
LETTER, LINE = 9.6, 28.0  # of the monospaced text, 16 px
TEXT_FROM = 128.0


def picture(shown: Shown) -> Picture:
    """Lay both runs out for slides, line by line."""
    comparison = view(shown)
    sides = []
    for number, side in enumerate(comparison.sides):
        left = MARGIN + number * (COLUMN + GAP)
        sides.append((left, side, _placed([*side.prompt, *side.tokens], left)))
    lowest = max((placed.y for _, _, tokens in sides for placed in tokens), default=TEXT_FROM)
    return Picture(lowest + 96, shown.setup.asked, comparison, sides)


def _placed(tokens: Sequence[Token], left: float) -> list[Placed]:
    placed, x, y = [], left, TEXT_FROM
    for token in tokens:
        text = visible(token.text) if not token.text.strip() else "".join(c for c in token.text if c.isprintable())
        width = max(len(text), 1) * LETTER
        if x + width > left + COLUMN and x > left:
            x, y = left, y + LINE
        placed.append(Placed(x, y, width, replace(token, text=text)))
        x += width
    return placed


KIND = Kind(
    name="compare",
    title="Compare: two settings, the same luck",
    about="Two settings beside each other on the same random numbers; the first difference is marked.",
    view=view,
    inputs=CompareInputs,
    after=after,
    picture=picture,
    edits=(Edit("swap", "Swap A and B", swapped), Edit("copy", "Copy A to B", copied)),
    open_start={"prompt": "the sky is", "max_new_tokens": 32, "b_temperature": 1.0},
)
