"""The models by name: those that need no file, those that are fetched, and the GGUF files of the models' folder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from generation.checkpoints import (
    SOURCES,
    Stamp,
    Summary,
    converted_folder,
    converted_summary,
    fetch_state,
    fingerprint,
    gguf_summary,
    is_there,
    models_folder,
    open_gguf,
    open_model,
    stamp,
)
from generation.decoding import Model
from generation.errors import ModelUnavailable
from generation.models.sky import SkyModel

MODELS: dict[str, Callable[[], Model]] = {"sky": SkyModel}
LONGEST_NAME = 100  # letters


@dataclass(frozen=True)
class ModelFacts:
    """What there is to know about a model that is here, could be fetched, or was refused."""

    name: str
    state: str  # ready, not fetched, refused
    reason: str  # why it cannot be used, or what its first run has to do
    sizes: str  # in words
    n_bytes: int  # on disk
    licence: str
    sha256: str  # of the file that it comes from, or of its weights if there is none

    @property
    def megabytes(self) -> str:
        return f"{self.n_bytes / 1e6:,.1f}"


def list_models() -> list[str]:
    """Names of the models that can be loaded now."""
    files = [name for name, path in _gguf_files().items() if not _refusal(name, path)]
    return [*MODELS, *filter(is_there, SOURCES), *files]


def gguf_file(name: str) -> str:
    """Return the name of the GGUF file that a model comes from, for other engines; "" for one that has none."""
    if name in SOURCES:
        return Path(SOURCES[name].member).name
    path = _gguf_files().get(name)
    return path.name if path else ""


def missing_models() -> list[str]:
    """Names of the models that could be fetched and have not been."""
    return [name for name in SOURCES if not is_there(name)]


def model_facts() -> list[ModelFacts]:
    """Tell of every model what it is, where it stands, and why it cannot be used if so."""
    return [*map(_own_facts, MODELS), *map(_source_facts, SOURCES), *_file_facts()]


def model_digest(name: str) -> str:
    """Return the SHA-256 of the file that a model comes from; "" where it is computed, or not here."""
    if name in SOURCES:
        return SOURCES[name].sha256
    path = _gguf_files().get(name)
    return fingerprint(path) if path else ""


def load_model(name: str) -> Model:
    """Return the model of that name; it is opened once and holds no state of any run.

    Parameters
    ----------
    name : str
        One of `list_models()`, or the path of a GGUF file: with a slash or `.gguf` at its end.

    Raises
    ------
    ModelUnavailable
        If there is no such model, its files have not been fetched, or its file cannot be used.
    """
    if name in MODELS:
        return _made(MODELS[name])
    if name in SOURCES:
        if not is_there(name):
            raise ModelUnavailable(f"{name} has not been fetched: run `python manage.py fetch_model {name}`")
        return _opened(models_folder() / name)
    path = _gguf_files().get(name)
    if path:
        reason = _refusal(name, path)
        if reason:
            raise ModelUnavailable(reason)
    elif "/" in name or name.endswith(".gguf"):
        path = Path(name)
    else:
        raise ModelUnavailable(f"model must be one of {', '.join(list_models())}, got {name!r}")
    if path.suffix != ".gguf" or not path.is_file():
        raise ModelUnavailable(f"there is no GGUF file {name}")
    return _opened_gguf(path.absolute(), stamp(path))


def _gguf_files() -> dict[str, Path]:
    """The GGUF files of the folder by the names that they give to their models."""
    paths = sorted(models_folder().glob("*.gguf"))
    return {path.stem: path for path in paths if path.is_file() and not path.name.startswith(".")}


def _refusal(name: str, path: Path) -> str:
    """Return why a file of the folder cannot be used; "" if it can."""
    if name in MODELS or name in SOURCES:
        return f"{path.name}: the name {name} is taken by another model"
    if len(name) > LONGEST_NAME:
        return f"{path.name}: its name must have at most {LONGEST_NAME} letters"
    return gguf_summary(path).reason


def _own_facts(name: str) -> ModelFacts:
    model = load_model(name)
    sizes = f"Vocabulary {model.vocab_size}, context {model.context_length:,}; computed, not read from a file"
    fingerprint_of = getattr(model, "fingerprint", str)
    return ModelFacts(name, "ready", "", sizes, 0, "MIT", fingerprint_of())


def _source_facts(name: str) -> ModelFacts:
    source, folder = SOURCES[name], models_folder() / name
    if not is_there(name):
        reason = fetch_state(name) or f"to fetch it: python manage.py fetch_model {name}"
        return ModelFacts(name, "not fetched", reason, "", 0, source.licence, source.sha256)
    sizes = _in_words(converted_summary(folder))
    return ModelFacts(name, "ready", "", sizes, _bytes_in(folder), source.licence, source.sha256)


def _file_facts() -> Iterator[ModelFacts]:
    for name, path in _gguf_files().items():
        reason, summary = _refusal(name, path), gguf_summary(path)
        try:
            sha256, folder, n_bytes = fingerprint(path), converted_folder(path), path.stat().st_size
        except OSError:  # the reason says it
            yield ModelFacts(name, "refused", reason, "", 0, "", "")
            continue
        if reason:
            yield ModelFacts(name, "refused", reason, "", n_bytes, summary.licence, sha256)
        else:
            later = "" if folder.is_dir() else "is converted to float32 before its first run"
            n_bytes += _bytes_in(folder)
            yield ModelFacts(name, "ready", later, _in_words(summary), n_bytes, summary.licence, sha256)


def _in_words(summary: Summary) -> str:
    n = summary.n_parameters
    parameters = f"{n / 1e6:,.0f} million" if n >= 10**6 else f"{n:,}"
    return f"Llama, {parameters} parameters, {summary.n_layer} layers, context {summary.context_length:,}"


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*"))


@cache
def _made(make: Callable[[], Model]) -> Model:
    return make()


@cache
def _opened(folder: Path) -> Model:
    return open_model(folder)


@cache
def _opened_gguf(path: Path, unchanged: Stamp) -> Model:
    return open_gguf(path)
