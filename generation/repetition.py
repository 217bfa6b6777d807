"""Repetition, measured on token ids: a loop at the tail, and how much of a text is said twice."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_PERIOD = 64
MIN_SPAN = 12  # tokens that a loop covers at least


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
        start = first - period
        span = length - start
        if span >= MIN_SPAN and span // period >= _copies_needed(period):
            return Loop(period, start, span // period)
    return None


def seq_rep_n(token_ids: Sequence[int], n: int) -> float:
    """Share of n-grams that occurred before: 1 − distinct / all; 0 for a text below n tokens.

    References
    ----------
    Welleck et al., "Neural Text Generation with Unlikelihood Training", ICLR 2020, section 6
    (seq-rep-n). https://arxiv.org/abs/1908.04319
    """
    ngrams = [tuple(token_ids[i : i + n]) for i in range(len(token_ids) - n + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def _copies_needed(period: int) -> int:
    if period == 1:
        return 6
    return 4 if period <= 3 else 3
