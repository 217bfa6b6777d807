"""The toy: an untrained transformer over six words, small enough to follow every number by hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from generation.inspection import Inspection, check_inspected, digest
from generation.kv_cache import KVCache
from generation.tokenizer import WordTokenizer

Floats = NDArray[np.float64]

D_MODEL = 8
D_MLP = 16
N_LAYER = 2
WORDS = ("the", "sky", "is", "blue", "clear", "<EOS>")


class Block:
    """The weights of one layer, drawn from a seed of its own."""

    def __init__(self, seed: int) -> None:
        draw = np.random.RandomState(seed).randn  # the legacy stream is frozen, so every machine agrees
        self.wq, self.wk, self.wv, self.wo = draw(4, D_MODEL, D_MODEL) * 0.3
        self.w1 = draw(D_MODEL, D_MLP) * 0.3
        self.w2 = draw(D_MLP, D_MODEL) * 0.3


class SkyModel:
    """A single-head, post-norm transformer with sinusoidal positions, in float64."""

    name = "sky"
    vocab_size = len(WORDS)
    context_length = 256
    eos_token_id = WORDS.index("<EOS>")

    def __init__(self) -> None:
        random = np.random.RandomState(7)
        self.embeddings = np.round(random.randn(self.vocab_size, D_MODEL) * 0.4, 3)
        self.head = np.round(random.randn(self.vocab_size, D_MODEL) * 0.5, 2)
        self.blocks = [Block(seed) for seed in range(N_LAYER)]
        self.positions = _sinusoids(self.context_length)
        self.tokenizer = WordTokenizer(WORDS, control=["<EOS>"])

    def encode(self, text: str, control: bool = False) -> list[int]:
        return self.tokenizer.encode(text, control)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def token(self, token_id: int) -> str:
        """Return the vocabulary's entry."""
        return WORDS[token_id]

    def new_cache(self) -> KVCache:
        return KVCache(N_LAYER, 1, D_MODEL, self.context_length)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> Floats:
        """Run the new tokens through the network.

        Parameters
        ----------
        token_ids : sequence of int
            The tokens that the cache does not hold yet; all of them without a cache.
        kv_cache : KVCache, optional
            Advanced by the tokens given.

        Returns
        -------
        (vocab_size,) float64
            Logits after the last token, in nats.

        Raises
        ------
        PromptError
            If there is no token, or more than the context holds.
        """
        cache = self.new_cache() if kv_cache is None else kv_cache
        cache.check_room(len(token_ids))
        logits: Floats = self.head @ self._run_blocks(token_ids, cache)[-1]
        return logits

    def inspect(self, token_ids: Sequence[int]) -> Inspection:
        """Run a text through the network and keep what `forward` throws away.

        Parameters
        ----------
        token_ids : sequence of int
            At most `MAX_INSPECTED`.

        Returns
        -------
        Inspection
            logits : (n_positions, vocab_size) float64
                After each token, in nats; the last row is what `forward` returns.
            attention : (n_layer, n_head, n_positions, n_positions) float64
                Each row sums to 1; no position looks at a later one.

        Raises
        ------
        PromptError
            If there is no token, or more than can be inspected.
        """
        check_inspected(len(token_ids))
        cache = self.new_cache()
        cache.check_room(len(token_ids))
        attention: list[Floats] = []
        x = self._run_blocks(token_ids, cache, attention)
        return Inspection(x @ self.head.T, np.stack(attention))

    def fingerprint(self) -> str:
        """Return the SHA-256 of all weights: the embeddings, the head, and each block's in the order of their use."""
        blocks = [(block.wq, block.wk, block.wv, block.wo, block.w1, block.w2) for block in self.blocks]
        return digest([self.embeddings, self.head, *(matrix for block in blocks for matrix in block)])

    def multiply_adds(self, n_new: int, n_total: int) -> int:
        """Count the multiply-adds of one pass from the shapes of its matrix products.

        Parameters
        ----------
        n_new : int
            Positions that the pass computes.
        n_total : int
            Positions that they look at: the new ones and those in the cache.
        """
        projections = 4 * D_MODEL * D_MODEL
        attention = 2 * n_total * D_MODEL
        mlp = 2 * D_MODEL * D_MLP
        return N_LAYER * n_new * (projections + attention + mlp) + self.vocab_size * D_MODEL

    def _run_blocks(self, token_ids: Sequence[int], cache: KVCache, attention: list[Floats] | None = None) -> Floats:
        """Return the last layer's activations of new tokens, (n_new, d_model), and advance the cache.

        Each layer's attention, (1, n_new, end), is added to `attention` where there is a list.
        """
        start, end = len(cache), len(cache) + len(token_ids)
        x = self.embeddings[list(token_ids)] + self.positions[start:end]  # (n_new, d_model)
        visible = np.arange(end) <= np.arange(start, end)[:, None]  # (n_new, end), causal
        for layer, block in enumerate(self.blocks):
            keys, values = cache.append(layer, (x @ block.wk)[None], (x @ block.wv)[None])
            scores = (x @ block.wq) @ keys[0] / np.sqrt(D_MODEL)  # (n_new, end)
            probs = _softmax_rows(np.where(visible, scores, -np.inf))
            if attention is not None:
                attention.append(probs[None])
            x = _normalise(x + probs @ values[0] @ block.wo)
            x = _normalise(x + np.maximum(x @ block.w1, 0) @ block.w2)
        cache.advance(len(token_ids))
        return x


def _sinusoids(context_length: int) -> Floats:
    channel = np.arange(D_MODEL)
    angle = np.arange(context_length)[:, None] / 10_000 ** (2 * (channel // 2) / D_MODEL)
    return np.where(channel % 2 == 0, np.sin(angle), np.cos(angle))


def _softmax_rows(scores: Floats) -> Floats:
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    probs: Floats = exp / exp.sum(axis=1, keepdims=True)
    return probs


def _normalise(x: Floats) -> Floats:
    """Layer norm without gain or bias; the small number is added to the deviation, not to the variance."""
    normed: Floats = (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-8)
    return normed
