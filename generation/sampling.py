"""From logits to one token: the stages in their fixed order, what is measured of each, and the draw."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from generation.errors import LogitsError
from generation.params import GREEDY_BELOW, SamplingParams, shown
from generation.stages import (
    FIRST_LOOK,
    TOLERANCE,
    Floats,
    TokenIds,
    ban_repeated_ngrams,
    count,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    measure,
    most_likely,
    penalise_counts,
    penalise_repetition,
)


class Applied(NamedTuple):
    """The logits after one stage, and what is measured of them once."""

    name: str
    logits: Floats
    kept: int
    largest: float  # logit
    mass: float  # Σ exp(logit − largest)
    dropped_mass: float

    def probs(self, token_ids: TokenIds) -> Floats:
        """Return probabilities over the whole vocabulary; exact at the top, however large the logits are."""
        probs: Floats = np.exp(self.logits[token_ids] - self.largest) / self.mass
        return probs

    def log_prob(self, token_id: int) -> float:
        """Return a token's log-probability, in nats."""
        return float(self.logits[token_id] - self.largest) - math.log(self.mass)


class Truncation(NamedTuple):
    """A setting that drops all but the most likely tokens."""

    name: str
    is_on: Callable[[SamplingParams], bool]
    keep: Callable[[Floats, SamplingParams], Floats]
    no_effect: str  # why it dropped nothing, of {left}


TRUNCATIONS = [
    Truncation(
        "top_k",
        lambda params: params.top_k > 0,
        lambda logits, params: keep_top_k(logits, params.top_k),
        "there are no more than the {left}",
    ),
    Truncation(
        "top_p",
        lambda params: params.top_p != 1,
        lambda logits, params: keep_top_p(logits, params.top_p),
        "it takes the {left} to reach it",
    ),
    Truncation(
        "min_p",
        lambda params: params.min_p > 0,
        lambda logits, params: keep_min_p(logits, params.min_p),
        "of the {left} none is unlikely enough",
    ),
]


def apply_settings(
    logits: ArrayLike, params: SamplingParams, prompt_ids: Sequence[int] = (), output_ids: Sequence[int] = ()
) -> tuple[list[Applied], list[str]]:
    """Apply every setting that is on, in order.

    Parameters
    ----------
    logits : (vocab_size,) array_like
        Unnormalised log-probabilities of the next token, in nats.
    params : SamplingParams
    prompt_ids, output_ids : sequences of int
        The tokens so far, for penalties and n-grams.

    Returns
    -------
    stages : list of Applied
        "raw" first, then one for each setting that is on. The last one's survivors can be drawn; only
        n-gram blocking can leave none.
    notes : list of str
        Settings that are on and had no effect here, each with the reason.

    Raises
    ------
    LogitsError
        For NaN or +inf, if nothing is finite, or if a setting takes the logits beyond what a number can hold.
    """
    stages = [_applied("raw", _checked(logits), None)]
    notes: list[str] = []
    _penalise_and_ban(stages, notes, params, prompt_ids, output_ids)
    penalised = stages[-1]
    if not penalised.kept:
        return stages, notes

    if params.is_greedy:
        stages.append(_applied("greedy", keep_top_k(penalised.logits, 1), penalised))
        return stages, notes + _greedy_notes(params)
    if params.temperature_last:
        _truncate(stages, notes, params)
        _heat(stages, params)
        notes += _order_notes(penalised, stages[-1].kept, params)
    else:
        _heat(stages, params)
        _truncate(stages, notes, params)
    if params.temperature != 1 and stages[-1].kept == 1:
        notes.append(f"temperature {_written(params.temperature)} had no effect on the draw: one token is left")
    return stages, notes


def distribution(
    logits: ArrayLike, params: SamplingParams, prompt_ids: Sequence[int] = (), output_ids: Sequence[int] = ()
) -> tuple[TokenIds, Floats]:
    """Return what can be drawn under the settings, by the very stages that `generate` uses.

    Parameters
    ----------
    logits : (vocab_size,) array_like
        Unnormalised log-probabilities of the next token, in nats.
    params : SamplingParams
    prompt_ids, output_ids : sequences of int
        The tokens so far, for penalties and n-grams.

    Returns
    -------
    token_ids : (n_survivors,) int
        In descending order of probability, ties by id. Empty if n-gram blocking bans every token.
    probs : (n_survivors,) float64
        Their probabilities; they sum to 1.

    Raises
    ------
    LogitsError
        As for `apply_settings`.
    """
    stages, _ = apply_settings(logits, params, prompt_ids, output_ids)
    last = stages[-1]
    token_ids = most_likely(last.logits, last.kept)
    return token_ids, last.probs(token_ids)


def uniform(seed: int, step: int) -> float:
    """Return the random number of one step, in [0, 1): a pure function of seed and step.

    References
    ----------
    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011 (Philox).
    """
    bits = np.random.Philox(key=seed, counter=step).random_raw()
    return float(int(bits) >> 11) * 2.0**-53


def draw(probs: Floats, u: float) -> int:
    """Return the index into `probs` on which `u` falls: the inverse of the cumulative distribution.

    Parameters
    ----------
    probs : (n,) float64
        Probabilities in descending order; they need not sum to exactly 1.
    u : float
        In [0, 1). Scaled by the sum it stays below it, so the index is that of a token with a share.
    """
    cumulative = np.cumsum(probs)
    return int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))


def choose(last: Applied, u: float) -> int:
    """Return the token id on which `u` falls; only as many tokens are sorted as it takes to get there.

    Parameters
    ----------
    last : Applied
        The last stage, with at least one token left.
    u : float
        In [0, 1).
    """
    n_sorted = FIRST_LOOK
    while n_sorted < last.kept:
        token_ids = most_likely(last.logits, n_sorted)
        cumulative = np.cumsum(last.probs(token_ids))
        if u < cumulative[-1] - TOLERANCE:  # the sum of all is 1, but for rounding below the tolerance
            return int(token_ids[np.searchsorted(cumulative, u, side="right")])
        n_sorted *= 8
    token_ids = most_likely(last.logits, last.kept)
    return int(token_ids[draw(last.probs(token_ids), u)])


def _checked(logits: ArrayLike) -> Floats:
    checked = np.asarray(logits, dtype=np.float64)
    largest = checked.max()
    if np.isnan(largest):
        raise LogitsError("logits must be numbers, got NaN")
    if largest == np.inf:
        raise LogitsError("logits must be below infinity, got inf")
    if largest == -np.inf:
        raise LogitsError("at least one logit must be finite, got none")
    return checked


def _applied(name: str, logits: Floats, before: Applied | None, *, may_drop: bool = True) -> Applied:
    """Measure a stage; what it has dropped is measured against the one before it."""
    kept = count(logits)
    largest, mass = measure(logits)
    if largest == np.inf or (before and kept < before.kept and not may_drop):
        raise LogitsError(f"{name} takes the logits beyond what a number can hold")
    dropped = 0.0
    if before and kept < before.kept:
        left = mass * math.exp(largest - before.largest) if kept else 0.0
        dropped = max(0.0, 1 - left / before.mass)
    return Applied(name, logits, kept, largest, mass, dropped)


def _penalise_and_ban(
    stages: list[Applied],
    notes: list[str],
    params: SamplingParams,
    prompt_ids: Sequence[int],
    output_ids: Sequence[int],
) -> None:
    def add(name: str, after: Floats, nothing_seen: bool, may_drop: bool = False) -> None:
        if np.array_equal(stages[-1].logits, after):
            reason = "there is no text yet that it counts" if nothing_seen else "it changes no token that is left"
            notes.append(f"{name} had no effect: {reason}")
        stages.append(_applied(name, after, stages[-1], may_drop=may_drop))

    everything = [*prompt_ids, *output_ids]
    if params.repetition_penalty != 1:
        seen = everything if params.penalty_scope == "prompt+output" else output_ids
        after = penalise_repetition(stages[-1].logits, params.repetition_penalty, seen)
        add("repetition_penalty", after, not seen)
    elif params.penalty_scope != "prompt+output":
        notes.append("penalty_scope had no effect: repetition_penalty is 1")
    if params.frequency_penalty:
        after = penalise_counts(stages[-1].logits, 0, params.frequency_penalty, output_ids)
        add("frequency_penalty", after, not output_ids)
    if params.presence_penalty:
        after = penalise_counts(stages[-1].logits, params.presence_penalty, 0, output_ids)
        add("presence_penalty", after, not output_ids)
    if params.no_repeat_ngram_size:
        after = ban_repeated_ngrams(stages[-1].logits, params.no_repeat_ngram_size, everything)
        add("no_repeat_ngram_size", after, len(everything) < params.no_repeat_ngram_size, may_drop=True)


def _heat(stages: list[Applied], params: SamplingParams) -> None:
    if params.temperature != 1:
        with np.errstate(over="ignore"):  # it is told when the stage is measured
            heated = stages[-1].logits / params.temperature
        stages.append(_applied("temperature", heated, stages[-1], may_drop=False))


def _truncate(stages: list[Applied], notes: list[str], params: SamplingParams) -> None:
    for truncation in TRUNCATIONS:
        if not truncation.is_on(params):
            continue
        before = stages[-1]
        stages.append(_applied(truncation.name, truncation.keep(before.logits, params), before))
        if stages[-1].kept == before.kept:
            left = f"{before.kept} that were left" if before.kept > 1 else "one that was left"
            value = _written(getattr(params, truncation.name))
            notes.append(f"{truncation.name} {value} had no effect: {truncation.no_effect.format(left=left)}")


def _greedy_notes(params: SamplingParams) -> list[str]:
    notes = [
        f"{truncation.name} had no effect: greedy decoding takes the most likely token"
        for truncation in TRUNCATIONS
        if truncation.is_on(params)
    ]
    if params.temperature:
        notes.append(f"temperature {_written(params.temperature)} is taken as 0: below {GREEDY_BELOW} it is greedy")
    if params.temperature_last:
        notes.append("temperature_last had no effect: greedy decoding has no temperature")
    return notes


def _order_notes(penalised: Applied, n_kept: int, params: SamplingParams) -> list[str]:
    """Say why it made no difference that temperature came last, if it made none."""
    if params.temperature == 1:
        return ["temperature_last had no effect: temperature is 1"]
    if params.top_p == 1 and params.min_p == 0:
        return ["temperature_last had no effect: neither top_p nor min_p is on"]
    other = penalised.logits / params.temperature
    for truncation in TRUNCATIONS:
        if truncation.is_on(params):
            other = truncation.keep(other, params)
    if count(other) == n_kept:  # both keep a beginning of the same order
        return ["temperature_last had no effect: both orders keep the same tokens"]
    return []


def _written(value: float) -> str:
    return shown(value).removesuffix(".0")
