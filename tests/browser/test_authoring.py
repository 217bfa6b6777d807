"""A new instructor in a real Chromium: from an empty form to a question with its lab that a learner answers."""

from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import violations, watch
from tests.browser.server import manage
from tests.browser.test_pages import run

pytestmark = pytest.mark.browser

QUESTION = {
    "#id_slug": "night-shift-repeats",
    "#id_title": "The night shift hears one line",
    "#id_text": "At night the support bot says one line over and over. The model has not changed. What do you look at?",
    "#id_facts": "S2",
    "#id_answer": "First the decoding settings: near greedy, one likely line feeds itself. I replay it and warm it up.",
    "#id_listens_for": "Names the settings before the model.\nSays how to prove it.",
    "#id_warning": "“We need a bigger model”: nothing shows that.",
    "#id_follow_ups": "Why does a penalty alone not cure it? -> penalty-alone-does-not-cure\nWhat would you log?",
}
OPTIONS = [
    (
        "The settings: decoding is close to greedy",
        "A copy makes the next copy likelier.",
        True,
    ),
    ("The weights: they have worn out over time", "Weights are read and never written while it answers.", False),
    ("The clock: night traffic slows the tokens", "A slow token is the same token.", False),
]


def sign_in(page: Page, var: Path, name: str) -> None:
    password = manage(var, "make_instructor", name).splitlines()[0].split(": ")[1]
    page.goto("/admin/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#content h1")).to_be_visible()


def looked_at(page: Page) -> None:
    """Ask axe at both edges, in both colours; the preview is a page of its own."""
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        assert violations(page) == [], f"at {width} px, {scheme}"
        for frame in page.frames[1:]:
            assert violations(cast("Page", frame)) == [], f"the preview, {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")


def test_from_an_empty_form_to_a_question_that_a_learner_answers(
    page: Page, var: Path, chromium: Browser, address: str
):
    sign_in(page, var, "hedy")

    page.goto("/lab/panel/trace/")
    page.fill("#prompt", "the sky is")
    run(page, temperature="0.7", max_new_tokens="48", seed="17")
    page.get_by_role("link", name="Make a lab of it").click()
    page.fill("#id_title", "Wake the night shift")
    page.fill("#id_facts", "S2")
    page.fill("#id_goals", "- kind: reproduce_loop\n  solution: {temperature: 1.5}")
    page.get_by_role("button", name="Run them").click()
    tried = page.frame_locator("#preview")
    expect(tried.locator(".goal").last).to_contain_text("it should be otherwise")
    page.fill("#id_goals", "- kind: reproduce_loop\n  solution: {temperature: 0}")
    page.get_by_role("button", name="Run them").click()
    expect(tried.locator(".goal").last).to_contain_text("Met, as it should be")
    looked_at(page)
    page.get_by_role("button", name="Save and continue editing").click()
    page.get_by_role("link", name="Write a question with it").click()

    page.select_option("#id_topic", label="Selection")
    page.select_option("#id_kind", "single_choice")
    expect(page.locator("#id_formula")).to_be_hidden()
    for field, text in QUESTION.items():
        page.fill(field, text)
    preview = page.frame_locator("#preview")
    expect(preview.locator("#missing + ul")).to_contain_text("options must be 3 to 6, got 0")
    page.get_by_role("button", name="Add another option").click()
    for number, (text, why, right) in enumerate(OPTIONS):
        page.fill(f"#id_options-{number}-text", text)
        page.fill(f"#id_options-{number}-why", why)
        page.set_checked(f"#id_options-{number}-right", right)
    expect(preview.get_by_text("Nothing is missing.")).to_be_visible()
    expect(preview.locator(".verdict")).to_contain_text("Right")
    expect(preview.locator("#lab-title")).to_contain_text("Wake the night shift")
    preview.get_by_role("button", name="Run the lab’s start and solutions").click()
    expect(preview.locator("#tried .goal").last).to_contain_text("Met, as it should be")
    looked_at(page)
    page.select_option("#id_status", "published")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("is saved as version 1")
    looked_at(page)

    context = chromium.new_context(base_url=address)
    learner = context.new_page()
    problems = watch(learner)
    learner.goto("/questions/night-shift-repeats/")
    learner.get_by_text(OPTIONS[0][0]).click()
    learner.get_by_role("button", name="Answer").click()
    expect(learner.locator(".verdict")).to_contain_text("Right")
    run(learner, temperature="0")
    expect(learner.locator("#lab-chips")).to_contain_text("Reproduced")
    assert problems == []
    context.close()


def test_without_javascript_the_preview_is_a_press_away(chromium: Browser, address: str, var: Path):
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, var, "mary")
    page.goto("/admin/questions/questionversion/?q=chatbot-repeats")
    page.get_by_role("link", name="A chatbot").click()

    page.fill("#id_answer", "Typed without a script.")
    page.get_by_role("button", name="Preview").click()

    expect(page.frame_locator("#preview").locator("main")).to_contain_text("Typed without a script.")
    context.close()


def test_versions_are_compared(page: Page, var: Path):
    sign_in(page, var, "rosa")
    page.goto("/admin/questions/questionversion/?q=characters-before")
    page.get_by_role("link", name="How many characters fit before the cut?").click()
    page.fill("#id_title", "How many letters fit before the cut?")
    page.get_by_role("button", name="Save and continue editing").click()

    page.get_by_role("link", name="Versions").click()

    expect(page.locator(".change").first).to_have_text("How many charactersletters fit before the cut?")
    looked_at(page)
