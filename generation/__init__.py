"""The generation engine: how a language model's logits become text, one recorded step at a time.

It is plain NumPy and knows nothing of the site. A token's way is straight: prompt → `encode` →
`forward` → logits → the `stages`, applied in order by `sampling` → `choose` → `Step`. The names below are public.
"""

from generation.batching import Job, Limits, Load, SharedEngine
from generation.catalogue import (
    ModelFacts,
    gguf_file,
    list_models,
    load_model,
    missing_models,
    model_digest,
    model_facts,
)
from generation.chat import encode_chat, render_chat
from generation.checkpoints import fetch, fetch_state
from generation.decoding import Model, encode_prompt, generate, pieces, run, stream, token_bytes, token_name
from generation.errors import EngineBusy, LogitsError, ModelUnavailable, PromptError, SettingError
from generation.inspection import MAX_INSPECTED, Inspection, fingerprint, inspect
from generation.kv_cache import KVCache
from generation.params import SamplingParams, parse_setting, without_effect
from generation.records import (
    RECORD_FORMAT,
    Candidate,
    Generation,
    Stage,
    Step,
    generation_from_dict,
    step_from_dict,
)
from generation.repetition import Loop, LoopFinder, distinct_n, find_loop, longest_run, seq_rep_n
from generation.sampling import distribution

__all__ = [
    "MAX_INSPECTED",
    "RECORD_FORMAT",
    "Candidate",
    "EngineBusy",
    "Generation",
    "Inspection",
    "Job",
    "KVCache",
    "Limits",
    "Load",
    "LogitsError",
    "Loop",
    "LoopFinder",
    "Model",
    "ModelFacts",
    "ModelUnavailable",
    "PromptError",
    "SamplingParams",
    "SettingError",
    "SharedEngine",
    "Stage",
    "Step",
    "distinct_n",
    "distribution",
    "encode_chat",
    "encode_prompt",
    "fetch",
    "fetch_state",
    "find_loop",
    "fingerprint",
    "generate",
    "generation_from_dict",
    "gguf_file",
    "inspect",
    "list_models",
    "load_model",
    "longest_run",
    "missing_models",
    "model_digest",
    "model_facts",
    "parse_setting",
    "pieces",
    "render_chat",
    "run",
    "seq_rep_n",
    "step_from_dict",
    "stream",
    "token_bytes",
    "token_name",
    "without_effect",
]
