"""Faults that decoding engines have really had, one test for each kind, so that none comes back.

The names say the fault; the rules behind them are tested where they belong.
"""

import math
from dataclasses import asdict

import numpy as np
import pytest

from generation import (
    LogitsError,
    PromptError,
    SamplingParams,
    SettingError,
    distribution,
    find_loop,
    generate,
    stream,
)
from generation.models.sky import SkyModel
from generation.sampling import draw
from tests.generation.models import ByteModel, ScriptedModel

SKY = SkyModel()
PROMPT = "the sky is"


def kept(logits: list[float], **settings: float) -> list[int]:
    token_ids, _ = distribution(logits, SamplingParams(**settings))  # type: ignore[arg-type]
    return [int(token_id) for token_id in token_ids]


def test_fault_temperature_zero_divides_a_tiny_one_overflows_nan_is_accepted():
    assert kept([1.0, 2.0], temperature=0) == kept([1.0, 2.0], temperature=1e-300) == [1]
    with pytest.raises(SettingError):
        SamplingParams(temperature=float("nan"))
    with pytest.raises(SettingError):
        SamplingParams(temperature=-1)


def test_fault_a_huge_temperature_seems_to_do_nothing_because_truncation_ran_first():
    (step,) = generate(SKY, PROMPT, SamplingParams(temperature=100, top_k=1, max_new_tokens=1)).steps

    assert "temperature 100 had no effect on the draw: one token is left" in step.notes


def test_fault_top_p_drops_the_crossing_token_or_keeps_none_or_runs_off_the_end():
    logits = np.log([0.5, 0.3, 0.2]).tolist()

    assert kept(logits, temperature=1, top_p=0.6) == [0, 1]
    assert kept(logits, temperature=1, top_p=1e-9) == [0]
    assert kept(logits, temperature=1, top_p=1 - 1e-15) == [0, 1, 2]


def test_fault_top_k_above_the_vocabulary_and_off_written_as_minus_one():
    assert kept([1.0, 2.0], temperature=1, top_k=10**6) == kept([1.0, 2.0], temperature=1, top_k=0) == [1, 0]
    with pytest.raises(SettingError):
        SamplingParams(top_k=-1)


def test_fault_the_draw_returns_a_token_of_probability_zero():
    _, probs = distribution([800.0, 0.0, -800.0], SamplingParams(temperature=1))

    assert probs[2] == 0
    assert {draw(probs, u) for u in (0.0, 0.5, 1 - 2.0**-53)} == {0}


def test_fault_the_penalty_divides_negative_logits_or_counts_the_prompt_silently():
    both = SamplingParams(temperature=1, repetition_penalty=2)
    alone = SamplingParams(temperature=1, repetition_penalty=2, penalty_scope="output")

    assert kept([-1.0, -1.5], temperature=1) == [0, 1]
    assert distribution([-1.0, -1.5], both, [0])[0].tolist() == [1, 0]  # −2 is less likely than −1.5
    assert distribution([-1.0, -1.5], alone, [0])[0].tolist() == [0, 1]
    with pytest.raises(SettingError, match="greater than 0"):
        SamplingParams(repetition_penalty=0)


def test_fault_the_frequency_penalty_counts_the_prompt():
    penalised = SamplingParams(temperature=1, frequency_penalty=2)

    assert distribution([1.0, 0.0], penalised, prompt_ids=[0, 0])[0].tolist() == [0, 1]
    assert distribution([1.0, 0.0], penalised, output_ids=[0])[0].tolist() == [1, 0]


def test_fault_ngram_blocking_misses_the_prompts_ngrams_or_returns_token_zero_when_all_are_banned():
    params = SamplingParams(no_repeat_ngram_size=2)

    assert 1 not in distribution([0.0, 9.0, 1.0], params, prompt_ids=[0, 1, 0])[0]
    run = generate(ScriptedModel([[9, 8, 7, 6, 5]]), "abcde", SamplingParams(no_repeat_ngram_size=1))
    assert (run.finish_reason, run.token_ids) == ("no_candidate", ())


def test_fault_nan_logits_end_as_one_token_for_ever_and_kill_the_neighbours():
    good = stream(SKY, PROMPT, SamplingParams(max_new_tokens=6))
    bad = stream(ScriptedModel([[0, 1, 0, 0, 0], [math.nan] * 5]), "a", SamplingParams())

    next(good)
    next(bad)
    with pytest.raises(LogitsError, match="step 2"):
        next(bad)

    assert [step.token_id for step in good] == [2, 1, 2, 1, 2]


def test_fault_the_seeds_text_changes_with_company_with_the_cache_or_after_a_cancelled_run():
    params = SamplingParams(temperature=1, seed=11, max_new_tokens=20)
    alone = generate(SKY, PROMPT, params).token_ids
    cancelled = stream(SKY, PROMPT, params)
    next(cancelled)
    cancelled.close()

    company = [stream(SKY, prompt, params) for prompt in (PROMPT, "blue", PROMPT)]
    taken: list[list[int]] = [[], [], []]
    for _ in range(20):  # in turn, step by step
        for run, ids in zip(company, taken, strict=True):
            ids += [step.token_id for step in [next(run, None)] if step]

    assert tuple(taken[0]) == tuple(taken[2]) == alone
    assert tuple(taken[1]) == generate(SKY, "blue", params).token_ids
    assert generate(SKY, PROMPT, SamplingParams(**asdict(params) | {"use_kv_cache": False})).token_ids == alone


def test_fault_a_cached_prefix_is_stale_after_an_edit_or_lacks_the_last_token():
    kv_cache = SKY.new_cache()
    SKY.forward([0, 1, 2, 3], kv_cache)
    kv_cache.truncate(1)

    edited = SKY.forward([4, 2], kv_cache)

    assert len(kv_cache) == 3
    np.testing.assert_allclose(edited, SKY.forward([0, 4, 2]), atol=1e-12)


def test_fault_a_prompt_over_the_context_is_cut_or_nothing_is_generated_or_too_much():
    with pytest.raises(PromptError, match="a prompt of 200 tokens and 64 new ones do not fit into the context of 256"):
        generate(SKY, "the " * 200, SamplingParams())
    with pytest.raises(SettingError, match="between 1 and 8192, got 0"):
        SamplingParams(max_new_tokens=0)
    with pytest.raises(PromptError, match="the prompt is empty"):
        generate(SKY, " ", SamplingParams())


def test_fault_streaming_loses_half_characters_spaces_newlines_or_held_text():
    text = " 日本\n\n👩‍👩‍👧  end"
    run = generate(
        ByteModel(list(text.encode())), "x", SamplingParams(max_new_tokens=len(text.encode()), stop=("endless",))
    )

    assert "".join(step.shown for step in run.steps) == run.text == text
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(step.piece for step in run.steps)


def test_fault_control_tokens_typed_by_a_user_become_control_and_generated_ones_leak():
    with pytest.raises(PromptError, match="unknown word '<EOS>'"):
        SKY.encode("the sky <EOS>")
    ended = generate(ByteModel([*b"ok", ByteModel.eos_token_id]), "<end>", SamplingParams())
    assert (ended.text, ended.prompt_ids) == ("ok", tuple(b"<end>"))


def test_fault_the_finish_reason_is_wrong_at_the_edge():
    end = ByteModel.eos_token_id

    assert generate(ByteModel([*b"ok", end]), "x", SamplingParams(max_new_tokens=3)).finish_reason == "eos"
    assert generate(ByteModel([*b"ok"]), "x", SamplingParams(max_new_tokens=2)).finish_reason == "length"
    assert generate(ByteModel([*b"ok"]), "x", SamplingParams(max_new_tokens=2, stop=("k",))).finish_reason == "stop"


def test_fault_runs_mix_or_a_steps_bars_are_anothers_or_cover_only_the_rows_shown():
    run = generate(SKY, PROMPT, SamplingParams(temperature=0.5, max_new_tokens=5))
    cache = SKY.new_cache()
    ids = list(run.prompt_ids)

    for step in run.steps:
        logits = SKY.forward(ids[len(cache) :], cache)
        probs = np.exp(logits) / np.exp(logits).sum()
        assert {row.token_id: pytest.approx(row.probability) for row in step.stages[0].top} == dict(enumerate(probs))
        ids.append(step.token_id)
    wide = generate(ByteModel(list(b"a")), "x", SamplingParams(max_new_tokens=1)).steps[0].stages[0]
    assert sum(row.probability for row in wide.top) < 1


def test_fault_spans_for_each_token_break_the_text_that_they_stand_for():
    text = "مرحبا क्षि ﷺ"
    run = generate(ByteModel(list(text.encode())), "x", SamplingParams(max_new_tokens=len(text.encode())))

    assert "".join(step.piece for step in run.steps) == run.text == text


def test_fault_a_setting_without_effect_says_nothing():
    (step,) = generate(SKY, PROMPT, SamplingParams(top_p=0.9, max_new_tokens=1)).steps

    assert step.notes == ("top_p had no effect: greedy decoding takes the most likely token",)


def test_fault_a_loop_is_found_where_there_is_none():
    assert find_loop([7] * 11) is None
