"""`make bench`: medians and ratios, each pair measured side by side in this run."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from io import StringIO
from tempfile import TemporaryDirectory

import numpy as np

from generation import SamplingParams, distribution, generate, load_model

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
    logits = np.random.default_rng(0).normal(scale=3, size=49_152)
    both, nucleus, bare = alternate(
        lambda: distribution(logits, SamplingParams(temperature=0.8, top_k=40, top_p=0.95)),
        lambda: distribution(logits, SamplingParams(temperature=0.8, top_p=0.95)),
        lambda: np.argsort(-logits, kind="stable"),
    )
    print(f"sampling from 49,152 logits: top-k 40 + top-p 0.95 {both:.2f} ms, top-p 0.95 alone {nucleus:.2f} ms")
    print(f"  one full stable sort in the same run: {bare:.2f} ms ({both / bare:.2f}× and {nucleus / bare:.2f}×)")


def bench_pages() -> None:
    with TemporaryDirectory() as var:
        os.environ |= {
            "NEXT_TOKEN_VAR": var,
            "NEXT_TOKEN_HOSTS": "testserver",
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
    bench_pages()
