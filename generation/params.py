"""Every setting of a run: its name, its range, its neutral value and what a bad value is told."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from generation.errors import SettingError

GREEDY_BELOW = 0.01  # temperatures under this one are greedy: dividing by them could overflow


class Rule(NamedTuple):
    """A range in words, and the test for it."""

    words: str
    holds: Callable[[float], bool]


RULES = {
    "temperature": Rule("between 0 and 100", lambda x: 0 <= x <= 100),
    "top_k": Rule("0 (off) or more", lambda x: x >= 0),
    "top_p": Rule("in (0, 1]", lambda x: 0 < x <= 1),
    "repetition_penalty": Rule("greater than 0", lambda x: x > 0),
    "max_new_tokens": Rule("between 1 and 8192", lambda x: 1 <= x <= 8192),
    "seed": Rule("between 0 and 2**63 - 1", lambda x: 0 <= x < 2**63),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """The settings of one run. Each is checked when the record is made.

    Raises
    ------
    SettingError
        Names the setting, the rule and the value.
    """

    temperature: float = 0.0  # under 0.01: greedy; 1 leaves the model's distribution as it is
    top_k: int = 0  # 0 is off
    top_p: float = 1.0  # 1 is off
    repetition_penalty: float = 1.0  # 1 is off
    max_new_tokens: int = 64
    seed: int = 0
    use_kv_cache: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _checked(field.name, field.type, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW

    def as_dict(self) -> dict[str, float | int | bool]:
        return asdict(self)


def parse_setting(name: str, text: str) -> float | int | bool:
    """Read a setting as it was typed, without judging its range.

    Raises
    ------
    SettingError
        If there is no such setting, or the text is not of its type.
    """
    kinds = {field.name: field.type for field in fields(SamplingParams)}
    if name not in kinds:
        raise SettingError(name, f"{name} is not a setting; there are {', '.join(kinds)}")
    typed = text.strip()
    if kinds[name] is bool:
        if typed.lower() in {"true", "on", "1"}:
            return True
        if typed.lower() in {"false", "off", "0", ""}:
            return False
        raise SettingError(name, f"{name} must be true or false, got {_shown(text)}")
    read = int if kinds[name] is int else float
    try:
        if "_" in typed:  # Python would read 1_000
            raise ValueError
        return read(typed)
    except ValueError:
        raise SettingError(name, f"{name} must be {_noun(kinds[name])}, got {_shown(text)}") from None


def _checked(name: str, kind: object, value: Any) -> float | int | bool:
    if kind is bool:
        if isinstance(value, bool):
            return value
        raise SettingError(name, f"{name} must be true or false, got {_shown(value)}")
    is_switch = isinstance(value, bool | np.bool)
    if kind is int and isinstance(value, Integral) and not is_switch:
        number: float = int(value)
    elif kind is float and isinstance(value, Real) and not is_switch:
        number = float(value)
    else:
        raise SettingError(name, f"{name} must be {_noun(kind)}, got {_shown(value)}")
    if not math.isfinite(number):
        raise SettingError(name, f"{name} must be finite, got {_shown(value)}")
    if not RULES[name].holds(number):
        raise SettingError(name, f"{name} must be {RULES[name].words}, got {_shown(value)}")
    return number


def _noun(kind: object) -> str:
    return "a whole number" if kind is int else "a number"


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:36]}… ({len(text)} characters)"
