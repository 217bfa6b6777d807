"""The stages and the draw."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from generation import LogitsError, SamplingParams, distribution
from generation.sampling import apply_settings, choose, draw, uniform
from generation.stages import (
    ban_repeated_ngrams,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    most_likely,
    penalise_repetition,
)

logits_arrays = arrays(np.float64, st.integers(1, 40), elements=st.integers(-400, 400).map(lambda n: n / 8))


settings = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 3),
        "top_k": st.integers(0, 50),
        "top_p": st.floats(0.001, 1),
        "min_p": st.floats(0, 1),
        "repetition_penalty": st.floats(0.5, 3),
        "penalty_scope": st.sampled_from(["prompt+output", "output"]),
        "presence_penalty": st.floats(-2, 2),
        "frequency_penalty": st.floats(-2, 2),
        "temperature_last": st.booleans(),
    },
)


def softmax(logits: np.ndarray) -> np.ndarray:
    probs: np.ndarray = np.exp(logits) / np.exp(logits).sum()
    return probs


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
        (SamplingParams(temperature=1, top_k=9), "top_k 9 had no effect: there are no more than the 3 that were left"),
        (SamplingParams(temperature=1, top_p=0.999999), "top_p 0.999999 had no effect: it takes the 3"),
        (
            SamplingParams(temperature=1, min_p=0.01),
            "min_p 0.01 had no effect: of the 3 that were left",
        ),
        (SamplingParams(temperature=0.005), "temperature 0.005 is taken as 0: below 0.01 it is greedy"),
        (SamplingParams(temperature=2, top_k=1), "temperature 2 had no effect on the draw: one token is left"),
        (SamplingParams(min_p=0.5), "min_p had no effect: greedy decoding"),
        (
            SamplingParams(repetition_penalty=1.2),
            "repetition_penalty had no effect: there is no text",
        ),
        (SamplingParams(penalty_scope="output"), "penalty_scope had no effect: repetition_penalty is 1"),
        (SamplingParams(presence_penalty=1), "presence_penalty had no effect: there is no text yet that it counts"),
        (SamplingParams(frequency_penalty=1), "frequency_penalty had no effect: there is no text yet that it counts"),
        (
            SamplingParams(no_repeat_ngram_size=2),
            "no_repeat_ngram_size had no effect: there is no text",
        ),
        (SamplingParams(temperature_last=True), "temperature_last had no effect: greedy decoding"),
        (SamplingParams(temperature=1, temperature_last=True), "temperature_last had no effect: temperature is 1"),
        (
            SamplingParams(temperature=0.5, top_k=2, temperature_last=True),
            "temperature_last had no effect: neither top_p nor min_p is on",
        ),
        (
            SamplingParams(temperature=0.9, top_p=0.6, temperature_last=True),
            "temperature_last had no effect: both orders keep the same tokens",
        ),
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


def test_min_p_keeps_what_is_likely_enough_beside_the_most_likely():
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125]))

    assert kept(keep_min_p(logits, 0.5)) == [0, 1]  # exactly half of it is enough
    assert kept(keep_min_p(logits, 0.51)) == [0]
    assert kept(keep_min_p(logits, 1)) == [0]


def test_presence_counts_once_and_frequency_each_time_and_neither_counts_the_prompt():
    logits, prompt, output = np.zeros(4), [3, 3], [0, 1, 1]

    presence, _ = apply_settings(logits, SamplingParams(presence_penalty=0.5), prompt, output)
    frequency, _ = apply_settings(logits, SamplingParams(frequency_penalty=0.5), prompt, output)

    assert presence[1].logits.tolist() == [-0.5, -0.5, 0, 0]
    assert frequency[1].logits.tolist() == [-0.5, -1.0, 0, 0]


def test_the_scope_of_the_repetition_penalty_is_the_output_or_both():
    both = SamplingParams(repetition_penalty=2)
    output = SamplingParams(repetition_penalty=2, penalty_scope="output")

    assert apply_settings([1.0, 1.0, 1.0], both, [0], [1])[0][1].logits.tolist() == [0.5, 0.5, 1]
    assert apply_settings([1.0, 1.0, 1.0], output, [0], [1])[0][1].logits.tolist() == [1, 0.5, 1]


def test_ngram_blocking_counts_the_ngrams_of_the_prompt():
    logits = np.zeros(4)

    assert kept(ban_repeated_ngrams(logits, 3, [1, 2, 3, 1, 2])) == [0, 1, 2]
    assert kept(ban_repeated_ngrams(logits, 1, [0, 3])) == [1, 2]
    assert kept(ban_repeated_ngrams(logits, 3, [1, 2])) == [0, 1, 2, 3]


def test_bans_can_leave_nothing():
    token_ids, probs = distribution([1.0, 2.0], SamplingParams(no_repeat_ngram_size=1), prompt_ids=[0, 1])

    assert token_ids.tolist() == probs.tolist() == []


def test_the_two_orders_keep_different_tokens():
    logits = [3, 2, 1, 0, -1, -2]
    first = SamplingParams(temperature=2, top_p=0.9)
    last = SamplingParams(temperature=2, top_p=0.9, temperature_last=True)

    assert distribution(logits, first)[0].tolist() == [0, 1, 2, 3]
    assert distribution(logits, last)[0].tolist() == [0, 1, 2]
    names = [stage.name for stage in apply_settings(logits, last)[0]]
    assert names == ["raw", "top_p", "temperature"]


@pytest.mark.parametrize("last", [False, True])
def test_each_truncation_measures_what_the_one_before_it_left(last: bool):
    logits = [3, 2, 1, 0, -1, -2]

    def survivors(**changes: Any) -> list[int]:
        token_ids, _ = distribution(logits, SamplingParams(temperature=1, temperature_last=last, **changes))
        return [int(token_id) for token_id in token_ids]

    assert survivors(top_k=3, top_p=0.9) == [0, 1]
    assert survivors(top_p=0.9) == [0, 1, 2]
    assert survivors(top_k=3) == [0, 1, 2]
    assert survivors(min_p=0.1) == [0, 1, 2]
    assert survivors(top_p=0.9, min_p=0.2) == [0, 1]


HF_CASES = json.loads((Path(__file__).parent.parent / "golden" / "hf_sampling.json").read_text())["cases"]


def test_all_240_cases_of_transformers_processors_agree():
    assert len(HF_CASES) == 240
    for case in HF_CASES:
        params = SamplingParams(**{"temperature": 1.0, **case["settings"]})

        token_ids, probs = distribution(case["logits"], params, case["prompt_ids"], case["output_ids"])

        order = np.argsort(token_ids)
        assert token_ids[order].tolist() == case["kept"], case
        np.testing.assert_allclose(probs[order], case["probs"], atol=1e-9, rtol=0)


@given(logits_arrays, settings, st.lists(st.integers(0, 3), max_size=6))
def test_at_least_one_token_survives_whatever_is_set(logits: np.ndarray, chosen: dict[str, Any], output: list[int]):
    output = [token_id for token_id in output if token_id < len(logits)]

    token_ids, probs = distribution(logits, SamplingParams(**chosen), [0], output)

    assert len(token_ids) >= 1
    assert probs.sum() == pytest.approx(1)
    assert (np.diff(probs) <= 0).all()
    for u in (0.0, 1 - 2.0**-53):
        assert probs[draw(probs, u)] > 0


@given(logits_arrays, st.integers(1, 20), st.integers(0, 20))
def test_a_tighter_top_k_keeps_a_part_of_what_a_looser_one_keeps(logits: np.ndarray, tight: int, more: int):
    assert set(kept(keep_top_k(logits, tight))) <= set(kept(keep_top_k(logits, tight + more)))


@given(logits_arrays, st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_tighter_top_p_or_min_p_keeps_a_part_of_what_a_looser_one_keeps(logits: np.ndarray, a: float, b: float):
    tight, loose = min(a, b), max(a, b)

    assert set(kept(keep_top_p(logits, tight))) <= set(kept(keep_top_p(logits, loose)))
    assert set(kept(keep_min_p(logits, loose))) <= set(kept(keep_min_p(logits, tight)))


@given(st.integers(0, 10_000), st.integers(1, 3000), st.sampled_from([1, 2, 7]))
def test_sorting_as_far_as_needed_is_the_same_as_sorting_all(seed: int, size: int, decimals: int):
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=size), decimals)  # many ties
    everything = np.argsort(-logits, kind="stable")
    u = rng.random()

    assert most_likely(logits, 300).tolist() == everything[:300].tolist()
    (raw,), _ = apply_settings(logits, SamplingParams(temperature=1))
    assert choose(raw, u) == everything[draw(softmax(logits[everything]), u)]


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_logits_of_any_size_are_fine(scale: float):
    token_ids, probs = distribution([scale, 0, -scale], SamplingParams(temperature=0.01))

    assert probs[0] == 1
    assert token_ids[0] == (0 if scale > 0 else 2)


@pytest.mark.parametrize("temperature", [0.01, 1e-300, 5e-324, 100])
def test_no_temperature_divides_by_zero_or_overflows(temperature: float):
    _, probs = distribution([700.0, 1.0, -700.0], SamplingParams(temperature=temperature))

    assert np.isfinite(probs).all()


@pytest.mark.parametrize(
    "params", [SamplingParams(repetition_penalty=1e-320), SamplingParams(repetition_penalty=1e-308, temperature=0.01)]
)
def test_a_setting_that_overflows_is_named_and_gives_no_nan(params: SamplingParams):
    with pytest.raises(LogitsError, match="takes the logits beyond what a number can hold"):
        distribution([2.0, 1.0], params, prompt_ids=[0])


@pytest.mark.parametrize("c", [37.5, 1e4, 8191.3, 1e6])
@pytest.mark.parametrize("temperature", [0.01, 0.05, 1, 7])
def test_boundaries_are_exact_however_large_the_logits_are(c: float, temperature: float):
    half = SamplingParams(temperature=temperature, top_p=0.5)
    token_ids, probs = distribution([c, c], half)
    _, both = distribution([c, c], SamplingParams(temperature=temperature))

    assert token_ids.tolist() == [0]
    assert probs.tolist() == [1.0]
    assert both.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("n", "top_p"), [(10, 0.3), (10, 0.7), (3, 2 / 3), (7, 5 / 7), (6, 0.5)])
def test_equal_shares_are_cut_where_they_read_in_spite_of_rounding(n: int, top_p: float):
    assert len(kept(keep_top_p(np.zeros(n), top_p))) == round(n * top_p)


def test_min_p_at_an_exact_ratio_keeps_in_spite_of_rounding():
    assert kept(keep_min_p(np.log(np.array([0.7, 0.07])), 0.1)) == [0, 1]


def test_top_p_close_to_nothing_keeps_the_likeliest():
    assert kept(keep_top_p(np.zeros(5), 1e-13)) == [0]


def test_the_draw_on_an_edge_falls_to_the_right_and_is_scaled_by_the_sum():
    assert draw(np.array([0.5, 0.5]), 0.5) == 1
    assert draw(np.array([0.5, 0.5]), 0.4999) == 0
    assert draw(np.array([0.2, 0.2]), 0.6) == 1  # they sum to 0.4
    assert draw(np.array([0.2, 0.2]), 0.4) == 0


@given(st.lists(st.floats(1e-12, 1), min_size=1, max_size=50))
def test_the_largest_u_stays_below_the_sum(probs: list[float]):
    assert draw(np.array(probs), 1 - 2.0**-53) < len(probs)


def test_seeds_differ_in_all_their_bits():
    assert len({uniform(seed, 1) for seed in (0, 1, 2**31, 2**32, 2**32 + 1, 2**62, 2**63 - 1)}) == 7


def test_negative_penalties_make_seen_tokens_likelier():
    presence, _ = apply_settings([0.0, 0.0], SamplingParams(presence_penalty=-1), (), [1])
    frequency, _ = apply_settings([0.0, 0.0], SamplingParams(frequency_penalty=-0.5), (), [1, 1])

    assert presence[1].logits.tolist() == frequency[1].logits.tolist() == [0, 1]


@pytest.mark.parametrize("logits", [[-20.0, -30.0], [-20.0, 5.0]])
def test_a_penalty_that_overflows_downwards_bans_nothing_in_silence(logits: list[float]):
    with pytest.raises(LogitsError, match="repetition_penalty takes the logits beyond"):
        distribution(logits, SamplingParams(temperature=1, repetition_penalty=1e308), [0])


def test_a_penalty_that_changes_nothing_says_why():
    _, notes = apply_settings([0.0, 0.0], SamplingParams(repetition_penalty=1.5), [0, 1])
    _, blocked = apply_settings([0.0, 0.0, 0.0], SamplingParams(no_repeat_ngram_size=3), [0, 1, 2, 0])

    assert notes == ["repetition_penalty had no effect: it changes no token that is left"]
    assert blocked == ["no_repeat_ngram_size had no effect: it changes no token that is left"]


def test_notes_write_values_as_they_are():
    _, notes = apply_settings([1.0], SamplingParams(temperature=1, min_p=1.23456789012e-10, top_k=10**45))

    assert notes[0] == "top_k a whole number of 46 digits had no effect: there are no more than the one that was left"
    assert notes[1].startswith("min_p 1.23456789012e-10 had no effect")


@pytest.mark.parametrize("scale", [1, 3])
def test_ngrams_are_banned_as_a_plain_search_bans_them(scale: int):
    rng = np.random.default_rng(scale)
    for _ in range(300):
        ids, size = rng.integers(0, 3, rng.integers(0, 12)).tolist(), int(rng.integers(1, 5))
        seen = {tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)}
        start = ids[len(ids) - size + 1 :] if size > 1 else []
        allowed = [t for t in range(3) if len(start) < size - 1 or (*start, t) not in seen]

        assert kept(ban_repeated_ngrams(np.zeros(3), size, ids)) == allowed


def test_a_wide_nucleus_is_the_one_that_a_full_sort_finds():
    logits = np.random.default_rng(3).normal(size=5000)
    order = np.argsort(-logits, kind="stable")
    mass = np.cumsum(np.exp(logits[order]) / np.exp(logits).sum())

    assert kept(keep_top_p(logits, 0.9)) == sorted(order[: np.searchsorted(mass, 0.9) + 1].tolist())
