"""The generation engine: how a language model's logits become text, one recorded step at a time.

It is plain NumPy and knows nothing of the site. A token's way is straight: prompt → `encode` →
`forward` → logits → the stages of `sampling` → `draw` → `Step`. The names below are all that is public.
"""

from generation.catalogue import list_models, load_model, missing_models
from generation.checkpoints import fetch
from generation.decoding import Generation, Model, Step, encode_prompt, generate, stream
from generation.errors import LogitsError, ModelUnavailable, PromptError, SettingError
from generation.kv_cache import KVCache
from generation.params import SamplingParams, parse_setting
from generation.records import generation_from_dict, step_from_dict
from generation.repetition import Loop, LoopFinder, distinct_n, find_loop, longest_run, seq_rep_n
from generation.sampling import Candidate, Stage, distribution

__all__ = [
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
    "seq_rep_n",
    "step_from_dict",
    "stream",
]
