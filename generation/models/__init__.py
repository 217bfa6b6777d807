"""The models by name; one file per architecture."""

from collections.abc import Callable
from functools import cache

from generation.decoding import Model
from generation.errors import ModelUnavailable
from generation.models.sky import SkyModel

MODELS: dict[str, Callable[[], Model]] = {"sky": SkyModel}


def list_models() -> list[str]:
    """Names of the models that can be loaded."""
    return list(MODELS)


@cache
def load_model(name: str) -> Model:
    """Return the model of that name; it is read once and holds no state of any run.

    Raises
    ------
    ModelUnavailable
        If there is no model of that name.
    """
    if name not in MODELS:
        raise ModelUnavailable(f"model must be one of {', '.join(MODELS)}, got {name!r}")
    return MODELS[name]()
