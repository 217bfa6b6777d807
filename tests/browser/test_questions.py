"""What stands beside a question in a real Chromium: its lab, the button that saves it, the form for what is wrong."""

import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect

from tests.browser.conftest import violations

pytestmark = pytest.mark.browser

CHATBOT = "/questions/chatbot-repeats-one-sentence/?lab=sky-loop"


def box(page: Page, selector: str) -> FloatRect:
    found = page.locator(selector).bounding_box()
    assert found
    return found


def test_question_and_lab_stand_side_by_side_from_their_tops_and_the_report_below_the_question(page: Page):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(CHATBOT)

    question, lab, report = box(page, "#question"), box(page, "#lab"), box(page, "#report")

    assert abs(lab["y"] - question["y"]) < 8
    assert lab["x"] > question["x"] + question["width"]
    assert report["x"] == question["x"]
    assert 0 < report["y"] - (question["y"] + question["height"]) < 40


def test_saving_swaps_the_button_alone_and_keeps_the_focus_and_what_is_chosen(page: Page):
    page.goto(CHATBOT)
    page.locator("label.choice").first.click()

    page.locator("#save").focus()
    page.keyboard.press("Enter")

    expect(page.locator("#save")).to_contain_text("Remove from saved")
    expect(page.locator("#save")).to_be_focused()
    expect(page.locator("label.choice input").first).to_be_checked()
    page.goto("/questions/?mine=saved")
    expect(page.locator(".card")).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 320])
def test_what_is_wrong_is_told_in_place_and_what_is_chosen_stays(chromium: Browser, address: str, width: int):
    context = chromium.new_context(base_url=address, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(CHATBOT)
    page.locator("label.choice").first.click()
    page.get_by_text("Something is wrong with this question").click()
    page.get_by_label("In your words").fill("Which cache?")
    page.locator(".hidden-level summary").click()

    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_label("It can be read in two ways").check()
    page.get_by_role("button", name="Tell the authors").click()

    expect(page.get_by_text("The authors have it now.")).to_be_visible()
    expect(page.locator("label.choice input").first).to_be_checked()
    assert violations(page) == []
    context.close()
