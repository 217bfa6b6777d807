"""The Llama architecture: pre-norm blocks, rotary positions, grouped-query attention, gated MLP; float32."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from generation.inspection import Inspection, check_inspected, digest
from generation.kv_cache import KVCache
from generation.tokenizer import ByteLevelTokenizer

Float32s = NDArray[np.float32]

CHUNK = 256  # positions that a prefill computes at once: the arrays in between stay in the processor's cache


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes and constants of a model."""

    name: str
    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_mlp: int
    vocab_size: int
    context_length: int
    rope_base: float
    norm_epsilon: float

    @property
    def head_dim(self) -> int:
        return self.d_model // self.n_head


@dataclass(frozen=True)
class LlamaWeights:
    """The learned numbers, float32; matrices as [in, out], so that a row of activations multiplies them."""

    embeddings: Float32s  # (vocab_size, d_model); the output head as well
    attention_norm: Float32s  # (n_layer, d_model)
    qkv: Float32s  # (n_layer, d_model, (n_head + 2 · n_kv_head) · head_dim), RoPE pairs side by side
    out: Float32s  # (n_layer, n_head · head_dim, d_model)
    mlp_norm: Float32s  # (n_layer, d_model)
    gate_up: Float32s  # (n_layer, d_model, 2 · d_mlp)
    down: Float32s  # (n_layer, d_mlp, d_model)
    final_norm: Float32s  # (d_model,)
    head: Float32s  # (vocab_size, d_model); the embeddings themselves where they are tied


class LlamaModel:
    """A model of the Llama architecture. It holds no state of any run."""

    def __init__(
        self,
        config: LlamaConfig,
        weights: LlamaWeights,
        tokenizer: ByteLevelTokenizer,
        chat_template: str | None = None,
    ) -> None:
        self.config, self.weights, self.tokenizer, self.chat_template = config, weights, tokenizer, chat_template
        self.name, self.vocab_size, self.context_length = config.name, config.vocab_size, config.context_length
        self.eos_token_id, self.start_token_id = tokenizer.eos_token_id, tokenizer.start_token_id
        pairs = np.arange(config.head_dim // 2)
        angles = np.arange(config.context_length)[:, None] * config.rope_base ** (-2.0 * pairs / config.head_dim)
        self._rotations = np.exp(1j * angles).astype(np.complex64)  # (context_length, head_dim / 2)

    def encode(self, text: str, control: bool = False) -> list[int]:
        return self.tokenizer.encode(text, control)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def token(self, token_id: int) -> str:
        """Return the vocabulary's entry, readable."""
        return self.tokenizer.token(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that an entry stands for; none for a control token."""
        return self.tokenizer.token_bytes(token_id)

    def new_cache(self) -> KVCache:
        config = self.config
        return KVCache(config.n_layer, config.n_kv_head, config.head_dim, config.context_length, np.float32)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> Float32s:
        """Run the new tokens through the network.

        Parameters
        ----------
        token_ids : sequence of int
            The tokens that the cache does not hold yet; all of them without a cache.
        kv_cache : KVCache, optional
            Advanced by the tokens given.

        Returns
        -------
        (vocab_size,) float32
            Logits after the last token, in nats.

        Raises
        ------
        PromptError
            If there is no token, or more than the context holds.
        """
        cache = self.new_cache() if kv_cache is None else kv_cache
        cache.check_room(len(token_ids))
        for chunk in _chunks(token_ids):
            x = self._run_blocks(chunk, cache)
        logits: Float32s = self.weights.head @ self._normed(x[-1])
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
            logits : (n_positions, vocab_size) float32
                After each token, in nats; the last row is what `forward` returns.
            attention : (n_layer, n_head, n_positions, n_positions) float32
                Each row sums to 1; no position looks at a later one.

        Raises
        ------
        PromptError
            If there is no token, or more than can be inspected.
        """
        check_inspected(len(token_ids))
        cache = self.new_cache()
        cache.check_room(len(token_ids))
        attention: list[Float32s] = []
        x = self._run_blocks(token_ids, cache, attention)
        return Inspection(self._normed(x) @ self.weights.head.T, np.stack(attention))

    def fingerprint(self) -> str:
        """Return the SHA-256 of all weights, in the order of `LlamaWeights`; it reads the whole model from disk."""
        return digest(getattr(self.weights, field.name) for field in fields(self.weights))

    def multiply_adds(self, n_new: int, n_total: int) -> int:
        """Count the multiply-adds of one pass from the shapes of its matrix products; see `SkyModel`."""
        config, weights = self.config, self.weights
        matrices = sum(int(matrix[0].size) for matrix in (weights.qkv, weights.out, weights.gate_up, weights.down))
        attention = 2 * n_total * config.n_head * config.head_dim
        return config.n_layer * n_new * (matrices + attention) + self.vocab_size * config.d_model

    def _run_blocks(
        self, token_ids: Sequence[int], cache: KVCache, attention: list[Float32s] | None = None
    ) -> Float32s:
        """Return the last layer's activations of new tokens, (n_new, d_model), and advance the cache.

        Each layer's attention, (n_head, n_new, n_total), is added to `attention` where there is a list.
        """
        weights, epsilon = self.weights, self.config.norm_epsilon
        x = weights.embeddings[list(token_ids)]  # (n_new, d_model)
        for layer in range(self.config.n_layer):
            h = _rms_norm(x, weights.attention_norm[layer], epsilon)
            x = x + self._attend(layer, h @ weights.qkv[layer], cache, attention) @ weights.out[layer]
            h = _rms_norm(x, weights.mlp_norm[layer], epsilon)
            x = x + _gated(h @ weights.gate_up[layer]) @ weights.down[layer]
        cache.advance(len(token_ids))
        return x

    def _normed(self, x: Float32s) -> Float32s:
        """Return activations as the output head reads them."""
        return _rms_norm(x, self.weights.final_norm, self.config.norm_epsilon)

    def _attend(self, layer: int, qkv: Float32s, cache: KVCache, attention: list[Float32s] | None) -> Float32s:
        """Let each new position look at all before it and itself; (n_new, n_head · head_dim)."""
        config = self.config
        n_new, start = len(qkv), len(cache)
        heads = qkv.reshape(n_new, -1, config.head_dim).transpose(1, 0, 2)  # (n_head + 2 n_kv_head, n_new, head_dim)
        n_rotated = config.n_head + config.n_kv_head
        rotated = self._rotate(heads[:n_rotated], start)
        queries = rotated[: config.n_head].reshape(
            config.n_kv_head, -1, config.head_dim
        )  # (n_kv_head, group · n_new, …)
        keys, values = cache.append(layer, rotated[config.n_head :], heads[n_rotated:])

        scores: Float32s = np.matmul(queries, keys)  # (n_kv_head, group · n_new, n_total)
        scores *= np.float32(config.head_dim**-0.5)
        if n_new > 1:
            n_total = keys.shape[-1]
            later = np.arange(n_total) > np.arange(start, start + n_new)[:, None]  # (n_new, n_total)
            scores.reshape(config.n_head, n_new, n_total)[:, later] = -np.inf
        probs = _softmax(scores)
        if attention is not None:
            attention.append(probs.reshape(config.n_head, n_new, -1))
        looked_at: Float32s = np.matmul(probs, values)  # (n_kv_head, group · n_new, head_dim)
        return looked_at.reshape(config.n_head, n_new, config.head_dim).transpose(1, 0, 2).reshape(n_new, -1)

    def _rotate(self, heads: Float32s, start: int) -> Float32s:
        """Turn each pair of numbers by its position's angle; (n_head, n_new, head_dim)."""
        pairs = np.ascontiguousarray(heads).view(np.complex64)  # (n_head, n_new, head_dim / 2)
        turned: Float32s = (pairs * self._rotations[start : start + heads.shape[1]]).view(np.float32)
        return turned


def _chunks(token_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(token_ids), CHUNK):
        yield token_ids[start : start + CHUNK]


def _rms_norm(x: Float32s, gain: Float32s, epsilon: float) -> Float32s:
    mean_square = np.einsum("...i,...i->...", x, x)[..., None] / np.float32(x.shape[-1])
    normed: Float32s = x / np.sqrt(mean_square + np.float32(epsilon)) * gain
    return normed


def _gated(gate_up: Float32s) -> Float32s:
    """Return silu(gate) · up of the two halves side by side."""
    d_mlp = gate_up.shape[-1] // 2
    gate, up = gate_up[:, :d_mlp], gate_up[:, d_mlp:]
    activated: Float32s = np.exp(-gate)
    activated += 1
    np.divide(gate, activated, out=activated)
    activated *= up
    return activated


def _softmax(scores: Float32s) -> Float32s:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores
