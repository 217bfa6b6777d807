"""Fixtures of the engine's tests: a models' folder of their own, and a package to be had without a network."""

import os
from pathlib import Path

import pytest

from generation.checkpoints import SOURCES, Source
from tests.generation.gguf_files import sha256, write_tiny_llama, write_wheel


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models' folder, empty."""
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and nothing else; empty."""
    (tmp_path / "shelf").mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    return tmp_path / "shelf"


@pytest.fixture
def offered(tmp_path: Path, folder: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a tiny model, to be had without a network; the value is the models' folder."""
    write_tiny_llama(tmp_path / "tiny.gguf")
    write_wheel(shelf / "tiny_model-1.0-py3-none-any.whl", tmp_path / "tiny.gguf")
    source = Source("tiny-model==1.0", "tiny_model/tiny.gguf", sha256(tmp_path / "tiny.gguf"), "none")
    monkeypatch.setitem(SOURCES, "tiny", source)
    return folder
