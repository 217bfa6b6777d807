"""The toy model against its reference values."""

from typing import Any

import numpy as np
import pytest

from generation import PromptError, SamplingParams, generate, load_model
from generation.models.sky import SkyModel


@pytest.mark.parametrize("number", range(24))
def test_logits_are_the_reference_ones_with_and_without_cache(golden_sky: dict[str, Any], number: int):
    case = golden_sky["logits"][number]
    model = load_model("sky")
    kv_cache = model.new_cache()

    at_once = model.forward(case["token_ids"])
    for token_id in case["token_ids"]:
        one_by_one = model.forward([token_id], kv_cache)

    np.testing.assert_allclose(at_once, case["logits"], atol=1e-9, rtol=0)
    np.testing.assert_allclose(one_by_one, case["logits"], atol=1e-9, rtol=0)


@pytest.mark.parametrize("use_kv_cache", [True, False])
def test_greedy_text_and_probabilities_are_the_reference_ones(golden_sky: dict[str, Any], use_kv_cache: bool):
    for prompt, steps in golden_sky["greedy"].items():
        params = SamplingParams(max_new_tokens=len(steps), use_kv_cache=use_kv_cache)

        generation = generate(load_model("sky"), prompt, params)

        assert [step.token for step in generation.steps] == [step["token"] for step in steps]
        found = [step.probability for step in generation.steps]
        np.testing.assert_allclose(found, [step["probability"] for step in steps], atol=1e-9, rtol=0)


@pytest.mark.parametrize(("text", "word"), [("the moon is", "moon"), ("the sky is <EOS>", "<EOS>"), ("The sky", "The")])
def test_an_unknown_word_is_named(text: str, word: str):
    with pytest.raises(PromptError, match=f"unknown word '{word}'"):
        load_model("sky").encode(text)


def test_runs_of_whitespace_count_as_one_space():
    model = load_model("sky")

    assert model.decode(model.encode("  the\n sky\t is ")) == "the sky is"


def test_multiply_adds_are_those_of_the_matrix_products():
    # 2 blocks of (4·8·8 + 2·3·8 + 2·8·16) a position, three positions, and the head 6·8
    assert SkyModel().multiply_adds(3, 3) == 2 * 3 * (256 + 48 + 256) + 48


def test_more_tokens_than_the_context_are_refused():
    with pytest.raises(PromptError, match="257 tokens do not fit into the context of 256"):
        load_model("sky").forward([0] * 257)


def test_no_token_at_all_is_refused():
    with pytest.raises(PromptError, match="at least one token"):
        SkyModel().forward([])
