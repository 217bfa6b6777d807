"""Every setting of a run: its name, its range, its neutral value and what a bad value is told."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from generation.errors import SettingError

GREEDY_BELOW = 0.01  # temperatures under this one are greedy: dividing by them could overflow
MAX_STOP_STRINGS = 4

Setting = float | int | bool | str | tuple[str, ...]


class Rule(NamedTuple):
    """A range in words, and the test for it."""

    words: str
    holds: Callable[[Any], bool]


PENALTY_SCOPES = ("prompt+output", "output")

RULES = {
    "temperature": Rule("between 0 and 100", lambda x: 0 <= x <= 100),
    "top_k": Rule("0 (off) or more", lambda x: x >= 0),
    "top_p": Rule("in (0, 1]", lambda x: 0 < x <= 1),
    "min_p": Rule("in [0, 1]", lambda x: 0 <= x <= 1),
    "repetition_penalty": Rule("greater than 0", lambda x: x > 0),
    "penalty_scope": Rule(f"one of {', '.join(PENALTY_SCOPES)}", lambda x: x in PENALTY_SCOPES),
    "presence_penalty": Rule("between -2 and 2", lambda x: -2 <= x <= 2),
    "frequency_penalty": Rule("between -2 and 2", lambda x: -2 <= x <= 2),
    "no_repeat_ngram_size": Rule("between 0 (off) and 10", lambda x: 0 <= x <= 10),
    "max_new_tokens": Rule("between 1 and 8192", lambda x: 1 <= x <= 8192),
    "stop": Rule(
        f"at most {MAX_STOP_STRINGS} strings, none of them empty", lambda x: len(x) <= MAX_STOP_STRINGS and all(x)
    ),
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
    min_p: float = 0.0  # 0 is off
    repetition_penalty: float = 1.0  # 1 is off
    penalty_scope: str = "prompt+output"  # what the repetition penalty counts
    presence_penalty: float = 0.0  # of output tokens alone
    frequency_penalty: float = 0.0  # of output tokens alone
    no_repeat_ngram_size: int = 0  # 0 is off
    temperature_last: bool = False  # truncation first, as llama.cpp does it
    max_new_tokens: int = 64
    stop: tuple[str, ...] = ()
    seed: int = 0
    use_kv_cache: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _checked(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self) | {"stop": list(self.stop)}


def without_effect(params: SamplingParams) -> dict[str, str]:
    """Return the settings that are on and can change nothing at these values, each with the reason.

    What depends on the text, such as a top-p that cuts nothing at some step, is noted on that step.
    """
    neutral, idle = SamplingParams(), {}
    drawn = ("top_k", "top_p", "min_p", "temperature_last", "seed")
    if params.is_greedy:
        idle = dict.fromkeys(drawn, "greedy decoding takes the most likely token")
    elif params.top_k == 1:
        idle = dict.fromkeys(("temperature", "top_p", "min_p", "temperature_last", "seed"), "top-k leaves one token")
    elif params.temperature == 1 or (params.top_p == 1 and params.min_p == 0):
        idle["temperature_last"] = "there is no temperature" if params.temperature == 1 else "top-p and min-p are off"
    if params.repetition_penalty == 1:
        idle["penalty_scope"] = "the repetition penalty is off"
    return {name: reason for name, reason in idle.items() if getattr(params, name) != getattr(neutral, name)}


KINDS: dict[str, object] = {field.name: field.type for field in fields(SamplingParams)}


def parse_setting(name: str, text: str) -> Setting:
    r"""Read a setting as it was typed, without judging its range.

    Stop strings are typed one a line; `\n` and `\t` inside them mean a line end and a tab.

    Raises
    ------
    SettingError
        If there is no such setting, or the text is not of its type.
    """
    if name not in KINDS:
        raise SettingError(name, f"{name} is not a setting; there are {', '.join(KINDS)}")
    kind, typed = KINDS[name], text.strip()
    if kind is str:
        return typed
    if name == "stop":
        lines = (line.strip("\r") for line in text.split("\n"))
        return tuple(unescaped(line) for line in lines if line)
    if kind is bool:
        if typed.lower() in {"true", "on", "1"}:
            return True
        if typed.lower() in {"false", "off", "0", ""}:
            return False
        raise _wrong_type(name, text)
    try:
        if "_" in typed:  # Python would read 1_000
            raise ValueError
        return int(typed) if kind is int else float(typed)
    except ValueError:
        raise _wrong_type(name, text) from None


def unescaped(text: str) -> str:
    r"""Return a typed stop string with `\n` and `\t` as a line end and a tab."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _checked(name: str, value: Any) -> Setting:
    kind = KINDS[name]
    is_switch = isinstance(value, bool | np.bool)
    checked: Setting
    if kind is bool and is_switch:
        return bool(value)
    if kind is int and isinstance(value, Integral) and not is_switch:
        checked = int(value)
    elif kind is float and isinstance(value, Real) and not is_switch:
        try:
            checked = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            checked = math.inf
        if not math.isfinite(checked):
            raise SettingError(name, f"{name} must be finite, got {shown(value)}")
    elif kind is str and isinstance(value, str):
        checked = value
    elif name == "stop" and isinstance(value, list | tuple) and all(isinstance(text, str) for text in value):
        checked = tuple(value)
    else:
        raise _wrong_type(name, value)
    if not RULES[name].holds(checked):
        raise SettingError(name, f"{name} must be {RULES[name].words}, got {shown(value)}")
    return checked


def _wrong_type(name: str, value: object) -> SettingError:
    nouns = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    noun = nouns.get(KINDS[name], "a list of strings")  # type: ignore[call-overload]
    return SettingError(name, f"{name} must be {noun}, got {shown(value)}")


def shown(value: object) -> str:
    """Write a value for a message, shortened where it is long."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a whole number of {int(value.bit_length() * math.log10(2)) + 1} digits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:36]}… ({len(text)} characters)"
