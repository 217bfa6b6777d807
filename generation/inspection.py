"""What a model shows on request: logits and attention at every position, and a fingerprint of its weights."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from generation.errors import PromptError

Floats = NDArray[np.floating]

MAX_INSPECTED = 64  # positions; the attention grows with their square, in each head of each layer


class Inspection(NamedTuple):
    """What a model computed at each position of a text."""

    logits: Floats  # (n_positions, vocab_size), nats; row i is the prediction after token i
    attention: Floats  # (n_layer, n_head, n_positions, n_positions); row i: how much position i looks at each


@runtime_checkable
class Inspectable(Protocol):
    """A model that can be looked into."""

    def inspect(self, token_ids: Sequence[int]) -> Inspection: ...

    def fingerprint(self) -> str: ...


def inspect(model: object, token_ids: Sequence[int]) -> Inspection:
    """Return what a model computes at each position of a text, and where each looks.

    Raises
    ------
    PromptError
        For more than `MAX_INSPECTED` tokens, or a model that cannot be looked into.
    """
    return _inspectable(model).inspect(token_ids)


def fingerprint(model: object) -> str:
    """Return the SHA-256 over all weights of a model as they are now, in hexadecimal.

    Raises
    ------
    PromptError
        For a model that cannot be looked into.
    """
    return _inspectable(model).fingerprint()


def _inspectable(model: object) -> Inspectable:
    if not isinstance(model, Inspectable):
        raise PromptError(f"a {type(model).__name__} cannot be looked into")
    return model


def check_inspected(n_positions: int) -> None:
    """Refuse a text too long to be inspected.

    Raises
    ------
    PromptError
    """
    if n_positions > MAX_INSPECTED:
        raise PromptError(f"at most {MAX_INSPECTED} tokens can be inspected, got {n_positions}")


def digest(arrays: Iterable[Floats]) -> str:
    """Return the SHA-256 of the bytes of arrays, one after another, in hexadecimal."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(np.ascontiguousarray(array).data)
    return sha256.hexdigest()
