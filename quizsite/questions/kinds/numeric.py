"""Numeric: a number, given or computed from numbers that each try draws anew."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.formulas import FormulaError, compute
from quizsite.questions.kinds.kind import Asking, Grade, Problems, Response, Said
from quizsite.questions.numbers import parse_number

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import NumericSpec, QuestionSpec

FIELDS: tuple[str, ...] = ("numeric",)
N_PROVED = 400  # draws that the validator computes, the edges among them


def problems(spec: "QuestionSpec") -> Problems:
    numeric = spec.numeric
    if numeric is None:
        yield ("numeric",), "a question of kind numeric must have the block numeric"
        return
    if not spec.explanation:
        yield ("explanation",), "a numeric question must explain how its key comes about"
    if not numeric.unit:
        yield ("numeric", "unit"), "a number needs its unit"
    for name in numeric.parameters:
        if f"{{{name}}}" not in spec.text:
            yield ("text",), f"the text must give the parameter {{{name}}}"
    for values in _proved_draws(numeric):
        try:
            key = compute(numeric.formula, values)
            if numeric.tolerance == 0 and round(key, numeric.decimals) != key:
                yield (
                    ("numeric", "tolerance"),
                    f"an exact key must have {numeric.decimals} decimals, got {key} for {values}",
                )
                return
            for number, trap in enumerate(numeric.traps):
                if is_near(compute(trap.formula, values), key, numeric.tolerance):
                    yield ("numeric", "traps", number), f"a trap must differ from the key, but not for {values}"
                    return
        except FormulaError as error:
            yield ("numeric", "formula"), str(error)
            return


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    values, unit = _drawn(version, asking), version.details["numeric"]["unit"]
    return {
        "text": filled(version.text, values),
        "unit": unit,
        "tolerance": tolerance_words(version),
        "typed": typed.get("number", ""),
    }


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    typed = data.get("number", "").strip()
    return {"typed": typed, "number": str(parse_number(typed)), "values": _drawn(version, asking)}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    key = compute(version.details["numeric"]["formula"], response["values"])
    near = is_near(Fraction(response["number"]), key, version.details["numeric"]["tolerance"])
    return Grade(Fraction(int(near)))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    numeric, values = version.details["numeric"], response["values"]
    key, number = compute(numeric["formula"], values), Fraction(response["number"])
    met = [
        trap["why"]
        for trap in numeric["traps"]
        if is_near(number, compute(trap["formula"], values), numeric["tolerance"])
    ]
    written = _written(key, numeric["decimals"])
    return {
        "text": filled(version.text, values),
        "typed": response["typed"],
        "key": written,
        "unit": numeric["unit"],
        "tolerance": tolerance_words(version),
        "is_right": is_near(number, key, numeric["tolerance"]),
        "met": met,
        "working": filled(version.explanation, values | {"key": written}),
    }


def right(version: "QuestionVersion", asking: Asking) -> Response:
    values = _drawn(version, asking)
    key = compute(version.details["numeric"]["formula"], values)
    return {"typed": _written(key, version.details["numeric"]["decimals"]), "number": str(key), "values": values}


def said(version: "QuestionVersion", response: Response) -> Said:
    numeric = version.details["numeric"]
    key = _written(compute(numeric["formula"], response["values"]), numeric["decimals"])
    return Said(f"{response['typed']} {numeric['unit']}", f"{key} {numeric['unit']}")


def is_near(number: Fraction, key: Fraction, tolerance: float) -> bool:
    """Compare exactly: a number on the very edge of the tolerance is within it."""
    return abs(number - key) <= abs(key) * Fraction(str(tolerance))


def filled(text: str, values: Mapping[str, object]) -> str:
    """Put the drawn numbers into a text, with thousands that can be read."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", f"{value:,}" if isinstance(value, int) else str(value))
    return text


def tolerance_words(version: "QuestionVersion") -> str:
    tolerance = version.details["numeric"]["tolerance"]
    return f"within {Fraction(str(tolerance)) * 100} % of it" if tolerance else "only if exact"


def _drawn(version: "QuestionVersion", asking: Asking) -> dict[str, int]:
    return {
        name: part["from"]
        + part["step"] * asking.draw(f"{version.pk}/{name}", (part["to"] - part["from"]) // part["step"] + 1)
        for name, part in version.details["numeric"]["parameters"].items()
    }


def _proved_draws(numeric: "NumericSpec") -> list[dict[str, int]]:
    """Return draws to be computed beforehand: all of them if they are few, else the edges and some between."""
    names = list(numeric.parameters)
    ranges = [range(part.lowest, part.highest + 1, part.step) for part in numeric.parameters.values()]
    per_name = max(2, int(N_PROVED ** (1 / max(len(names), 1))))
    picked = [_spread(values, per_name) for values in ranges]
    return [dict(zip(names, values, strict=True)) for values in product(*picked)]


def _spread(values: range, n: int) -> list[int]:
    if len(values) <= n:
        return list(values)
    return sorted({values[round(i * (len(values) - 1) / (n - 1))] for i in range(n)})


def _written(key: Fraction, decimals: int) -> str:
    return f"{int(key):,}" if key.denominator == 1 and not decimals else f"{float(key):,.{decimals}f}"
