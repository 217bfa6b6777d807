"""`make bench`: medians and ratios, each pair measured side by side in this run."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generation import KVCache, SamplingParams, generate, list_models, load_model, stream
from generation.models.llama import LlamaModel
from tests.bench import ours
from tests.bench.load import bench_load
from tests.bench.pages import bench_pages
from tests.bench.timing import ROUNDS, alternate


def bench_cache() -> None:
    sky = load_model("sky")

    def run(use_kv_cache: bool) -> Callable[[], object]:
        params = SamplingParams(max_new_tokens=200, use_kv_cache=use_kv_cache)
        return lambda: generate(sky, "the sky is", params)

    cached, naive = alternate(run(True), run(False), rounds=5)
    adds = [generate(sky, "the sky is", SamplingParams(max_new_tokens=200, use_kv_cache=on)) for on in (True, False)]
    counted = (adds[1].multiply_adds or 0) / (adds[0].multiply_adds or 1)
    print(f"toy, 200 tokens, recorded: cache on {cached:.1f} ms, off {naive:.1f} ms: {naive / cached:.2f}×")
    print(f"  multiply-adds counted: {counted:.1f}× with the cache off")


def bench_sampling() -> None:
    """What a recorded step costs beside the model: all stages, the draw, entropy, rank and top rows."""
    logits = np.random.default_rng(0).normal(scale=3, size=49_152)

    class OneDistribution:
        vocab_size, context_length = len(logits), 10_000

        def encode(self, text: str, control: bool = False) -> list[int]:
            return [0]

        def decode(self, ids: Sequence[int]) -> str:
            return "x" * len(ids)

        def new_cache(self) -> KVCache:
            return KVCache(1, 1, 1, 1)

        def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
            return logits

    def step(**settings: Any) -> Callable[[], object]:
        params = SamplingParams(temperature=0.8, use_kv_cache=False, max_new_tokens=5000, **settings)
        steps = stream(OneDistribution(), "x", params)
        return lambda: next(steps)

    both, nucleus, sort = alternate(
        step(top_k=40, top_p=0.95), step(top_p=0.95), lambda: np.argsort(-logits, kind="stable"), rounds=61
    )
    print(f"recorded step on 49,152 logits: top-k 40 + top-p 0.95 {both:.2f} ms, top-p 0.95 alone {nucleus:.2f} ms")
    print(f"  one full stable sort in the same run {sort:.2f} ms: {both / sort:.2f}× and {nucleus / sort:.2f}×")


def bench_model() -> None:
    """Ours alone: against a bare matrix-vector product over all weights, measured in the same run."""
    if "smollm2" not in list_models():
        print("smollm2 is not here (make model)")
        return
    model = load_model("smollm2")
    assert isinstance(model, LlamaModel)
    weights, row = model.weights, np.ones(model.config.d_mlp, np.float32)

    def read_all_weights() -> None:
        for stack in (weights.qkv, weights.out, weights.gate_up, weights.down):
            for matrix in stack:
                row[: matrix.shape[0]] @ matrix
        weights.head @ row[: weights.head.shape[1]]

    def decode_at(n_positions: int) -> Callable[[], object]:
        kv_cache = model.new_cache()
        model.forward([5] * n_positions, kv_cache)

        def one_token() -> None:
            model.forward([7], kv_cache)
            kv_cache.truncate(n_positions)

        return one_token

    bare, short, long = alternate(read_all_weights, decode_at(64), decode_at(1024), rounds=31)
    print(f"smollm2 decode at 64: {1000 / short:.1f} tokens/s, {bare / short:.2f} of a bare read of the weights")
    print(f"  at 1024: {1000 / long:.1f} tokens/s, {bare / long:.2f}")
    for n_positions in (256, 1024):
        (prefill,) = alternate(lambda n=n_positions: model.forward([5] * n), rounds=5)  # type: ignore[misc]
        print(f"  prefill of {n_positions}: {1000 * n_positions / prefill:.0f} tokens/s")
    command = [sys.executable, "-m", "generation", "I am", "--model", "smollm2", "--max-new-tokens", "1"]
    (first,) = alternate(lambda: subprocess.run(command, check=True, capture_output=True), rounds=5)
    print(f"  from the start of a process to its first token and end: {first:.0f} ms")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores, medians of {ROUNDS}")
    bench_cache()
    bench_sampling()
    bench_model()
    bench_pages()
    if "smollm2" in list_models():
        ours.main()
        bench_load()
