"""Models of the tests' own: logits by rule, no network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from generation import KVCache


class ScriptedModel:
    """Five letters; the logits depend on how many tokens there are."""

    vocab_size = 5
    context_length = 100

    def __init__(self, rows: Sequence[Sequence[float]]) -> None:
        self.rows = rows  # of step 1, 2, …; the last one stays
        self.n_passes = 0

    def encode(self, text: str, control: bool = False) -> list[int]:
        return ["abcde".index(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join("abcde"[i] for i in ids)

    def new_cache(self) -> KVCache:
        return KVCache(1, 1, 1, self.context_length)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        if kv_cache is not None:
            kv_cache.advance(len(token_ids))
        row = self.rows[min(self.n_passes, len(self.rows) - 1)]
        self.n_passes += 1
        return np.array(row, dtype=np.float64)


class ByteModel:
    """A byte-level model that writes the ids it was given: 256 bytes and two control tokens."""

    name = "bytes"
    vocab_size = 258
    context_length = 1000
    eos_token_id = 256
    start_token_id = 257
    other_control_id = 257

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self.n_passes = 0

    def encode(self, text: str, control: bool = False) -> list[int]:
        if control and text == "<end>":
            return [self.eos_token_id]
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def token(self, token_id: int) -> str:
        return {256: "<end>", 257: "<other>"}.get(token_id) or bytes([token_id]).decode(errors="replace")

    def new_cache(self) -> KVCache:
        return KVCache(1, 1, 1, self.context_length)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        if kv_cache is not None:
            kv_cache.advance(len(token_ids))
        logits = np.zeros(self.vocab_size)
        logits[self.ids[self.n_passes]] = 20
        self.n_passes += 1
        return logits
