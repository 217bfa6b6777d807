"""The real model against reference values of another implementation, and its parts on tiny files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from generation import PromptError, SamplingParams, generate, load_model, token_bytes
from generation.checkpoints import convert, open_model
from generation.models.llama import LlamaModel
from tests.generation.gguf_files import write_tiny_llama

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "smollm2.json").read_text())


@pytest.fixture(scope="module")
def smollm2() -> LlamaModel:
    model = load_model("smollm2")
    assert isinstance(model, LlamaModel)
    return model


@pytest.fixture
def tiny(tmp_path: Path) -> LlamaModel:
    """Two layers, four heads over two, a vocabulary of bytes and two control tokens."""
    write_tiny_llama(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "tiny", "tiny")
    return open_model(tmp_path / "tiny")


@pytest.mark.real_model
@pytest.mark.parametrize("case", GOLDEN["runs"], ids=lambda case: str(case.get("prompt", "chat"))[:20])
def test_logits_and_greedy_tokens_are_those_of_transformers(smollm2: LlamaModel, case: dict[str, Any]):
    if "prompt" in case:
        assert smollm2.encode(case["prompt"]) == case["prompt_ids"]
    kv_cache = smollm2.new_cache()
    logits = smollm2.forward(case["prompt_ids"], kv_cache)
    np.testing.assert_allclose(logits[case["top_ids"]], case["top_logits"], atol=2e-3, rtol=0)
    assert np.argsort(-logits)[:10].tolist() == case["top_ids"]

    found = [int(logits.argmax())]
    while len(found) < len(case["greedy_ids"]):
        found.append(int(smollm2.forward(found[-1:], kv_cache).argmax()))

    assert found == case["greedy_ids"]
    assert len(smollm2.decode(found)) > 0


@pytest.mark.real_model
def test_every_tokenizer_case_is_equal_and_control_tokens_need_permission(smollm2: LlamaModel):
    for case in GOLDEN["tokenizer"]:
        assert smollm2.encode(case["text"], control=True) == case["ids"], case
        if not any(token_id in smollm2.tokenizer.control_ids for token_id in case["ids"]):
            assert smollm2.decode(case["ids"]) == case["text"]
    for case in GOLDEN["tokenizer_ordinary_text"]:
        assert smollm2.encode(case["text"]) == case["ids"], case


@pytest.mark.real_model
def test_i_am_loops_with_period_twelve(smollm2: LlamaModel):
    run = generate(smollm2, "I am", SamplingParams(max_new_tokens=48))

    assert run.loop
    assert (run.loop.period, run.loop.start, run.loop.repeats) == (12, 0, 4)
    copies = np.array([step.probability for step in run.steps]).reshape(4, 12).mean(axis=1)
    assert (np.diff(copies) > 0).all()  # each copy makes the next one likelier
    assert [round(float(copy), 2) for copy in copies[:2]] == [0.36, 0.62]


@pytest.mark.real_model
def test_the_capital_of_australia_is_a_close_race(smollm2: LlamaModel):
    (step,) = generate(smollm2, "The capital of Australia is", SamplingParams(max_new_tokens=1)).steps

    found = {row.token.strip(): round(row.probability, 2) for row in step.stages[0].top[:2]}
    assert found == {"Sydney": 0.36, "Canberra": 0.34}


def plain_forward(model: LlamaModel, ids: Sequence[int]) -> NDArray[np.float64]:
    """The same network written the slow way: position by position, head by head, in float64."""
    config, w = model.config, model.weights
    dim, group = config.head_dim, config.n_head // config.n_kv_head

    def norm(x: NDArray[np.float64], gain: NDArray[np.float32]) -> NDArray[np.float64]:
        normed: NDArray[np.float64] = x / np.sqrt((x * x).mean() + config.norm_epsilon) * gain
        return normed

    def rotate(head: NDArray[np.float64], position: int) -> NDArray[np.float64]:
        turned = head.copy()
        for pair in range(dim // 2):
            angle = position * config.rope_base ** (-2 * pair / dim)
            a, b = head[2 * pair], head[2 * pair + 1]
            turned[2 * pair] = a * np.cos(angle) - b * np.sin(angle)
            turned[2 * pair + 1] = a * np.sin(angle) + b * np.cos(angle)
        return turned

    xs = [w.embeddings[i].astype(np.float64) for i in ids]
    for layer in range(config.n_layer):
        rows = [(norm(x, w.attention_norm[layer]) @ w.qkv[layer]).reshape(-1, dim) for x in xs]
        for position in range(len(xs) - 1, -1, -1):
            heads = []
            for head in range(config.n_head):
                query = rotate(rows[position][head], position)
                at = config.n_head + head // group
                scores = [query @ rotate(rows[p][at], p) / np.sqrt(dim) for p in range(position + 1)]
                weights = np.exp(scores) / np.exp(scores).sum()
                heads.append(sum(weights[p] * rows[p][at + config.n_kv_head] for p in range(position + 1)))
            xs[position] = xs[position] + np.concatenate(heads) @ w.out[layer]
        for position, x in enumerate(xs):
            gate, up = np.split(norm(x, w.mlp_norm[layer]) @ w.gate_up[layer], 2)
            xs[position] = x + (gate / (1 + np.exp(-gate)) * up) @ w.down[layer]
    logits: NDArray[np.float64] = w.head @ norm(xs[-1], w.final_norm)
    return logits


@pytest.mark.parametrize("split", [1, 2, 5, 9])
def test_a_tiny_model_agrees_with_the_slow_way_however_the_prompt_is_split(tiny: LlamaModel, split: int):
    ids = [3, 77, 200, 5, 5, 120, 9, 254, 31, 8]
    kv_cache = tiny.new_cache()

    tiny.forward(ids[:split], kv_cache)
    logits = tiny.forward(ids[split:], kv_cache)

    np.testing.assert_allclose(logits, plain_forward(tiny, ids), atol=1e-4)
    np.testing.assert_allclose(tiny.forward(ids), logits, atol=1e-4)


def test_a_cache_grows_beyond_its_first_room(tiny: LlamaModel):
    ids = [number % 250 for number in range(600)]
    kv_cache = tiny.new_cache()
    for start in range(0, 600, 50):
        logits = tiny.forward(ids[start : start + 50], kv_cache)

    np.testing.assert_allclose(logits, tiny.forward(ids), atol=1e-4)
    assert kv_cache.nbytes == 600 * 2 * 2 * 2 * 8 * 4  # two arrays, two layers, two heads of 8, float32


def test_more_tokens_than_the_context_and_none_at_all_are_refused(tiny: LlamaModel):
    with pytest.raises(PromptError, match="1001 tokens do not fit into the context of 1000"):
        tiny.forward([1] * 1001)
    with pytest.raises(PromptError, match="at least one token"):
        tiny.forward([])


def test_an_empty_prompt_runs_from_the_start_token(tiny: LlamaModel):
    assert generate(tiny, "", SamplingParams(max_new_tokens=1)).prompt_ids == (256,)


def test_multiply_adds_are_those_of_the_matrix_products(tiny: LlamaModel):
    matrices = 32 * (32 + 2 * 16) + 32 * 32 + 32 * 2 * 48 + 48 * 32
    assert tiny.multiply_adds(3, 10) == 2 * 3 * (matrices + 2 * 10 * 32) + 258 * 32


def test_entries_are_shown_so_that_one_can_read_them(tiny: LlamaModel):
    assert [tiny.token(token_id) for token_id in (65, 32, 0xC3, 257)] == ["A", " ", "<C3>", "<end>"]
    assert tiny.encode("é<end>") == [0xC3, 0xA9, *b"<end>"]
    assert tiny.encode("é<end>!", control=True) == [0xC3, 0xA9, 257, ord("!")]
    assert tiny.decode([0xC3, 0xA9, 257]) == "é"


def test_the_bytes_of_a_texts_tokens_are_the_text_whole_characters_or_not(tiny: LlamaModel):
    text = "é 🙂<end>"

    found = [token_bytes(tiny, token_id) for token_id in tiny.encode(text)]

    assert b"".join(found) == text.encode()
    assert found[:2] == [b"\xc3", b"\xa9"]
    assert token_bytes(tiny, tiny.eos_token_id) == b""


def test_a_head_of_its_own_is_taken_where_there_is_one(tmp_path: Path):
    write_tiny_llama(tmp_path / "tiny.gguf", own_head=True)
    convert(tmp_path / "tiny.gguf", tmp_path / "tiny", "tiny")

    model = open_model(tmp_path / "tiny")

    assert not np.array_equal(model.weights.head, model.weights.embeddings)
    np.testing.assert_allclose(model.forward([1, 2, 3]), plain_forward(model, [1, 2, 3]), atol=1e-4)
