"""Cost: a chat's bill against one that is reckoned by hand, and the goal of reaching a ratio."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from generation import SamplingParams
from quizsite.labs.clauses import Run, Setup
from quizsite.labs.goals import ReachRatio
from quizsite.labs.models import Lab, LabResult
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.cost import KIND, MOST_TOKENS, MOST_TURNS, Bill, after, view
from quizsite.labs.panels.kind import Shown
from quizsite.labs.validation import read_inputs, run_here

SETUP = Setup("sky", "", SamplingParams())
SMALL = {  # two turns: 110 tokens in, then 150 in, of which half of the first 110 are cached
    "input_price": 2,
    "cached_price": 0.1,
    "output_price": 10,
    "n_turns": 2,
    "n_system": 100,
    "n_user": 10,
    "n_answer": 30,
    "n_reasoning": 50,
    "cached_percent": 50,
}


def outcome_of(**changes: float) -> dict[str, Any]:
    return after(SETUP, read_inputs(KIND, SMALL, changes), None, Bench(run_here))


def bill(**changes: float) -> Bill:
    inputs = read_inputs(KIND, SMALL, changes)
    shown = view(Shown(SETUP, (), None, "nothing", inputs, outcome_of(**changes)))
    assert shown
    return shown


def test_the_bill_is_the_one_that_is_reckoned_by_hand():
    outcome = outcome_of()

    assert (outcome["new_input_tokens"], outcome["cached_input_tokens"]) == (205, 55)
    assert (outcome["input_tokens"], outcome["output_tokens"]) == (260, 160)
    assert (outcome["first_turn_input_tokens"], outcome["last_turn_input_tokens"]) == (110, 150)
    assert outcome["new_input_cost"] == 0.00041
    assert outcome["cached_input_cost"] == 0.0000055
    assert (outcome["reasoning_cost"], outcome["answer_cost"], outcome["output_cost"]) == (0.001, 0.0006, 0.0016)
    assert outcome["total_cost"] == 0.0020155
    assert outcome["cost_without_reasoning"] == 0.0010155
    assert outcome["cost_without_cache"] == 0.00212
    assert (outcome["first_turn_cost"], outcome["last_turn_cost"]) == (0.00102, 0.0009955)


def test_the_parts_their_prices_and_the_largest_are_shown():
    shown = bill()

    assert shown.words == "The largest part is reasoning: 50% of the bill."
    assert [(part.name, part.tokens, part.price, part.share, part.is_largest) for part in shown.parts] == [
        ("New input", "205", "2", "20%", False),
        ("Cached input", "55", "0.1", "under 1%", False),
        ("Reasoning", "100", "10", "50%", True),
        ("Answer", "60", "10", "30%", False),
    ]
    assert (shown.n_tokens, shown.total) == ("420", "0.002016")


def test_the_formula_has_the_numbers_put_in():
    assert [numbers for _, numbers in bill().lines] == [
        "2 · 100 + 3 · 10 + 1 · 30 = 260 tokens",
        "55 tokens; 205 are read anew",
        "2 · (50 + 30) = 160 tokens",
        "(205 · 2 + 55 · 0.1 + 160 · 10) ÷ 1,000,000 = 0.0020155",
    ]


def test_each_turn_has_its_row_and_the_curve_adds_them_up():
    shown = bill()

    assert [turn.tokens for turn in shown.turns] == [["110", "0", "50", "30"], ["95", "55", "50", "30"]]
    assert [turn.cost for turn in shown.turns] == ["0.001020", "0.000996"]
    assert shown.chart
    assert {line.name: line.values for line in shown.chart.series} == {
        "as set": [0.00102, 0.0020155],
        "without a cache": [0.00102, 0.00212],
    }


def test_without_a_cache_there_is_one_curve_and_for_one_turn_none():
    one_curve = bill(cached_percent=0).chart

    assert one_curve
    assert len(one_curve.series) == 1
    assert bill(n_turns=1).chart is None


def test_nothing_is_billed_where_nothing_has_a_price():
    shown = bill(input_price=0, cached_price=0, output_price=0)

    assert shown.words == "Nothing is billed: there are no tokens that have a price."
    assert shown.total == "0"
    assert not any(part.is_largest for part in shown.parts)
    assert shown.chart is None


def test_the_largest_bill_is_exact():
    most = dict.fromkeys(["n_system", "n_user", "n_answer", "n_reasoning"], MOST_TOKENS)

    shown = bill(**most, n_turns=MOST_TURNS, cached_percent=0, input_price=99.9999, output_price=99.9999)

    # 200 · 100,000 + 20,100 · 100,000 + 19,900 · 100,000 in, 200 · 200,000 out
    assert shown.lines[-1][1].endswith("= 405,999.594")
    assert shown.n_tokens == "4,060,000,000"
    assert len(shown.turns) == MOST_TURNS


@given(st.integers(1, MOST_TURNS), st.integers(0, 100))
def test_the_parts_add_up_to_the_whole(n_turns: int, cached_percent: int):
    outcome = outcome_of(n_turns=n_turns, cached_percent=cached_percent)

    assert outcome["total_cost"] == pytest.approx(outcome["input_cost"] + outcome["output_cost"])
    assert outcome["input_tokens"] == outcome["new_input_tokens"] + outcome["cached_input_tokens"]
    assert outcome["total_cost"] <= outcome["cost_without_cache"]  # at these prices


def test_a_tiny_part_is_not_written_as_nothing():
    shown = bill(n_turns=1, n_system=1, n_user=0, input_price=0.0001, n_answer=100_000, cached_percent=0)

    assert shown.parts[0].cost == "under 0.001"
    assert shown.parts[1].cost == "0"


def test_a_run_without_an_outcome_has_no_bill():
    assert view(Shown(SETUP, (), None, "nothing", SMALL, {})) is None


BAD_INPUTS = [
    ({"n_turns": 0}, "n_turns: Ensure this value is greater than or equal to 1."),
    ({"n_turns": 201}, "less than or equal to 200"),
    ({"n_user": 100_001}, "less than or equal to 100000"),
    ({"n_user": "1.5"}, "Enter a whole number."),
    ({"n_user": "16,000"}, "Enter a whole number."),
    ({"cached_percent": -1}, "greater than or equal to 0"),
    ({"input_price": "2,5"}, "A price is a number such as 2.5."),
    ({"input_price": "nan"}, "A price is a number such as 2.5."),
    ({"input_price": "1e999"}, "less than or equal to 100"),
    ({"input_price": "0.00001"}, "no more than 4 decimal places"),
    ({"output_price": ""}, "This field is required."),
]


@pytest.mark.parametrize(("inputs", "message"), BAD_INPUTS)
def test_what_cannot_be_reckoned_with_is_refused_in_words(inputs: dict[str, Any], message: str):
    with pytest.raises(ValueError, match="^[a-z_]+: ") as caught:
        read_inputs(KIND, SMALL, inputs)

    assert message in str(caught.value)


@pytest.mark.parametrize(("typed", "kept"), [("2.50", 2.5), ("3.0", 3), ("0", 0), ("0.0001", 0.0001)])
def test_a_price_is_kept_as_it_was_typed(typed: str, kept: float):
    price = read_inputs(KIND, SMALL, {"input_price": typed})["input_price"]

    assert repr(price) == repr(kept)


# The goal

GOAL = ReachRatio(
    over="reasoning_cost",
    under="cost_without_reasoning",
    over_words="the reasoning",
    under_words="the rest",
    at_least=3,
    at_most=4,
)
ONE = SMALL | {"n_turns": 1, "n_system": 90, "cached_percent": 0, "n_answer": 8, "n_reasoning": 0}  # the rest: 280


def run_of(allowed: tuple[str, ...] = ("n_reasoning",), **changes: float) -> Run:
    inputs = read_inputs(KIND, ONE, changes)
    return Run(
        start=SETUP,
        setup=SETUP,
        made=None,
        allowed=allowed,
        seeds=(),
        generate=lambda wanted: [],
        start_inputs=read_inputs(KIND, ONE, {}),
        inputs=inputs,
        outcome=after(SETUP, inputs, None, Bench(run_here)),
    )


def failing(goal: ReachRatio, run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in goal.judge(run).failing}


@pytest.mark.parametrize("n_reasoning", [84, 100, 112])  # 3.00, 3.57 and 4.00 times
def test_a_ratio_between_its_ends_is_reached_ends_and_all(n_reasoning: int):
    assert GOAL.judge(run_of(n_reasoning=n_reasoning)).is_met


def test_too_little_and_too_much_are_told_by_how_much():
    little, much = run_of(n_reasoning=70), run_of(n_reasoning=140)

    assert failing(GOAL, little) == {"The reasoning, at least 3 times the rest": "2.50, short by 0.50"}
    assert failing(GOAL, much) == {"And at most 4 times": "5.00"}
    (clause,) = GOAL.judge(much).failing
    assert clause.measure
    assert clause.measure.value - clause.measure.limit == pytest.approx(1)


def test_more_is_no_fault_where_there_is_no_upper_end():
    open_above = replace(GOAL, at_most=None)

    assert open_above.judge(run_of(n_reasoning=1000)).is_met
    assert open_above.wanted == "Make the reasoning at least 3 times the rest."
    assert GOAL.wanted == "Make the reasoning at least 3 and at most 4 times the rest."


def test_a_locked_input_does_not_count():
    run = run_of(n_answer=0, n_system=0, n_user=1, n_reasoning=1)

    assert failing(GOAL, run)["Only unlocked settings changed"] == "n system, n user, n answer"


def test_many_times_nothing_is_no_ratio():
    run = run_of(allowed=("n_reasoning", "n_answer", "n_system", "n_user"), n_answer=0, n_system=0, n_user=0)

    assert failing(GOAL, run) == {"The reasoning, at least 3 times the rest": "nothing to compare with: the rest is 0"}


def test_a_number_that_the_panel_has_not_measured_is_not_reached():
    assert not replace(GOAL, over="no_such_cost").judge(run_of(n_reasoning=100)).is_met
    assert not GOAL.judge(replace(run_of(n_reasoning=100), outcome={"problem": "it broke"})).is_met


# The page


@pytest.mark.django_db
def test_the_panel_reckons_without_javascript(client: Client):
    assert client.get("/lab/panel/cost/").status_code == 200

    response = client.post("/lab/panel/cost/", {"do": "run", **SMALL})

    html = client.get(response["Location"]).content.decode()
    assert response.status_code == 302
    assert "(205 · 2 + 55 · 0.1 + 160 · 10) ÷ 1,000,000 = 0.0020155" in html
    assert "What has been billed so far" in html


@pytest.mark.django_db
def test_a_bad_number_is_told_beside_its_field_and_the_others_are_kept(client: Client):
    response = client.post("/lab/panel/cost/", {"do": "run", **SMALL, "n_turns": "many", "n_user": "77"})

    html = response.content.decode()
    assert response.status_code == 422
    assert html.count("Enter a whole number.") == 1
    assert 'value="77"' in html


@pytest.mark.django_db
def test_the_agents_lab_is_met_by_its_turns_alone(signed_in: Client):
    lab = Lab.objects.get(slug="sky-cost-agent")

    signed_in.post(lab.get_absolute_url(), {"do": "run", "n_turns": "31"})
    assert LabResult.objects.count() == 0
    signed_in.post(lab.get_absolute_url(), {"do": "run", "n_turns": "10", "output_price": "0"})
    assert LabResult.objects.count() == 0
    signed_in.post(lab.get_absolute_url(), {"do": "run", "n_turns": "32"})

    assert LabResult.objects.get().goal == "reach_ratio"
