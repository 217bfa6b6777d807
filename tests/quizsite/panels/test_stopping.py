"""Stopping: three ways to end, what each one leaves behind, and the goal of ending by a given one."""

from dataclasses import replace

import pytest
from django.test import Client

from generation import Generation, SamplingParams, generate, load_model
from quizsite.labs.clauses import Run, Setup
from quizsite.labs.goals import EndsBy
from quizsite.labs.panels.kind import Shown
from quizsite.labs.panels.stopping import Stopping, view
from quizsite.labs.validation import run_here
from tests.generation.models import ByteModel
from tests.quizsite.pages import HTMX

END = load_model("sky").encode("<EOS>", control=True)[0]
START = SamplingParams(temperature=1, max_new_tokens=10, seed=14)  # the end token is drawn at step 18
SETUP = Setup("sky", "the sky is", START)


def under(**changes: object) -> Setup:
    return replace(SETUP, params=replace(START, **changes))  # type: ignore[arg-type]


def shown(setup: Setup, n_steps: int | None = None, finish_reason: str | None = None) -> Stopping:
    made = run_here(setup, {})
    is_over = n_steps is None and finish_reason is None
    reason = made.finish_reason if finish_reason is None else finish_reason
    return view(Shown(setup, made.steps[:n_steps], made if is_over else None, reason, {}, {}))


def happened(found: Stopping) -> list[str]:
    return [ending.name for ending in found.endings if ending.happened]


def words(found: Stopping, name: str) -> str:
    return next(ending.words for ending in found.endings if ending.name == name)


@pytest.mark.parametrize(
    ("changes", "ending", "title"),
    [
        ({}, "Limit", "Ended by the limit"),
        ({"max_new_tokens": 24}, "End token", "Ended by its end token"),
        ({"max_new_tokens": 24, "stop": ("the",)}, "Stop string", "Ended by a stop string"),
    ],
)
def test_one_of_three_ways_ended_the_run(changes: dict[str, object], ending: str, title: str):
    found = shown(under(**changes))

    assert happened(found) == [ending]
    assert found.title == title


def test_the_bars_are_the_raw_probability_of_the_end_token_at_each_step():
    made = run_here(under(max_new_tokens=24), {})

    bars = shown(under(max_new_tokens=24)).bars

    raw = [next(row for row in step.stages[0].top if row.token_id == END) for step in made.steps]
    assert [bar.probability for bar in bars] == pytest.approx([row.probability for row in raw])
    assert [bar.is_made for bar in bars] == [False] * 17 + [True]
    assert all(bar.is_known for bar in bars)
    assert bars[-1].words == "0.021"
    assert bars[5].height == f"{raw[5].probability * 100:.1f}%"
    assert float(bars[5].y[:-1]) + float(bars[5].height[:-1]) == pytest.approx(100, abs=0.11)


def test_an_end_token_below_the_recorded_rows_is_said_to_be_lower_and_has_no_height():
    made = run_here(SETUP, {})
    first, *rest = made.steps
    known = tuple(row for row in first.stages[0].top if row.token_id != END)
    unknown = replace(first, stages=(replace(first.stages[0], top=known), *first.stages[1:]))

    found = view(Shown(SETUP, [unknown, *rest], made, "length", {}, {}))
    never = view(Shown(SETUP, [unknown], made, "length", {}, {}))

    assert (found.bars[0].is_known, found.bars[0].height) == (False, "0.0%")
    assert found.bars[0].words == f"lower than {known[-1].probability:.3f}"
    assert found.n_unknown == 1
    assert words(never, "End token") == "Not chosen, and at no step among the ten likeliest tokens."


def test_the_end_token_that_was_likeliest_and_not_chosen_is_named():
    found = shown(SETUP)

    nearest = max(found.bars, key=lambda bar: bar.probability)
    assert words(found, "End token") == (
        f"Not chosen. Its raw probability was highest at step {nearest.step}: {nearest.words}."
    )


def test_the_limit_says_how_much_of_it_is_used():
    assert words(shown(SETUP), "Limit").startswith("All 10 tokens are used. The model never sees this number")
    assert words(shown(under(max_new_tokens=24)), "Limit") == "18 of 24 tokens used."


def written(text: str, *stop: str, max_new_tokens: int = 40) -> Generation:
    """Return a run that writes a text letter by letter, up to its end token."""
    params = SamplingParams(stop=stop, max_new_tokens=max_new_tokens)
    return generate(ByteModel([*text.encode(), ByteModel.eos_token_id]), "", params)


def of_bytes(made: Generation, *stop: str) -> Stopping:
    setup = Setup("bytes", "", SamplingParams(stop=stop))
    return view(Shown(setup, made.steps, made, made.finish_reason, {}, {}))


def test_a_stop_string_is_named_and_never_shown():
    found = of_bytes(written("one\ntwo", "\ntw", "zz"), "\ntw", "zz")

    assert words(found, "Stop string") == (
        "“↵tw” was completed by token 6. The text ends before it. "
        "Text was held back at 3 steps, where one might have begun."
    )
    assert [token.text for token in found.tokens] == ["o", "n", "e", "stop", "stop", "stop"]


def test_what_came_in_one_token_with_the_stop_string_is_dropped_too():
    made = written("ab.", ".")
    longer = replace(made, steps=(*made.steps[:-1], replace(made.steps[-1], piece=". c")))

    assert "“.” was completed by token 3. The text ends before it, and “·c”," in words(
        of_bytes(longer, "."), "Stop string"
    )


def test_a_stop_string_that_was_not_met_and_none_at_all_are_told_apart():
    assert words(of_bytes(written("abc", "cd"), "cd"), "Stop string") == (
        "Not met: “cd”. Text was held back at 1 step, where one might have begun."
    )
    assert words(of_bytes(written("abc")), "Stop string") == "None is given."


def test_a_model_that_is_not_here_any_more_has_no_bars():
    found = of_bytes(written("abc"))

    assert found.bars == []
    assert happened(found) == ["End token"]


def test_a_run_without_steps_an_open_one_and_a_stopped_one_can_be_shown():
    empty = shown(under(stop=("zz",)), 0, "")
    going = shown(SETUP, 3, "")
    stopped = shown(SETUP, 3, "cancelled")

    assert (empty.title, empty.bars, len(empty.tokens)) == ("Three ways to end", [], 0)
    assert words(empty, "Stop string") == "Not met: “zz”."
    assert (going.title, len(going.bars), happened(going)) == ("Three ways to end", 3, [])
    assert (stopped.title, happened(stopped)) == ("None of the three: stopped", [])


def run_of(made: Generation, whole: Generation, setup: Setup | None = None) -> Run:
    start = Setup("bytes", "", SamplingParams(max_new_tokens=40))
    return Run(
        start=start,
        setup=setup or start,
        made=made,
        allowed=("stop", "max_new_tokens"),
        seeds=(),
        generate=lambda wanted: [whole for _ in wanted],
    )


LIST = "1. a\n2. b\n3. c"
STOP = EndsBy(reason="stop", before="3.")


def failing(goal: EndsBy, run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in goal.judge(run).failing}


@pytest.mark.parametrize("stop", ["3.", "\n3", "3"])
def test_a_stop_string_that_ends_the_text_at_that_place_meets_the_goal(stop: str):
    verdict = STOP.judge(run_of(written(LIST, stop), written(LIST)))

    assert verdict.is_met
    assert "Ended by a stop string after" in verdict.summary


def test_another_place_another_end_or_another_text_does_not():
    whole, place = written(LIST), "The text ends before “3.”"

    assert failing(STOP, run_of(written(LIST, "b"), whole)) == {place: "ends in '1. a\\n2. '"}
    assert failing(STOP, run_of(written(LIST, "c"), whole)) == {place: "ends in '. a\\n2. b\\n3. '"}
    assert failing(STOP, run_of(written(LIST, max_new_tokens=10), whole)) == {"Ended by a stop string": "the limit"}
    assert failing(STOP, run_of(written("1. a\n2. x\n3", "3"), whole)) == {
        "The beginning of the start’s run": "another one",
        place: "ends in '1. a\\n2. x\\n'",
    }
    assert failing(STOP, run_of(written("ab", "b"), written("ab"))) == {place: "ends in 'a'"}  # it is nowhere


def test_another_prompt_a_taken_token_or_a_locked_setting_does_not_count():
    made, whole = written(LIST, "3."), written(LIST)
    start = run_of(made, whole).start
    forced = replace(made, steps=(replace(made.steps[0], forced=True), *made.steps[1:]))
    warmer = replace(start, params=replace(start.params, temperature=1))

    assert failing(STOP, run_of(made, whole, replace(start, prompt="x"))) == {"Model and prompt": "prompt changed"}
    assert failing(STOP, run_of(forced, whole)) == {"No token taken by hand": "1"}
    assert failing(STOP, run_of(made, whole, warmer)) == {"Only unlocked settings changed": "temperature"}


def test_a_higher_limit_ends_the_run_by_the_limit_again():
    goal, whole = EndsBy(reason="length", min_tokens=8), written(LIST, max_new_tokens=4)

    assert goal.judge(run_of(written(LIST, max_new_tokens=8), whole)).is_met
    assert failing(goal, run_of(written(LIST, max_new_tokens=7), whole)) == {"Tokens, at least 8": "7"}
    assert failing(goal, run_of(written(LIST), whole)) == {"Ended by the limit": "its end token"}
    assert goal.wanted == "The same beginning as at the start, ended by the limit, after 8 tokens or more."
    assert STOP.wanted.endswith("ended by a stop string, just before “3.”.")


@pytest.mark.django_db
def test_the_page_says_which_way_it_ended(client: Client):
    address, data = "/lab/panel/stopping/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0"}

    before = client.get(address)
    answer = client.post(address, data | {"max_new_tokens": "8", "stop": "sky"})
    html = client.get(address).content.decode()

    assert (before.status_code, answer.status_code) == (200, 302)
    assert "Ended by a stop string" in html
    assert "“sky” was completed by token 3." in html
    assert 'for="stop"' in html
    assert html.count('id="stop"') == 1


@pytest.mark.django_db
def test_the_page_refuses_an_empty_limit_in_the_engines_words(client: Client):
    data = {"do": "run", "model": "sky", "prompt": "the sky is", "max_new_tokens": "0"}

    answer = client.post("/lab/panel/stopping/", data, **HTMX)

    assert answer.status_code == 422
    assert "max_new_tokens must be between 1 and 8192, got 0" in answer.content.decode()
