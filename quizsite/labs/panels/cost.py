"""Cost: what a conversation or an agent's run is billed, turn by turn, at prices and lengths of the learner's own."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any

from django import forms

from generation import Generation
from generation.arithmetic import TurnTokens, exact_price, turn_tokens
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.chart import Chart, Series
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import per_cent

MOST_TURNS = 200
MOST_TOKENS = 100_000  # of one message
HIGHEST_PRICE = 100  # for a million tokens
NAMES = {"new_input": "New input", "cached_input": "Cached input", "reasoning": "Reasoning", "answer": "Answer"}
PRICES = {  # what each part is billed at
    "new_input": "input_price",
    "cached_input": "cached_price",
    "reasoning": "output_price",
    "answer": "output_price",
}


class PriceField(forms.DecimalField):
    """A price for a million tokens: a number with few decimals, which JSON keeps as it was typed."""

    def __init__(self, label: str, initial: float) -> None:
        super().__init__(
            label=label,
            initial=initial,
            min_value=0,
            max_value=HIGHEST_PRICE,
            decimal_places=4,
            max_digits=10,
            widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
            error_messages={"invalid": "A price is a number such as 2.5."},
        )

    def clean(self, value: Any) -> Any:
        price = super().clean(value)
        return int(price) if price == int(price) else float(price)


class CountField(forms.IntegerField):
    """A whole number between two ends."""

    def __init__(self, label: str, initial: int, lowest: int, highest: int, help_text: str = "") -> None:
        super().__init__(
            label=label,
            initial=initial,
            min_value=lowest,
            max_value=highest,
            help_text=help_text,
            widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        )


class CostInputs(PanelInputs):
    input_price = PriceField("Input, price a million", 2)
    cached_price = PriceField("Cached input, price a million", 0.2)
    output_price = PriceField("Output, price a million", 10)
    n_turns = CountField("Turns", 10, 1, MOST_TURNS)
    n_system = CountField("System, tokens", 800, 0, MOST_TOKENS)
    n_user = CountField("Message, tokens", 150, 0, MOST_TOKENS)
    n_answer = CountField("Answer, tokens", 250, 0, MOST_TOKENS)
    n_reasoning = CountField("Reasoning, tokens", 500, 0, MOST_TOKENS)
    cached_percent = CountField("Repeated input cached, %", 90, 0, 100)


@dataclass(frozen=True)
class Part:
    """A part of the bill."""

    name: str
    tokens: str
    price: str
    cost: str
    share: str  # in words
    width: str  # of its bar
    is_largest: bool


@dataclass(frozen=True)
class Turn:
    """A turn's tokens by part, and what it costs."""

    number: int
    tokens: list[str]
    cost: str


@dataclass(frozen=True)
class Bill:
    """A chat's bill as the template shows it."""

    words: str
    counters: list[tuple[str, str]]
    parts: list[Part]
    total: str
    n_tokens: str
    lines: list[tuple[str, str]]  # the formula in words, each with the numbers put in
    turns: list[Turn]
    chart: Chart | None


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Reckon the bill; the numbers that goals may compare."""
    turns = list(_turns(inputs))
    costs = _costs(turns, inputs)
    first, last = turns[0], turns[-1]
    amounts = {f"{name}_cost": cost for name, cost in costs.items()} | {
        "input_cost": costs["new_input"] + costs["cached_input"],
        "output_cost": costs["reasoning"] + costs["answer"],
        "total_cost": sum(costs.values()),
        "cost_without_reasoning": sum(costs.values()) - costs["reasoning"],
        "cost_without_cache": sum(_costs(list(_turns(inputs | {"cached_percent": 0})), inputs).values()),
        "first_turn_cost": sum(_costs([first], inputs).values()),
        "last_turn_cost": sum(_costs([last], inputs).values()),
    }
    counts = {f"{name}_tokens": sum(getattr(turn, name) for turn in turns) for name in NAMES} | {
        "input_tokens": sum(turn.n_input for turn in turns),
        "output_tokens": sum(turn.n_output for turn in turns),
        "first_turn_input_tokens": first.n_input,
        "last_turn_input_tokens": last.n_input,
    }
    return counts | {name: float(amount) for name, amount in amounts.items()}


def view(shown: Shown) -> Bill | None:
    """Lay the bill out; None while there is none."""
    inputs = shown.inputs
    if "total_cost" not in shown.outcome:
        return None
    turns = list(_turns(inputs))
    costs = _costs(turns, inputs)
    total = sum(costs.values(), Decimal(0))
    largest = max(costs, key=lambda name: costs[name])
    prices = [sum(_costs([turn], inputs).values(), Decimal(0)) for turn in turns]
    places, places_of_turns = _places(total), max(_places(total), _places(prices[0]))
    return Bill(
        words=_words(costs, total, largest),
        counters=[
            ("units of money in all", _money(total, places)),
            ("input tokens", f"{sum(turn.n_input for turn in turns):,}"),
            ("output tokens", f"{sum(turn.n_output for turn in turns):,}"),
        ],
        parts=[
            Part(
                name=NAMES[name],
                tokens=f"{sum(getattr(turn, name) for turn in turns):,}",
                price=_number(inputs[PRICES[name]]),
                cost=_money(cost, places),
                share=_percent(cost, total),
                width=per_cent(float(100 * cost / total)) if total else "0%",
                is_largest=bool(total) and name == largest,
            )
            for name, cost in costs.items()
        ],
        total=_money(total, places),
        n_tokens=f"{sum(turn.n_input + turn.n_output for turn in turns):,}",
        lines=list(_lines(inputs, turns, total)),
        turns=[
            Turn(number, [f"{n:,}" for n in turn], _money(price, places_of_turns))
            for number, (turn, price) in enumerate(zip(turns, prices, strict=True), start=1)
        ],
        chart=_chart(inputs, turns, places_of_turns) if len(turns) > 1 and total else None,
    )


def question(inputs: Inputs) -> dict[str, Any]:
    """Return a question with numbers that asks for the input of such a chat, as a draft for its author."""
    letters = {"T": "n_turns", "S": "n_system", "U": "n_user", "A": "n_answer"}
    given = {letter: inputs[name] for letter, name in letters.items() if inputs[name]}
    terms = {"S": "T * S", "U": "T * (T + 1) / 2 * U", "A": "T * (T - 1) / 2 * A"}
    said = {
        "S": "a system prompt of {S} tokens",
        "U": "messages of {U} tokens each",
        "A": "answers of {A} tokens each",
    }
    parts = [said[letter] for letter in said if letter in given]
    return {
        "text": f"A chat of {{T}} turns has {' and '.join(parts)}. Every turn sends all before it again. "
        "How many input tokens are sent in all?",
        "formula": " + ".join(terms[letter] for letter in terms if letter in given),
        "unit": "tokens",
        "parameters": [
            {"name": letter, "lowest": value, "highest": 2 * value, "step": max(1, value // 10)}
            for letter, value in given.items()
        ],
    }


def _turns(inputs: Inputs) -> Iterator[TurnTokens]:
    lengths = [inputs[name] for name in ("n_system", "n_user", "n_answer", "n_reasoning", "cached_percent")]
    return (turn_tokens(turn, *lengths) for turn in range(1, inputs["n_turns"] + 1))


def _costs(turns: list[TurnTokens], inputs: Inputs) -> dict[str, Decimal]:
    """Return what each part of some turns costs."""
    return {
        name: exact_price(sum(getattr(turn, name) for turn in turns), Decimal(str(inputs[price])))
        for name, price in PRICES.items()
    }


def _words(costs: dict[str, Decimal], total: Decimal, largest: str) -> str:
    if not total:
        return "Nothing is billed: there are no tokens that have a price."
    return f"The largest part is {NAMES[largest].lower()}: {_percent(costs[largest], total)} of the bill."


def _lines(inputs: Inputs, turns: list[TurnTokens], total: Decimal) -> Iterator[tuple[str, str]]:
    """Say how the bill is reckoned."""
    n, s, u, a, r = (inputs[name] for name in ("n_turns", "n_system", "n_user", "n_answer", "n_reasoning"))
    n_input = sum(turn.n_input for turn in turns)
    n_cached = sum(turn.cached_input for turn in turns)
    n_output = sum(turn.n_output for turn in turns)
    pairs_with, pairs = n * (n + 1) // 2, n * (n - 1) // 2
    yield (
        "Input sent: the system prompt in every turn, each message in its turn and all later ones, "
        "each answer in all later ones",
        f"{n} · {s:,} + {pairs_with:,} · {u:,} + {pairs:,} · {a:,} = {n_input:,} tokens",
    )
    yield (
        f"From the cache: {inputs['cached_percent']}% of what the turn before had sent already",
        f"{n_cached:,} tokens; {n_input - n_cached:,} are read anew",
    )
    yield "Output: reasoning and answer in every turn", f"{n} · ({r:,} + {a:,}) = {n_output:,} tokens"
    new, cached, output = (_number(inputs[name]) for name in ("input_price", "cached_price", "output_price"))
    yield (
        "Cost: each at its price for a million",
        f"({n_input - n_cached:,} · {new} + {n_cached:,} · {cached} + {n_output:,} · {output}) ÷ 1,000,000 "
        f"= {_number(total)}",
    )


def _chart(inputs: Inputs, turns: list[TurnTokens], places: int) -> Chart:
    def so_far(some: list[TurnTokens]) -> list[float]:
        return [float(cost) for cost in accumulate(sum(_costs([turn], inputs).values(), Decimal(0)) for turn in some)]

    series = [Series("as set", so_far(turns))]
    if inputs["cached_percent"]:
        series.append(Series("without a cache", so_far(list(_turns(inputs | {"cached_percent": 0})))))
    return Chart(
        name="bill",
        title="What has been billed so far",
        x_name="turn",
        y_name="units of money",
        x=range(1, len(turns) + 1),
        series=series,
        digits=places,
    )


def _places(total: Decimal) -> int:
    """Return how many decimals show four digits of a bill, two at least."""
    return max(2, 3 - total.adjusted()) if total else 2


def _money(amount: Decimal, places: int) -> str:
    if not amount:
        return "0"
    least = Decimal(1).scaleb(-places)
    return f"under {least}" if amount < least / 2 else f"{amount:,.{places}f}"


def _number(value: Decimal | float) -> str:
    """Write a number exactly, without zeros at its end."""
    text = f"{Decimal(str(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(part: Decimal, total: Decimal) -> str:
    if not part:
        return "0%"
    share = 100 * part / total
    return "under 1%" if share < 1 else f"{share:.0f}%"


KIND = Kind(
    name="cost",
    title="Cost: what a chat is billed",
    about="What a conversation or an agent’s run costs, by prices and lengths of your own.",
    view=view,
    inputs=CostInputs,
    after=after,
    settings=(),
    generates=False,
    asks_prompt=False,
    asks_model=False,
)
