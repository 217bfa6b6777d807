"""A run's event stream under uvicorn: as it is made, paused when lost, going on, ended by Stop."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.browser.server import served

N_TOKENS = 12


class Event(NamedTuple):
    name: str
    number: int
    data: str
    seconds: float  # since the stream was opened


class Site(NamedTuple):
    url: str
    passes: Path

    def n_passes(self) -> int:
        return self._marks().count("(")

    def rest(self) -> None:
        """Wait until the passes of earlier tests are over: none under way, none begun for two passes' time."""
        marks = None
        while marks != (marks := self._marks()) or marks.count("(") > marks.count(")"):
            time.sleep(0.4)

    def _marks(self) -> str:
        return self.passes.read_text() if self.passes.exists() else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    var = tmp_path_factory.mktemp("site")
    passes = var / "passes"
    expected = "broken on purpose"  # by the faulty model; any other error in the log fails the tests
    with served(var, "tests.browser.slow_site:application", expected, PASSES=str(passes)) as url:
        yield Site(url, passes)


@pytest.fixture
def browser(site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, timeout=30) as client:
        client.get("/lab/")
        site.rest()
        yield client


def post(browser: httpx.Client, url: str, **data: str) -> httpx.Response:
    headers = {"HX-Request": "true", "X-CSRFToken": browser.cookies["csrftoken"], "Referer": str(browser.base_url)}
    return browser.post(url, data=data, headers=headers)


def start(browser: httpx.Client, seed: int, model: str = "slow") -> str:
    """Press Run in the open lab and return the address of the stream. Each test has a seed of its own."""
    html = post(
        browser,
        "/lab/",
        do="run",
        model=model,
        prompt="the sky is",
        temperature="0",  # never ends before its limit
        top_k="0",
        top_p="1",
        repetition_penalty="1",
        max_new_tokens=str(N_TOKENS),
        seed=str(seed),
        use_kv_cache="true",
        pace="0",
    ).text
    found = re.search(r'sse-connect="([^"]+)"', html)
    assert found, html
    return found[1]


def events(response: httpx.Response) -> Iterator[Event]:
    began = time.monotonic()
    name, number, data = "", 0, []
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and name:
            yield Event(name, number, "\n".join(data), time.monotonic() - began)
            name, data = "", []


def test_tokens_arrive_while_later_ones_are_still_computed(site: Site, browser: httpx.Client):
    before = site.n_passes()
    with browser.stream("GET", start(browser, seed=2)) as response:
        found = events(response)
        first = next(event for event in found if event.number == 1)
        passes_at_the_first = site.n_passes() - before
        rest = list(found)

    assert response.headers["content-type"] == "text/event-stream"
    assert passes_at_the_first <= 2
    assert rest[-1].seconds - first.seconds > 0.2
    assert [event.name for event in rest[-2:]] == ["finish", "done"]
    assert [event.number for event in rest[:-2]] == list(range(2, rest[-1].number + 1))


def test_a_lost_stream_pauses_the_run_and_a_reconnect_goes_on_at_the_next_step(site: Site, browser: httpx.Client):
    before = site.n_passes()
    url = start(browser, seed=7)
    with browser.stream("GET", url) as response:
        for event in events(response):
            if event.number == 3:
                break
    time.sleep(1.2)  # six passes, if it went on
    passes_when_lost = site.n_passes() - before

    with browser.stream("GET", url) as response:
        snapshot, *rest = list(events(response))

    assert 3 <= passes_when_lost <= 5
    assert snapshot.number in (3, 4)
    assert snapshot.data.count('type="radio"') == snapshot.number
    assert [event.number for event in rest[:-2]] == list(range(snapshot.number + 1, N_TOKENS + 1))
    assert site.n_passes() - before == N_TOKENS  # nothing was computed twice


def test_a_stream_lost_for_good_cancels_the_run_and_keeps_its_tokens(site: Site, browser: httpx.Client):
    url = start(browser, seed=8)
    with browser.stream("GET", url) as response:
        next(event for event in events(response) if event.number == 2)

    time.sleep(3.5)

    html = browser.get(url.removesuffix("stream/")).text
    heading = re.search(r"<h3 id=\"lab-heading\">(.*?)</h3>", html)
    assert heading
    assert re.fullmatch(r"Run, stopped after [234] tokens", heading[1])


def test_stop_ends_the_run_within_two_steps(site: Site, browser: httpx.Client):
    url = start(browser, seed=9)
    with browser.stream("GET", url) as response:
        found = events(response)
        next(event for event in found if event.number == 2)
        post(browser, url.replace("stream/", "stop/"))
        rest = list(found)

    assert "Run, stopped after" in rest[-2].data
    assert rest[-1].name == "done"
    assert rest[-1].number <= 4
    time.sleep(0.4)  # the pass that was under way
    before = site.n_passes()
    time.sleep(0.6)
    assert site.n_passes() == before


def test_a_run_that_is_never_watched_computes_nothing(site: Site, browser: httpx.Client):
    before = site.n_passes()
    start(browser, seed=10)

    time.sleep(0.6)

    assert site.n_passes() == before


def test_five_presses_leave_one_run(site: Site, browser: httpx.Client):
    urls = [start(browser, seed=seed) for seed in range(20, 25)]

    names = []
    for url in urls:
        with browser.stream("GET", url) as response:
            names.append([event.name for event in events(response)])

    assert names[:4] == [["finish", "done"]] * 4
    assert len(names[4]) > 4


def test_the_same_run_again_is_not_computed_again(site: Site, browser: httpx.Client):
    with browser.stream("GET", start(browser, seed=30)) as response:
        list(events(response))
    before = site.n_passes()

    with browser.stream("GET", start(browser, seed=30)) as response:
        again = list(events(response))

    assert again[-1].name == "done"
    assert site.n_passes() == before


def test_a_model_that_breaks_ends_its_run_in_words(site: Site, browser: httpx.Client):
    with browser.stream("GET", start(browser, seed=31, model="broken")) as response:
        found = list(events(response))

    assert "logits must be numbers, got NaN" in " ".join(event.data for event in found)
    assert found[-1].name == "done"


def test_another_learners_stream_is_not_found(site: Site, browser: httpx.Client):
    url = start(browser, seed=32)

    assert httpx.get(site.url + url).status_code == 404


def test_a_stream_is_neither_cached_nor_held_back(site: Site, browser: httpx.Client):
    with browser.stream("GET", start(browser, seed=33)) as response:
        assert response.headers["cache-control"] == "no-cache, no-transform"
        assert response.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in response.headers


def test_a_fault_that_nobody_expects_ends_the_run_and_the_stream(site: Site, browser: httpx.Client):
    url = start(browser, seed=34, model="faulty")
    with browser.stream("GET", url) as response:
        found = list(events(response))

    html = browser.get(url.removesuffix("stream/")).text
    assert found[-1].name == "done"
    assert "Run, ended early after 3 tokens: something broke on our side" in html
    assert browser.get("/lab/").status_code == 200


PANELS = {  # what each asks beside prompt and settings, and how many passes are made before the learner leaves
    "trace": ({}, 3),
    "compare": (
        {"b_temperature": "0", "b_top_k": "0", "b_top_p": "0.9", "b_min_p": "0", "b_repetition_penalty": "1"},
        N_TOKENS + 3,
    ),
    "intervene": ({}, 3),
    "attention": ({"layer": "1", "head": "1", "position": "1"}, 3),
    "latency": ({"prompt_tokens": "8"}, N_TOKENS + 3),
    "streaming": ({}, 3),
    "stopping": ({}, 3),
    "truth": ({"shade_by": "probability"}, 3),
}


@pytest.mark.parametrize("panel", PANELS)
def test_leaving_in_the_middle_of_a_panels_run_leaves_the_engine_idle(site: Site, browser: httpx.Client, panel: str):
    inputs, n_before = PANELS[panel]
    seed = str(100 + list(PANELS).index(panel))
    page = f"/lab/panel/{panel}/"
    common = {"do": "run", "model": "slow", "prompt": "the sky is", "temperature": "0", "top_k": "0", "top_p": "1"}
    settings = {"min_p": "0", "repetition_penalty": "1", "max_new_tokens": str(N_TOKENS), "seed": seed}
    html = post(browser, page, **common, **settings, use_kv_cache="true", pace="0", **inputs).text
    found = re.search(r'sse-connect="([^"]+)"', html)
    assert found, html
    before = site.n_passes()

    with browser.stream("GET", found[1]) as response:
        for _ in events(response):
            if site.n_passes() - before >= n_before:
                break

    left = site.n_passes()
    time.sleep(1.2)  # six passes, if it went on
    assert n_before <= left - before
    assert site.n_passes() - left <= 2
