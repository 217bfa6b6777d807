"""The record of a run, step by step, and the way back from plain data for whoever stores one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from generation.repetition import Loop

RECORD_FORMAT = 1  # raised whenever a field below changes: what was stored before is then computed again

FinishReason = Literal["eos", "stop", "length", "no_candidate", "cancelled", "deadline"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token and its probability over the whole vocabulary."""

    token_id: int
    token: str
    probability: float


@dataclass(frozen=True, slots=True)
class Stage:
    """The distribution after one setting."""

    name: str  # "raw", "greedy" or the setting's name
    kept: int
    dropped_mass: float  # probability that this stage cut away, before renormalising
    top: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of the model and the token that came of it."""

    step: int  # from 1
    input_length: int  # tokens that the model saw
    computed_positions: int  # positions that this pass really processed
    token_id: int
    token: str  # the vocabulary's entry
    piece: str  # the exact text that it adds
    shown: str  # what can be shown after it: held back where a stop string may be coming
    probability: float  # raw, before any setting
    final_probability: float  # under the settings
    surprisal: float  # bits, raw
    entropy: float  # bits, raw
    rank: int  # 1 is the most likely, raw
    u: float
    forced: bool
    notes: tuple[str, ...]  # settings that had no effect here, with the reason
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished run."""

    model: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]  # the end token included
    text: str  # control tokens excluded, and a stop string with what follows it
    steps: tuple[Step, ...]
    finish_reason: FinishReason
    explanation: str  # in plain words, where the reason alone does not say it
    forward_passes: int
    prefill_seconds: float
    decode_seconds: float
    multiply_adds: int | None  # None where the model does not count them
    loop: Loop | None
    seq_rep_4: float


def step_from_dict(data: Mapping[str, Any]) -> Step:
    """Rebuild a step from what `dataclasses.asdict` made of it."""
    stages = tuple(
        Stage(**{**stage, "top": tuple(Candidate(**row) for row in stage["top"])}) for stage in data["stages"]
    )
    return Step(**{**data, "notes": tuple(data["notes"]), "stages": stages})


def generation_from_dict(data: Mapping[str, Any]) -> Generation:
    """Rebuild a finished run from what `dataclasses.asdict` made of it."""
    return Generation(
        **{
            **data,
            "prompt_ids": tuple(data["prompt_ids"]),
            "token_ids": tuple(data["token_ids"]),
            "steps": tuple(step_from_dict(step) for step in data["steps"]),
            "loop": Loop(**data["loop"]) if data["loop"] else None,
        }
    )
