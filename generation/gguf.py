"""GGUF files: their metadata, and their tensors as float32."""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from generation.errors import ModelUnavailable

Float32s = NDArray[np.float32]

BLOCK = 32  # numbers that share a scale in the quantised types
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class Kind:
    """A type of number that can be read: how many lie together, in how many bytes."""

    name: str
    n_numbers: int
    n_bytes: int
    read: Callable[[bytes], Float32s]


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies in the file, and how its numbers are kept."""

    shape: tuple[int, ...]  # outermost first
    kind: int
    offset: int  # bytes from the beginning of the file

    @property
    def n_bytes(self) -> int:
        kind = KINDS[self.kind]
        return math.prod(self.shape) // kind.n_numbers * kind.n_bytes


class GGUF:
    """The head of a GGUF file; tensors are read when they are asked for.

    Raises
    ------
    ModelUnavailable
        If it is not such a file, is damaged, or holds numbers of a type that cannot be read here.
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: dict[str, Any] = {}
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelUnavailable(f"{path.name} is not a GGUF file")
            head = _Head(file, size)
            try:
                version = head.number("I")
                if version not in (2, 3):
                    raise ModelUnavailable(f"{path.name}: GGUF version must be 2 or 3, got {version}")
                self.tensors = self._read(head)
            except (EOFError, RecursionError, ValueError) as error:
                raise ModelUnavailable(f"{path.name} is damaged: {error}") from None
        for name, info in self.tensors.items():
            self._check(name, info, size)

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
        with self.path.open("rb") as file:
            file.seek(info.offset)
            data = file.read(info.n_bytes)
        if len(data) < info.n_bytes:
            raise ModelUnavailable(f"{self.path.name} is damaged: it ends within {name}")
        return KINDS[info.kind].read(data).reshape(info.shape)

    def _read(self, head: "_Head") -> dict[str, TensorInfo]:
        n_tensors, n_values = head.number("Q"), head.number("Q")
        for _ in range(n_values):
            key = head.string()
            self.metadata[key] = head.value(head.number("I"))
        infos = [head.tensor_info() for _ in range(n_tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1:
            raise ValueError(f"general.alignment must be a whole number from 1 on, got {alignment}")
        start = (head.at + alignment - 1) // alignment * alignment
        return {name: TensorInfo(shape, kind, start + offset) for name, shape, kind, offset in infos}

    def _check(self, name: str, info: TensorInfo, size: int) -> None:
        """Refuse a tensor of a type that cannot be read, or that is not wholly in the file."""
        if info.kind not in KINDS:
            readable = ", ".join(kind.name for kind in KINDS.values())
            found = OTHER_KINDS.get(info.kind, info.kind)
            raise ModelUnavailable(f"{self.path.name}: {name} is of type {found}; readable are {readable}")
        kind = KINDS[info.kind]
        if info.shape[-1:] and info.shape[-1] % kind.n_numbers:
            raise ModelUnavailable(
                f"{self.path.name} is damaged: a row of {name} is {info.shape[-1]} numbers, "
                f"and {kind.name} keeps {kind.n_numbers} together"
            )
        if info.offset + info.n_bytes > size:
            raise ModelUnavailable(f"{self.path.name} is damaged: it ends within {name}")


class _Head:
    """The head of a file that is being read, after its first four bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size, self.at = file, size, 4

    def number(self, code: str) -> Any:
        (value,) = struct.unpack(f"<{code}", self._take(struct.calcsize(f"<{code}")))
        return value

    def string(self) -> str:
        return self._take(self.number("Q")).decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind != ARRAY:
            raise ValueError(f"there is no value of type {kind}")
        kind, length = self.number("I"), self.number("Q")
        if kind in SCALARS:
            width = struct.calcsize(f"<{SCALARS[kind]}")
            return np.frombuffer(self._take(length * width), f"<{SCALARS[kind]}").tolist()
        return [self.value(kind) for _ in range(length)]

    def tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, n_dims = self.string(), self.number("I")
        dims = [self.number("Q") for _ in range(n_dims)]
        return name, tuple(reversed(dims)), self.number("I"), self.number("Q")

    def _take(self, n_bytes: int) -> bytes:
        self.at += n_bytes
        if self.at > self._size:
            raise EOFError("it ends within its head")
        return self._file.read(n_bytes)


def _f32(data: bytes) -> Float32s:
    return np.frombuffer(data, "<f4")


def _f16(data: bytes) -> Float32s:
    return np.frombuffer(data, "<f2").astype(np.float32)


def _q8_0(data: bytes) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("q", "i1", BLOCK)])
    return blocks["q"] * blocks["scale"].astype(np.float32)[:, None]


def _q4_0(data: bytes) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("q", "u1", BLOCK // 2)])
    return (_nibbles(blocks["q"]) - np.float32(8)) * blocks["scale"].astype(np.float32)[:, None]


def _q4_1(data: bytes) -> Float32s:
    blocks = np.frombuffer(data, [("scale", "<f2"), ("low", "<f2"), ("q", "u1", BLOCK // 2)])
    scaled = _nibbles(blocks["q"]) * blocks["scale"].astype(np.float32)[:, None]
    return scaled + blocks["low"].astype(np.float32)[:, None]


def _nibbles(packed: NDArray[np.uint8]) -> Float32s:
    """Return the low halves of all bytes of a block, then the high ones: (n_blocks, 32) float32."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


KINDS = {
    0: Kind("F32", 1, 4, _f32),
    1: Kind("F16", 1, 2, _f16),
    2: Kind("Q4_0", BLOCK, 18, _q4_0),
    3: Kind("Q4_1", BLOCK, 20, _q4_1),
    8: Kind("Q8_0", BLOCK, 34, _q8_0),
}
OTHER_KINDS = {  # seen in files of this architecture, for the message that refuses them
    6: "Q5_0",
    7: "Q5_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    20: "IQ4_NL",
    23: "IQ4_XS",
    30: "BF16",
}
