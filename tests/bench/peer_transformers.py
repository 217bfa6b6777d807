"""A worker of `make bench-peers`: transformers in float32, on the weights that our engine has converted."""

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]
import transformers  # type: ignore[import-not-found]

from tests.bench.peers import N_THREADS, PEERS, serve

OURS = Path(sys.argv[1])
CHECKPOINT = PEERS / f"{OURS.name}-float32"
VARIANTS = [
    {"attention": "sdpa", "kept_in": "dynamic"},
    {"attention": "sdpa", "kept_in": "static"},
    {"attention": "eager", "kept_in": "dynamic"},
]


def about() -> dict[str, Any]:
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    return {"versions": versions, "tasks": [*TASKS], "variants": VARIANTS}


def convert() -> None:
    """Write our arrays as a checkpoint of transformers, once."""
    if CHECKPOINT.exists():
        return
    sizes = json.loads((OURS / "model.json").read_text(encoding="utf-8"))["config"]
    config = transformers.LlamaConfig(
        vocab_size=sizes["vocab_size"],
        hidden_size=sizes["d_model"],
        intermediate_size=sizes["d_mlp"],
        num_hidden_layers=sizes["n_layer"],
        num_attention_heads=sizes["n_head"],
        num_key_value_heads=sizes["n_kv_head"],
        max_position_embeddings=sizes["context_length"],
        rms_norm_eps=sizes["norm_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": sizes["rope_base"]},
        tie_word_embeddings=not (OURS / "head.npy").exists(),
    )
    model = transformers.LlamaForCausalLM(config).to(torch.float32)
    for name, parameter in model.named_parameters():
        parameter.data.copy_(torch.from_numpy(_weight(name, sizes)))
    part = CHECKPOINT.with_suffix(".part")
    model.save_pretrained(part)
    part.rename(CHECKPOINT)


def greedy(prompt_ids: list[int], n_tokens: int, attention: str, kept_in: str) -> list[int]:
    """Return the most likely tokens after a prompt, one after another."""
    kv_cache, logits = _prefill(prompt_ids, n_tokens, attention, kept_in)
    return _continue(logits.argmax(-1), n_tokens, kv_cache)


def logits_after(prompt_ids: list[int], next_ids: list[int], attention: str, kept_in: str) -> list[float]:
    """Return the logits after a prompt in one pass and further tokens one by one."""
    kv_cache, logits = _prefill(prompt_ids, len(next_ids), attention, kept_in)
    for token_id in next_ids:
        logits = _forward(torch.tensor([[token_id]]), kv_cache)
    return [float(logit) for logit in logits[0]]


def decode(prompt_ids: list[int], n_tokens: int, attention: str, kept_in: str, n_streams: int = 1) -> float:
    """Return the seconds that `n_tokens` greedy steps take after a prompt, of all streams at once."""
    kv_cache, first = _prefilled(tuple(prompt_ids), n_tokens, n_streams, kept_in)
    _model(attention)
    began = time.perf_counter()
    _continue(first, n_tokens + 1, kv_cache)
    seconds = time.perf_counter() - began
    kv_cache.crop(-n_tokens)
    return seconds


def prefill(prompt_ids: list[int], attention: str, kept_in: str) -> float:
    """Return the seconds from a prompt to its logits."""
    _model(attention)
    began = time.perf_counter()
    _prefill(prompt_ids, 0, attention, kept_in)
    return time.perf_counter() - began


def _weight(name: str, sizes: dict[str, Any]) -> Any:
    """Return one of our arrays under the name and in the layout of transformers: [out, in], RoPE in halves."""
    whole = {
        "model.embed_tokens.weight": "embeddings",
        "model.norm.weight": "final_norm",
        "lm_head.weight": "head",
    }
    if name in whole:
        return np.load(OURS / f"{whole[name]}.npy")
    _, _, layer, *_, part, _ = name.split(".")
    head_dim = sizes["d_model"] // sizes["n_head"]
    n_q, n_kv, n_mlp = sizes["n_head"] * head_dim, sizes["n_kv_head"] * head_dim, sizes["d_mlp"]
    file, begin, end = {
        "input_layernorm": ("attention_norm", 0, None),
        "q_proj": ("qkv", 0, n_q),
        "k_proj": ("qkv", n_q, n_q + n_kv),
        "v_proj": ("qkv", n_q + n_kv, None),
        "o_proj": ("out", 0, None),
        "post_attention_layernorm": ("mlp_norm", 0, None),
        "gate_proj": ("gate_up", 0, n_mlp),
        "up_proj": ("gate_up", n_mlp, None),
        "down_proj": ("down", 0, None),
    }[part]
    weight = np.load(OURS / f"{file}.npy", mmap_mode="r")[int(layer)][..., begin:end].T
    if part in {"q_proj", "k_proj"}:  # pairs side by side become first and second halves
        weight = weight.reshape(-1, head_dim // 2, 2, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)
    return np.array(weight, order="C")


@cache
def _loaded() -> Any:
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(N_THREADS)
    return transformers.LlamaForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32).eval()


def _model(attention: str) -> Any:
    model = _loaded()
    if model.config._attn_implementation != attention:
        model.set_attn_implementation(attention)
    return model


def _prefill(prompt_ids: list[int], n_more: int, attention: str, kept_in: str, n_streams: int = 1) -> Any:
    """Return a cache with a prompt in it and room for more, and the logits after the prompt."""
    config = _model(attention).config
    kv_cache = (
        transformers.StaticCache(config=config, max_cache_len=len(prompt_ids) + n_more)
        if kept_in == "static"
        else transformers.DynamicCache(config=config)
    )
    return kv_cache, _forward(torch.tensor([prompt_ids] * n_streams), kv_cache)


@cache
def _prefilled(prompt_ids: tuple[int, ...], n_more: int, n_streams: int, kept_in: str) -> Any:
    kv_cache, logits = _prefill([*prompt_ids], n_more, "sdpa", kept_in, n_streams)
    return kv_cache, logits.argmax(-1)


@torch.inference_mode()  # type: ignore[untyped-decorator]
def _forward(token_ids: Any, kv_cache: Any) -> Any:
    return _loaded()(token_ids, cache=kv_cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def _continue(first: Any, n_tokens: int, kv_cache: Any) -> list[int]:
    """Return the first stream's tokens from `first` on; each but the last one goes through the model."""
    found = [first]
    while len(found) < n_tokens:
        found.append(_forward(found[-1][:, None], kv_cache).argmax(-1))
    return [int(token_ids[0]) for token_ids in found]


TASKS: dict[str, Callable[..., Any]] = {
    "about": about,
    "greedy": greedy,
    "logits": logits_after,
    "decode": decode,
    "batch": decode,
    "prefill": prefill,
}

if __name__ == "__main__":
    convert()
    serve(TASKS)
