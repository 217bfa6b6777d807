"""`make bench`: medians and ratios, each pair measured side by side in this run."""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from io import StringIO
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generation import KVCache, SamplingParams, generate, list_models, load_model, stream
from generation.models.llama import LlamaModel
from tests.bench import ours
from tests.bench.load import bench_load

ROUNDS = 15


def alternate(*functions: Callable[[], object], rounds: int = ROUNDS, inner: int = 1) -> list[float]:
    """Return each function's median milliseconds, measured in turn so that noise falls on all alike."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, seconds, strict=True):
            began = time.perf_counter()
            for _ in range(inner):
                function()
            found.append((time.perf_counter() - began) / inner)
    return [1000 * statistics.median(found) for found in seconds]


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


def bench_pages() -> None:
    with TemporaryDirectory() as var:
        os.environ |= {
            "NEXT_TOKEN_VAR": var,
            "NEXT_TOKEN_HOSTS": "testserver 127.0.0.1",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        }
        import django  # noqa: PLC0415  (the settings are read on import)

        django.setup()
        from django.core.management import call_command  # noqa: PLC0415
        from django.db import connection  # noqa: PLC0415
        from django.test import Client  # noqa: PLC0415
        from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

        from quizsite.questions.models import Question, QuestionVersion  # noqa: PLC0415

        call_command("migrate", verbosity=0)
        call_command("load_content", stdout=StringIO())
        client = Client()
        paths = ["/", "/questions/", "/questions/chatbot-repeats-one-sentence/", "/lab/sky-loop/"]
        for path in paths:
            client.get(path)
        small = alternate(*[lambda path=path: client.get(path) for path in paths])

        topic = Question.objects.all()[0].topic
        copies = [Question(slug=f"copy-{n}", topic=topic, level="advanced", status="published") for n in range(10_000)]
        Question.objects.bulk_create(copies)
        versions = [
            QuestionVersion(question=copy, number=1, kind="single_choice", title=copy.slug, text="Why?", digest="x")
            for copy in copies
        ]
        QuestionVersion.objects.bulk_create(versions)
        for copy, version in zip(copies, versions, strict=True):
            copy.current = version
        Question.objects.bulk_update(copies, ["current"], batch_size=400)
        large = alternate(*[lambda path=path: client.get(path) for path in paths])
        print("pages, server time in ms and queries, with 10 and with 10,010 questions:")
        for path, few, many in zip(paths, small, large, strict=True):
            with CaptureQueriesContext(connection) as queries:
                client.get(path)
            print(f"  {path:<46} {few:>6.1f} {many:>6.1f}  {len(queries)} queries")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores, medians of {ROUNDS}")
    bench_cache()
    bench_sampling()
    bench_model()
    bench_pages()
    if "smollm2" in list_models():
        ours.main()
        bench_load()
