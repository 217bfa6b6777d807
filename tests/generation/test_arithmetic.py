"""Counting, against the same things added up one by one."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation import SamplingParams, generate, load_model
from generation.arithmetic import (
    chat_tokens,
    chat_tokens_in_all,
    exact_price,
    forward_positions,
    kv_bytes_per_token,
    new_chat_tokens,
    price,
    time_to_last_token,
    turn_tokens,
)

sizes = st.integers(0, 500)


@pytest.mark.parametrize("use_kv_cache", [True, False])
@pytest.mark.parametrize("n_new", [1, 2, 30])
def test_forward_positions_are_those_that_a_run_computes(use_kv_cache: bool, n_new: int):
    params = SamplingParams(max_new_tokens=n_new, use_kv_cache=use_kv_cache)
    run = generate(load_model("sky"), "the sky is", params)

    assert sum(step.computed_positions for step in run.steps) == forward_positions(3, n_new, use_kv_cache)


def test_nothing_new_is_no_position():
    assert forward_positions(3, 0) == 0


@given(st.integers(1, 40), sizes, sizes, sizes)
def test_the_tokens_of_a_chat_are_those_of_its_turns(n_turns: int, n_system: int, n_user: int, n_answer: int):
    sent = [chat_tokens(turn, n_system, n_user, n_answer) for turn in range(1, n_turns + 1)]
    new = [new_chat_tokens(turn, n_system, n_user, n_answer) for turn in range(1, n_turns + 1)]

    assert sum(sent) == chat_tokens_in_all(n_turns, n_system, n_user, n_answer)
    assert sum(new) == sent[-1]  # with a cached prefix each token is new once


def test_a_small_model_of_thirty_layers_takes_46_080_bytes_a_token():
    assert kv_bytes_per_token(n_layer=30, n_kv_head=3, head_dim=64, bytes_per_number=4) == 46_080


def test_a_turn_reads_from_the_cache_only_what_the_request_before_had_sent():
    first = turn_tokens(1, n_system=100, n_user=10, n_answer=30, n_reasoning=50, cached_percent=100)
    third = turn_tokens(3, n_system=100, n_user=10, n_answer=30, n_reasoning=50, cached_percent=100)

    assert first == (110, 0, 50, 30)
    assert third == (40, 150, 50, 30)  # 100 + 2 · 10 + 30 were sent in turn 2; the answer to it is new
    assert (third.n_input, third.n_output) == (190, 80)


@given(st.integers(1, 40), sizes, sizes, sizes, sizes, st.integers(0, 100))
def test_a_cache_makes_a_turn_cheaper_and_not_shorter(
    turn: int, n_system: int, n_user: int, n_answer: int, n_reasoning: int, cached_percent: int
):
    found = turn_tokens(turn, n_system, n_user, n_answer, n_reasoning, cached_percent)

    assert found.n_input == chat_tokens(turn, n_system, n_user, n_answer)
    assert found.new_input >= new_chat_tokens(turn, n_system, n_user, n_answer)
    assert found.cached_input >= 0


def test_a_share_of_a_token_is_not_cached():
    assert turn_tokens(2, n_system=3, n_user=0, n_answer=0, cached_percent=50).cached_input == 1


def test_prices_are_reckoned_in_decimals():
    assert 3 * exact_price(1, Decimal("0.1")) == Decimal("0.0000003")


def test_a_price_adds_input_and_output():
    assert price(2_000_000, 500_000, input_price=3, output_price=15) == 13.5


def test_the_last_token_waits_for_the_first_and_all_steps_after_it():
    assert time_to_last_token(0.5, 0.02, 101) == pytest.approx(2.5)
