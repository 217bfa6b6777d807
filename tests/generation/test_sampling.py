"""The stages and the draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from generation import SamplingParams, distribution
from generation.sampling import (
    apply_settings,
    draw,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    softmax,
    uniform,
)

logits_arrays = arrays(np.float64, st.integers(1, 40), elements=st.integers(-400, 400).map(lambda n: n / 8))


def kept(logits: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.isfinite(logits))]


def test_top_p_keeps_the_token_that_crosses_the_threshold():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05]))

    assert kept(keep_top_p(logits, 0.7)) == [0, 1]


@pytest.mark.parametrize(("top_p", "survivors"), [(0.5, [0]), (0.75, [0, 1]), (0.875, [0, 1, 2]), (0.51, [0, 1])])
def test_top_p_at_an_exact_boundary_behaves_as_it_reads(top_p: float, survivors: list[int]):
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125]))

    assert kept(keep_top_p(logits, top_p)) == survivors


@given(logits_arrays, st.floats(0.01, 1.0))
def test_top_p_keeps_at_least_that_mass_and_at_least_one_token(logits: np.ndarray, top_p: float):
    survivors = kept(keep_top_p(logits, top_p))

    assert survivors
    assert softmax(logits)[survivors].sum() >= top_p - 1e-9


@given(logits_arrays, st.integers(1, 60))
def test_top_k_keeps_exactly_k_or_all(logits: np.ndarray, top_k: int):
    assert len(kept(keep_top_k(logits, top_k))) == min(top_k, len(logits))


def test_top_k_settles_ties_by_the_lowest_id():
    assert kept(keep_top_k(np.array([1.0, 2.0, 1.0, 1.0]), 2)) == [0, 1]


def test_three_then_nine_tenths_keeps_two_and_nine_tenths_alone_keeps_three():
    logits = [3, 2, 1, 0, -1, -2]

    both, _ = distribution(logits, SamplingParams(temperature=1, top_k=3, top_p=0.9))
    alone, _ = distribution(logits, SamplingParams(temperature=1, top_p=0.9))

    assert both.tolist() == [0, 1]
    assert alone.tolist() == [0, 1, 2]


def test_a_penalty_divides_positive_logits_multiplies_negative_ones_and_counts_a_token_once():
    logits = np.array([2.0, -2.0, 0.0, 1.0])

    penalised = penalise_repetition(logits, 2.0, [0, 0, 1, 2])

    assert penalised.tolist() == [1.0, -4.0, 0.0, 1.0]
    assert logits.tolist() == [2.0, -2.0, 0.0, 1.0]  # the caller's array is as it was


def test_a_penalty_counts_prompt_and_output():
    token_ids, _ = distribution([1.0, 0.9, 0.8], SamplingParams(repetition_penalty=2), prompt_ids=[0], output_ids=[1])

    assert token_ids.tolist() == [2]


@given(logits_arrays)
def test_temperature_zero_is_the_argmax_with_ties_to_the_lowest_id(logits: np.ndarray):
    token_ids, probs = distribution(logits, SamplingParams(temperature=0))

    assert token_ids.tolist() == [int(np.argmax(logits))]
    assert probs.tolist() == [1.0]


@given(logits_arrays, st.floats(0.01, 100))
def test_temperature_keeps_the_order(logits: np.ndarray, temperature: float):
    token_ids, _ = distribution(logits, SamplingParams(temperature=temperature))

    assert (np.diff(logits[token_ids]) <= 0).all()


@given(logits_arrays)
def test_neutral_settings_change_nothing(logits: np.ndarray):
    stages, notes = apply_settings(logits, SamplingParams(temperature=1))

    assert [stage.name for stage in stages] == ["raw"]
    assert notes == []


@pytest.mark.parametrize(
    ("params", "note"),
    [
        (SamplingParams(temperature=1, top_k=9), "top_k 9 had no effect: only 3 tokens were left"),
        (SamplingParams(temperature=1, top_p=0.999999), "top_p 0.999999 had no effect: all 3 tokens"),
        (SamplingParams(top_p=0.5), "top_p had no effect: greedy decoding"),
        (SamplingParams(top_k=2), "top_k had no effect: greedy decoding"),
    ],
)
def test_a_setting_without_effect_says_so(params: SamplingParams, note: str):
    _, notes = apply_settings([1.0, 0.5, 0.2], params)

    assert notes[0].startswith(note)


@given(logits_arrays, st.sampled_from([0.0, 0.25, 0.5, 1 - 2.0**-53]))
def test_the_draw_never_returns_a_token_of_probability_zero(logits: np.ndarray, u: float):
    _, probs = distribution(logits, SamplingParams(temperature=0.01))

    assert probs[draw(probs, u)] > 0


def test_a_nucleus_close_to_one_over_a_whole_vocabulary_neither_fails_nor_turns_greedy():
    logits = np.random.default_rng(0).normal(size=49_152)
    token_ids, probs = distribution(logits, SamplingParams(temperature=1, top_p=0.9999999))

    drawn = {int(token_ids[draw(probs, uniform(7, step))]) for step in range(200)}

    assert len(drawn) > 100


def test_the_random_number_is_a_function_of_seed_and_step_alone():
    assert uniform(1, 1) == uniform(1, 1)
    assert len({uniform(seed, step) for seed in range(20) for step in range(20)}) == 400
    assert all(0 <= uniform(2**63 - 1, step) < 1 for step in range(100))
    assert round(uniform(0, 1), 6) == 0.50238  # as long as this holds, old recordings replay


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.integers(0, 1000))
def test_a_lower_temperature_moves_a_draw_towards_the_top_never_away(logits: list[float], seed: int):
    u = uniform(seed, 1)

    def rank(temperature: float) -> int:
        _, probs = distribution(logits, SamplingParams(temperature=temperature))
        return draw(probs, u)

    assert rank(0.5) <= rank(1.0) <= rank(1.5)
