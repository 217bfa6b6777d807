"""The models by name: those that need no file, and those whose files are there."""

from collections.abc import Callable
from functools import cache

from generation.checkpoints import SOURCES, is_there, models_folder, open_model
from generation.decoding import Model
from generation.errors import ModelUnavailable
from generation.models.sky import SkyModel

MODELS: dict[str, Callable[[], Model]] = {"sky": SkyModel}


def list_models() -> list[str]:
    """Names of the models that can be loaded now."""
    return [*MODELS, *filter(is_there, SOURCES)]


def missing_models() -> list[str]:
    """Names of the models that could be fetched and have not been."""
    return [name for name in SOURCES if not is_there(name)]


def load_model(name: str) -> Model:
    """Return the model of that name; it is opened once and holds no state of any run.

    Raises
    ------
    ModelUnavailable
        If there is no model of that name, or its files have not been fetched.
    """
    if name in SOURCES and not is_there(name):
        raise ModelUnavailable(f"{name} has not been fetched: run `python manage.py fetch_model {name}`")
    if name not in list_models():
        raise ModelUnavailable(f"model must be one of {', '.join(list_models())}, got {name!r}")
    return _opened(name)


@cache
def _opened(name: str) -> Model:
    return MODELS[name]() if name in MODELS else open_model(models_folder() / name)
