"""The learner's way in a real Chromium: with the mouse, by keyboard, on a phone, without JavaScript."""

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import violations, watch
from tests.browser.server import manage

pytestmark = pytest.mark.browser

CHATBOT = "/questions/chatbot-repeats-one-sentence/?lab=sky-loop"  # the scenario question, its first step beside it
KEY = "The decoding settings"
Scheme = Literal["light", "dark"]


def run(page: Page, **settings: str) -> None:
    """Set the sliders' numbers, press Run and wait for the end."""
    for name, value in settings.items():
        page.fill(f"#{name}", value)
    page.select_option("[name=pace]", "0")
    page.evaluate("document.getElementById('lab').dataset.before = ''")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#lab:not([data-before])")).to_be_visible(timeout=30_000)  # not the run before it
    expect(page.locator("#lab-heading")).to_contain_text("ended by", timeout=120_000)


def test_from_the_front_page_to_a_cured_loop(page: Page):
    page.goto("/")
    page.get_by_role("button", name="Start a drill").click()
    expect(page.locator("#sitting")).to_be_visible()
    page.goto(CHATBOT)
    page.get_by_text(KEY).click()
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".verdict")).to_contain_text("Right")
    expect(page.locator(".choice.right")).to_contain_text("Right, your choice")

    run(page, temperature="0")
    expect(page.locator("#lab-chips")).to_contain_text("Reproduced")
    expect(page.locator("#lab-counters")).to_contain_text("loop period")
    assert page.locator("#run-tokens .token").count() == 48
    assert page.locator("#run-tokens .token.a, #run-tokens .token.b").count() == 43

    run(page, temperature="0.3")
    expect(page.locator("#lab-goals")).to_contain_text("No loop at the end")
    expect(page.locator("#lab-goals")).to_contain_text("over by 0.30")
    expect(page.locator("#lab-chips")).to_contain_text("Cure: not yet")

    run(page, temperature="1")
    expect(page.locator("#lab-chips")).to_contain_text("Cured")
    expect(page.locator("#lab-goals")).to_contain_text("It holds for 5 of 5 seeds.")

    page.reload()
    expect(page.locator(".verdict")).to_contain_text("Right")
    expect(page.locator("#lab-chips")).to_contain_text("Cured")
    card = page.locator(".card", has=page.locator("[href='/questions/chatbot-repeats-one-sentence/']"))
    page.goto("/questions/?level=scenario")
    if not card.count():
        page.goto("/questions/?level=scenario&page=2")
    expect(card).to_contain_text("Right")


def test_tokens_arrive_one_by_one_and_the_loop_is_marked_while_it_comes(page: Page):
    page.goto("/lab/sky-loop/")
    page.fill("#temperature", "0")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#run-tokens .token").nth(2)).to_be_visible()
    expect(page.locator("#run-slot")).to_be_visible()
    expect(page.locator("#run-tokens .token.b").first).to_be_visible()
    expect(page.locator("#lab-heading")).to_have_text("Run, going on")
    expect(page.locator("#lab-heading")).to_have_text("Run, ended by the limit of 48 tokens", timeout=20_000)
    expect(page.locator("#run-slot")).to_have_count(0)


def test_stop_keeps_the_tokens_and_what_is_being_typed(page: Page):
    page.goto("/lab/sky-loop/")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-tokens .token").nth(1)).to_be_visible()
    page.fill("#temperature", "0.123")

    page.get_by_role("button", name="Stop").click()

    expect(page.locator("#lab-heading")).to_contain_text("Run, stopped after")
    expect(page.locator("#temperature")).to_have_value("0.123")
    shown = page.locator("#run-tokens .token").count()
    page.wait_for_timeout(500)
    assert page.locator("#run-tokens .token").count() == shown


def test_a_picked_token_opens_its_step_and_stays_open_while_others_arrive(page: Page):
    page.goto("/lab/sky-loop/")
    page.select_option("[name=pace]", "12")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-tokens .token").nth(4)).to_be_visible()

    page.locator("#run-tokens .token").nth(1).click()

    expect(page.locator("#step-title")).to_contain_text("Step 2 of")
    expect(page.locator("#run-tokens .token").nth(9)).to_be_visible()
    expect(page.locator("#step-title")).to_contain_text("Step 2 of")


def test_steps_by_hand(page: Page):
    page.goto("/lab/")
    for number in range(1, 4):
        page.get_by_role("button", name="Step", exact=True).click()
        expect(page.locator("#run-tokens .token")).to_have_count(number)

    expect(page.locator("#lab-heading")).to_have_text("Run by hand, 3 tokens so far")


def test_five_quick_presses_leave_one_run_and_one_output(page: Page):
    page.goto("/lab/sky-loop/")
    page.select_option("[name=pace]", "0")
    page.fill("#temperature", "0")
    for _ in range(5):
        page.get_by_role("button", name="Run", exact=True).click(no_wait_after=True)

    expect(page.locator("#lab-heading")).to_contain_text("ended by the limit")
    page.wait_for_timeout(500)
    assert page.locator("#lab").count() == 1
    assert page.locator("#run-tokens .token").count() == 48


def test_a_bad_setting_is_told_at_its_field(page: Page):
    page.goto("/lab/sky-loop/")
    page.fill("#temperature", "-3")
    page.get_by_role("button", name="Run", exact=True).click()

    expect(page.locator("#temperature-problem")).to_have_text(
        re.compile(r"\s*temperature must be between 0 and 100, got -3.0\s*")
    )
    expect(page.locator("#temperature")).to_have_value("-3")


def test_the_slider_moves_its_number(page: Page):
    page.goto("/lab/sky-loop/")
    page.get_by_label("Temperature, slider").press("ArrowRight")

    expect(page.locator("#temperature")).to_have_value("0.75")


def test_the_whole_way_by_keyboard_alone(page: Page):
    page.goto(CHATBOT)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "option":
            break
    while KEY not in str(page.evaluate("document.activeElement.closest('label').innerText")):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_contain_text("Right")

    page.locator("#temperature").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    expect(page.locator("#run-tokens .token").first).to_be_visible()
    expect(page.locator("#temperature")).to_be_focused()


def test_everything_works_without_javascript(chromium: Browser, address: str):
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto(CHATBOT)
    page.get_by_text(KEY).click()
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".verdict")).to_contain_text("Right")

    page.fill("#temperature", "0")
    page.get_by_role("button", name="Run", exact=True).click()
    assert page.url.endswith(f"{CHATBOT}#lab")
    expect(page.locator("#lab-chips")).to_contain_text("Reproduced")

    page.locator("#run-tokens input").nth(5).check(force=True)
    page.get_by_role("button", name="Show the chosen step").click()
    expect(page.locator("#step-title")).to_have_text("Step 6 of 48")

    page.goto("/lab/sky-penalty/")
    page.get_by_role("button", name="Step", exact=True).click()
    page.get_by_role("button", name="Step", exact=True).click()
    expect(page.locator("#run-tokens .token")).to_have_count(2)
    context.close()


def test_a_run_can_be_shared_and_run_again_by_another(page: Page, chromium: Browser, address: str):
    page.goto("/lab/sky-loop/")
    run(page, temperature="0")
    page.get_by_role("link", name="This run has a page of its own").click()
    page.get_by_role("button", name="Share by link").click()

    other = chromium.new_context(base_url=address).new_page()
    other.goto(page.url)
    expect(other.locator("#temperature")).to_have_value("0")
    run(other)
    expect(other.locator("#lab-chips")).to_contain_text("Reproduced")
    other.context.close()


def test_a_phone_has_a_bar_that_leads_to_the_lab_and_counts_goals(chromium: Browser, address: str):
    context = chromium.new_context(base_url=address, viewport={"width": 360, "height": 780}, has_touch=True)
    page = context.new_page()
    problems = watch(page)
    page.goto(CHATBOT)
    expect(page.locator("#lab-jump")).to_have_text("Lab, 0 of 2 goals")

    run(page, temperature="0")

    expect(page.locator("#lab-jump")).to_have_text("Lab, 1 of 2 goals")
    page.locator("#lab-jump").click()
    expect(page.locator("#lab-title")).to_be_in_viewport()
    assert problems == []
    context.close()


PATHS = ["/", "/questions/", "/questions/?level=scenario", CHATBOT, "/questions/penalty-alone-does-not-cure/"]
PATHS += ["/lab/", "/lab/sky-loop/", "/nothing/"]


@pytest.mark.any_database
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_no_page_has_an_axe_violation_or_scrolls_sideways(chromium: Browser, address: str, width: int, scheme: Scheme):
    context = chromium.new_context(
        base_url=address, viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    problems = watch(page)

    for path in PATHS:
        page.goto(path)
        assert violations(page) == [], path
        for edge in (320, 768, width):
            page.set_viewport_size({"width": edge, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= edge, f"{path} at {edge} px"

    page.goto(CHATBOT)
    page.locator("label.choice", has_not_text=KEY).first.click()
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".verdict")).to_contain_text("Wrong")
    for temperature in ("0", "0.7"):  # with a loop and without
        run(page, temperature=temperature)
        assert violations(page) == [], temperature
        assert page.evaluate("document.documentElement.scrollWidth") <= width, temperature
    page.goto(str(page.get_by_role("link", name="This run has a page of its own").get_attribute("href")))
    assert violations(page) == []
    assert problems == []
    context.close()


def test_the_front_page_replays_a_run_and_stops(page: Page):
    page.goto("/")

    expect(page.locator("[data-count]")).to_have_text("step 3")
    expect(page.locator("[data-token='10']")).to_be_hidden()
    expect(page.locator("[data-count]")).to_have_text("step 18")
    expect(page.locator("#toy-title")).to_contain_text("Six words, stuck since token 6")


def test_the_focus_stays_where_a_key_was_pressed(page: Page):
    page.goto("/lab/sky-loop/")
    page.locator("#do-step").focus()
    for number in range(1, 4):
        page.keyboard.press("Enter")
        expect(page.locator("#run-tokens .token")).to_have_count(number)
        expect(page.locator("#do-step")).to_be_focused()

    page.locator("#do-run").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#lab-heading")).to_have_text("Run, going on")
    expect(page.locator("#do-run")).to_be_focused()

    page.locator("#do-stop").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#lab-heading")).to_contain_text("stopped after")
    expect(page.locator("#do-run")).to_be_focused()


def test_the_verdict_has_the_focus_after_an_answer(page: Page):
    page.goto(CHATBOT)
    page.get_by_text(KEY).click()
    page.get_by_role("button", name="Answer").press("Enter")

    expect(page.locator(".verdict")).to_be_focused()


def test_a_picked_token_stays_picked_when_the_loop_is_found(page: Page):
    page.goto("/lab/sky-loop/")
    page.fill("#temperature", "0")
    page.select_option("[name=pace]", "12")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-tokens .token").nth(2)).to_be_visible()
    page.locator("#run-tokens .token").nth(1).click()
    expect(page.locator("#step-title")).to_contain_text("Step 2 of")

    expect(page.locator("#run-tokens .token.b").first).to_be_visible()

    expect(page.locator("#run-tokens :checked")).to_have_value("2")
    expect(page.locator("#step-title")).to_contain_text("Step 2 of")
    expect(page.locator("#lab-heading")).to_contain_text("ended by the limit", timeout=20_000)
    expect(page.locator("#run-tokens :checked")).to_have_value("2")


def test_an_early_token_taken_by_keyboard_bends_the_text(page: Page):
    page.goto("/lab/sky-early-token/")
    page.select_option("[name=pace]", "0")
    page.locator("#do-run").press("Enter")
    expect(page.locator("#lab-heading")).to_contain_text("ended by the limit")
    page.locator("#run-tokens input").first.focus()
    page.keyboard.press("Space")
    expect(page.locator("#step-title")).to_contain_text("Step 1 of")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#step-title")).to_contain_text("Step 2 of")

    page.get_by_role("button", name="Take instead: blue").press("Enter")

    expect(page.locator("#lab-chips")).to_contain_text("Bent", timeout=15_000)
    expect(page.locator("#run-tokens .token.changed")).to_have_text("taken:  blue")


def test_a_token_is_taken_at_the_step_that_the_stream_has_shown(page: Page):
    page.goto("/lab/sky-loop/")
    run(page, temperature="0")

    page.get_by_role("button", name="Take instead: sky").press("Enter")

    expect(page.locator("#run-tokens .token.changed")).to_have_text("taken:  sky", timeout=20_000)


def test_a_token_picked_while_the_run_is_judged_stays_picked(page: Page):
    page.goto("/lab/sky-early-token/")
    page.select_option("[name=pace]", "0")
    page.evaluate("""
        let begun = false;
        document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
          if (detail.target.id !== "lab-goals" || begun) return;
          begun = true;
          setTimeout(() => {
            document.querySelector("#run-tokens input").click();
            document.body.dataset.picked = "yes";
          });
        });
        document.addEventListener("htmx:sseClose", () => { document.body.dataset.closed = "yes"; });
    """)

    page.locator("#do-run").press("Enter")

    page.wait_for_selector("body[data-picked][data-closed]")
    expect(page.locator("#run-tokens :checked")).to_have_value("1")
    expect(page.locator("#step-title")).to_contain_text("Step 1 of")


def test_what_the_cache_saves_is_counted(page: Page):
    page.goto("/lab/sky-cache-cost/")
    run(page)
    expect(page.locator("#lab-goals")).to_contain_text("The KV cache is off")

    page.uncheck("[name=use_kv_cache]")
    run(page, max_new_tokens="48")

    expect(page.locator("#lab-chips")).to_contain_text("Shown")
    expect(page.locator("#lab-goals")).to_contain_text("28.4 times the multiply-adds")


def test_order_and_survivors_are_shown(page: Page):
    page.goto("/lab/sky-order/")
    run(page, temperature="2")
    expect(page.locator("#lab-goals")).to_contain_text("Temperature first keeps 4, temperature last keeps 3.")

    page.goto("/lab/sky-three-left/")
    run(page)
    expect(page.locator("#lab-goals")).to_contain_text("Tokens left at step 1, exactly 3")
    run(page, top_p="0.8")
    expect(page.locator("#lab-chips")).to_contain_text("Exactly")


@pytest.mark.any_database
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_trace_of_every_setting_is_readable_at_any_width(
    chromium: Browser, address: str, width: int, scheme: Scheme
):
    context = chromium.new_context(base_url=address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    problems = watch(page)
    page.goto("/lab/")
    page.get_by_text("More settings").click()
    settings = {"top_k": "5", "top_p": "0.95", "min_p": "0.02", "repetition_penalty": "1.1", "presence_penalty": "0.2"}
    run(page, temperature="0.9", frequency_penalty="0.1", no_repeat_ngram_size="3", **settings)

    expect(page.locator(".stages thead th")).to_have_count(10)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert problems == []
    context.close()


def test_the_admin_keeps_the_policy_and_the_console_clean(page: Page, var: Path):
    password = manage(var, "make_instructor", "grace").splitlines()[0].split(": ")[1]
    page.goto("/admin/")
    page.fill("[name=username]", "grace")
    page.fill("[name=password]", password)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#content h1")).to_be_visible()

    for path in ("questions/questionversion/", "questions/questionversion/add/", "labs/lab/", "labs/lab/1/change/"):
        page.goto(f"/admin/{path}")
        expect(page.locator("#content h1")).to_be_visible()
    page.goto("/admin/labs/run/")
    page.goto("/admin/questions/questionversion/?q=chatbot-repeats")
    page.get_by_role("link", name="A chatbot keeps coming back").click()
    page.fill("[name=title]", "A chatbot says the same again")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("is saved as version 2")
    page.goto("/questions/chatbot-repeats-one-sentence/")
    expect(page).to_have_title(re.compile("A chatbot says the same again"))


@pytest.mark.real_model
def test_the_loop_on_the_real_model_from_i_am_to_cured(page: Page):
    page.goto("/questions/chatbot-repeats-one-sentence/")
    expect(page.locator("#lab .tabs [aria-current]")).to_contain_text("smollm2")
    expect(page.locator("#prompt")).to_have_value("I am")

    run(page, temperature="0")
    expect(page.locator("#lab-chips")).to_contain_text("Reproduced")
    expect(page.locator("#lab-loop")).to_contain_text("period 12")

    run(page, temperature="0.1")
    expect(page.locator("#lab-goals")).to_contain_text("No loop at the end")
    expect(page.locator("#lab-chips")).to_contain_text("Cure: not yet")

    page.fill("#temperature", "1")
    page.fill("#top_p", "0.9")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#lab-goals")).to_contain_text("Being judged", timeout=120_000)
    expect(page.locator("#lab-goals .seeds li")).to_have_count(5, timeout=120_000)
    expect(page.locator("#lab-chips")).to_contain_text("Cured", timeout=300_000)
    expect(page.locator("#lab-goals")).to_contain_text("of 5 seeds")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280

    page.locator("#lab .tabs a").first.click()
    expect(page.locator("#lab .tabs [aria-current]")).to_contain_text("sky")
