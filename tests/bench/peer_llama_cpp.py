"""A worker of `make bench-peers`: llama.cpp on a GGUF file; its KV cache is float32 where the weights are."""

import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llama_cpp  # type: ignore[import-not-found]
import numpy as np

from tests.bench.peers import N_THREADS, serve

FILE, MODE = Path(sys.argv[1]), sys.argv[2]
IS_FLOAT32 = "float32" in FILE.name
KV_TYPE = llama_cpp.GGML_TYPE_F32 if IS_FLOAT32 else llama_cpp.GGML_TYPE_F16
ATTENTIONS = ["plain"] if IS_FLOAT32 else ["plain", "flash"]  # flash rounds to float16, whatever the cache is
N_CONTEXT = 1280  # positions that the longest row needs, and some


def about() -> dict[str, Any]:
    versions = f"llama-cpp-python {llama_cpp.__version__} on {FILE.name}"
    if MODE == "unpacked":
        versions += ", weights as in the file: repacked for this processor they crash it"
    return {"versions": versions, "tasks": [*TASKS], "variants": [{"attention": name} for name in ATTENTIONS]}


def greedy(prompt_ids: list[int], n_tokens: int, attention: str) -> list[int]:
    """Return the most likely tokens after a prompt, one after another."""
    return _continue(_filled(prompt_ids, attention), n_tokens)


def logits_after(prompt_ids: list[int], next_ids: list[int], attention: str) -> list[float]:
    """Return the logits after a prompt in one pass and further tokens one by one."""
    model = _filled(prompt_ids, attention)
    for token_id in next_ids:
        model.eval([token_id])
    return [float(logit) for logit in _logits(model)]


def decode(prompt_ids: list[int], n_tokens: int, attention: str) -> float:
    """Return the seconds that `n_tokens` greedy steps take after a prompt."""
    model = _filled(prompt_ids, attention)
    began = time.perf_counter()
    _continue(model, n_tokens + 1)
    return time.perf_counter() - began


def prefill(prompt_ids: list[int], attention: str) -> float:
    """Return the seconds from a prompt to its logits."""
    model = _model(attention)
    model.reset()
    began = time.perf_counter()
    model.eval(prompt_ids)
    _logits(model)
    return time.perf_counter() - began


TASKS: dict[str, Callable[..., Any]] = {
    "about": about,
    "greedy": greedy,
    "logits": logits_after,
    "decode": decode,
    "prefill": prefill,
}


def leave_unpacked() -> None:
    """Keep llama.cpp from repacking weights for the processor; its wrapper has no setting for that."""
    defaults = llama_cpp.llama_cpp.llama_model_default_params

    def changed() -> Any:
        params = defaults()
        params.use_extra_bufts = False
        return params

    llama_cpp.llama_cpp.llama_model_default_params = changed


@cache
def _model(attention: str) -> Any:
    return llama_cpp.Llama(
        str(FILE),
        n_ctx=N_CONTEXT,
        n_threads=N_THREADS,
        n_threads_batch=N_THREADS,
        type_k=KV_TYPE,
        type_v=KV_TYPE,
        flash_attn=attention == "flash",
        verbose=False,
    )


def _filled(prompt_ids: list[int], attention: str) -> Any:
    """Return the model with a prompt in its cache and the logits after it; what the cache holds is not done again."""
    model = _model(attention)
    n_kept = len(prompt_ids) - 1
    if model.n_tokens < n_kept or model.input_ids[:n_kept].tolist() != prompt_ids[:n_kept]:
        n_kept = 0
    model.n_tokens = n_kept  # what follows is removed when the next tokens come
    model.eval(prompt_ids[n_kept:])
    return model


def _continue(model: Any, n_tokens: int) -> list[int]:
    """Return the most likely tokens after those in the cache; each but the last one goes through the model."""
    found = [int(_logits(model).argmax())]
    while len(found) < n_tokens:
        model.eval(found[-1:])
        found.append(int(_logits(model).argmax()))
    return found


def _logits(model: Any) -> Any:
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.ctx, -1), shape=(model.n_vocab(),))


if __name__ == "__main__":
    if MODE == "unpacked":
        leave_unpacked()
    if MODE == "try":
        greedy([1, 2, 3, 4], 2, "plain")
    else:
        serve(TASKS)
