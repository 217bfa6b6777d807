"""The generation engine: how a language model's logits become text, one recorded step at a time.

It is plain NumPy and knows nothing of the site. A token's way is straight: prompt → `encode` →
`forward` → logits → the `stages`, applied in order by `sampling` → `choose` → `Step`. The names below are public.
"""

from generation.catalogue import list_models, load_model, missing_models
from generation.checkpoints import fetch
from generation.decoding import Model, encode_prompt, generate, run, stream
from generation.errors import LogitsError, ModelUnavailable, PromptError, SettingError
from generation.kv_cache import KVCache
from generation.params import SamplingParams, parse_setting
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
    "RECORD_FORMAT",
    "Candidate",
    "Generation",
    "KVCache",
    "LogitsError",
    "Loop",
    "LoopFinder",
    "Model",
    "ModelUnavailable",
    "PromptError",
    "SamplingParams",
    "SettingError",
    "Stage",
    "Step",
    "distinct_n",
    "distribution",
    "encode_prompt",
    "fetch",
    "find_loop",
    "generate",
    "generation_from_dict",
    "list_models",
    "load_model",
    "longest_run",
    "missing_models",
    "parse_setting",
    "run",
    "seq_rep_n",
    "step_from_dict",
    "stream",
]
