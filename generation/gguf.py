"""GGUF files: their metadata, and their tensors as float32."""

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generation.errors import ModelUnavailable

Float32s = NDArray[np.float32]

BLOCK = 32  # numbers that share a scale in the quantised types
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies in the file, and how its numbers are kept."""

    shape: tuple[int, ...]  # outermost first
    kind: int
    offset: int  # bytes from the beginning of the file


class GGUF:
    """An open GGUF file.

    Raises
    ------
    ModelUnavailable
        If it is not such a file, or holds numbers of a type that cannot be read here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._at = 0
        if bytes(self._bytes[:4]) != b"GGUF":
            raise ModelUnavailable(f"{path.name} is not a GGUF file")
        self._at = 4
        version, n_tensors, n_values = self._read("I"), self._read("Q"), self._read("Q")
        if version not in (2, 3):
            raise ModelUnavailable(f"{path.name}: GGUF version must be 2 or 3, got {version}")
        self.metadata: dict[str, Any] = {}
        for _ in range(n_values):
            key = self._string()
            self.metadata[key] = self._value(self._read("I"))
        infos = [self._tensor_info() for _ in range(n_tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        start = (self._at + alignment - 1) // alignment * alignment
        self.tensors = {name: TensorInfo(shape, kind, start + offset) for name, shape, kind, offset in infos}

    def tensor(self, name: str) -> Float32s:
        """Return a tensor of the file, dequantised.

        Parameters
        ----------
        name : str

        Returns
        -------
        float32, in the shape of the file, outermost dimension first
        """
        info = self.tensors[name]
        if info.kind not in _READERS:
            kinds = ", ".join(reader.__name__.removeprefix("_").upper() for reader in _READERS.values())
            raise ModelUnavailable(f"{self.path.name}: {name} is of type {info.kind}; readable are {kinds}")
        n_numbers = int(np.prod(info.shape))
        return _READERS[info.kind](self._bytes[info.offset :], n_numbers).reshape(info.shape)

    def _read(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value

    def _string(self) -> str:
        length = self._read("Q")
        text = bytes(self._bytes[self._at : self._at + length]).decode()
        self._at += length
        return text

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._read(SCALARS[kind])
        kind, length = self._read("I"), self._read("Q")
        if kind in SCALARS:
            numbers = np.frombuffer(self._bytes, f"<{SCALARS[kind]}", length, self._at)
            self._at += numbers.nbytes
            return numbers.tolist()
        return [self._value(kind) for _ in range(length)]

    def _tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, n_dims = self._string(), self._read("I")
        dims = [self._read("Q") for _ in range(n_dims)]
        return name, tuple(reversed(dims)), self._read("I"), self._read("Q")


def _f32(data: memoryview, n_numbers: int) -> Float32s:
    return np.frombuffer(data, "<f4", n_numbers)


def _f16(data: memoryview, n_numbers: int) -> Float32s:
    return np.frombuffer(data, "<f2", n_numbers).astype(np.float32)


def _q8_0(data: memoryview, n_numbers: int) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("q", "i1", BLOCK)], n_numbers // BLOCK)
    return blocks["q"] * blocks["scale"].astype(np.float32)[:, None]


def _q4_0(data: memoryview, n_numbers: int) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("q", "u1", BLOCK // 2)], n_numbers // BLOCK)
    return (_nibbles(blocks["q"]) - np.float32(8)) * blocks["scale"].astype(np.float32)[:, None]


def _q4_1(data: memoryview, n_numbers: int) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("low", "<f2"), ("q", "u1", BLOCK // 2)], n_numbers // BLOCK)
    scaled = _nibbles(blocks["q"]) * blocks["scale"].astype(np.float32)[:, None]
    return scaled + blocks["low"].astype(np.float32)[:, None]


def _nibbles(packed: NDArray[np.uint8]) -> Float32s:
    """Return the low halves of all bytes of a block, then the high ones: (n_blocks, 32) float32."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


_READERS: dict[int, Callable[[memoryview, int], Float32s]] = {0: _f32, 1: _f16, 2: _q4_0, 3: _q4_1, 8: _q8_0}
