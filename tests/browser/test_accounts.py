"""A session that ends while one types, in a real Chromium: the sign-in page, then the text is back."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import manage
from tests.browser.test_kinds import look_at

pytestmark = pytest.mark.browser

PASSWORD = "a rather long password"


def test_a_session_that_ends_in_mid_quiz_leads_to_the_sign_in_page_and_back_to_the_typed_text(page: Page, var: Path):
    page.goto("/questions/why-the-bill-has-this-shape/")
    page.fill("form.answer #text", "prompts are read in one pass, I think")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".verdict")).to_be_visible()
    page.reload()
    page.get_by_role("link", name="Keep my answers").click()
    look_at(page)
    page.fill("[name=username]", "mid-quiz")
    page.fill("[name=password1]", PASSWORD)
    page.fill("[name=password2]", PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    expect(page.get_by_role("link", name="mid-quiz")).to_be_visible()
    due = "from django.db.models.functions import Now; ReviewCard.objects.update(due=Now())"
    manage(var, "shell", "-c", due)
    page.goto("/review/")
    page.locator("button[value=review]").click()
    page.wait_for_url(re.compile("/quiz/"))
    place = page.url

    manage(var, "shell", "-c", "from django.contrib.sessions.models import Session; Session.objects.all().delete()")
    page.fill("form.answer #text", "what I was typing when it ended")
    page.wait_for_url(re.compile("/account/sign-in/"))
    look_at(page)
    page.fill("[name=username]", "mid-quiz")
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in").click()

    page.wait_for_url(place)
    expect(page.locator("form.answer #text")).to_have_value("what I was typing when it ended")
    page.goto("/account/")
    look_at(page)


def test_a_tab_that_was_open_before_the_sign_in_still_saves(page: Page):
    page.goto("/account/sign-up/")
    page.fill("[name=username]", "two-tabs")
    page.fill("[name=password1]", PASSWORD)
    page.fill("[name=password2]", PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    page.goto("/questions/why-the-bill-has-this-shape/")
    other = page.context.new_page()
    other.goto("/account/")
    other.get_by_role("button", name="Sign out").click()
    other.goto("/account/sign-in/")
    other.fill("[name=username]", "two-tabs")
    other.fill("[name=password]", PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("link", name="two-tabs")).to_be_visible()

    page.fill("form.answer #text", "prompts are read in one pass, I think")
    page.get_by_role("button", name="Answer", exact=True).click()

    expect(page.locator(".verdict")).to_be_visible()
