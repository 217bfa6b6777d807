"""Each kind of question in a real Chromium: answered by keyboard alone, and free of axe's findings before and after."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import violations

pytestmark = pytest.mark.browser

ONE_OF_EACH = {  # kind → a question, and the keys that answer it from its first field on
    "single_choice": ("corrected-at-noon", ["Space"]),
    "multiple_choice": ("rule-sent-and-still-broken", ["Space", "Tab", "Space"]),
    "numeric": ("tokens-sent-over-a-chat", ["1", "2", ",", "5"]),
    "ordering": ("order-of-an-agents-turn", ["ArrowDown"]),
    "short_text": ("turn-five-on-another-machine", [*"stateful"]),
    "explain": ("why-the-bill-has-this-shape", [*"prompts are read in one parallel pass"]),
    "predict": ("yes-nine-is-a", ["Space"]),
}


def look_at(page: Page) -> None:
    """Have axe look at the page, wide and narrow, light and dark."""
    looks: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (360, "dark"))
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # until the colours have changed
        assert violations(page) == [], f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_question_is_answered_by_keyboard_alone(page: Page, kind: str):
    slug, keys = ONE_OF_EACH[kind]
    page.goto(f"/questions/{slug}/")
    look_at(page)
    page.locator("form.answer .choice input, form.answer .choice select, form.answer .field .input").first.focus()

    for key in keys:
        page.keyboard.press("Space" if key == " " else key)
    for _ in range(12):
        if page.evaluate("document.activeElement.matches('form.answer .button.primary')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator(".verdict")).to_contain_text(re.compile("Right|Wrong|Partly right"))
    assert page.evaluate("document.activeElement.className").startswith("verdict")
    look_at(page)


def test_a_part_that_takes_a_place_gives_its_own_away(page: Page):
    page.goto("/questions/order-of-an-agents-turn/")
    places = page.locator(".places select")

    places.first.select_option("3")

    assert [select.input_value() for select in places.all()] == ["3", "2", "1", "4", "5", "6"]
    places.nth(1).select_option("6")
    assert [select.input_value() for select in places.all()] == ["3", "6", "1", "4", "5", "2"]


def test_an_explanation_is_marked_in_place(page: Page):
    page.goto("/questions/why-the-bill-has-this-shape/")
    page.fill("#text", "Prompts are read in one parallel pass, output one token at a time.")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".verdict")).to_contain_text("mark yourself")

    for box in page.locator("[name=point]").all():
        box.check()
    page.get_by_role("button", name="Keep my marks").click()

    expect(page.locator(".verdict")).to_contain_text("Right")
    expect(page.get_by_role("button", name="Mark again")).to_be_visible()
    page.reload()
    expect(page.locator(".verdict")).to_contain_text("Right")
