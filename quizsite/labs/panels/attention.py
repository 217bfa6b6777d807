"""Attention: where each position of a text looks, for one head of one layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log2

from django import forms

from generation import MAX_INSPECTED, Generation, load_model, pieces, token_name
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import Token, per_cent, prompt_tokens, run_tokens, visible

N_LAYER, N_HEAD = 30, 9  # of the real model: the ends of the sliders
STEPS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)  # the weights from which a cell is darker
ROW_HEIGHTS = ((12, 28, "few"), (24, 22, "some"), (MAX_INSPECTED, 18, "many"))  # up to how many rows: px, class
FILL = 92  # per cent of the column that the longest bar takes


class AttentionInputs(PanelInputs):
    layer = forms.IntegerField(label="Layer", min_value=1, max_value=N_LAYER, initial=1)
    head = forms.IntegerField(label="Head", min_value=1, max_value=N_HEAD, initial=1)
    position = forms.IntegerField(
        label="Position in focus",
        min_value=0,
        max_value=MAX_INSPECTED,
        initial=0,
        required=False,
        help_text="0 is the last one.",
    )

    def clean_position(self) -> int:
        return self.cleaned_data["position"] or 0


@dataclass(frozen=True)
class Cell:
    """Neighbours in a row of the map that are equally dark."""

    x: str
    width: str
    step: int  # of STEPS, from 1


@dataclass(frozen=True)
class Row:
    """A position of the text: its place in the map, and where it looks most."""

    number: int
    token: str
    y: str
    seen: str  # width of what it may look at
    cells: list[Cell]
    looks_at: int
    looked_at: str
    weight: str
    entropy: str
    is_chosen: bool


@dataclass(frozen=True)
class Weight:
    """How much the position in focus looks at another one."""

    number: int
    token: str
    width: str
    words: str
    is_most: bool


@dataclass(frozen=True)
class HeadView:
    """Where a head looks most from the position in focus."""

    number: int
    looks_at: int
    words: str
    step: int
    is_shown: bool


@dataclass(frozen=True)
class Map:
    """A head's attention over the text, and the row in focus."""

    rows: list[Row]
    chosen: Row
    weights: list[Weight]
    heights: str  # a class: how tall a row is
    row_height: str  # per cent of the map
    size: int  # px, if there is room
    ticks: list[tuple[str, int]]
    most_bits: str  # of the entropy, at the chosen row
    cut_words: str
    from_row: Row  # the row whose heads are listed
    heads: list[list[HeadView]]  # layer by layer


@dataclass(frozen=True)
class Attention:
    """The text, and the map once it is there."""

    tokens: Sequence[Token]
    map: Map | None
    layer: int
    head: int
    problem: str
    words: str
    waits: bool
    steps: Sequence[tuple[int, float]] = tuple(enumerate(STEPS, start=1))


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Look into the model: the weights of the chosen head, and where all others look from the position in focus."""
    assert generation
    ids = [*generation.prompt_ids, *generation.token_ids]
    shown = ids[:MAX_INSPECTED]
    attention = ask.inspect(setup.model, shown).attention  # (n_layer, n_head, n_positions, n_positions)
    layer, head, row = inputs["layer"], inputs["head"], inputs["position"] or len(shown)
    n_layer, n_head = attention.shape[:2]
    for name, value, most, has in (
        ("layer", layer, n_layer, f"{setup.model} has {n_layer} layers"),
        ("head", head, n_head, f"each layer of {setup.model} has {n_head}"),
        ("position", row, len(shown), f"the map has {len(shown)} positions"),
    ):
        if value > most:
            return {"problem": f"{name} must be between 1 and {most}, got {value}: {has}"}

    model = load_model(setup.model)
    texts = zip(shown, pieces(model, shown), strict=True)
    focus = attention[:, :, row - 1, :row]  # (n_layer, n_head, row)
    chosen = focus[layer - 1, head - 1]
    return {
        "tokens": [piece or token_name(model, token_id) for token_id, piece in texts],
        "n_tokens": len(ids),
        "triangle": [
            [round(float(weight), 3) for weight in weights[: number + 1]]
            for number, weights in enumerate(attention[layer - 1, head - 1])
        ],
        "row": row,
        "looks_at": int(chosen.argmax()) + 1,
        "weight": round(float(chosen.max()), 3),
        "entropy": round(entropy([float(weight) for weight in chosen]), 3),
        "heads": [[[int(one.argmax()) + 1, round(float(one.max()), 3)] for one in heads] for heads in focus],
    }


def entropy(weights: Sequence[float]) -> float:
    """Return the entropy of a position's weights in bits: 0 for one that looks at a single place."""
    return max(0.0, -sum(weight * log2(weight) for weight in weights if weight > 0))


def view(shown: Shown) -> Attention:
    """Lay the map out with one of its rows in focus, or the text while there is no map."""
    found = _map(shown) if "triangle" in shown.outcome else None
    words = ""
    if shown.is_open:
        words = "The map is drawn once the last token is there."
    elif not shown.generation:
        words = "The run did not come to its end, so nothing was looked into. Press Run to have it whole."
    elif not shown.outcome:
        words = "Looking into all layers and heads."
    return Attention(
        tokens=[] if found else [*prompt_tokens(shown.setup), *run_tokens(shown.steps, None, is_open=shown.is_open)],
        map=found,
        layer=shown.inputs["layer"],
        head=shown.inputs["head"],
        problem=shown.outcome.get("problem", ""),
        words=words,
        waits=shown.is_open or bool(shown.generation and not shown.outcome),
    )


def _map(shown: Shown) -> Map:
    outcome = shown.outcome
    triangle: list[list[float]] = outcome["triangle"]
    names = [visible(token) for token in outcome["tokens"]]
    n = len(names)
    chosen = shown.chosen if 1 <= shown.chosen <= n else outcome["row"]
    rows = [_row(number, names, weights, number == chosen) for number, weights in enumerate(triangle, start=1)]
    weights, longest = triangle[chosen - 1], max(triangle[chosen - 1])
    px, heights = next((px, name) for most, px, name in ROW_HEIGHTS if n <= most)
    every = 1 if n <= 12 else 5
    cut = f"The first {n} of {outcome['n_tokens']} positions are shown." if n < outcome["n_tokens"] else ""
    return Map(
        rows=rows,
        chosen=rows[chosen - 1],
        weights=[
            Weight(
                number,
                name,
                per_cent(weight / longest * FILL),
                f"{weight:.3f}",
                number == rows[chosen - 1].looks_at,
            )
            for number, (name, weight) in enumerate(zip(names, weights, strict=False), start=1)
        ],
        heights=heights,
        row_height=_place(1, n),
        size=n * px,
        ticks=[(_place(k - 0.5, n), k) for k in range(1, n + 1) if k == 1 or k % every == 0],
        most_bits=f"{log2(chosen):.2f}",
        cut_words=cut,
        from_row=rows[outcome["row"] - 1],
        heads=[
            [
                HeadView(
                    number,
                    looks_at,
                    f"{weight:.2f}",
                    _step(weight),
                    (layer, number) == (shown.inputs["layer"], shown.inputs["head"]),
                )
                for number, (looks_at, weight) in enumerate(heads, start=1)
            ]
            for layer, heads in enumerate(outcome["heads"], start=1)
        ],
    )


def _row(number: int, names: Sequence[str], weights: Sequence[float], is_chosen: bool) -> Row:
    n = len(names)
    cells, start = [], 0
    for step, equal in groupby(weights, key=_step):
        width = len(list(equal))
        if step:
            cells.append(Cell(_place(start, n), _place(width, n), step))
        start += width
    most = max(weights)
    looks_at = weights.index(most) + 1
    return Row(
        number=number,
        token=names[number - 1],
        y=_place(number - 1, n),
        seen=_place(number, n),
        cells=cells,
        looks_at=looks_at,
        looked_at=names[looks_at - 1],
        weight=f"{most:.3f}",
        entropy=f"{entropy(weights):.2f}",
        is_chosen=is_chosen,
    )


def _place(position: float, n_positions: int) -> str:
    """Write a place in the map, finer than a pixel of its largest size."""
    return f"{100 * position / n_positions:.2f}%"


def _step(weight: float) -> int:
    """Return how dark a weight is drawn: 0 is not at all."""
    return sum(weight >= step for step in STEPS)


KIND = Kind(
    name="attention",
    title="Attention: where each position looks",
    about="A map for one head of one layer: how much each position looks at those before it.",
    view=view,
    inputs=AttentionInputs,
    after=after,
    settings=("temperature", "seed", "max_new_tokens"),
    step_part="panels/attention.html#step",
    open_start={"prompt": "the sky is clear the sky is", "temperature": 0.0, "max_new_tokens": 2},
)
