"""The keys and values of the positions already computed: given to a model, never hidden in one."""

import numpy as np
from numpy.typing import NDArray

from generation.errors import PromptError

Floats = NDArray[np.floating]

FIRST_ROOM = 256  # positions; twice as many each time it is full


class KVCache:
    """Keys and values of one sequence, for all layers.

    Keys are kept with the positions last, as attention multiplies them; a cache grows with its text, so
    that a short one is small.

    Parameters
    ----------
    n_layer, n_kv_head, head_dim : int
    context_length : int
        Positions that fit.
    dtype : numpy dtype, default float64
    """

    def __init__(
        self,
        n_layer: int,
        n_kv_head: int,
        head_dim: int,
        context_length: int,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        room = min(FIRST_ROOM, context_length)
        self._context_length = context_length
        self._keys = np.empty((n_layer, n_kv_head, head_dim, room), dtype)
        self._values = np.empty((n_layer, n_kv_head, room, head_dim), dtype)
        self._bytes_per_position = self._keys[..., :1].nbytes + self._values[..., :1, :].nbytes
        self._length = 0

    def __len__(self) -> int:
        """Positions computed so far."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes taken by the positions computed so far."""
        return self._bytes_per_position * self._length

    def nbytes_for(self, n_positions: int) -> int:
        """Bytes that the cache takes once it holds so many positions, its spare room included."""
        return self._bytes_per_position * self._room_for(n_positions)

    def check_room(self, n_new: int) -> None:
        """Refuse to compute nothing, or more positions than fit.

        Raises
        ------
        PromptError
        """
        if not n_new:
            raise PromptError("the model needs at least one token")
        if self._length + n_new > self._context_length:
            n_tokens = self._length + n_new
            raise PromptError(f"{n_tokens} tokens do not fit into the context of {self._context_length}")

    def append(self, layer: int, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Write the new positions of one layer and return all of that layer, old and new.

        The cache grows when `advance` is called, once all layers have been written.

        Parameters
        ----------
        layer : int
        keys, values : (n_kv_head, n_new, head_dim)

        Returns
        -------
        keys : (n_kv_head, head_dim, n_old + n_new), view
        values : (n_kv_head, n_old + n_new, head_dim), view
        """
        end = self._length + keys.shape[1]
        if end > self._keys.shape[-1]:
            self._make_room(end)
        self._keys[layer, :, :, self._length : end] = keys.transpose(0, 2, 1)
        self._values[layer, :, self._length : end] = values
        return self._keys[layer, :, :, :end], self._values[layer, :, :end]

    def advance(self, n_new: int) -> None:
        """Count `n_new` positions as computed."""
        self._length += n_new

    def truncate(self, length: int) -> None:
        """Forget all positions from `length` on, so that other tokens can follow there."""
        if not 0 <= length <= self._length:
            raise ValueError(f"length must be between 0 and {self._length}, got {length}")
        self._length = length

    def _room_for(self, n_positions: int) -> int:
        room: int = self._keys.shape[-1]
        while room < n_positions:
            room *= 2
        return min(room, self._context_length)

    def _make_room(self, n_positions: int) -> None:
        room = self._room_for(n_positions)
        old_keys, old_values, n = self._keys, self._values, self._length
        self._keys = np.empty((*old_keys.shape[:-1], room), old_keys.dtype)
        self._values = np.empty((*old_values.shape[:2], room, old_values.shape[-1]), old_values.dtype)
        self._keys[..., :n], self._values[:, :, :n] = old_keys[..., :n], old_values[:, :, :n]
