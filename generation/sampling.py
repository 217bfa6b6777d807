"""From logits to one token: the stages in their fixed order, what is recorded of them, and the draw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from generation.errors import LogitsError
from generation.params import GREEDY_BELOW, SamplingParams
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
    log_total,
    most_likely,
    penalise_counts,
    penalise_repetition,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token and its probability over the whole vocabulary."""

    token_id: int
    token: str
    probability: float


@dataclass(frozen=True, slots=True)
class Stage:
    """The distribution after one setting: what is recorded of it."""

    name: str  # "raw", "greedy" or the setting's name
    kept: int
    dropped_mass: float  # probability that this stage cut away, before renormalising
    top: tuple[Candidate, ...]


class Applied(NamedTuple):
    """The logits after one stage, and what is measured of them once."""

    name: str
    logits: Floats
    kept: int
    total: float  # log Σ eˣ, in nats: subtracted from a logit it gives the log-probability
    dropped_mass: float


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
        For NaN or +inf, or if nothing is finite.
    """
    stages: list[Applied] = []
    _apply(stages, "raw", _checked(logits))
    notes: list[str] = []
    _penalise_and_ban(stages, notes, params, prompt_ids, output_ids)
    penalised = stages[-1]
    if not penalised.kept:
        return stages, notes

    if params.is_greedy:
        _apply(stages, "greedy", keep_top_k(penalised.logits, 1))
        notes += [
            f"{name} had no effect: greedy decoding takes the most likely token"
            for name, is_on in _truncations(params)
            if is_on
        ]
        if params.temperature:
            notes.append(f"temperature {params.temperature:g} is taken as 0: below {GREEDY_BELOW:g} it is greedy")
        if params.temperature_last:
            notes.append("temperature_last had no effect: greedy decoding has no temperature")
        return stages, notes

    if params.temperature_last:
        _truncate(stages, notes, params)
        _heat(stages, params)
        notes += _order_notes(penalised, stages[-1].kept, params)
    else:
        _heat(stages, params)
        _truncate(stages, notes, params)
    if params.temperature != 1 and stages[-1].kept == 1 < penalised.kept:
        notes.append(f"temperature {params.temperature:g} had no effect on the draw: one token is left")
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
        For NaN or +inf, or if nothing is finite.
    """
    stages, _ = apply_settings(logits, params, prompt_ids, output_ids)
    last = stages[-1]
    token_ids = most_likely(last.logits, max(last.kept, 1))
    return token_ids, np.exp(last.logits[token_ids] - last.total)


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
        In [0, 1).
    """
    cumulative = np.cumsum(probs)
    last = int(np.searchsorted(cumulative, cumulative[-1]))  # the last one with a share of its own
    return min(int(np.searchsorted(cumulative, u * cumulative[-1], side="right")), last)


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
    while True:
        token_ids = most_likely(last.logits, n_sorted)
        probs = np.exp(last.logits[token_ids] - last.total)
        if n_sorted >= last.kept:
            return int(token_ids[draw(probs, u)])
        cumulative = np.cumsum(probs)
        if u < cumulative[-1] - TOLERANCE:  # the rest could not round its way below u
            return int(token_ids[np.searchsorted(cumulative, u, side="right")])
        n_sorted *= 8


def _penalise_and_ban(
    stages: list[Applied],
    notes: list[str],
    params: SamplingParams,
    prompt_ids: Sequence[int],
    output_ids: Sequence[int],
) -> None:
    def add(name: str, after: Floats, reason: str) -> None:
        if np.array_equal(stages[-1].logits, after):
            notes.append(f"{name} had no effect: {reason}")
        _apply(stages, name, after)

    everything = [*prompt_ids, *output_ids]
    if params.repetition_penalty != 1:
        seen = everything if params.penalty_scope == "prompt+output" else output_ids
        after = penalise_repetition(stages[-1].logits, params.repetition_penalty, seen)
        add("repetition_penalty", after, "no token counts as seen yet")
    elif params.penalty_scope != "prompt+output":
        notes.append("penalty_scope had no effect: repetition_penalty is 1")
    if params.frequency_penalty:
        after = penalise_counts(stages[-1].logits, 0, params.frequency_penalty, output_ids)
        add("frequency_penalty", after, "there is no output yet")
    if params.presence_penalty:
        after = penalise_counts(stages[-1].logits, params.presence_penalty, 0, output_ids)
        add("presence_penalty", after, "there is no output yet")
    if params.no_repeat_ngram_size:
        size = params.no_repeat_ngram_size
        after = ban_repeated_ngrams(stages[-1].logits, size, everything)
        add("no_repeat_ngram_size", after, f"no token would repeat {size} in a row")


def _heat(stages: list[Applied], params: SamplingParams) -> None:
    if params.temperature != 1:
        with np.errstate(over="ignore"):  # it is told when the stage is measured
            _apply(stages, "temperature", stages[-1].logits / params.temperature)


def _truncate(stages: list[Applied], notes: list[str], params: SamplingParams) -> None:
    for name, is_on in _truncations(params):
        if not is_on:
            continue
        n_left = stages[-1].kept
        _apply(stages, name, _keep(name, stages[-1].logits, params))
        if stages[-1].kept == n_left:
            left = f"{n_left} that were left" if n_left > 1 else "one that was left"
            reasons = {
                "top_k": f"there are no more than the {left}",
                "top_p": f"it takes the {left} to reach it",
                "min_p": f"the {left} are likely enough" if n_left > 1 else f"the {left} is likely enough",
            }
            value = str(getattr(params, name))[:12]  # a top_k may have hundreds of digits
            notes.append(f"{name} {value} had no effect: {reasons[name]}")


def _truncations(params: SamplingParams) -> list[tuple[str, bool]]:
    return [("top_k", params.top_k > 0), ("top_p", params.top_p != 1), ("min_p", params.min_p > 0)]


def _keep(name: str, logits: Floats, params: SamplingParams) -> Floats:
    if name == "top_k":
        return keep_top_k(logits, params.top_k)
    return keep_top_p(logits, params.top_p) if name == "top_p" else keep_min_p(logits, params.min_p)


def _order_notes(penalised: Applied, n_kept: int, params: SamplingParams) -> list[str]:
    """Say why it made no difference that temperature came last, if it made none."""
    if params.temperature == 1:
        return ["temperature_last had no effect: temperature is 1"]
    if params.top_p == 1 and params.min_p == 0:
        return ["temperature_last had no effect: neither top_p nor min_p is on"]
    other = [penalised]
    _heat(other, params)
    _truncate(other, [], params)
    if other[-1].kept == n_kept:  # both keep a beginning of the same order
        return ["temperature_last had no effect: both orders keep the same tokens"]
    return []


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


def _apply(stages: list[Applied], name: str, logits: Floats) -> None:
    """Append a stage; what it has dropped is measured against the one before it."""
    kept, total = count(logits), log_total(logits)
    if kept and not math.isfinite(total):
        raise LogitsError(f"{name} takes the logits beyond what a number can hold")
    dropped = 0.0
    if stages and kept < stages[-1].kept:
        dropped = float(-np.expm1(total - stages[-1].total))
    stages.append(Applied(name, logits, kept, total, dropped))
