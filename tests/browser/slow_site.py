"""The site with a model that takes its time and marks each pass in a file, for tests of the stream."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from generation import KVCache
from generation.catalogue import MODELS
from generation.models.sky import SkyModel
from quizsite.asgi import application
from quizsite.labs import engine

__all__ = ["application"]

PASSES = Path(os.environ["PASSES"])


class SlowModel(SkyModel):
    """The toy, a fifth of a second for each pass."""

    name = "slow"

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        with PASSES.open("a") as passes:
            passes.write("(")
            passes.flush()
            time.sleep(0.2)
            passes.write(")")
        return super().forward(token_ids, kv_cache)


class BrokenModel(SlowModel):
    """The same, until its fourth pass gives NaN."""

    name = "broken"

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        logits = super().forward(token_ids, kv_cache)
        return logits * np.nan if kv_cache is not None and len(kv_cache) > 5 else logits


class FaultyModel(SlowModel):
    """The same, until its fourth pass raises what nobody expects."""

    name = "faulty"

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        if kv_cache is not None and len(kv_cache) > 4:
            raise RuntimeError("broken on purpose")
        return super().forward(token_ids, kv_cache)


MODELS["slow"] = SlowModel
MODELS["faulty"] = FaultyModel
MODELS["broken"] = BrokenModel
engine.LOST_AFTER = 2.0
