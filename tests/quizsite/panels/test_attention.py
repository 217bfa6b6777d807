"""Attention: the map of a head against the engine's own numbers, and the goal of finding one."""

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import pytest
from django.test import Client

from generation import Generation, SamplingParams, inspect, load_model
from quizsite.labs.clauses import Outcome, Run, Setup
from quizsite.labs.goals import FindHead
from quizsite.labs.models import Lab
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.attention import STEPS, Attention, after, entropy, view
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown
from quizsite.labs.validation import run_here
from tests.quizsite.pages import HTMX, press

SKY = load_model("sky")
SETUP = Setup("sky", "the sky is clear the", SamplingParams(max_new_tokens=2))
INPUTS = {"layer": 2, "head": 1, "position": 5}


def looked(setup: Setup = SETUP, **inputs: int) -> tuple[Generation, Outcome]:
    made = run_here(setup, {})
    return made, after(setup, INPUTS | inputs, made, Bench(run_here))


def shown(chosen: int = 0, **inputs: int) -> Attention:
    made, outcome = looked(SETUP, **inputs)
    return view(Shown(SETUP, made.steps, made, made.finish_reason, INPUTS | inputs, outcome, chosen=chosen))


def test_the_triangle_is_the_heads_attention_over_prompt_and_answer():
    made, outcome = looked()

    attention = inspect(SKY, [*made.prompt_ids, *made.token_ids]).attention[1, 0]
    assert [len(row) for row in outcome["triangle"]] == [1, 2, 3, 4, 5, 6, 7]
    assert all(
        row == pytest.approx(attention[i, : i + 1], abs=5e-4) and sum(row) == pytest.approx(1, abs=4e-3)
        for i, row in enumerate(outcome["triangle"])
    )
    assert [token.strip() for token in outcome["tokens"]] == [*SETUP.prompt.split(), *made.text.split()]


def test_the_row_in_focus_says_where_it_looks_most_and_how_spread_it_is():
    _, outcome = looked()

    row = inspect(SKY, SKY.encode(SETUP.prompt)).attention[1, 0, 4]
    assert (outcome["row"], outcome["looks_at"], outcome["weight"]) == (5, 3, 0.440)
    assert outcome["entropy"] == pytest.approx(-(row * np.log2(row)).sum(), abs=1e-3)


def test_no_position_given_is_the_last_one():
    assert looked(position=0)[1]["row"] == 7


def test_every_head_is_listed_for_the_position_in_focus():
    made, outcome = looked()

    rows = inspect(SKY, [*made.prompt_ids, *made.token_ids]).attention[:, 0, 4]
    assert outcome["heads"] == [[[int(row.argmax()) + 1, round(float(row.max()), 3)]] for row in rows]


@pytest.mark.parametrize(("weights", "bits"), [([1.0], 0), ([0.5, 0.5], 1), ([0.25] * 4, 2), ([1.0, 0.0], 0)])
def test_entropy_is_that_of_the_weights(weights: list[float], bits: float):
    assert entropy(weights) == bits


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"layer": 3}, "layer must be between 1 and 2, got 3: sky has 2 layers"),
        ({"head": 2}, "head must be between 1 and 1, got 2: each layer of sky has 1"),
        ({"position": 8}, "position must be between 1 and 7, got 8: the map has 7 positions"),
    ],
)
def test_what_the_model_or_the_text_does_not_have_is_refused_in_words(inputs: dict[str, int], words: str):
    found = shown(**inputs)

    assert found.problem == words
    assert found.map is None


def test_a_long_text_is_shown_up_to_what_can_be_inspected_and_the_panel_says_so():
    made, outcome = looked(replace(SETUP, prompt="the sky is blue " * 20), position=64)

    found = view(Shown(SETUP, made.steps, made, "length", INPUTS, outcome)).map
    assert found
    assert len(found.rows) == 64
    assert found.cut_words == "The first 64 of 82 positions are shown."


def test_a_cell_is_as_dark_as_its_weight_and_nothing_stands_ahead_of_a_row():
    found = shown().map
    assert found

    attention = inspect(SKY, SKY.encode(SETUP.prompt)).attention[1, 0]
    for number, row in enumerate(found.rows[:5], start=1):
        drawn = [0] * 7
        for cell in row.cells:
            start = round(float(cell.x[:-1]) * 7 / 100)
            for column in range(start, start + round(float(cell.width[:-1]) * 7 / 100)):
                drawn[column] = cell.step
        wanted = [sum(weight >= step for step in STEPS) for weight in attention[number - 1, :number]]
        assert drawn == wanted + [0] * (7 - number)


@pytest.mark.parametrize(("chosen", "row"), [(0, 5), (1, 1), (7, 7), (8, 5), (10**18, 5)])
def test_a_row_that_exists_can_be_opened(chosen: int, row: int):
    found = shown(chosen=chosen).map
    assert found

    assert found.chosen.number == row
    assert [row.number for row in found.rows if row.is_chosen] == [row]
    assert len(found.weights) == row
    assert found.most_bits == f"{log2(row):.2f}"
    assert [weight.number for weight in found.weights if weight.is_most] == [found.chosen.looks_at]


def test_a_run_that_goes_on_or_was_stopped_has_words_in_place_of_a_map():
    made = run_here(SETUP, {})

    going = view(Shown(SETUP, made.steps[:1], None, "", INPUTS, {}))
    empty = view(Shown(SETUP, [], None, "", INPUTS, {}))
    stopped = view(Shown(SETUP, made.steps[:1], None, "cancelled", INPUTS, {}))
    looking = view(Shown(SETUP, made.steps, made, "length", INPUTS, {}))

    assert [each.map for each in (going, empty, stopped, looking)] == [None] * 4
    assert [len(each.tokens) for each in (going, empty, stopped, looking)] == [6, 5, 6, 7]
    assert [each.waits for each in (going, empty, stopped, looking)] == [True, True, False, True]
    assert "nothing was looked into" in stopped.words


GOAL = FindHead(position=5, target=3, min_weight=0.4)


def run_of(made: Generation | None = None, setup: Setup = SETUP, **inputs: int) -> Run:
    """Return a run of a lab that starts in the first layer."""
    generation, outcome = looked(setup, **inputs)
    return Run(
        start=SETUP,
        setup=setup,
        made=made or generation,
        allowed=("layer", "head"),
        seeds=(),
        generate=lambda wanted: [],
        start_inputs=INPUTS | {"layer": 1},
        inputs=INPUTS | inputs,
        outcome=outcome,
    )


def failing(run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in GOAL.judge(run).failing}


def test_the_head_is_found_by_where_it_looks_and_how_much():
    verdict = GOAL.judge(run_of(layer=2))

    assert verdict.is_met
    assert verdict.summary == "Layer 2, head 1: position 5 looks most at 3, with 0.440."


def test_another_head_is_told_where_it_looks_and_what_is_missing():
    assert failing(run_of(layer=1)) == {
        "Position 5 looks most at position 3": "position 2, “sky”, with 0.268",
        "Weight there, at least 0.4": "0.218, short by 0.182",
    }


def test_a_head_that_looks_there_too_little_is_not_the_one():
    strict = replace(GOAL, min_weight=0.5)

    assert [clause.value for clause in strict.judge(run_of(layer=2)).failing] == ["0.440, short by 0.060"]


def test_another_text_a_token_by_hand_or_a_locked_input_finds_nothing():
    other = replace(SETUP, prompt="the sky is the the")

    assert failing(run_of(setup=other, layer=2))["Model, prompt and length"] == "prompt changed"
    assert failing(run_of(made=run_here(SETUP, {1: 3}), layer=2)) == {"No token taken by hand": "1"}
    assert failing(run_of(layer=2, position=4)) == {"Only unlocked settings changed": "position"}


def test_a_layer_that_the_model_does_not_have_is_told_in_the_goal_too():
    found = failing(run_of(layer=9))

    assert found["Position 5 looks most at position 3"] == "layer must be between 1 and 2, got 9: sky has 2 layers"


OPEN = {"do": "run", "model": "sky", "prompt": "the sky is clear the", "temperature": "0", "max_new_tokens": "2"}
ADDRESS = "/lab/panel/attention/"


@pytest.mark.django_db
def test_the_open_panel_shows_the_map_of_a_run_without_javascript(client: Client):
    assert client.get(ADDRESS).status_code == 200

    html = client.post(ADDRESS, OPEN | {"layer": "2", "head": "1", "position": "5"}, follow=True).content.decode()

    assert "Layer 2, head 1" in html
    assert "It looks most at position 3, <code>·is</code>: weight 0.440." in html
    assert html.count('type="radio" name="step"') == 7
    assert "never looks ahead" in html


@pytest.mark.django_db
def test_a_row_is_opened_by_itself_and_on_the_runs_page(client: Client):
    client.post(ADDRESS, OPEN | {"layer": "2", "head": "1", "position": "5"})
    address = StoredRun.objects.get().get_absolute_url()

    part = client.get(address, {"step": "2"}, **HTMX).content.decode()
    page = client.get(address, {"step": "2"}).content.decode()

    assert part.lstrip().startswith('<section id="step"')
    assert "Position 2, <code>·sky</code>" in part
    assert 'value="2" checked' in page
    assert "Position 2, <code>·sky</code>" in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        ({"layer": "0"}, 422, "greater than or equal to 1"),
        ({"layer": "x"}, 422, "Enter a whole number."),
        ({"layer": "7", "head": "1"}, 200, "layer must be between 1 and 2, got 7: sky has 2 layers"),
        ({"layer": "1", "head": "1", "position": ""}, 200, "Position 7"),
    ],
)
def test_a_number_that_there_is_not_is_answered_in_words(client: Client, data: dict[str, str], status: int, words: str):
    response = client.post(ADDRESS, OPEN | {"layer": "1", "head": "1", "position": "0"} | data, follow=True)

    assert response.status_code == status
    assert words in response.content.decode()


@pytest.mark.django_db
def test_another_head_reads_the_same_recording(signed_in: Client):
    lab = Lab.objects.get(slug="sky-find-the-layer")
    posted: list[dict[str, Any]] = [{"layer": "1", "position": "5"}, {"layer": "2", "position": "5"}]

    first, second = (press(signed_in, lab, **data) for data in posted)

    assert first.recording == second.recording
    assert [run.verdicts["find_head"]["clauses"][0]["met"] for run in (first, second)] == [False, True]
