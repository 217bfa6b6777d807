"""A GGUF file as a Llama: what the engine needs of it, what it refuses, and its arrays as they are multiplied."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from generation.errors import ModelUnavailable
from generation.gguf import GGUF, Float32s
from generation.models.llama import LlamaConfig
from generation.tokenizer import ByteLevelTokenizer

SIZES = {
    "n_layer": "llama.block_count",
    "d_model": "llama.embedding_length",
    "n_head": "llama.attention.head_count",
    "n_kv_head": "llama.attention.head_count_kv",
    "d_mlp": "llama.feed_forward_length",
    "context_length": "llama.context_length",
}
LARGEST = 2**20  # that any of them can be
ROPE_BASE, NORM_EPSILON = "llama.rope.freq_base", "llama.attention.layer_norm_rms_epsilon"
CONTROL = 3  # a token's type
PRE_TOKENIZER = "smollm"  # the format's name for how `ByteLevelTokenizer` splits a text


def describe(gguf: GGUF, name: str) -> tuple[LlamaConfig, dict[str, Any]]:
    """Return a model's sizes, and what else is kept beside its arrays.

    Raises
    ------
    ModelUnavailable
        If the engine would not compute what the file means, with the file's name and the reason.
    """
    meta = gguf.metadata
    try:
        config = _config(meta, name)
        _check_settings(meta, config)
        _check_tensors(gguf, config)
        kinds = _list(meta, "tokenizer.ggml.token_type")
        description = {
            "config": asdict(config),
            "tokens": _list(meta, "tokenizer.ggml.tokens"),
            "merges": _list(meta, "tokenizer.ggml.merges"),
            "control_ids": [token_id for token_id, kind in enumerate(kinds) if kind == CONTROL],
            "eos_token_id": _token_id(meta, "tokenizer.ggml.eos_token_id", config),
            "start_token_id": None,
            "chat_template": meta.get("tokenizer.chat_template"),
            "licence": licence_of(gguf),
        }
        if "tokenizer.ggml.bos_token_id" in meta:
            description["start_token_id"] = _token_id(meta, "tokenizer.ggml.bos_token_id", config)
        _check_tokenizer(description)
    except ValueError as reason:
        raise ModelUnavailable(f"{gguf.path.name}: {reason}") from None
    return config, description


def licence_of(gguf: GGUF) -> str:
    return str(gguf.metadata.get("general.license", ""))


def tokenizer_of(description: dict[str, Any]) -> ByteLevelTokenizer:
    return ByteLevelTokenizer(
        description["tokens"],
        description["merges"],
        set(description["control_ids"]),
        description["eos_token_id"],
        description["start_token_id"],
    )


def arrays(gguf: GGUF, config: LlamaConfig) -> Iterator[tuple[str, Float32s]]:
    """Give out the arrays of `LlamaWeights` one after another; only one is in memory at a time."""

    def stacked(*names: str) -> Float32s:
        """Join matrices of each layer along their outputs, as (n_layer, in, out)."""
        layers = [
            np.concatenate([gguf.tensor(f"blk.{layer}.{name}.weight").T for name in names], axis=-1)
            for layer in range(config.n_layer)
        ]
        return np.ascontiguousarray(np.stack(layers))

    yield "embeddings", gguf.tensor("token_embd.weight")
    yield "attention_norm", stacked("attn_norm")
    yield "qkv", stacked("attn_q", "attn_k", "attn_v")
    yield "out", stacked("attn_output")
    yield "mlp_norm", stacked("ffn_norm")
    yield "gate_up", stacked("ffn_gate", "ffn_up")
    yield "down", stacked("ffn_down")
    yield "final_norm", gguf.tensor("output_norm.weight")
    if "output.weight" in gguf.tensors:
        yield "head", gguf.tensor("output.weight")


def _config(meta: dict[str, Any], name: str) -> LlamaConfig:
    architecture = meta.get("general.architecture", "not given")
    if architecture != "llama":
        raise ValueError(f"architecture must be llama, got {architecture}")
    sizes = {field: _size(meta, key) for field, key in SIZES.items() if field != "n_kv_head"}
    sizes["n_kv_head"] = _size(meta, SIZES["n_kv_head"], sizes["n_head"])  # not given: as many as heads
    config = LlamaConfig(
        name=name,
        vocab_size=len(_list(meta, "tokenizer.ggml.tokens")),
        rope_base=_constant(meta, ROPE_BASE, 10_000.0),
        norm_epsilon=_constant(meta, NORM_EPSILON),
        **sizes,
    )
    if config.d_model % (2 * config.n_head) or config.n_head % config.n_kv_head:
        heads = f"{config.n_head} heads over {config.n_kv_head}"
        raise ValueError(f"{heads} cannot share {config.d_model} numbers in pairs")
    return config


def _check_settings(meta: dict[str, Any], config: LlamaConfig) -> None:
    """Refuse a setting that would change the numbers and that the engine does not have."""
    needed = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": PRE_TOKENIZER}
    allowed = {
        "tokenizer.ggml.add_bos_token": False,
        "llama.vocab_size": config.vocab_size,
        "llama.rope.dimension_count": config.head_dim,
        "llama.attention.key_length": config.head_dim,
        "llama.attention.value_length": config.head_dim,
        "llama.rope.scaling.type": "none",
        "llama.rope.scaling.factor": 1,
        "llama.rope.scale_linear": 1,
        "llama.expert_count": 0,
        "llama.expert_used_count": 0,
    }
    for key, expected in (allowed | needed).items():
        value = meta.get(key, "not given" if key in needed else expected)
        if value != expected:
            raise ValueError(f"{key} must be {expected}, got {value}")
    known = {*SIZES.values(), ROPE_BASE, NORM_EPSILON, *allowed}
    for key, value in meta.items():
        if key.startswith("llama.") and key not in known:
            raise ValueError(f"the engine has no {key}, which is {value}")


def _check_tensors(gguf: GGUF, config: LlamaConfig) -> None:
    """Refuse a file that lacks a matrix or has one of another shape, or one more than the engine multiplies."""
    known = set()
    for name, shape in _shapes(config, has_head="output.weight" in gguf.tensors):
        if name not in gguf.tensors:
            raise ValueError(f"the tensor {name} is missing")
        found = gguf.tensors[name].shape
        if found != shape:
            raise ValueError(f"{name} must be {_by(shape)}, got {_by(found)}")
        known.add(name)
    unused = sorted(set(gguf.tensors) - known)
    if unused:
        raise ValueError(f"the engine has no use for the tensor {unused[0]}")


def _shapes(config: LlamaConfig, has_head: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give out the name and the shape of each tensor, as the file has them: (out, in)."""
    d_model, d_mlp, d_kv = config.d_model, config.d_mlp, config.n_kv_head * config.head_dim
    yield "token_embd.weight", (config.vocab_size, d_model)
    yield "output_norm.weight", (d_model,)
    if has_head:
        yield "output.weight", (config.vocab_size, d_model)
    layer_shapes = {
        "attn_norm": (d_model,),
        "attn_q": (d_model, d_model),
        "attn_k": (d_kv, d_model),
        "attn_v": (d_kv, d_model),
        "attn_output": (d_model, d_model),
        "ffn_norm": (d_model,),
        "ffn_gate": (d_mlp, d_model),
        "ffn_up": (d_mlp, d_model),
        "ffn_down": (d_model, d_mlp),
    }
    for layer in range(config.n_layer):
        for name, shape in layer_shapes.items():
            yield f"blk.{layer}.{name}.weight", shape


def _check_tokenizer(description: dict[str, Any]) -> None:
    try:
        tokenizer_of(description).decode(range(len(description["tokens"])))
    except Exception as error:  # the tokenizers package raises nothing narrower
        raise ValueError(f"its tokenizer cannot be made: {error}") from None


def _size(meta: dict[str, Any], key: str, default: int | None = None) -> int:
    value = meta.get(key, default)
    if type(value) is not int or not 1 <= value <= LARGEST:
        raise ValueError(f"{key} must be a whole number from 1 to {LARGEST}, got {_shown(value)}")
    return value


def _constant(meta: dict[str, Any], key: str, default: float | None = None) -> float:
    value = meta.get(key, default)
    if type(value) is not float or not 0 < value < math.inf:
        raise ValueError(f"{key} must be a number above 0, got {_shown(value)}")
    return value


def _list(meta: dict[str, Any], key: str) -> list[Any]:
    value = meta.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list, got {_shown(value)}")
    return value


def _token_id(meta: dict[str, Any], key: str, config: LlamaConfig) -> int:
    value = meta.get(key)
    if type(value) is not int or not 0 <= value < config.vocab_size:
        raise ValueError(f"{key} must be a token id below {config.vocab_size}, got {_shown(value)}")
    return value


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)[:40]
