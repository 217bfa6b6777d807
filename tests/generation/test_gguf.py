"""GGUF files: what is read as it was written, and what is refused, by name and reason."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generation import (
    ModelUnavailable,
    SamplingParams,
    generate,
    list_models,
    load_model,
    model_facts,
)
from generation.gguf import GGUF
from generation.models.llama import LlamaModel
from tests.generation.gguf_files import write_gguf, write_tiny_llama

TWO_TOKENS = SamplingParams(max_new_tokens=2)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0", "Q4_1"])
def test_each_type_of_number_is_read_as_it_was_written(tmp_path: Path, kind: str):
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(3, 64)).astype(np.float32)
    path = tmp_path / "one.gguf"
    expected = write_gguf(path, {"general.architecture": "llama"}, {"w": (numbers, kind)})["w"]

    read = GGUF(path).tensor("w")

    np.testing.assert_allclose(read, expected, atol=1e-6)
    np.testing.assert_allclose(read, numbers, atol={"F32": 0, "F16": 2e-3, "Q8_0": 0.03}.get(kind, 0.4))


ONE_VALUE = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)  # the head of a file with one value and no tensor


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "x.gguf is not a GGUF file"),
        (b"nonsense" * 10, "x.gguf is not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "x.gguf: GGUF version must be 2 or 3, got 1"),
        (ONE_VALUE + struct.pack("<Q", 2**63), "x.gguf is damaged: it ends within its head"),
        (ONE_VALUE + struct.pack("<QcI", 1, b"k", 99), "x.gguf is damaged: there is no value of type 99"),
        (ONE_VALUE + struct.pack("<QcIQ", 1, b"\xff", 4, 0), "x.gguf is damaged: 'utf-8' codec can't decode"),
        (ONE_VALUE + struct.pack("<QIIQ", 0, 9, 5, 2**62), "x.gguf is damaged: it ends within its head"),
        (
            ONE_VALUE + struct.pack("<QI", 0, 9) + struct.pack("<IQ", 9, 1) * 9999,
            "x.gguf is damaged: maximum recursion",
        ),
    ],
)
def test_what_is_no_whole_gguf_file_is_refused(folder: Path, data: bytes, reason: str):
    (folder / "x.gguf").write_bytes(data)

    with pytest.raises(ModelUnavailable, match=reason):
        load_model("x")


def test_a_file_that_is_cut_off_anywhere_is_refused(folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    whole = (folder / "tiny.gguf").read_bytes()

    for n_bytes in [*range(0, 1500, 7), len(whole) - 1]:
        (folder / "tiny.gguf").write_bytes(whole[:n_bytes])
        with pytest.raises(ModelUnavailable, match="tiny.gguf is"):
            load_model("tiny")


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path):
    write_tiny_llama(tmp_path / "tiny.gguf")
    gguf = GGUF(tmp_path / "tiny.gguf")
    os.truncate(tmp_path / "tiny.gguf", 20_000)

    with pytest.raises(ModelUnavailable, match="tiny.gguf is damaged: it ends within blk.1.ffn_down.weight"):
        gguf.tensor("blk.1.ffn_down.weight")


def test_rows_that_do_not_fill_their_blocks_are_refused(tmp_path: Path):
    write_gguf(tmp_path / "x.gguf", {}, {"w": (np.zeros((2, 33), np.float32), "F32")}, kinds={"w": 8})

    with pytest.raises(ModelUnavailable, match="x.gguf is damaged: a row of w is 33 numbers, and Q8_0 keeps 32"):
        GGUF(tmp_path / "x.gguf")


OTHER_SETTINGS = [
    ({"general.architecture": "mamba"}, "architecture must be llama, got mamba"),
    ({"general.alignment": 0}, "general.alignment must be a whole number from 1 on, got 0"),
    ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model must be gpt2, got llama"),
    ({"tokenizer.ggml.pre": "llama-bpe"}, "tokenizer.ggml.pre must be smollm, got llama-bpe"),
    ({"tokenizer.ggml.add_bos_token": True}, "tokenizer.ggml.add_bos_token must be False, got True"),
    (
        {"tokenizer.ggml.merges": ["a b"]},
        "its tokenizer cannot be made: Error while initializing BPE: Token `ab` out of vocabulary",
    ),
    ({"tokenizer.ggml.eos_token_id": 258}, "tokenizer.ggml.eos_token_id must be a token id below 258, got 258"),
    ({"tokenizer.ggml.bos_token_id": 999}, "tokenizer.ggml.bos_token_id must be a token id below 258, got 999"),
    ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type must be none, got yarn"),
    ({"llama.rope.scaling.factor": 4.0}, "llama.rope.scaling.factor must be 1, got 4.0"),
    ({"llama.rope.dimension_count": 4}, "llama.rope.dimension_count must be 8, got 4"),
    ({"llama.attention.key_length": 16}, "llama.attention.key_length must be 8, got 16"),
    ({"llama.vocab_size": 300}, "llama.vocab_size must be 258, got 300"),
    ({"llama.expert_count": 8}, "llama.expert_count must be 0, got 8"),
    ({"llama.attention.sliding_window": 99}, "the engine has no llama.attention.sliding_window, which is 99"),
    ({"llama.attention.head_count": 5}, "5 heads over 2 cannot share 32 numbers in pairs"),
    ({"llama.attention.head_count_kv": 3}, "4 heads over 3 cannot share 32 numbers in pairs"),
    ({"llama.block_count": 0}, "llama.block_count must be a whole number from 1 to 1048576, got 0"),
    ({"llama.block_count": 3}, "the tensor blk.2.attn_norm.weight is missing"),
    ({"llama.feed_forward_length": 64}, "blk.0.ffn_gate.weight must be 64 × 32, got 48 × 32"),
    ({"llama.rope.freq_base": 0.0}, "llama.rope.freq_base must be a number above 0, got 0.0"),
    ({"llama.context_length": "long"}, "llama.context_length must be a whole number from 1 to 1048576, got long"),
]
NEEDED = [
    ("general.architecture", "architecture must be llama, got not given"),
    ("llama.block_count", "llama.block_count must be a whole number"),
    ("llama.context_length", "llama.context_length must be a whole number"),
    ("llama.embedding_length", "llama.embedding_length must be a whole number"),
    ("llama.feed_forward_length", "llama.feed_forward_length must be a whole number"),
    ("llama.attention.head_count", "llama.attention.head_count must be a whole number"),
    ("llama.attention.layer_norm_rms_epsilon", "llama.attention.layer_norm_rms_epsilon must be a number above 0"),
    ("tokenizer.ggml.model", "tokenizer.ggml.model must be gpt2, got not given"),
    ("tokenizer.ggml.pre", "tokenizer.ggml.pre must be smollm, got not given"),
    ("tokenizer.ggml.tokens", "tokenizer.ggml.tokens must be a list, got not given"),
    ("tokenizer.ggml.merges", "tokenizer.ggml.merges must be a list, got not given"),
    ("tokenizer.ggml.token_type", "tokenizer.ggml.token_type must be a list, got not given"),
    ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eos_token_id must be a token id below 258, got not given"),
]


@pytest.mark.parametrize(("settings", "reason"), [*OTHER_SETTINGS, *[({key: None}, reason) for key, reason in NEEDED]])
def test_a_setting_that_the_engine_does_not_have_is_refused(folder: Path, settings: dict[str, Any], reason: str):
    write_tiny_llama(folder / "odd.gguf", settings=settings)

    assert "odd" not in list_models()
    odd = model_facts()[-1]
    assert (odd.name, odd.state) == ("odd", "refused")
    assert odd.reason.startswith("odd.gguf")
    assert reason in odd.reason
    for name in ("odd", str(folder / "odd.gguf")):
        with pytest.raises(ModelUnavailable) as refusal:
            load_model(name)
        assert str(refusal.value) == odd.reason


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({"blk.1.attn_q.weight": None}, "the tensor blk.1.attn_q.weight is missing"),
        ({"blk.0.attn_k.weight": (32, 32)}, "blk.0.attn_k.weight must be 16 × 32, got 32 × 32"),
        ({"output.weight": (258, 16)}, "output.weight must be 258 × 32, got 258 × 16"),
        ({"blk.0.attn_q.bias": (32,)}, "the engine has no use for the tensor blk.0.attn_q.bias"),
        ({"rope_freqs.weight": (4,)}, "the engine has no use for the tensor rope_freqs.weight"),
    ],
)
def test_a_tensor_that_is_missing_or_too_much_is_refused(
    folder: Path, shapes: dict[str, tuple[int, ...] | None], reason: str
):
    write_tiny_llama(folder / "odd.gguf", shapes=shapes)

    with pytest.raises(ModelUnavailable, match=f"odd.gguf: {reason}"):
        load_model("odd")


@pytest.mark.parametrize(("kind", "name"), [(12, "Q4_K"), (99, "99")])
def test_a_type_of_number_that_cannot_be_read_is_refused(folder: Path, kind: int, name: str):
    write_tiny_llama(folder / "odd.gguf", kinds={"blk.1.attn_q.weight": kind})

    reason = f"blk.1.attn_q.weight is of type {name}; readable are F32, F16, Q4_0, Q4_1, Q8_0"
    with pytest.raises(ModelUnavailable, match=f"odd.gguf: {reason}"):
        load_model("odd")


def test_a_token_that_is_not_written_in_letters_of_bytes_is_refused(folder: Path):
    write_tiny_llama(folder / "odd.gguf", settings={"tokenizer.ggml.token_type": [1] * 256 + [3, 1]})
    write_tiny_llama(folder / "good.gguf")
    data = (folder / "good.gguf").read_bytes()
    (folder / "odd.gguf").write_bytes(data.replace(b"\1\0\0\0\0\0\0\0A", b"\1\0\0\0\0\0\0\0 ", 1))

    with pytest.raises(ModelUnavailable, match="odd.gguf: its tokenizer cannot be made: ' '"):
        load_model("odd")


def test_what_the_format_lets_a_file_leave_out_has_the_formats_own_value(folder: Path):
    left_out = {
        "llama.attention.head_count_kv": None,
        "llama.rope.freq_base": None,
        "tokenizer.ggml.bos_token_id": None,
    }
    shapes: dict[str, tuple[int, ...] | None] = {
        f"blk.{layer}.attn_{part}.weight": (32, 32) for layer in range(2) for part in "kv"
    }
    write_tiny_llama(folder / "plain.gguf", settings=left_out, shapes=shapes)

    model = load_model("plain")

    assert isinstance(model, LlamaModel)
    assert (model.config.n_kv_head, model.config.rope_base, model.start_token_id) == (4, 10_000, None)
    assert generate(model, "a", TWO_TOKENS).forward_passes == 2
