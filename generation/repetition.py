"""Repetition, measured on token ids: a loop at the tail, and how much of a text is said twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

MAX_PERIOD = 64
MIN_SPAN = 12  # tokens that a loop covers at least: 12, 6 and 4 copies of one, two and three
MIN_COPIES = 3


@dataclass(frozen=True, slots=True)
class Loop:
    """A tail that repeats itself."""

    period: int  # tokens
    start: int  # index of its first token among the ids, from 0
    repeats: int  # full copies


def find_loop(token_ids: Sequence[int]) -> Loop | None:
    """Find the loop that the tail of a text is in, if it is in one.

    For each period p the longest tail with x[i] = x[i − p] is taken, and p tokens before it. The
    smallest period whose tail is long enough, and holds enough copies, counts.

    Parameters
    ----------
    token_ids : sequence of int
        Ids of the generated part alone.

    Returns
    -------
    Loop or None
    """
    length = len(token_ids)
    for period in range(1, min(MAX_PERIOD, length) + 1):
        first = length
        while first > period and token_ids[first - 1] == token_ids[first - 1 - period]:
            first -= 1
        loop = _loop(period, length, length - first)
        if loop:
            return loop
    return None


class LoopFinder:
    """The same as `find_loop` after each token, at a cost that does not grow with the text."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._matches = [0] * (MAX_PERIOD + 1)  # by period: how long the tail agrees with itself

    def add(self, token_id: int) -> Loop | None:
        """Take the next token; return the loop that the text is in now."""
        self._ids.append(token_id)
        length, loop = len(self._ids), None
        for period in range(min(MAX_PERIOD, length - 1), 0, -1):
            same = self._ids[-1 - period] == token_id
            self._matches[period] = self._matches[period] + 1 if same else 0
            loop = _loop(period, length, self._matches[period]) or loop  # the smallest period counts
        return loop


def seq_rep_n(token_ids: Sequence[int], n: int) -> float:
    """Share of n-grams that occurred before: 1 − distinct / all; 0 for a text below n tokens.

    References
    ----------
    Welleck et al., "Neural Text Generation with Unlikelihood Training", ICLR 2020, section 6
    (seq-rep-n). https://arxiv.org/abs/1908.04319
    """
    ngrams = [tuple(token_ids[i : i + n]) for i in range(len(token_ids) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def distinct_n(token_ids: Sequence[int], n: int) -> float:
    """Share of different n-grams among all; 0 for a text below n tokens.

    References
    ----------
    Li et al., "A Diversity-Promoting Objective Function for Neural Conversation Models", NAACL 2016,
    section 5.1. https://arxiv.org/abs/1510.03055
    """
    return 1 - seq_rep_n(token_ids, n) if len(token_ids) >= n else 0.0


def longest_run(token_ids: Sequence[int]) -> int:
    """Return how often one token comes in a row at most."""
    return max((len(list(same)) for _, same in groupby(token_ids)), default=0)


def _loop(period: int, length: int, n_matches: int) -> Loop | None:
    """Return the loop of this period, if its tail is long enough."""
    span = n_matches + period
    if span >= max(MIN_SPAN, MIN_COPIES * period):
        return Loop(period, length - span, span // period)
    return None
