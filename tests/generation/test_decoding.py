"""The loop and its record."""

import json
import math
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pytest

from generation import (
    RECORD_FORMAT,
    Candidate,
    Generation,
    LogitsError,
    Loop,
    PromptError,
    SamplingParams,
    Stage,
    Step,
    generate,
    generation_from_dict,
    stream,
)
from generation.models.sky import SkyModel
from tests.generation.models import ByteModel, ScriptedModel

SKY = SkyModel()


def test_four_greedy_tokens_take_four_passes_over_growing_input():
    generation = generate(SKY, "the sky is", SamplingParams(max_new_tokens=4))

    assert [step.token for step in generation.steps] == ["is", "is", "sky", "is"]
    assert [round(step.probability, 4) for step in generation.steps] == [0.5795, 0.4978, 0.3881, 0.3780]
    assert [step.input_length for step in generation.steps] == [3, 4, 5, 6]
    assert generation.forward_passes == 4
    assert generation.text == " is is sky is"
    assert generation.finish_reason == "length"


@pytest.mark.parametrize(("use_kv_cache", "positions"), [(True, [3, 1, 1, 1]), (False, [3, 4, 5, 6])])
def test_the_cache_changes_the_positions_computed_not_the_tokens(use_kv_cache: bool, positions: list[int]):
    generation = generate(SKY, "the sky is", SamplingParams(max_new_tokens=4, use_kv_cache=use_kv_cache))

    assert [step.computed_positions for step in generation.steps] == positions
    assert generation.token_ids == (2, 2, 1, 2)
    assert generation.multiply_adds == sum(SKY.multiply_adds(n, 3 + i) for i, n in enumerate(positions))


@pytest.mark.parametrize("seed", range(20))
def test_the_same_seed_gives_the_same_text_with_the_cache_on_and_off(seed: int):
    texts = {
        generate(SKY, "the sky is", SamplingParams(temperature=1, seed=seed, use_kv_cache=cached)).text
        for cached in (True, False)
    }

    assert len(texts) == 1


def test_a_greedy_run_of_forty_loops_and_one_that_ends_by_itself_does_not():
    looping = generate(SKY, "the sky is", SamplingParams(max_new_tokens=40))
    ended = generate(ScriptedEnd(), "a", SamplingParams(max_new_tokens=40))

    assert looping.loop
    assert (looping.loop.period, looping.loop.start, looping.loop.repeats) == (1, 5, 35)
    assert ended.finish_reason == "eos"
    assert ended.token_ids == (1,) * 20 + (4,)
    assert ended.loop is None


class ScriptedEnd(ScriptedModel):
    """Writes b twenty times, then its end token."""

    eos_token_id = 4

    def __init__(self) -> None:
        super().__init__([[0, 9, 0, 0, 0]] * 20 + [[0, 0, 0, 0, 9]])


def test_an_end_token_exactly_at_the_limit_ends_the_run():
    generation = generate(ScriptedEnd(), "a", SamplingParams(max_new_tokens=21))

    assert generation.finish_reason == "eos"


def test_steps_are_given_out_before_the_next_is_computed_and_closing_stops_the_run():
    model = ScriptedModel([[0, 1, 0, 0, 0]])
    steps = stream(model, "a", SamplingParams(max_new_tokens=50))

    next(steps)
    next(steps)
    steps.close()

    assert model.n_passes == 2


def test_a_forced_token_does_not_shift_later_draws():
    params = SamplingParams(temperature=1, seed=3, max_new_tokens=8)
    free = generate(SKY, "the sky is", params)
    forced = generate(SKY, "the sky is", params, forced={2: 3})

    assert forced.steps[1].token == "blue"
    assert forced.steps[1].forced
    assert [step.u for step in forced.steps] == [step.u for step in free.steps]
    assert forced.steps[0] == free.steps[0]


def test_each_setting_that_is_on_has_its_stage_in_order():
    params = SamplingParams(temperature=0.5, top_k=3, top_p=0.9, repetition_penalty=1.2, max_new_tokens=1)

    (step,) = generate(SKY, "the sky is", params).steps

    assert [stage.name for stage in step.stages] == ["raw", "repetition_penalty", "temperature", "top_k", "top_p"]
    assert [len(stage.top) for stage in step.stages[:3]] == [6, 6, 6]
    for stage in step.stages:
        assert stage.kept == len(stage.top)
        assert sum(row.probability for row in stage.top) == pytest.approx(1)


def test_probability_is_raw_and_final_probability_is_under_the_settings():
    raw = generate(SKY, "the sky is", SamplingParams(max_new_tokens=1)).steps[0]
    cut = generate(SKY, "the sky is", SamplingParams(max_new_tokens=1, temperature=1, top_k=1)).steps[0]

    assert raw.probability == cut.probability
    assert cut.final_probability == 1
    assert cut.rank == 1
    assert cut.surprisal == pytest.approx(0.787, abs=1e-3)  # −log2 0.5795


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0, float("nan"), 0, 0, 0], "step 2: logits must be numbers, got NaN"),
        ([0, float("inf"), 0, 0, 0], "step 2: logits must be below infinity, got inf"),
        ([float("-inf")] * 5, "step 2: at least one logit must be finite, got none"),
    ],
)
def test_logits_from_which_nothing_can_be_chosen_name_the_step(row: list[float], message: str):
    model = ScriptedModel([[0, 1, 0, 0, 0], row])

    with pytest.raises(LogitsError, match=message):
        generate(model, "a", SamplingParams())


@pytest.mark.parametrize(
    ("prompt", "max_new_tokens", "message"),
    [
        ("", 4, "the prompt is empty"),
        ("  \n", 4, "the prompt is empty"),
        ("the " * 250, 10, "a prompt of 250 tokens and 10 new ones do not fit into the context of 256"),
        ([0, 6], 4, "token ids must be between 0 and 5, got 6"),
    ],
)
def test_a_prompt_that_cannot_run_is_refused_before_anything_is_run(
    prompt: str | list[int], max_new_tokens: int, message: str
):
    with pytest.raises(PromptError, match=message):
        next(stream(SKY, prompt, SamplingParams(max_new_tokens=max_new_tokens)))


def test_an_empty_prompt_runs_from_the_start_token_where_there_is_one():
    model = ScriptedModel([[0, 1, 0, 0, 0]])
    model.start_token_id = 0  # type: ignore[attr-defined]

    assert generate(model, "", SamplingParams(max_new_tokens=1)).prompt_ids == (0,)


def test_a_record_survives_the_way_through_json():
    generation = generate(SKY, "the sky is", SamplingParams(temperature=1, top_k=3, max_new_tokens=20))

    assert generation_from_dict(json.loads(json.dumps(asdict(generation)))) == generation


def test_prompt_and_text_join_to_what_the_ids_decode_to():
    generation = generate(SKY, "the sky is", SamplingParams(temperature=1.2, seed=4))

    assert "the sky is" + generation.text == SKY.decode([*generation.prompt_ids, *generation.token_ids])
    assert "".join(step.piece for step in generation.steps) == generation.text


def test_every_token_banned_ends_the_run_and_invents_nothing():
    model = ScriptedModel([[5, 4, 3, 2, 1]])

    run = generate(model, "ab", SamplingParams(no_repeat_ngram_size=1))

    assert run.finish_reason == "no_candidate"
    assert run.text == "cde"
    assert run.forward_passes == 4  # the last one gave a distribution of which nothing was left
    assert len(run.steps) == 3


def test_the_toy_always_keeps_its_end_token_under_ngram_blocking():
    run = generate(SKY, "the sky is blue clear", SamplingParams(no_repeat_ngram_size=1))

    assert (run.finish_reason, run.token_ids) == ("eos", (5,))


@pytest.mark.parametrize(
    ("forced", "message"),
    [
        ({1: 6}, "token ids must be between 0 and 5, got 6"),
        ({1: -1}, "token ids must be between 0 and 5, got -1"),
        ({0: 1}, "steps are from 1 to 64, got a token for step 0"),
    ],
)
def test_a_token_that_cannot_be_forced_is_refused(forced: dict[int, int], message: str):
    with pytest.raises(PromptError, match=message):
        generate(SKY, "the sky is", SamplingParams(), forced)


def test_a_token_without_any_probability_cannot_be_forced():
    model = ScriptedModel([[0, float("-inf"), 0, 0, 0]])

    with pytest.raises(LogitsError, match="step 1: token 1 has no probability"):
        generate(model, "a", SamplingParams(), forced={1: 1})


def test_a_forced_token_that_the_settings_dropped_is_taken_and_recorded_as_out():
    (step,) = generate(SKY, "the sky is", SamplingParams(max_new_tokens=1), forced={1: 3}).steps

    assert (step.token, step.final_probability, step.forced) == ("blue", 0.0, True)
    assert step.rank > 1
    assert step.surprisal == pytest.approx(-math.log2(step.probability))


def test_a_recorded_run_goes_on_when_its_tokens_are_forced_and_when_it_is_made_longer():
    short = generate(SKY, "the sky is", SamplingParams(temperature=1, seed=7, max_new_tokens=10))
    longer = SamplingParams(temperature=1, seed=7, max_new_tokens=20)

    again = generate(SKY, "the sky is", longer)
    forced = generate(SKY, "the sky is", longer, forced=dict(enumerate(short.token_ids, start=1)))

    assert again.token_ids[:10] == short.token_ids
    assert forced.token_ids == again.token_ids


@pytest.mark.parametrize("use_kv_cache", [True, False])
def test_after_an_edit_of_the_prompt_nothing_of_the_old_one_is_left(use_kv_cache: bool):
    params = SamplingParams(temperature=1, seed=1, use_kv_cache=use_kv_cache, max_new_tokens=12)
    generate(SKY, "the sky is blue", params)

    edited = generate(SKY, "the blue is blue", params)

    assert edited == replace(
        generate(SkyModel(), "the blue is blue", params),
        prefill_seconds=edited.prefill_seconds,
        decode_seconds=edited.decode_seconds,
    )


def test_entropy_and_rank_take_masked_tokens_as_impossible():
    model = ScriptedModel([[1, 1, float("-inf"), float("-inf"), float("-inf")]])

    (step,) = generate(model, "a", SamplingParams(max_new_tokens=1), forced={1: 1}).steps

    assert step.entropy == pytest.approx(1)
    assert step.rank == 2
    assert step.stages[0].kept == 2


def test_top_rows_are_probabilities_over_the_whole_vocabulary():
    model = ByteModel(list(b"ab"))

    step = generate(model, "x", SamplingParams(max_new_tokens=1, temperature=1)).steps[0]

    raw = step.stages[0]
    assert (len(raw.top), raw.kept) == (10, 258)
    assert raw.top[0].probability == pytest.approx(math.exp(20) / (math.exp(20) + 257))
    assert raw.top[1].probability == pytest.approx(1 / (math.exp(20) + 257))


def test_dropped_mass_is_what_a_stage_cut_from_what_was_left():
    params = SamplingParams(temperature=1, top_k=3, top_p=0.5, max_new_tokens=1)

    (step,) = generate(SKY, "the sky is", params).steps

    raw, top_k, top_p = step.stages
    assert top_k.dropped_mass == pytest.approx(1 - sum(row.probability for row in raw.top[:3]))
    assert top_p.dropped_mass == pytest.approx(1 - sum(row.probability for row in top_k.top[: top_p.kept]))


def test_the_seed_decides_the_text():
    texts = {generate(SKY, "the sky is", SamplingParams(temperature=1, seed=seed)).text for seed in range(20)}

    assert len(texts) > 15
    pinned = generate(SKY, "the sky is", SamplingParams(temperature=1, seed=17, max_new_tokens=12))
    assert pinned.text == " is the sky sky is the is clear is is sky clear"


def test_prompt_and_new_tokens_may_fill_the_context_exactly():
    assert len(generate(SKY, "the sky is", SamplingParams(max_new_tokens=253)).steps) == 253
    with pytest.raises(PromptError):
        generate(SKY, "the sky is", SamplingParams(max_new_tokens=254))


def test_prefill_is_the_first_pass_and_decode_all_others(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 5.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr("generation.decoding.perf_counter", lambda: next(clock))

    run = generate(ScriptedModel([[0, 1, 0, 0, 0]]), "ab", SamplingParams(max_new_tokens=3))

    assert (run.prefill_seconds, run.decode_seconds) == (5, 3)
    assert run.multiply_adds is None  # this model does not count them


def test_an_end_token_that_the_model_can_spell_stays_out_of_the_text():
    model = ScriptedModel([[0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 9]])
    model.eos_token_id = 4  # type: ignore[attr-defined]

    run = generate(model, "a", SamplingParams())

    assert (run.text, run.finish_reason, run.steps[-1].piece) == ("bb", "eos", "")


def test_the_end_without_a_candidate_says_why_and_releases_what_was_held():
    run = generate(ScriptedModel([[5, 4, 3, 2, 1]]), "ab", SamplingParams(no_repeat_ngram_size=1, stop=("ex",)))

    assert run.text == "cde"
    assert run.explanation == "no_repeat_ngram_size 1 bans every token that was left"


@pytest.mark.parametrize(
    ("prompt", "forced", "message"),
    [
        ([0.9, 1.7], {}, "a prompt must be text or whole numbers"),
        ("the", {1: 2.0}, "a step and its token id must be whole numbers"),
        ("the", {"1": 2}, "a step and its token id must be whole numbers"),
        ("the", {7: 2}, "steps are from 1 to 3, got a token for step 7"),
    ],
)
def test_ids_of_the_wrong_type_are_refused(prompt: Any, forced: Any, message: str):
    with pytest.raises(PromptError, match=message):
        generate(SKY, prompt, SamplingParams(max_new_tokens=3), forced)


def test_ids_of_numpy_are_ids_and_the_record_is_plain():
    prompt: Any = np.array([0, 1, 2])
    forced: Any = {1: np.int64(3)}

    run = generate(SKY, prompt, SamplingParams(max_new_tokens=2), forced)

    assert json.dumps(asdict(run))
    assert run.steps[0].token == "blue"


def test_nothing_in_a_record_is_minus_zero():
    run = generate(ScriptedModel([[800, 0, 0, 0, 0]]), "a", SamplingParams(max_new_tokens=1))

    assert "-0.0" not in json.dumps(asdict(run))


def test_a_change_of_the_record_raises_its_format():
    """Whoever changes a field raises RECORD_FORMAT and this list: stored runs are then computed again."""
    records = (Candidate, Stage, Step, Generation, Loop)

    assert RECORD_FORMAT == 1
    assert [" ".join(field.name for field in fields(record)) for record in records] == [
        "token_id token probability",
        "name kept dropped_mass top",
        "step input_length computed_positions token_id token piece shown probability final_probability surprisal "
        "entropy rank u forced notes stages",
        "model prompt_ids token_ids text steps finish_reason explanation forward_passes prefill_seconds "
        "decode_seconds multiply_adds loop seq_rep_4",
        "period start repeats",
    ]
