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
        return KVCache(1, 1, self.context_length)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        if kv_cache is not None:
            kv_cache.advance(len(token_ids))
        row = self.rows[min(self.n_passes, len(self.rows) - 1)]
        self.n_passes += 1
        return np.array(row, dtype=np.float64)
