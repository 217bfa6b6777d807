"""A class that presses Run at once on the real model: everybody is served, in turn, as if alone."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from generation import SamplingParams, generate, load_model
from tests.browser.server import served

pytestmark = pytest.mark.real_model

N_LEARNERS = 32
N_TOKENS = 10


class Seen(NamedTuple):
    """What one learner has seen of a run."""

    seed: int
    places: list[int]
    tokens: list[str]
    heading: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    models = str(Path("var/models").absolute())
    with served(tmp_path_factory.mktemp("class"), NEXT_TOKEN_MODELS=models) as url:
        yield url


def settings(seed: int) -> SamplingParams:
    return SamplingParams(temperature=0.9, max_new_tokens=N_TOKENS, seed=seed)


async def learn(url: str, seed: int) -> Seen:
    """Open the lab, press Run, and watch until it ends."""
    async with httpx.AsyncClient(base_url=url, timeout=300) as browser:
        await browser.get("/lab/")
        headers = {"HX-Request": "true", "X-CSRFToken": browser.cookies["csrftoken"], "Referer": url}
        asked = settings(seed).as_dict() | {"do": "run", "model": "smollm2", "prompt": "I am", "pace": "0", "stop": ""}
        panel = await browser.post(
            "/lab/", data={k: str(v) for k, v in asked.items() if v is not False}, headers=headers
        )
        found = re.search(r'sse-connect="([^"]+)"', panel.text)
        assert found, panel.text
        stream = ""
        async with browser.stream("GET", found[1]) as response:
            async for chunk in response.aiter_text():
                stream += chunk
        page = (await browser.get(found[1].removesuffix("stream/"))).text
        strip = page.split('id="run-tokens"')[1].split("</div>")[0]
        heading = re.search(r'<h3 id="lab-heading">(.*?)</h3>', page)
        assert heading
        return Seen(
            seed=seed,
            places=[int(place) for place in re.findall(r"place (\d+) in the queue", stream)],
            tokens=[unescape(text) for text in re.findall(r'<input type="radio"[^>]*>([^<]*)</label>', strip)],
            heading=heading[1],
        )


def test_all_of_a_class_are_served_and_each_text_is_what_it_is_alone(site: str):
    async def everybody() -> list[Seen]:
        return await asyncio.gather(*(learn(site, seed) for seed in range(N_LEARNERS)))

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop of its own running in this one
        seen = thread.submit(asyncio.run, everybody()).result()

    smollm2 = load_model("smollm2")
    for learner in seen:
        alone = generate(smollm2, "I am", settings(learner.seed))
        assert learner.tokens == [step.piece or step.token for step in alone.steps]
        assert f"after {len(alone.steps)} tokens" in learner.heading or f"limit of {N_TOKENS}" in learner.heading
    queued = [learner.places for learner in seen if learner.places]
    assert len(queued) >= N_LEARNERS // 2  # most have to wait, and are told where they stand
    assert all(places == sorted(places, reverse=True) for places in queued)  # and only ever move up
