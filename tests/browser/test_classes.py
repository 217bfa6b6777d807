"""A class from its first day to its grades, in a real Chromium: each page by axe, wide and narrow."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import violations, watch
from tests.browser.server import manage

pytestmark = pytest.mark.browser


def check(page: Page) -> None:
    """Look at a page at both ends of the widths."""
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert violations(page) == [], page.url
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
    page.set_viewport_size({"width": 1280, "height": 800})


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()


def test_a_class_from_its_first_day_to_its_grades(page: Page, chromium: Browser, address: str, var: Path):
    password = manage(var, "make_instructor", "hopper", "--role", "teacher").splitlines()[0].split(": ")[1]
    page.goto("/account/sign-in/?next=/classes/new/")
    page.fill("[name=username]", "hopper")
    page.fill("[name=password]", password)
    press(page, "Sign in")
    check(page)
    page.fill("[name=name]", "Tuesday group")
    page.select_option("[name=time_zone]", "Europe/Berlin")
    press(page, "Open the class")
    link = page.locator("code.link").inner_text()

    page.get_by_role("link", name="New assignment").click()
    page.select_option("[name=level]", "scenario")
    expect(page.locator("[role=status]")).to_contain_text("published questions fit")
    page.fill("[name=title]", "Week 1")
    page.fill("[name=opens]", "2020-03-27T08:00")
    page.fill("[name=due]", "2126-03-29T23:59")
    page.select_option("[name=feedback]", "end")
    check(page)
    press(page, "Make a draft")
    page.fill("[name=q]", "shape of the bill")
    press(page, "Show")
    page.get_by_role("checkbox").first.check()
    press(page, "Add what is ticked")
    expect(page.locator("#chosen")).to_contain_text("1 chosen")
    check(page)
    page.get_by_role("link", name="Done").click()
    press(page, "Give it to the class")
    check(page)

    context = chromium.new_context(base_url=address, viewport={"width": 1280, "height": 800})
    mine = context.new_page()
    problems = watch(mine)
    mine.goto(link)
    check(mine)
    mine.get_by_role("link", name="Make an account").click()
    mine.fill("[name=username]", "lovelace")
    for field in ("password1", "password2"):
        mine.fill(f"[name={field}]", "a long password")
    mine.locator("main button").click()
    check(mine)
    press(mine, "Join this class")
    check(mine)
    press(mine, "Start")
    mine.fill("textarea", "The prompt is read once and in parallel, each token after that costs a step.")
    expect(mine.locator("#kept")).to_contain_text("Kept at")
    press(mine, "Hand in")
    expect(mine.locator("main")).to_contain_text("1 explanation waits for a mark")
    check(mine)

    page.get_by_role("link", name="Marking").click()
    check(page)
    page.locator("main table a").first.click()
    page.get_by_role("checkbox").first.check()
    page.fill("[name=note]", "Say what the cache holds.")
    check(page)
    press(page, "Keep the mark")
    expect(page.locator("main")).to_contain_text("Nothing waits for a mark")
    for name in ("Grade book", "Roster", "Assignments"):
        page.get_by_role("navigation", name="Class").get_by_role("link", name=name).click()
        expect(page.locator("main")).to_contain_text("of 1" if name != "Roster" else "lovelace")
        check(page)

    mine.locator("main table a").first.click()
    expect(mine.locator("main")).to_contain_text("Say what the cache holds.")
    check(mine)
    context.close()
    assert problems == []
