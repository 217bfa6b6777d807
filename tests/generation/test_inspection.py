"""Looking inside on request: every position's logits and attention, and the fingerprint of the weights."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from generation import PromptError, SamplingParams, fingerprint, generate, inspect, load_model
from generation.checkpoints import convert, open_model
from generation.inspection import MAX_INSPECTED
from generation.models.llama import LlamaModel
from generation.models.sky import D_MODEL, SkyModel
from tests.generation.gguf_files import write_tiny_llama

Floats = NDArray[np.float64]
Inspected = LlamaModel | SkyModel


@pytest.fixture
def tiny(tmp_path: Path) -> LlamaModel:
    """Two layers, four heads over two."""
    write_tiny_llama(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "tiny", "tiny")
    return open_model(tmp_path / "tiny")


@pytest.fixture(params=["tiny", "sky"])
def model(request: pytest.FixtureRequest, tiny: LlamaModel) -> Inspected:
    return tiny if request.param == "tiny" else SkyModel()


@pytest.mark.parametrize("function", [lambda model: inspect(model, [1]), fingerprint])
def test_what_is_no_model_is_refused_by_its_name(function: Callable[[object], object]):
    with pytest.raises(PromptError, match="a str cannot be looked into"):
        function("sky")


def ids_for(model: Inspected, n_positions: int, seed: int = 0) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(model.vocab_size, size=n_positions)]


def softmax(scores: Floats) -> Floats:
    probs: Floats = np.exp(scores) / np.exp(scores).sum()
    return probs


def plain_llama(model: LlamaModel, ids: list[int]) -> tuple[Floats, Floats]:
    """Logits and attention the slow way: each pair of positions, each head, each layer, in float64."""
    config, w = model.config, model.weights
    n, dim, n_head, n_kv_head = len(ids), config.head_dim, config.n_head, config.n_kv_head
    attention = np.zeros((config.n_layer, n_head, n, n))

    def norm(x: Floats, gain: NDArray[np.float32]) -> Floats:
        normed: Floats = x / np.sqrt((x * x).mean() + config.norm_epsilon) * gain
        return normed

    def turned(head: Floats, position: int) -> Floats:
        angles = position * config.rope_base ** (-2.0 * np.arange(dim // 2) / dim)
        pairs = (head[0::2] + 1j * head[1::2]) * np.exp(1j * angles)
        return np.stack([pairs.real, pairs.imag], axis=1).ravel()

    xs = [w.embeddings[i].astype(np.float64) for i in ids]
    for layer in range(config.n_layer):
        rows = [(norm(x, w.attention_norm[layer]) @ w.qkv[layer]).reshape(-1, dim) for x in xs]
        for i in range(n):
            looked_at = []
            for head in range(n_head):
                kv_head = n_head + head // (n_head // n_kv_head)
                query = turned(rows[i][head], i)
                scores = np.array([query @ turned(rows[j][kv_head], j) for j in range(i + 1)]) / np.sqrt(dim)
                attention[layer, head, i, : i + 1] = softmax(scores)
                looked_at.append(sum(attention[layer, head, i, j] * rows[j][kv_head + n_kv_head] for j in range(i + 1)))
            xs[i] = xs[i] + np.concatenate(looked_at) @ w.out[layer]
            gate, up = np.split(norm(xs[i], w.mlp_norm[layer]) @ w.gate_up[layer], 2)
            xs[i] = xs[i] + (gate / (1 + np.exp(-gate)) * up) @ w.down[layer]
    return np.array([w.head @ norm(x, w.final_norm) for x in xs]), attention


def plain_sky(model: SkyModel, ids: list[int]) -> tuple[Floats, Floats]:
    """The toy the slow way: one position after another."""
    attention = np.zeros((len(model.blocks), 1, len(ids), len(ids)))

    def normal(x: Floats) -> Floats:
        normed: Floats = (x - x.mean()) / x.std()
        return normed

    xs = [model.embeddings[i] + model.positions[position] for position, i in enumerate(ids)]
    for layer, block in enumerate(model.blocks):
        keys, values = [x @ block.wk for x in xs], [x @ block.wv for x in xs]
        for i in range(len(ids)):
            scores = np.array([xs[i] @ block.wq @ keys[j] for j in range(i + 1)]) / np.sqrt(D_MODEL)
            attention[layer, 0, i, : i + 1] = softmax(scores)
            looked_at = sum(attention[layer, 0, i, j] * values[j] for j in range(i + 1))
            xs[i] = normal(xs[i] + looked_at @ block.wo)
            xs[i] = normal(xs[i] + np.maximum(xs[i] @ block.w1, 0) @ block.w2)
    return np.array([model.head @ x for x in xs]), attention


def test_logits_and_attention_are_those_of_the_slow_way(model: Inspected):
    ids = ids_for(model, 9)

    logits, attention = plain_llama(model, ids) if isinstance(model, LlamaModel) else plain_sky(model, ids)

    inspection = model.inspect(ids)
    np.testing.assert_allclose(inspection.logits, logits, atol=1e-4)
    np.testing.assert_allclose(inspection.attention, attention, atol=1e-5)


@pytest.mark.parametrize("n_positions", [1, 2, 17, MAX_INSPECTED])
def test_each_row_of_logits_is_what_forward_returns_there(model: Inspected, n_positions: int):
    ids = ids_for(model, n_positions)

    logits = model.inspect(ids).logits

    assert logits.shape == (n_positions, model.vocab_size)
    for end in range(1, n_positions + 1):
        np.testing.assert_allclose(logits[end - 1], model.forward(ids[:end]), atol=1e-4)


@pytest.mark.parametrize("n_positions", [1, 2, 17, MAX_INSPECTED])
def test_attention_sums_to_one_and_never_looks_ahead(model: Inspected, n_positions: int):
    n_layer, n_head = (2, 4) if isinstance(model, LlamaModel) else (2, 1)

    attention = model.inspect(ids_for(model, n_positions)).attention

    assert attention.shape == (n_layer, n_head, n_positions, n_positions)
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-6)
    assert (attention >= 0).all()
    assert (np.triu(attention, k=1) == 0).all()


def test_a_later_token_changes_no_earlier_row(model: Inspected):
    ids = ids_for(model, 12)
    changed = [*ids[:7], (ids[7] + 1) % model.vocab_size, *ids[8:]]

    before, after = model.inspect(ids), model.inspect(changed)

    np.testing.assert_allclose(before.logits[:7], after.logits[:7], atol=1e-6)
    np.testing.assert_allclose(before.attention[:, :, :7], after.attention[:, :, :7], atol=1e-6)
    assert not np.allclose(before.logits[7:], after.logits[7:], atol=1e-3)


def test_more_positions_than_can_be_inspected_and_none_at_all_are_refused(model: Inspected):
    with pytest.raises(PromptError, match="at most 64 tokens can be inspected, got 65"):
        model.inspect([1] * 65)
    with pytest.raises(PromptError, match="at least one token"):
        model.inspect([])


def test_a_run_changes_no_weight(model: Inspected):
    before = model.fingerprint()

    generate(model, [1, 2], SamplingParams(max_new_tokens=5, temperature=1))
    model.inspect([1, 2])

    assert model.fingerprint() == before
    assert len(before) == 64


@pytest.mark.parametrize("part", ["embeddings", "attention_norm", "qkv", "out", "mlp_norm", "gate_up", "down", "head"])
def test_one_other_weight_is_another_fingerprint(tiny: LlamaModel, part: str):
    numbers = np.array(getattr(tiny.weights, part))
    numbers.flat[-1] = np.nextafter(numbers.flat[-1], np.float32(9))

    changed = LlamaModel(tiny.config, replace(tiny.weights, **{part: numbers}), tiny.tokenizer)

    assert changed.fingerprint() != tiny.fingerprint()


@pytest.mark.parametrize("part", ["wq", "wk", "wv", "wo", "w1", "w2"])
def test_one_other_weight_of_the_toy_is_another_fingerprint(part: str):
    changed = SkyModel()
    getattr(changed.blocks[1], part)[0, 0] += 1e-9

    assert changed.fingerprint() != SkyModel().fingerprint()


@pytest.mark.real_model
def test_the_real_model_is_inspected_with_the_logits_of_forward():
    model = load_model("smollm2")
    assert isinstance(model, LlamaModel)
    ids = model.encode("The capital of France is")

    inspection = model.inspect(ids)

    np.testing.assert_allclose(inspection.logits[-1], model.forward(ids), atol=2e-3)
    assert inspection.attention.shape == (30, 9, 5, 5)
    np.testing.assert_allclose(inspection.attention.sum(axis=-1), 1, atol=1e-5)
