"""Records as plain data and back, for whoever stores a run."""

from collections.abc import Mapping
from typing import Any

from generation.decoding import Generation, Step
from generation.repetition import Loop
from generation.sampling import Candidate, Stage


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
