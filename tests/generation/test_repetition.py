"""Loops and repeated n-grams, by the numbers that define them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation import LoopFinder, distinct_n, find_loop, longest_run, seq_rep_n

PERIODS = {1: [7], 2: [1, 2], 3: [1, 2, 3], 4: [1, 2, 3, 4], 12: list(range(12))}


@pytest.mark.parametrize(("period", "copies"), [(1, 12), (2, 6), (3, 4), (4, 3), (12, 3)])
def test_enough_copies_are_a_loop(period: int, copies: int):
    loop = find_loop([90, 91, *PERIODS[period] * copies])

    assert loop
    assert (loop.period, loop.start, loop.repeats) == (period, 2, copies)


@pytest.mark.parametrize(("period", "copies"), [(1, 11), (2, 5), (3, 3), (4, 2), (12, 2)])
def test_one_copy_fewer_is_none(period: int, copies: int):
    assert find_loop([90, 91, *PERIODS[period] * copies]) is None


def test_a_loop_that_was_left_is_none():
    assert find_loop([5] * 12 + [1, 2, 3]) is None


def test_a_numbered_list_is_none_and_repeats_no_four_gram():
    ids = [token for number in range(20) for token in (100 + number, 1, 200 + number, 300 + number)]

    assert find_loop(ids) is None
    assert seq_rep_n(ids, 4) == 0


def test_random_words_do_not_loop():
    rng = random.Random(0)

    assert not any(find_loop([rng.randrange(6) for _ in range(64)]) for _ in range(3000))


def test_seq_rep_n_is_the_share_of_ngrams_that_came_before():
    assert seq_rep_n([1, 2, 1, 2, 1], 2) == 0.5  # 12 21 12 21: two of four are new
    assert seq_rep_n([1, 2, 3], 4) == 0


@given(st.lists(st.integers(0, 2), max_size=60), st.lists(st.integers(0, 2), min_size=1, max_size=20))
def test_the_finder_says_after_each_token_what_find_loop_says(before: list[int], cycle: list[int]):
    finder, ids = LoopFinder(), [*before, *cycle * 5]

    for n, token_id in enumerate(ids, start=1):
        assert finder.add(token_id) == find_loop(ids[:n])


def test_twelve_dashes_and_then_text_are_no_tail_loop():
    finder = LoopFinder()

    found = [finder.add(token_id) for token_id in [9] * 12 + [1, 2]]

    assert found[11]
    assert found[12] is found[13] is None


def test_distinct_n_is_the_other_side_of_seq_rep_n():
    assert distinct_n([1, 2, 1, 2, 1], 2) == 0.5
    assert distinct_n([1], 2) == 0


def test_the_longest_run_counts_one_token_in_a_row():
    assert longest_run([1, 2, 2, 2, 1, 1]) == 3
    assert longest_run([]) == 0


def test_periods_up_to_sixty_four_count():
    assert find_loop(list(range(64)) * 3)
    assert find_loop(list(range(65)) * 3) is None
