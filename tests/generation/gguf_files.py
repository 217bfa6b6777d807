"""GGUF files and packages written for the tests: metadata, and tensors in each type of number that is read."""

import hashlib
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generation.tokenizer import _BYTES

KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
Float32s = NDArray[np.float32]


def write_gguf(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, tuple[Float32s, str]],
    kinds: dict[str, int] | None = None,
) -> dict[str, Float32s]:
    """Write a file and return what each tensor should be read as; `kinds` lies about a tensor's type."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _string(key) + _value(value)
    data, expected = b"", {}
    for name, (numbers, kind) in tensors.items():
        packed, expected[name] = _packed(numbers, kind)
        dims = struct.pack(f"<I{numbers.ndim}Q", numbers.ndim, *reversed(numbers.shape))
        head += _string(name) + dims + struct.pack("<IQ", (kinds or {}).get(name, KINDS[kind]), len(data))
        data += packed + b"\0" * (-len(packed) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return expected


def write_tiny_llama(
    path: Path,
    own_head: bool = False,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    shapes: dict[str, tuple[int, ...] | None] | None = None,
    kinds: dict[str, int] | None = None,
) -> None:
    """Write a model of two layers with random weights over bytes and two control tokens.

    `settings` and `shapes` change its metadata and its tensors, and leave out what is None there.
    """
    rng = np.random.default_rng(seed)
    letters = {byte: letter for letter, byte in _BYTES.items()}
    sizes = {
        "attn_norm": (32,),
        "attn_q": (32, 32),
        "attn_k": (16, 32),
        "attn_v": (16, 32),
        "attn_output": (32, 32),
        "ffn_norm": (32,),
        "ffn_gate": (48, 32),
        "ffn_up": (48, 32),
        "ffn_down": (32, 48),
    }
    tensors: dict[str, tuple[int, ...] | None] = {"token_embd.weight": (258, 32), "output_norm.weight": (32,)}
    if own_head:
        tensors["output.weight"] = (258, 32)
    tensors |= {f"blk.{layer}.{name}.weight": size for layer in range(2) for name, size in sizes.items()}
    tensors |= shapes or {}
    metadata = {
        "general.architecture": "llama",
        "general.license": "none",
        "llama.block_count": 2,
        "llama.context_length": 1000,
        "llama.embedding_length": 32,
        "llama.feed_forward_length": 48,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.rope.freq_base": 10000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [*(letters[byte] for byte in range(256)), "<start>", "<end>"],
        "tokenizer.ggml.token_type": [1] * 256 + [3, 3],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.bos_token_id": 256,
        "tokenizer.ggml.eos_token_id": 257,
    } | (settings or {})
    write_gguf(
        path,
        {key: value for key, value in metadata.items() if value is not None},
        {name: (_weights(rng, size), "F32") for name, size in tensors.items() if size is not None},
        kinds,
    )


def write_wheel(path: Path, gguf: Path, padding: int = 0) -> None:
    """Write a package with a model in it, and as many zeros as `padding` says."""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(gguf, "tiny_model/tiny.gguf")
        wheel.writestr("tiny_model/padding", bytes(padding))
        wheel.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(
            "tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _weights(rng: np.random.Generator, size: tuple[int, ...]) -> Float32s:
    scale = 0.3 if len(size) > 1 else 1.0
    return (rng.normal(size=size) * scale).astype(np.float32)


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    kind = 8 if not value or isinstance(value[0], str) else 5
    items = b"".join(_string(item) if kind == 8 else struct.pack("<i", item) for item in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + items


def _packed(numbers: Float32s, kind: str) -> tuple[bytes, Float32s]:
    if kind == "F32":
        return numbers.tobytes(), numbers
    if kind == "F16":
        halves = numbers.astype(np.float16)
        return halves.tobytes(), halves.astype(np.float32)
    packed, read = b"", []
    for block in numbers.reshape(-1, 32):
        low = np.float16(block.min() if kind == "Q4_1" else 0)
        top = {"Q8_0": 127, "Q4_0": 7, "Q4_1": 15}[kind]
        reach = block.max() - block.min() if kind == "Q4_1" else abs(block).max()
        scale = np.float16(reach / top)
        q = np.round((block - np.float32(low)) / np.float32(scale)).astype(int)
        read.append(q * np.float32(scale) + np.float32(low))
        if kind == "Q8_0":
            packed += scale.tobytes() + q.astype(np.int8).tobytes()
            continue
        q = np.clip(q + (8 if kind == "Q4_0" else 0), 0, 15)
        read[-1] = (q - (8 if kind == "Q4_0" else 0)) * np.float32(scale) + np.float32(low)
        nibbles = (q[:16] | q[16:] << 4).astype(np.uint8).tobytes()
        packed += scale.tobytes() + (low.tobytes() if kind == "Q4_1" else b"") + nibbles
    return packed, np.array(read, np.float32).reshape(numbers.shape)
