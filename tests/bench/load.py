"""Pages of the served site while its engine is idle, and while eight learners' runs on the real model keep it busy."""

import asyncio
import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from tests.browser.server import served

PAGE = "/questions/chatbot-repeats-one-sentence/"
N_PAGES = 60
N_LEARNERS = 8
SETTINGS = {"temperature": "0.9", "top_k": "0", "top_p": "1", "repetition_penalty": "1", "use_kv_cache": "true"}


def bench_load() -> None:
    """Print how long pages take and how many tokens a second all runs make together."""
    models = os.environ.get("NEXT_TOKEN_MODELS") or str(Path("var/models").absolute())
    with TemporaryDirectory() as var, served(Path(var), NEXT_TOKEN_MODELS=models) as url:
        asyncio.run(_measured(url))


async def _measured(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=600) as visitor:
        await _page_times(visitor)  # warm
        idle = await _page_times(visitor)
        runs = [asyncio.create_task(_run(url, seed)) for seed in range(N_LEARNERS)]
        await asyncio.sleep(3)
        busy = await _page_times(visitor)
        for ended in (run for run in runs if run.done()):
            ended.result()  # why it ended; without runs nothing is measured
        n_busy = sum(not run.done() for run in runs)
        for run in runs:
            run.cancel()
    ratio = _p95(busy) / _p95(idle)
    print(f"question page over HTTP, idle: median {_median(idle):.1f} ms, p95 {_p95(idle):.1f} ms")
    print(
        f"  while {n_busy} runs on smollm2 go on: median {_median(busy):.1f} ms, p95 {_p95(busy):.1f} ms: {ratio:.1f}×"
    )


async def _page_times(visitor: httpx.AsyncClient) -> list[float]:
    times = []
    for _ in range(N_PAGES):
        began = time.perf_counter()
        (await visitor.get(PAGE)).raise_for_status()
        times.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.05)
    return times


async def _run(url: str, seed: int) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=600) as browser:
        await browser.get("/lab/")
        headers = {"HX-Request": "true", "X-CSRFToken": browser.cookies["csrftoken"], "Referer": url}
        asked = {"do": "run", "model": "smollm2", "prompt": "I am", "max_new_tokens": "1000", "seed": str(seed)}
        panel = await browser.post("/lab/", data=SETTINGS | asked | {"pace": "0"}, headers=headers)
        address = panel.text.split('sse-connect="')[1].split('"')[0]
        async with browser.stream("GET", address) as response:
            async for _ in response.aiter_bytes():
                pass


def _median(times: list[float]) -> float:
    return statistics.median(times)


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    bench_load()
