"""Settings to start from in the open laboratory, each named by what it shows."""

from typing import Any

from generation import SamplingParams
from quizsite.labs.forms import as_text
from quizsite.labs.panels.kind import Edit, Kind


def _edit(name: str, label: str, **values: Any) -> Edit:
    def change(posted: dict[str, Any]) -> dict[str, Any]:
        settings = SamplingParams().as_dict() | {"max_new_tokens": 48} | values
        texts = {key: as_text(value) for key, value in settings.items() if key not in {"model", "prompt"}}
        asked = {key: value for key, value in values.items() if key in {"model", "prompt"}}
        return posted | texts | asked

    return Edit(name, label, change)


def _neutral(posted: dict[str, Any]) -> dict[str, Any]:
    """Set everything that shapes the distribution to where it changes nothing, temperature 1 included."""
    kept = {"max_new_tokens", "seed", "stop", "use_kv_cache"}
    values = SamplingParams(temperature=1).as_dict()
    return posted | {name: as_text(value) for name, value in values.items() if name not in kept}


PRESETS = (
    _edit("preset-loop", "A loop without end", model="sky", prompt="the sky is", temperature=0.0),
    _edit("preset-real-loop", "A real model in a loop", model="smollm2", prompt="I am", temperature=0.0),
    _edit("preset-readable", "Varied and readable", temperature=0.9, top_p=0.9),
    _edit("preset-gibberish", "Too hot: gibberish", temperature=2.0),
    _edit("preset-greedy-in-fact", "Warm, and greedy all the same", temperature=1.5, top_k=1),
    _edit("preset-penalty", "A penalty that changes the words", temperature=0.0, repetition_penalty=1.3),
    _edit("preset-cut", "Cut off in the middle", temperature=0.0, max_new_tokens=8),
    Edit("neutral", "Neutral", _neutral),
)


def presets_of(kind: Kind) -> tuple[Edit, ...]:
    """Return the presets that a panel of the open laboratory can use: those that ask for a prompt and settings."""
    return PRESETS if kind.asks_prompt and kind.settings is None else ()
