"""Times measured in turn, so that noise falls on all alike."""

import statistics
import time
from collections.abc import Callable

ROUNDS = 15


def alternate(*functions: Callable[[], object], rounds: int = ROUNDS, inner: int = 1) -> list[float]:
    """Return each function's median milliseconds, measured in turn so that noise falls on all alike."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, seconds, strict=True):
            began = time.perf_counter()
            for _ in range(inner):
                function()
            found.append((time.perf_counter() - began) / inner)
    return [1000 * statistics.median(found) for found in seconds]
