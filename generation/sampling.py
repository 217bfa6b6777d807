"""From logits to one token: the stages in their fixed order, and the draw.

Each stage is a function of logits that returns new logits, dropped tokens at -inf. Descending order is
always by (−logit, token id), so ties are settled; everything here is float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from generation.errors import LogitsError
from generation.params import SamplingParams

Floats = NDArray[np.float64]
TokenIds = NDArray[np.intp]

TOLERANCE = 1e-12  # exact boundaries (0.5 of ½ ¼ ¼) behave as they read


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
    """The logits after one stage."""

    name: str
    logits: Floats
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
        The tokens so far, for the penalty.

    Returns
    -------
    stages : list of Applied
        "raw" first, then one for each setting that is on; the last one's survivors can be drawn.
    notes : list of str
        Settings that are on and had no effect here, each with the reason.

    Raises
    ------
    LogitsError
        For NaN or +inf, or if nothing is finite.
    """
    current = _checked(logits)
    stages = [Applied("raw", current, 0.0)]
    notes: list[str] = []

    if params.repetition_penalty != 1:
        current = penalise_repetition(current, params.repetition_penalty, [*prompt_ids, *output_ids])
        stages.append(Applied("repetition_penalty", current, 0.0))

    if params.is_greedy:
        stages.append(_truncated("greedy", current, keep_top_k(current, 1)))
        if params.top_k:
            notes.append("top_k had no effect: greedy decoding takes the most likely token")
        if params.top_p != 1:
            notes.append("top_p had no effect: greedy decoding takes the most likely token")
        return stages, notes

    if params.temperature != 1:
        current = current / params.temperature
        stages.append(Applied("temperature", current, 0.0))
    if params.top_k:
        before, current = current, keep_top_k(current, params.top_k)
        stages.append(_truncated("top_k", before, current))
        if _count(current) == _count(before):
            notes.append(f"top_k {params.top_k} had no effect: only {_count(before)} tokens were left")
    if params.top_p != 1:
        before, current = current, keep_top_p(current, params.top_p)
        stages.append(_truncated("top_p", before, current))
        if _count(current) == _count(before):
            notes.append(f"top_p {params.top_p} had no effect: all {_count(before)} tokens are needed to reach it")
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
        The tokens so far, for the penalty.

    Returns
    -------
    token_ids : (n_survivors,) int
        In descending order of probability, ties by id.
    probs : (n_survivors,) float64
        Their probabilities; they sum to 1.

    Raises
    ------
    LogitsError
        For NaN or +inf, or if nothing is finite.
    """
    stages, _ = apply_settings(logits, params, prompt_ids, output_ids)
    return survivors(stages[-1].logits)


def survivors(logits: Floats) -> tuple[TokenIds, Floats]:
    """Return the tokens above -inf in descending order, and their probabilities."""
    token_ids = descending(logits)[: _count(logits)]
    return token_ids, softmax(logits[token_ids])


def penalise_repetition(logits: Floats, penalty: float, seen_ids: Sequence[int]) -> Floats:
    """Make every token seen before less likely, once however often it was seen.

    Parameters
    ----------
    logits : (vocab_size,) float64
    penalty : float
        θ > 0: a negative logit is multiplied by it, any other divided.
    seen_ids : sequence of int

    Returns
    -------
    (vocab_size,) float64

    References
    ----------
    Keskar et al., "CTRL: A Conditional Transformer Language Model for Controllable Generation", 2019,
    section 4.1; the case of negative logits as in Hugging Face transformers. https://arxiv.org/abs/1909.05858
    """
    seen = np.unique(np.asarray(seen_ids, dtype=np.intp))
    penalised = logits.copy()
    penalised[seen] = np.where(logits[seen] < 0, logits[seen] * penalty, logits[seen] / penalty)
    return penalised


def keep_top_k(logits: Floats, top_k: int) -> Floats:
    """Keep exactly the `top_k` most likely tokens; among equals the lowest ids.

    Parameters
    ----------
    logits : (vocab_size,) float64
    top_k : int
        At least 1; more than there are keeps all.

    Returns
    -------
    (vocab_size,) float64
        `logits` with the other tokens at -inf.

    References
    ----------
    Fan et al., "Hierarchical Neural Story Generation", ACL 2018, section 5.4. https://arxiv.org/abs/1805.04833
    """
    return _keep_only(logits, descending(logits)[:top_k])


def keep_top_p(logits: Floats, top_p: float) -> Floats:
    """Keep the fewest most likely tokens whose probabilities sum to at least `top_p`.

    Parameters
    ----------
    logits : (vocab_size,) float64
        Unnormalised log-probabilities, in nats.
    top_p : float
        Probability mass to keep, in (0, 1].

    Returns
    -------
    (vocab_size,) float64
        `logits` with the other tokens at -inf. At least one token survives.

    References
    ----------
    Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020,
    section 3.1 (nucleus sampling). https://arxiv.org/abs/1904.09751
    """
    if top_p == 1:
        return logits  # the running sum below can round up to 1 before the last token
    order = descending(logits)
    probs = softmax(logits[order])
    keep = np.cumsum(probs) - probs < top_p - TOLERANCE  # the mass before each token
    keep[0] = True
    return _keep_only(logits, order[keep])


def softmax(logits: Floats) -> Floats:
    """Return probabilities, (n,) float64; the largest logit must be finite."""
    exp = np.exp(logits - logits.max())
    probs: Floats = exp / exp.sum()
    return probs


def descending(logits: Floats) -> TokenIds:
    """Return the token ids, most likely first; ties by id."""
    return np.argsort(-logits, kind="stable")


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


def _checked(logits: ArrayLike) -> Floats:
    checked = np.asarray(logits, dtype=np.float64)
    if np.isnan(checked).any():
        raise LogitsError("logits must be numbers, got NaN")
    if np.isposinf(checked).any():
        raise LogitsError("logits must be below infinity, got inf")
    if not np.isfinite(checked).any():
        raise LogitsError("at least one logit must be finite, got none")
    return checked


def _truncated(name: str, before: Floats, after: Floats) -> Applied:
    dropped = np.isneginf(after) & ~np.isneginf(before)
    return Applied(name, after, float(softmax(before)[dropped].sum()))


def _keep_only(logits: Floats, token_ids: TokenIds) -> Floats:
    kept = np.full_like(logits, -np.inf)
    kept[token_ids] = logits[token_ids]
    return kept


def _count(logits: Floats) -> int:
    return int(np.isfinite(logits).sum())
