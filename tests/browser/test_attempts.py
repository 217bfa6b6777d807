"""A drill, a mock interview and a review in a real Chromium, by keyboard alone; and what two tabs do to each other."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import violations, watch
from tests.browser.server import manage
from tests.browser.test_kinds import look_at

pytestmark = pytest.mark.browser

WORDS = {"text": "prompts are read in one parallel pass", "number": "12,5"}


def press(page: Page, selector: str, key: str = "Enter") -> None:
    """Walk with the Tab key to a control, and press it."""
    for _ in range(60):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            page.keyboard.press(key)
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not lead to {selector}")


def answer(page: Page) -> None:
    """Give some answer to the question that is asked, from the top of the page."""
    if page.locator("form.answer [name=option]").count():
        press(page, "form.answer [name=option]", "Space")
    for name, words in WORDS.items():
        if page.locator(f"form.answer [name={name}]").count():
            press(page, f"form.answer [name={name}]", "End")
            page.keyboard.type(words)


def test_a_whole_drill_by_keyboard_alone(page: Page):
    page.goto("/")
    press(page, ".hero form:has([value=drill]) button")
    for number in range(1, 11):
        expect(page.get_by_text(f"Question {number} of 10", exact=True)).to_be_visible()
        answer(page)
        press(page, "form.answer .button.primary")
        expect(page.locator(".verdict")).to_contain_text(re.compile("Right|Wrong|Partly right"))
        assert page.evaluate("document.activeElement.className").startswith("verdict")
        if number == 1:
            look_at(page)
        press(page, "a.button.primary")

    expect(page.get_by_role("heading", name="Every answer beside its key")).to_be_visible()
    look_at(page)
    page.goto("/progress/")
    look_at(page)


def test_a_whole_mock_interview_by_keyboard_alone(page: Page):
    page.goto("/mock/")
    look_at(page)
    press(page, "button[name=n][value='6']")
    expect(page.locator("[data-seconds]")).to_contain_text(re.compile(r"19:5\d left"))
    for number in range(1, 7):
        expect(page.get_by_text(f"Question {number} of 6", exact=True)).to_be_visible()
        answer(page)
        press(page, "[name=sure]", "Space")
        if number == 1:
            look_at(page)
        press(page, "form.answer .button.primary")
    expect(page.get_by_text("All have an answer.")).to_be_visible()
    assert page.locator(".verdict").count() == 0

    press(page, "#finish button")

    expect(page.get_by_role("heading", name="How sure you said you were")).to_be_visible()
    look_at(page)


def test_a_review_by_keyboard_alone(page: Page, var: Path):
    page.goto("/questions/corrected-at-noon/")
    answer(page)
    press(page, "form.answer .button.primary")
    expect(page.locator(".verdict")).to_be_visible()
    due_now = "from django.db.models.functions import Now; ReviewCard.objects.update(due=Now())"
    manage(var, "shell", "-c", due_now)

    page.goto("/review/")
    look_at(page)
    press(page, "button[value=review]")
    expect(page.get_by_text("Question 1 of 1", exact=True)).to_be_visible()
    answer(page)
    press(page, "form.answer .button.primary")
    expect(page.locator(".verdict")).to_be_visible()
    press(page, "a.button.primary")

    expect(page.get_by_role("heading", name="Every answer beside its key")).to_be_visible()
    page.goto("/review/")
    expect(page.get_by_text("Nothing is due")).to_be_visible()


def test_two_tabs_of_one_question(page: Page):
    page.goto("/")
    page.get_by_role("button", name="Start a drill").click()
    page.wait_for_url(re.compile("/quiz/.+/1/"))
    choices = "form.answer [name=option]"
    while not page.locator(choices).count():
        position = int(page.url.rstrip("/").rsplit("/", 1)[1])
        page.get_by_role("button", name="Later").click()
        page.wait_for_url(re.compile(f"/{position + 1}/$"))
    context: BrowserContext = page.context
    other = context.new_page()
    problems = watch(other)
    other.goto(page.url)

    other.locator(choices).first.check()
    expect(other.locator("#kept")).to_contain_text("Kept at")
    page.locator(choices).nth(1).check()
    expect(page.locator("#kept")).to_contain_text("Another tab has kept something newer")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".verdict")).to_be_visible()
    other.get_by_role("button", name="Answer", exact=True).click()

    expect(other.locator(".notice")).to_contain_text("answered before")
    assert violations(other) == []
    assert problems == []


def test_the_end_of_the_time_ends_the_interview_in_the_page(page: Page):
    page.clock.install()
    page.goto("/mock/")
    page.get_by_role("button", name="Begin, 20 minutes").click()
    expect(page.locator("[data-seconds]")).to_be_visible()

    page.clock.fast_forward(int(timedelta(minutes=20, seconds=1).total_seconds() * 1000))

    expect(page.get_by_role("heading", name="Every answer beside its key")).to_be_visible()
