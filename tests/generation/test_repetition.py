"""Loops and repeated n-grams, by the numbers that define them."""

import random

import pytest

from generation import find_loop, seq_rep_n

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
