"""Compare: two settings on the same random numbers, and the goals over them."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from generation import Generation, SamplingParams, generate, load_model
from quizsite.labs.clauses import Inputs, Run, Setup
from quizsite.labs.goals import CureBeside, SameTextBeside
from quizsite.labs.models import Lab
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.compare import CompareInputs, Comparison, after, copied, side_b, swapped, view
from quizsite.labs.panels.kind import Other, Shown
from quizsite.labs.validation import run_here
from tests.quizsite.pages import HTMX, press

SKY = load_model("sky")
GREEDY = SamplingParams(max_new_tokens=32)
NEUTRAL: Inputs = {
    "b_temperature": 0.0,
    "b_top_k": 0,
    "b_top_p": 1.0,
    "b_min_p": 0.0,
    "b_repetition_penalty": 1.0,
    "b_temperature_last": False,
}


def compared(params: SamplingParams = GREEDY, **changes: Any) -> Comparison:
    setup, inputs = Setup("sky", "the sky is", params), NEUTRAL | changes
    ours = run_here(setup, {})
    outcome = after(setup, inputs, ours, Bench(run_here))
    theirs = run_here(side_b(setup, inputs), {})
    other = Other(side_b(setup, inputs), theirs.steps, theirs)
    return view(Shown(setup, ours.steps, ours, ours.finish_reason, inputs, outcome, [other]))


def test_the_same_settings_write_the_same_tokens():
    comparison = compared()

    assert comparison.parts_at == 0
    assert comparison.words == "Both runs wrote the same tokens."
    assert [token.text for token in comparison.sides[0].tokens] == [token.text for token in comparison.sides[1].tokens]


def test_the_first_difference_is_marked_on_both_sides_and_the_random_number_is_the_same():
    comparison = compared(b_temperature=1.2)

    a, b = comparison.sides
    assert comparison.parts_at == 3  # greedy takes sky, the draw at 1.2 falls on is
    assert [token.number for token in a.tokens if token.is_changed] == [3]
    assert [token.number for token in b.tokens if token.is_changed] == [3]
    assert a.step
    assert b.step
    assert a.step.u == b.step.u
    assert (a.step.chosen, b.step.chosen) == ("sky", "is")
    assert (a.n_kept, b.n_kept) == (1, 6)


def test_each_side_names_its_temperature_and_what_differs():
    comparison = compared(b_temperature=0.7, b_top_p=0.9)

    assert [side.settings for side in comparison.sides] == ["temperature 0, top-p off", "temperature 0.7, top-p 0.9"]


def test_loop_variety_and_surprisal_stand_under_each_side():
    a, _ = compared(b_temperature=1.2).sides

    setup = Setup("sky", "the sky is", GREEDY)
    greedy = run_here(setup, {})
    surprisal = sum(step.surprisal for step in greedy.steps) / 32
    assert a.is_looping
    assert a.counters == [
        ("loop period", "1", True),
        ("repeated 4-grams", f"{greedy.seq_rep_4:.2f}", False),
        ("mean surprisal, bits", f"{surprisal:.2f}", False),
        ("different tokens", "2 of 32", False),
    ]


def test_the_chart_leaves_out_what_the_shorter_run_has_not():
    comparison = compared(b_temperature=1.2)  # B ends by itself after 13 tokens

    assert comparison.chart
    assert comparison.chart.rows[12][1][1] != ""
    assert comparison.chart.rows[13][1][1] == ""


def test_a_run_that_is_still_open_is_shown_without_the_other():
    setup = Setup("sky", "the sky is", GREEDY)
    steps = run_here(setup, {}).steps[:2]

    comparison = view(Shown(setup, steps, None, "", NEUTRAL, {}))

    assert [side.waits for side in comparison.sides] == [True, True]
    assert [len(side.tokens) for side in comparison.sides] == [2, 0]
    assert comparison.chart is None


def test_a_bad_value_of_b_is_told_in_the_engines_words():
    form = CompareInputs({name: str(value) for name, value in NEUTRAL.items()} | {"b_top_p": "0"})

    assert not form.is_valid()
    assert form.errors == {"b_top_p": ["top_p must be in (0, 1], got 0.0"]}


def test_swapping_and_copying_move_settings_and_nothing_else():
    posted = {"temperature": "0", "top_k": "3", "b_temperature": "1.2", "b_top_k": "0", "prompt": "the sky is"}

    assert swapped(posted)["temperature"] == "1.2"
    assert swapped(posted)["b_top_k"] == "3"
    assert copied(posted)["b_temperature"] == "0"
    assert copied(posted)["temperature"] == "0"
    assert swapped(posted)["prompt"] == copied(posted)["prompt"] == "the sky is"


def judged(params: SamplingParams, start: SamplingParams, allowed: tuple[str, ...], **changes: Any) -> Run:
    def rerun(wanted: list[SamplingParams]) -> list[Generation]:
        return [generate(SKY, "the sky is", params) for params in wanted]

    setup, inputs = Setup("sky", "the sky is", params), NEUTRAL | changes
    made = run_here(setup, {})
    return Run(
        start=Setup("sky", "the sky is", start),
        setup=setup,
        made=made,
        allowed=allowed,
        seeds=(17, 6, 9, 19, 5),
        generate=rerun,
        start_inputs=NEUTRAL,
        inputs=inputs,
        outcome=after(setup, inputs, made, Bench(run_here)),
    )


LOOPING = SamplingParams(max_new_tokens=48, seed=17)
CURE = CureBeside(min_new_tokens_before_end=1, max_seq_rep_4=0.5)
ALLOWED = ("b_temperature", "b_top_k", "b_top_p")


def test_b_cures_the_loop_that_stands_in_a():
    verdict = CURE.judge(judged(LOOPING, LOOPING, ALLOWED, b_temperature=1.0))

    assert verdict.is_met
    assert len(verdict.seeds) == 5


def test_a_b_that_loops_as_well_is_no_cure():
    failing = {clause.name: clause.value for clause in CURE.judge(judged(LOOPING, LOOPING, ALLOWED)).failing}

    assert failing["No loop at the end"] == "period 1"


def test_a_that_was_cured_instead_of_b_is_found_out():
    hot = replace(LOOPING, temperature=1.0)

    failing = {c.name: c.value for c in CURE.judge(judged(hot, LOOPING, ALLOWED, b_temperature=1.0)).failing}

    assert failing == {"A loops": "none", "Only unlocked settings changed": "temperature"}


def test_a_cure_by_a_locked_input_or_by_too_many_is_none():
    failing = {
        c.name: c.value
        for c in CURE.judge(
            judged(LOOPING, LOOPING, ALLOWED, b_temperature=1.0, b_top_k=5, b_top_p=0.99, b_min_p=0.01)
        ).failing
    }

    assert failing["Only unlocked settings changed"] == "b min p"
    assert failing["Settings of B changed, at most 2"] == "4"


def test_one_survivor_writes_the_greedy_text_at_any_temperature():
    goal = SameTextBeside()

    assert goal.judge(judged(LOOPING, LOOPING, ALLOWED, b_temperature=1.5, b_top_k=1)).is_met
    assert not goal.judge(judged(LOOPING, LOOPING, ALLOWED, b_temperature=1.5, b_top_k=2)).is_met
    failing = goal.judge(judged(LOOPING, LOOPING, ALLOWED, b_temperature=0.3, b_top_k=1)).failing
    assert [(clause.name, clause.value) for clause in failing] == [("Temperature of B, at least 0.5", "0.3")]


@pytest.mark.django_db
def test_the_panel_in_the_open_lab_runs_both_sides_and_keeps_them(signed_in: Client):
    data = {name: str(value) for name, value in NEUTRAL.items() if name != "b_temperature_last"}
    posted = data | {"do": "run", "model": "sky", "prompt": "the sky is", "b_temperature": "1.2", "temperature": "0"}
    response = signed_in.post("/lab/panel/compare/", posted)

    html = signed_in.get(response.url).content.decode()  # type: ignore[attr-defined]

    assert "The first difference is at token 3." in html
    assert 'id="surprisal"' in html


@pytest.mark.django_db
def test_swap_shows_the_form_changed_and_starts_nothing(signed_in: Client):
    data = {"do": "swap", "model": "sky", "prompt": "the sky is", "temperature": "0.3", "b_temperature": "1.7"}

    html = signed_in.post("/lab/panel/compare/", data, **HTMX).content.decode()

    assert 'name="temperature" inputmode="decimal" autocomplete="off" value="1.7"' in html
    assert "Nothing has been generated" in html


@pytest.mark.django_db
def test_a_prediction_is_kept_with_the_run_and_judged(signed_in: Client):
    lab = Lab.objects.get(slug="sky-compare-which-loops")

    wrong = press(signed_in, lab, prediction="3")
    right = press(signed_in, lab, prediction="0")
    none = press(signed_in, lab)

    verdicts = [run.verdicts["predicted_first"]["clauses"][:2] for run in (wrong, right, none)]
    assert [[clause["met"] for clause in clauses] for clauses in verdicts] == [
        [True, False],
        [True, True],
        [False, False],
    ]
    assert verdicts[0][1]["value"] == "A loops"
