"""The keys and values of the positions already computed: given to a model, never hidden in one."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


class KVCache:
    """Keys and values of one sequence, for all layers.

    Parameters
    ----------
    n_layer : int
    width : int
        Numbers in the key (and in the value) of one position in one layer.
    context_length : int
        Positions that fit.
    dtype : numpy dtype, default float64
    """

    def __init__(self, n_layer: int, width: int, context_length: int, dtype: type[np.floating] = np.float64) -> None:
        self._keys = np.empty((n_layer, context_length, width), dtype)
        self._values = np.empty((n_layer, context_length, width), dtype)
        self._length = 0

    def __len__(self) -> int:
        """Positions computed so far."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes taken by the positions computed so far."""
        per_position = self._keys[:, 0].nbytes + self._values[:, 0].nbytes
        return per_position * self._length

    def put(self, layer: int, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Write the new positions of one layer and return all of that layer, old and new.

        The cache grows when `advance` is called, once all layers have been written.

        Parameters
        ----------
        layer : int
        keys, values : (n_new, width)

        Returns
        -------
        keys, values : (n_old + n_new, width), views
        """
        end = self._length + len(keys)
        self._keys[layer, self._length : end] = keys
        self._values[layer, self._length : end] = values
        return self._keys[layer, :end], self._values[layer, :end]

    def advance(self, n_new: int) -> None:
        """Count `n_new` positions as computed."""
        self._length += n_new

    def truncate(self, length: int) -> None:
        """Forget all positions from `length` on, so that other tokens can follow there."""
        if not 0 <= length <= self._length:
            raise ValueError(f"length must be between 0 and {self._length}, got {length}")
        self._length = length
