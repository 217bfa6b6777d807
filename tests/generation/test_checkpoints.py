"""Model files: those of the models' folder and others by their path, converted once, and what is known of each."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from generation import (
    ModelFacts,
    ModelUnavailable,
    SamplingParams,
    fetch,
    generate,
    list_models,
    load_model,
    missing_models,
    model_facts,
)
from generation.checkpoints import SOURCES, convert, open_gguf
from generation.models.llama import LlamaModel
from tests.generation.gguf_files import sha256, write_tiny_llama

TWO_TOKENS = SamplingParams(max_new_tokens=2)


def silent(words: str) -> None:
    """Hear nothing of a fetch."""


def facts(name: str) -> ModelFacts:
    (found,) = [model for model in model_facts() if model.name == name]
    return found


def test_a_file_in_the_folder_is_listed_chosen_and_generates(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    write_tiny_llama(folder / "a model.gguf", seed=1)

    assert list_models() == ["sky", "a model", "tiny"]
    model = load_model("tiny")

    assert isinstance(model, LlamaModel)
    assert model.name == "tiny"
    assert generate(model, "a", TWO_TOKENS).forward_passes == 2
    assert load_model("tiny") is model
    assert load_model("a model") is not model


def test_fetched_models_stand_before_files(offered: Path):
    write_tiny_llama(offered / "a.gguf")
    fetch("tiny", silent)

    assert list_models() == ["sky", "tiny", "a"]
    assert missing_models() == ["smollm2"]


def test_a_file_is_loaded_by_its_path(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_tiny_llama(tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)

    model = load_model(str(tmp_path / "tiny.gguf"))

    assert load_model("tiny.gguf") is load_model("./tiny.gguf") is model
    assert list_models() == ["sky"]
    assert [path.name for path in folder.iterdir()] == ["converted"]


@pytest.mark.parametrize("name", ["nothing.gguf", "/etc/passwd", "../models", "/etc/", "./tiny.gguf/x", "a\0.gguf"])
def test_a_path_that_is_no_gguf_file_is_refused_by_name(folder: Path, name: str):
    with pytest.raises(ModelUnavailable, match="there is no GGUF file") as refusal:
        load_model(name)

    assert str(refusal.value) == f"there is no GGUF file {name}"


def test_a_name_that_nobody_has_is_told_which_there_are(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")

    with pytest.raises(ModelUnavailable, match="model must be one of sky, tiny, got 'gpt'"):
        load_model("gpt")


def test_a_file_is_converted_once_and_again_when_it_changes(folder: Path):
    def load_in_a_new_process() -> str:
        code = "from generation import load_model; print(load_model('tiny').forward([1, 2, 3]).sum())"
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (folder / "converted").glob("tiny-*/*")}

    write_tiny_llama(folder / "tiny.gguf")
    digest = sha256(folder / "tiny.gguf")
    before = load_model("tiny")
    first = times()
    numbers = load_in_a_new_process()
    assert times() == first
    assert {path.parent.name for path in first} == {f"tiny-{digest[:12]}"}

    write_tiny_llama(folder / "tiny.gguf", seed=1)
    after = load_model("tiny")

    assert isinstance(before, LlamaModel)
    assert isinstance(after, LlamaModel)
    assert load_in_a_new_process() != numbers
    assert not np.array_equal(before.weights.qkv, after.weights.qkv)
    assert {path.parent.name for path in times()} == {f"tiny-{sha256(folder / 'tiny.gguf')[:12]}"}  # the old is gone
    assert generate(before, "a", TWO_TOKENS).forward_passes == 2  # and whoever has it open keeps it


def test_conversions_of_other_files_stay(folder: Path, tmp_path: Path):
    for path in (folder / "tiny.gguf", tmp_path / "tiny.gguf", folder / "tiny-chat.gguf"):
        write_tiny_llama(path, seed=len(str(path)))
        load_model(str(path))

    assert len(list((folder / "converted").glob("tiny-*"))) == 3


def test_a_name_that_is_taken_or_too_long_is_refused(folder: Path):
    for name in ("sky", "smollm2", "x" * 101):
        write_tiny_llama(folder / f"{name}.gguf")

    assert list_models() == ["sky"]
    refused = {model.name: model.reason for model in model_facts() if model.state == "refused"}
    assert refused == {
        "sky": "sky.gguf: the name sky is taken by another model",
        "smollm2": "smollm2.gguf: the name smollm2 is taken by another model",
        "x" * 101: f"{'x' * 101}.gguf: its name must have at most 100 letters",
    }
    with pytest.raises(ModelUnavailable, match="at most 100 letters"):
        load_model("x" * 101)


def test_folders_and_hidden_files_are_no_models(folder: Path):
    (folder / "folder.gguf").mkdir()
    write_tiny_llama(folder / ".hidden.gguf")
    (folder / "gone.gguf").symlink_to(folder / "nowhere")

    assert [model.name for model in model_facts()] == ["sky", "smollm2"]


def test_a_file_that_cannot_be_read_is_refused(folder: Path):
    (folder / "odd.gguf").symlink_to("/proc/self/mem")  # a file whose first byte is an error

    assert list_models() == ["sky"]
    assert (facts("odd").state, facts("odd").reason) == ("refused", "odd.gguf cannot be read: Input/output error")


def test_a_folder_that_cannot_be_written_to_is_told(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    (folder / "converted").touch()

    with pytest.raises(ModelUnavailable, match="tiny.gguf cannot be converted: File exists"):
        load_model("tiny")


def test_what_an_interrupted_conversion_left_is_put_away(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    (folder / "converted" / ".tiny.part").mkdir(parents=True)
    (folder / "converted" / ".tiny.part" / "half.npy").touch()

    load_model("tiny")

    names = [path.name for path in (folder / "converted").iterdir() if path.is_dir()]
    assert names == [f"tiny-{sha256(folder / 'tiny.gguf')[:12]}"]
    assert not list((folder / "converted").rglob("half.npy"))


def test_threads_and_processes_that_open_a_new_file_at_once_convert_it_once(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    start = threading.Barrier(4)
    code = "from generation import load_model; print(load_model('tiny').forward([1]).argmax())"
    others = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]

    def opened() -> int:
        start.wait()
        return int(open_gguf(folder / "tiny.gguf").forward([1]).argmax())

    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(opened) for _ in range(4)]]
    found += [int(other.communicate()[0]) for other in others]

    assert len(set(found)) == 1
    assert len([path for path in (folder / "converted").iterdir() if path.is_dir()]) == 1


def test_a_file_that_changes_while_it_is_converted_is_not_kept(tmp_path: Path):
    write_tiny_llama(tmp_path / "tiny.gguf")

    with pytest.raises(ModelUnavailable, match="tiny.gguf was changed while it was being converted; try again"):
        convert(tmp_path / "tiny.gguf", tmp_path / "tiny", "tiny", after_each=lambda: os.utime(tmp_path / "tiny.gguf"))

    assert not (tmp_path / "tiny" / "model.json").exists()


def test_facts_tell_what_each_model_is_and_what_is_missing(folder: Path):
    write_tiny_llama(folder / "tiny.gguf", settings={"general.license": "cc0-1.0"})
    n_bytes = (folder / "tiny.gguf").stat().st_size

    sky, smollm2, tiny = model_facts()

    assert (sky.name, sky.state, sky.reason, sky.n_bytes, sky.licence) == ("sky", "ready", "", 0, "MIT")
    assert sky.sizes == "Vocabulary 6, context 256; computed, not read from a file"
    assert len(sky.sha256) == 64
    assert smollm2 == ModelFacts(
        "smollm2",
        "not fetched",
        "to fetch it: python manage.py fetch_model smollm2",
        "",
        0,
        "Apache-2.0",
        SOURCES["smollm2"].sha256,
    )
    assert tiny == ModelFacts(
        name="tiny",
        state="ready",
        reason="is converted to float32 before its first run",
        sizes="Llama, 23,776 parameters, 2 layers, context 1,000",
        n_bytes=n_bytes,
        licence="cc0-1.0",
        sha256=sha256(folder / "tiny.gguf"),
    )

    load_model("tiny")

    assert facts("tiny").reason == ""
    assert facts("tiny").n_bytes > n_bytes + 4 * 23_776
    assert facts("tiny").megabytes == f"{facts('tiny').n_bytes / 1e6:.1f}"


def test_facts_of_a_fetched_model_are_those_of_its_arrays(offered: Path):
    fetch("tiny", silent)

    tiny = facts("tiny")

    assert tiny.sizes == "Llama, 23,776 parameters, 2 layers, context 1,000"
    assert (tiny.state, tiny.reason, tiny.licence, tiny.sha256) == ("ready", "", "none", SOURCES["tiny"].sha256)
    assert tiny.n_bytes > 4 * 23_776


@pytest.mark.real_model
def test_the_real_model_is_told_in_millions():
    smollm2 = facts("smollm2")

    assert smollm2.sizes == "Llama, 135 million parameters, 30 layers, context 8,192"
    assert smollm2.state == "ready"
    assert 500e6 < smollm2.n_bytes < 600e6
