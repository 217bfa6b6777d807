"""Formulas of numeric questions: read and computed by simpleeval, never by Python's own eval."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from simpleeval import SimpleEval

LARGEST_EXACT_POWER = 64


class FormulaError(ValueError):
    """A formula that cannot be computed; the message says why."""


def _power(base: Any, exponent: Any) -> Any:
    """Raise to a power: exactly where that stays small, else in floating point, which overflows instead of growing."""
    if exponent == int(exponent) and abs(exponent) <= LARGEST_EXACT_POWER:
        return Fraction(base) ** int(exponent)
    return math.pow(base, exponent)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "exp": math.exp,
}


def compute(formula: str, values: Mapping[str, int]) -> Fraction:
    """Compute a formula over whole numbers; exact as long as it uses only + − * / and whole powers.

    Raises
    ------
    FormulaError
    """
    reader = SimpleEval(functions=FUNCTIONS, names={name: Fraction(value) for name, value in values.items()})
    reader.operators = {key: reader.operators[key] for key in reader.operators if key.__name__ in OPERATORS}
    reader.operators |= {key: _power for key in reader.operators if key.__name__ == "Pow"}
    reader.operators |= {
        key: (lambda a, b: Fraction(a) / Fraction(b)) for key in reader.operators if key.__name__ == "Div"
    }
    try:
        found = reader.eval(formula)
        return Fraction(found)
    except FormulaError:
        raise
    except Exception as error:  # whatever a formula does, it is the formula's fault
        raise FormulaError(f"the formula {formula!r} cannot be computed for {dict(values)}: {error}") from None


OPERATORS = {"Add", "Sub", "Mult", "Div", "Pow", "USub", "UAdd"}
