"""Every panel in a real Chromium: with the mouse, by keyboard alone, in light and dark, wide and narrow."""

from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from quizsite.labs.panels import KINDS
from tests.browser.conftest import violations, watch

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]


class Use(NamedTuple):
    """How a panel is used on the toy: what is typed, and what it then shows."""

    typed: dict[str, str]
    shows: str
    is_run: bool = True  # tokens are made, at a pace


ON_THE_TOY = {
    "trace": Use({"temperature": "0.7"}, "Step 32 of 32"),
    "compare": Use({"temperature": "0", "input-b_temperature": "1.2"}, "The first difference is at token 3."),
    "intervene": Use({"temperature": "0"}, "Nothing is taken yet."),
    "tokens": Use({"input-text": "the sky is blue"}, "Piece by piece", is_run=False),
    "attention": Use({"prompt": "the sky is clear"}, "never looks ahead"),
    "latency": Use({"max_new_tokens": "4"}, "What the cache saves"),
    "streaming": Use({"temperature": "0"}, "What each reader waits for"),
    "stopping": Use({"temperature": "0"}, "this one"),
    "cost": Use({}, "Turn by turn", is_run=False),
    "truth": Use({"prompt": "the sky is"}, "The least probable tokens"),
}
ON_THE_REAL_MODEL = {
    "chat": Use({"input-message": "Say hello."}, "What is sent, with the template around it"),
    "weights": Use({"input-told": "My name is Zora."}, "The experiment, step by step"),
}


def fill_in(page: Page, use: Use, model: str = "sky") -> None:
    if page.locator("select#model").count():
        page.select_option("#model", model)
    for field, value in use.typed.items():
        page.fill(f"#{field}", value)
    if use.is_run:
        page.select_option("[name=pace]", "0")


def shown(page: Page, use: Use) -> None:
    """Wait until all is done: what the panel shows, and nothing that still goes on."""
    expect(page.locator("#lab-body")).to_contain_text(use.shows, timeout=120_000)
    if use.is_run:
        expect(page.locator("#lab-heading")).to_contain_text("ended by", timeout=120_000)
    expect(page.locator("#lab-body .slot")).to_have_count(0, timeout=120_000)


def test_no_panel_is_left_out():
    assert set(ON_THE_TOY) | set(ON_THE_REAL_MODEL) == set(KINDS)


@pytest.mark.parametrize("name", ON_THE_TOY)
def test_a_panel_with_the_mouse_and_its_run_on_a_page_of_its_own(page: Page, name: str):
    use = ON_THE_TOY[name]
    page.goto("/lab/")
    page.get_by_role("navigation", name="Panels").get_by_role("link", name=name.capitalize(), exact=True).click()
    expect(page.get_by_role("navigation", name="Panels").locator("[aria-current]")).to_have_text(name.capitalize())
    fill_in(page, use)

    page.get_by_role("button", name="Run", exact=True).click()
    shown(page, use)

    page.get_by_role("link", name="This run has a page of its own").click()
    expect(page.locator("#lab-body")).to_contain_text(use.shows)
    page.get_by_role("button", name="Share by link").click()
    expect(page.locator("#main")).to_contain_text("Anybody with this page’s address can see it.")


@pytest.mark.parametrize("name", ON_THE_TOY)
def test_a_panel_by_keyboard_alone(page: Page, name: str):
    use = ON_THE_TOY[name]
    page.goto(KINDS_AT[name])
    fill_in(page, use)
    for _ in range(60):  # Tab leads to Run, whatever stands before it
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "do-run":
            break

    page.keyboard.press("Enter")

    shown(page, use)


@pytest.mark.any_database
@pytest.mark.parametrize("name", ON_THE_TOY)
def test_axe_and_the_edge_of_the_page(chromium: Browser, address: str, name: str):
    use = ON_THE_TOY[name]
    context = chromium.new_context(base_url=address, viewport={"width": 1280, "height": 800}, color_scheme="light")
    page = context.new_page()
    problems = watch(page)
    page.goto(KINDS_AT[name])
    fill_in(page, use)
    page.get_by_role("button", name="Run", exact=True).click()
    shown(page, use)
    page.evaluate("document.querySelectorAll('#lab-body details').forEach((details) => (details.open = true))")

    looks: list[tuple[int, Scheme]] = [(1280, "light"), (360, "dark")]
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(250)  # charts are drawn anew
        assert violations(page) == [], f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    context.close()
    assert problems == []


@pytest.mark.real_model
@pytest.mark.parametrize("name", ON_THE_REAL_MODEL)
def test_a_panel_that_needs_a_chat(page: Page, name: str):
    use = ON_THE_REAL_MODEL[name]
    page.goto(KINDS_AT[name])
    fill_in(page, use, model="smollm2")
    page.locator("#do-run").press("Enter")
    shown(page, use)

    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if width == 360 else "light")
        page.wait_for_timeout(250)
        assert violations(page) == [], f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.real_model
def test_a_conversation_goes_on_with_what_was_said(page: Page):
    page.goto(KINDS_AT["chat"])
    fill_in(page, Use({"input-message": "My name is Zora.", "max_new_tokens": "12"}, ""), model="smollm2")
    page.locator("#do-run").click()
    expect(page.locator("#lab-heading")).to_contain_text("ended by", timeout=120_000)
    expect(page.locator("#input-message")).to_have_value("", timeout=120_000)

    page.fill("#input-message", "What is my name?")
    page.locator("#do-run").click()

    expect(page.locator("#chat-sent")).to_contain_text("My name is Zora.", timeout=120_000)
    expect(page.locator("#chat-sent")).to_contain_text("What is my name?")


def test_a_row_of_the_attention_map_is_chosen_with_the_arrow_keys(page: Page):
    use = ON_THE_TOY["attention"]
    page.goto(KINDS_AT["attention"])
    fill_in(page, use)
    page.get_by_role("button", name="Run", exact=True).click()
    shown(page, use)
    page.locator("#lab-body [name=step]").first.focus()
    page.keyboard.press("Space")
    expect(page.locator("#step-title")).to_contain_text("Position 1,")

    page.keyboard.press("ArrowDown")

    expect(page.locator("#step-title")).to_contain_text("Position 2,")
    assert page.evaluate("document.activeElement.value") == "2"


def test_sides_are_swapped_and_a_chart_has_its_table(page: Page):
    use = ON_THE_TOY["compare"]
    page.goto(KINDS_AT["compare"])
    fill_in(page, use)
    page.get_by_role("button", name="Swap A and B").click()
    expect(page.locator("#temperature")).to_have_value("1.2")
    expect(page.locator("#input-b_temperature")).to_have_value("0")
    page.get_by_role("button", name="Copy A to B").click()
    expect(page.locator("#input-b_temperature")).to_have_value("1.2")

    page.fill("#input-b_temperature", "0")
    page.select_option("[name=pace]", "0")
    page.get_by_role("button", name="Run", exact=True).click()
    shown(page, use)

    expect(page.locator("[data-chart] canvas")).to_have_count(1)
    page.get_by_text("The numbers as a table").click()
    expect(page.locator("#surprisal tbody tr")).to_have_count(32)


def test_a_setting_explains_itself_and_says_when_it_does_nothing(page: Page):
    page.goto("/lab/")
    page.get_by_role("button", name="What it does: top-k").press("Enter")
    expect(page.locator("#about-top_k")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#about-top_k")).to_be_hidden()

    page.fill("#temperature", "0")
    page.fill("#top_k", "3")
    page.keyboard.press("Tab")

    expect(page.locator("#lab-idle")).to_contain_text("Top-k: no effect at these values")
    page.fill("#temperature", "1")
    page.keyboard.press("Tab")
    expect(page.locator("#lab-idle")).to_be_hidden()


def test_a_preset_is_one_press_and_then_run(page: Page):
    page.goto("/lab/")
    page.get_by_role("button", name="A loop without end").click()
    expect(page.locator("#temperature")).to_have_value("0")
    page.select_option("[name=pace]", "0")

    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#lab-loop")).to_contain_text("period 1")


def test_a_prediction_comes_before_the_run_and_the_lab_explains_itself_when_it_is_solved(page: Page):
    page.goto("/lab/sky-count-passes/")
    page.locator("#lab-help summary").first.click()
    expect(page.locator("#lab-help details p").first).to_be_visible()
    page.select_option("[name=pace]", "0")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#lab-goals")).to_contain_text("A prediction before the run")

    page.get_by_label("9", exact=True).check()
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#lab-chips")).to_contain_text("Predicted")
    expect(page.locator("#lab-help")).to_contain_text("What you have shown")
    assert violations(page) == []


def test_all_steps_come_as_they_are_scrolled_to(page: Page):
    page.goto("/lab/")
    fill_in(page, Use({"max_new_tokens": "64", "temperature": "0"}, ""))
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("All 64 steps as a list").click()
    expect(page.locator(".steps tbody th")).to_have_count(25)

    for _ in range(3):
        page.locator(".steps tbody tr").last.scroll_into_view_if_needed()
        page.wait_for_timeout(300)

    expect(page.locator(".steps tbody th")).to_have_count(64)


KINDS_AT = {name: "/lab/" if name == "trace" else f"/lab/panel/{name}/" for name in KINDS}


def test_run_is_not_lost_while_the_page_looks_up_what_has_no_effect(page: Page):
    page.goto("/lab/")
    page.select_option("[name=pace]", "0")

    def answer(route: Route) -> None:
        if "look" in (route.request.post_data or ""):
            looks.append(route)  # answered after the run has been asked for
        else:
            route.continue_()

    looks: list[Route] = []
    page.route("**/lab/", answer)
    page.fill("#temperature", "0")

    page.locator("#do-run").focus()  # the change is sent now, and answered late
    page.wait_for_timeout(250)
    assert len(looks) == 1
    page.locator("#do-run").press("Enter")

    expect(page.locator("#lab-heading")).to_contain_text("ended by")
