"""Latency: what is counted against the engine and the formulas, what is measured against a clock of our own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from django.test import Client
from numpy.typing import NDArray

from generation import (
    Generation,
    KVCache,
    Limits,
    SamplingParams,
    SettingError,
    SharedEngine,
    generate,
    load_model,
)
from generation.arithmetic import forward_positions
from generation.catalogue import MODELS
from generation.models.sky import SkyModel
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.clauses import Outcome, Run, Setup
from quizsite.labs.engine import Conclusion, Left, SharedInstruments
from quizsite.labs.goals import PredictedFirst, ReachRatio
from quizsite.labs.models import Lab, Recording
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown
from quizsite.labs.panels.latency import Latency, after, asked, prompt_of, view
from quizsite.labs.validation import LabSpec, run_here
from tests.quizsite.pages import HTMX, press

SKY = SkyModel()


def setup_of(n_prompt: int = 16, n_new: int = 12) -> Setup:
    return asked(Setup("sky", "", SamplingParams(max_new_tokens=n_new)), {"prompt_tokens": n_prompt})


def measured(n_prompt: int = 16, n_new: int = 12) -> tuple[Generation, Outcome]:
    setup = setup_of(n_prompt, n_new)
    made = run_here(setup, {})
    return made, after(setup, {"prompt_tokens": n_prompt}, made, Bench(run_here))


def shown(n_prompt: int = 16, n_new: int = 12) -> Latency:
    made, outcome = measured(n_prompt, n_new)
    inputs = {"prompt_tokens": n_prompt}
    return view(Shown(setup_of(n_prompt, n_new), made.steps, made, made.finish_reason, inputs, outcome))


@pytest.mark.parametrize("n_tokens", [1, 2, 8, 9, 240])
def test_a_prompt_has_as_many_tokens_as_it_is_asked_for(n_tokens: int):
    assert len(SKY.encode(prompt_of(n_tokens))) == n_tokens


@pytest.mark.real_model
def test_a_prompt_has_as_many_tokens_on_the_real_model():
    model = load_model("smollm2")

    assert [len(model.encode(prompt_of(n))) for n in (8, 9, 100, 511, 512)] == [8, 9, 100, 511, 512]


def test_more_new_tokens_than_can_be_measured_are_refused_in_words():
    with pytest.raises(SettingError, match="max_new_tokens must be at most 32 where passes are measured, got 33"):
        setup_of(n_new=33)


@pytest.mark.parametrize(("n_prompt", "n_new"), [(8, 1), (16, 12), (100, 5)])
def test_what_is_counted_is_what_whole_runs_cost_with_the_cache_and_without(n_prompt: int, n_new: int):
    made, outcome = measured(n_prompt, n_new)

    runs = [
        generate(SKY, prompt_of(n_prompt), SamplingParams(max_new_tokens=n_new, use_kv_cache=on))
        for on in (True, False)
    ]
    positions = [sum(step.computed_positions for step in run.steps) for run in runs]
    assert outcome["n_tokens"] == len(made.token_ids) == len(runs[1].token_ids)
    assert [outcome["positions_cached"], outcome["positions_naive"]] == positions
    assert [outcome["multiply_adds_cached"], outcome["multiply_adds_naive"]] == [run.multiply_adds for run in runs]
    assert positions == [forward_positions(n_prompt, outcome["n_tokens"], on) for on in (True, False)]


def test_the_first_pass_and_the_one_after_it_are_counted_apart():
    _, outcome = measured(16, 2)

    assert outcome["multiply_adds_first"] + outcome["multiply_adds_later"] == outcome["multiply_adds_cached"]
    assert outcome["multiply_adds_first"] == SKY.multiply_adds(16, 16)


def test_every_pass_is_measured_with_the_cache_and_the_first_few_without():
    _, outcome = measured(16, 12)

    assert len(outcome["cached_ms"]) == outcome["n_tokens"] == 12
    assert len(outcome["naive_ms"]) == outcome["naive_passes"] == 8
    assert outcome["naive_positions_run"] == sum(range(16, 24))
    assert outcome["same_tokens"]
    assert all(ms > 0 for ms in outcome["cached_ms"] + outcome["naive_ms"])


@pytest.mark.parametrize(("n_prompt", "n_naive", "lengths"), [(8, 8, [4, 8, 16]), (200, 7, [50, 100, 200])])
def test_other_prompts_are_measured_as_far_as_the_context_goes(n_prompt: int, n_naive: int, lengths: list[int]):
    _, outcome = measured(n_prompt, 20)

    assert outcome["naive_passes"] == n_naive
    assert [n for n, _, _ in outcome["prefills"]] == lengths
    assert [count for _, _, count in outcome["prefills"]] == [SKY.multiply_adds(n, n) for n in lengths]


def laid_out(cached: list[float], naive: list[float]) -> Latency:
    """Return the view of a run whose passes took so many milliseconds."""
    n = len(cached)
    made, outcome = measured(16, n)
    outcome |= {"cached_ms": cached, "naive_ms": naive, "naive_passes": len(naive)}
    outcome["prefills"] = [[8, 4.0, 100], [16, cached[0], 200], [32, 30.0, 500]]
    return view(Shown(setup_of(16, n), made.steps, made, "length", {"prompt_tokens": 16}, outcome))


def test_the_time_to_the_last_token_stands_beside_the_formula():
    found = laid_out([10.0, 2.0, 2.0, 5.0], [10.0, 11.0, 12.0])

    assert found.counters == [
        ("to the first token, ms", "10.0"),
        ("for each further token, ms (median)", "2.00"),
        ("to the last token, ms", "19.0"),
        ("by the formula, first + 3 × further, ms", "16.0"),
    ]
    rows = {row.name: (row.cached, row.naive, row.times) for row in found.rows}
    assert rows["First pass, ms"] == ("10.0", "10.0", "1.0")
    assert rows["A later pass, ms (median)"] == ("2.00", "11.5", "5.8")
    assert rows["Positions for all 4 tokens"] == ("19", "70", "3.7")


def test_the_charts_leave_out_what_was_not_run_and_scale_by_the_multiply_adds():
    passes, prefills = laid_out([10.0, 2.0, 2.0, 5.0], [10.0, 11.0]).charts

    assert passes.rows[2] == ("3", ["2.00", ""])
    assert prefills.rows == [("8", ["4.00", "5.00"]), ("16", ["10.00", "10.00"]), ("32", ["30.00", "25.00"])]


def test_an_answer_of_one_token_has_no_later_pass():
    found = shown(8, 1)

    assert [name for name, _ in found.counters] == ["to the first token, ms"]
    assert "A later pass, ms (median)" not in [row.name for row in found.rows]


def test_a_run_that_goes_on_or_was_stopped_has_words_and_no_numbers():
    setup, inputs = setup_of(), {"prompt_tokens": 16}
    made = run_here(setup, {})

    going = view(Shown(setup, made.steps[:1], None, "", inputs, {}))
    empty = view(Shown(setup, [], None, "", inputs, {}))
    stopped = view(Shown(setup, made.steps[:1], None, "cancelled", inputs, {}))
    measuring = view(Shown(setup, made.steps, made, "length", inputs, {}))
    failed = view(Shown(setup, made.steps, made, "length", inputs, {"problem": "it broke"}))

    assert [each.rows or each.charts or each.counters for each in (going, empty, stopped, measuring, failed)] == [
        []
    ] * 5
    assert [each.waits for each in (going, empty, stopped, measuring, failed)] == [True, True, False, True, False]
    assert "nothing was measured" in stopped.words
    assert failed.problem == "it broke"


def run_of(n_prompt: int, n_new: int, allowed: tuple[str, ...], **inputs: int) -> Run:
    """Return a run of a lab that starts with 16 tokens of prompt and 12 new ones."""
    made, outcome = measured(n_prompt, n_new)
    goal = {"kind": "reach_ratio", "over": "a", "under": "b", "over_words": "a", "under_words": "b", "at_least": 2}
    spec = LabSpec.model_validate(
        {
            "title": "A lab",
            "panel": "latency",
            "facts": ["C7"],
            "model": "sky",
            "allowed": list(allowed),
            "start": {"max_new_tokens": 12},
            "inputs": {"prompt_tokens": 16},
            "goals": [goal],
        }
    )
    return spec.run_of(
        setup_of(n_prompt, n_new), made, lambda wanted: [], {"prompt_tokens": n_prompt, **inputs}, outcome
    )


RATIO = ReachRatio(
    over="positions_naive", under="positions_cached", over_words="all", under_words="new", at_least=20
)  # fmt: skip
LEFT = PredictedFirst(question="How many?", answers=["11", "12"], values=[11, 12], measure="later_passes")


def test_a_ratio_is_reached_by_the_length_of_prompt_and_answer():
    both = ("prompt_tokens", "max_new_tokens")

    assert RATIO.judge(run_of(100, 30, both)).is_met
    assert [clause.name for clause in RATIO.judge(run_of(16, 20, both)).failing] == ["All, at least 20 times new"]


def test_a_ratio_by_a_locked_length_is_not_reached():
    clauses = {c.name: c.value for c in RATIO.judge(run_of(100, 30, ("max_new_tokens",))).failing}

    assert clauses == {"Only unlocked settings changed": "prompt tokens"}


@pytest.mark.parametrize(("inputs", "is_met"), [({"prediction": 0}, True), ({"prediction": 1}, False), ({}, False)])
def test_a_prediction_of_the_passes_is_judged_on_their_number(inputs: dict[str, int], is_met: bool):
    assert LEFT.judge(run_of(16, 12, (), **inputs)).is_met == is_met


class Clocked(SkyModel):
    """The toy on a clock of its own: a pass takes a second for each position that it computes."""

    now = 0.0

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        Clocked.now += len(token_ids)
        return super().forward(token_ids, kv_cache)


class Slow(Clocked):
    """Somebody else's model, whose passes take a thousand seconds more."""

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        Clocked.now += 1000
        return super().forward(token_ids, kv_cache)


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> SharedEngine:
    monkeypatch.setitem(MODELS, "clocked", Clocked)
    shared = SharedEngine(Limits(seconds=1e9), clock=lambda: Clocked.now)
    monkeypatch.setattr(engine, "shared", shared)
    return shared


def instruments(learner: User) -> SharedInstruments:
    setup = Setup("clocked", "the sky is", SamplingParams(max_new_tokens=4))
    run = StoredRun.objects.create(learner=learner, recording=Recording.objects.of(setup), finish_reason="length")
    return SharedInstruments(run, Conclusion(), lambda: None)


@pytest.mark.django_db
@pytest.mark.parametrize(("use_kv_cache", "seconds"), [(True, (3, 1, 1, 1)), (False, (3, 4, 5, 6))])
def test_on_the_site_each_pass_is_timed_anew_and_alone(
    learner: User, clocked: SharedEngine, use_kv_cache: bool, seconds: tuple[float, ...]
):
    ask, setup = instruments(learner), Setup("clocked", "the sky is", SamplingParams(max_new_tokens=4))
    setup = replace(setup, params=replace(setup.params, use_kv_cache=use_kv_cache))
    n_recordings = Recording.objects.count()
    other = clocked.job("somebody else", Slow(), "the sky is", SamplingParams(max_new_tokens=30))

    with clocked.watched(other):
        timings = [ask.time(setup), ask.time(setup)]

    assert [timing.seconds for timing in timings] == [seconds, seconds]
    assert timings[0].generation.forward_passes == len(seconds)
    assert other.steps, "the other learner's run had its turns in between"
    assert Recording.objects.count() == n_recordings


@pytest.mark.django_db
def test_a_learner_who_leaves_ends_the_measuring_and_the_engine_is_free(learner: User, clocked: SharedEngine):
    ask, setup = instruments(learner), Setup("clocked", "the sky is", SamplingParams(max_new_tokens=4))
    with ask._conclusion.watched():
        pass

    with pytest.raises(Left):
        ask.time(setup)

    assert clocked.load().n_seated == 0


ADDRESS = "/lab/panel/latency/"
OPEN = {"do": "run", "model": "sky", "max_new_tokens": "12", "prompt_tokens": "16"}


@pytest.mark.django_db
def test_the_open_panel_measures_without_javascript(client: Client):
    assert client.get(ADDRESS).status_code == 200

    html = client.post(ADDRESS, OPEN, follow=True).content.decode()

    assert "How long each pass took" in html
    assert "Without the cache only the first 8 of 12 passes were run, and they wrote the same tokens." in html
    assert "this server’s in this minute" in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"max_new_tokens": "33"}, "max_new_tokens must be at most 32 where passes are measured, got 33"),
        ({"prompt_tokens": "7"}, "greater than or equal to 8"),
        ({"prompt_tokens": "250"}, "a prompt of 250 tokens and 12 new ones do not fit into the context of 256"),
    ],
)
def test_lengths_that_cannot_be_measured_are_refused_in_words(client: Client, data: dict[str, str], words: str):
    response = client.post(ADDRESS, OPEN | data, **HTMX)

    assert response.status_code == 422
    assert words in response.content.decode()
    assert StoredRun.objects.count() == 0


@pytest.mark.django_db
def test_a_lab_is_solved_by_prediction_and_lengths(signed_in: Client):
    lab = Lab.objects.get(slug="sky-count-the-positions")

    first = press(signed_in, lab, prompt_tokens="8", max_new_tokens="4", prediction="3")
    second = press(signed_in, lab, prompt_tokens="100", max_new_tokens="30")

    assert first.verdicts["predicted_first"]["clauses"][1]["met"]
    assert all(clause["met"] for clause in second.verdicts["reach_ratio"]["clauses"])


@pytest.mark.django_db
def test_a_run_that_was_stopped_and_one_by_hand_can_be_looked_at(signed_in: Client):
    signed_in.post(ADDRESS, OPEN | {"do": "step"}, **HTMX)
    run = StoredRun.objects.get()
    going = signed_in.get(run.get_absolute_url()).content.decode()
    signed_in.post(f"{run.get_absolute_url()}stop/")

    stopped = signed_in.get(run.get_absolute_url()).content.decode()

    assert "The passes are measured once this run is there." in going
    assert "nothing was measured" in stopped
