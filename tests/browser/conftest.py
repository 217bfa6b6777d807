"""A real Chromium, the site under uvicorn, and pages that fail a test for any error in their console."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser.server import served
from tests.chromium import FLAGS, find_chromium


@pytest.fixture(scope="session")
def var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def address(var: Path) -> Iterator[str]:
    with served(var) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """A page of a new visitor at 1280 × 800."""
    context = chromium.new_context(base_url=address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    problems = watch(page)
    yield page
    context.close()
    assert problems == []


def watch(page: Page) -> list[str]:
    """Collect what a page complains of; a refused form (422, 429) is an answer, not a complaint."""
    problems: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and "status of 4" not in message.text:
            problems.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: problems.append(str(error)))
    return problems


def violations(page: Page) -> list[str]:
    """Return what axe has against the page as it is, without its frames.

    Nothing is loaded beforehand: axe would set a style of its own for it, which the site's policy forbids.
    """
    found = Axe().run(page, options={"iframes": False, "preload": False}).response["violations"]
    return [f"{v['id']}: {node['html'][:160]}" for v in found for node in v["nodes"]]
