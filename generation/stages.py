"""What each setting does to logits: pure functions that return new logits, dropped tokens at -inf.

Descending order is always by (−logit, token id), so ties are settled; everything is float64. Nothing is
sorted further than it is looked at: a full sort of a large vocabulary would cost more than all the rest.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TokenIds = NDArray[np.intp]

TOLERANCE = 1e-12  # exact boundaries (0.5 of ½ ¼ ¼) behave as they read
FIRST_LOOK = 256  # tokens that are sorted first; eight times as many each time that is too few


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
    with np.errstate(over="ignore"):  # a penalty close to 0 can overflow; whoever measures the result is told
        penalised[seen] = np.where(logits[seen] < 0, logits[seen] * penalty, logits[seen] / penalty)
    return penalised


def penalise_counts(logits: Floats, per_token: float, per_count: float, output_ids: Sequence[int]) -> Floats:
    """Subtract from each token of the output: once for being there, and once for each time.

    Parameters
    ----------
    logits : (vocab_size,) float64
    per_token, per_count : float
        Presence and frequency penalty, in nats.
    output_ids : sequence of int

    Returns
    -------
    (vocab_size,) float64

    References
    ----------
    The penalties of OpenAI's API: x − presence · [count > 0] − frequency · count.
    """
    counts = Counter(output_ids)
    seen = np.fromiter(counts.keys(), np.intp, len(counts))
    times = np.fromiter(counts.values(), np.float64, len(counts))
    penalised = logits.copy()
    penalised[seen] -= per_token + per_count * times
    return penalised


def ban_repeated_ngrams(logits: Floats, size: int, token_ids: Sequence[int]) -> Floats:
    """Drop each token that would complete an n-gram which the text already has.

    Parameters
    ----------
    logits : (vocab_size,) float64
    size : int
        n, at least 1.
    token_ids : sequence of int
        Prompt and output.

    Returns
    -------
    (vocab_size,) float64
        Possibly with nothing left.

    References
    ----------
    Paulus et al., "A Deep Reinforced Model for Abstractive Summarization", ICLR 2018, section 2.5.
    https://arxiv.org/abs/1705.04304
    """
    ids = np.asarray(token_ids, dtype=np.intp)
    n_starts = len(ids) - size + 1  # n-grams that the text has
    if n_starts < 1:
        return logits
    follows = np.ones(n_starts, dtype=bool)
    for place in range(size - 1):  # does the text go on as it did there?
        follows &= ids[place : place + n_starts] == ids[n_starts + place]
    kept = logits.copy()
    kept[ids[size - 1 :][follows]] = -np.inf
    return kept


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
    return _keep_only(logits, most_likely(logits, top_k))


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
    (largest, total), n_sorted = measure(logits), FIRST_LOOK
    while True:
        token_ids = most_likely(logits, n_sorted)
        probs = np.exp(logits[token_ids] - largest) / total
        mass = np.cumsum(probs)
        if mass[-1] >= top_p or len(token_ids) < n_sorted:
            break
        n_sorted *= 8
    keep = mass - probs < top_p - TOLERANCE  # the mass before each token
    keep[0] = True
    return _keep_only(logits, token_ids[keep])


def keep_min_p(logits: Floats, min_p: float) -> Floats:
    """Keep the tokens that are at least `min_p` times as likely as the most likely one.

    Parameters
    ----------
    logits : (vocab_size,) float64
        Unnormalised log-probabilities, in nats.
    min_p : float
        In [0, 1].

    Returns
    -------
    (vocab_size,) float64
        `logits` with the other tokens at -inf. At least one token survives.

    References
    ----------
    Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", ICLR 2025,
    section 3. https://arxiv.org/abs/2407.01082
    """
    relative = np.exp(logits - logits.max())
    return np.where(relative >= min_p - TOLERANCE, logits, -np.inf)


def most_likely(logits: Floats, n: int) -> TokenIds:
    """Return the ids of the `n` most likely tokens above -inf, or of all, in descending order."""
    n_alive = count(logits)
    if n < n_alive:
        values = logits if n_alive == len(logits) else logits[logits > -np.inf]
        found = np.flatnonzero(logits >= np.partition(values, n_alive - n)[n_alive - n])  # more than n if tied
    else:
        found = np.flatnonzero(logits > -np.inf)
    falling = -logits[found]
    order = np.argsort(falling)  # six times as fast as a stable sort, and the same where nothing is tied
    if (np.diff(falling[order]) == 0).any():
        order = np.argsort(falling, kind="stable")
    return found[order][:n]


def measure(logits: Floats) -> tuple[float, float]:
    """Return the largest logit, and Σ exp(logit − largest): what makes probabilities of logits.

    Of no token at all they are -inf and 0; of a logit that has overflowed, inf and 1.
    """
    alive = logits if count(logits) == len(logits) else logits[logits > -np.inf]  # exp(-inf) is slow
    if not len(alive):
        return -np.inf, 0.0
    largest = float(alive.max())
    if largest == np.inf:
        return np.inf, 1.0
    shifted = alive - largest
    return largest, float(np.exp(shifted, out=shifted).sum())


def count(logits: Floats) -> int:
    """Return how many tokens are left."""
    return int(np.count_nonzero(logits > -np.inf))


def _keep_only(logits: Floats, token_ids: TokenIds) -> Floats:
    kept = np.full_like(logits, -np.inf)
    kept[token_ids] = logits[token_ids]
    return kept
