"""The goals of a lab, each judged both ways over real runs of the toy."""

from dataclasses import replace

import pytest

from generation import Generation, SamplingParams, generate, load_model
from quizsite.labs.goals import CureLoop, ReproduceLoop, Run, SameAsGreedy, Setup, StillLoops

SKY = load_model("sky")
PROMPT = "the sky is"
START = SamplingParams(temperature=0.7, max_new_tokens=48, seed=17)
SEEDS = (17, 6, 9, 19, 5)
CURE = CureLoop(min_new_tokens_before_end=1, max_seq_rep_4=0.5)


def run_of(params: SamplingParams, start: SamplingParams = START, prompt: str = PROMPT, **changes: object) -> Run:
    def rerun(params: SamplingParams) -> Generation:
        return generate(SKY, PROMPT, params)

    run = Run(
        start=Setup("sky", PROMPT, start),
        setup=Setup("sky", prompt, params),
        generation=generate(SKY, prompt, params),
        allowed=("temperature", "top_k", "top_p"),
        seeds=SEEDS,
        generate=rerun,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def failing(goal: ReproduceLoop | CureLoop | StillLoops | SameAsGreedy, run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in goal.judge(run).failing}


def test_greedy_reproduces_the_loop():
    verdict = ReproduceLoop().judge(run_of(replace(START, temperature=0)))

    assert verdict.is_met
    assert verdict.summary == "Period 1, 43 copies, from token 6."


def test_sampling_at_the_start_does_not_reproduce_it():
    assert failing(ReproduceLoop(), run_of(START)) == {"A loop at the end": "none"}


def test_a_short_run_is_not_a_reproduction():
    short = replace(START, temperature=0, max_new_tokens=20)

    assert failing(ReproduceLoop(), run_of(short)) == {
        "New tokens, at least 36": "20",
        "Model, prompt and length": "length changed",
        "Only unlocked settings changed": "max new tokens",
    }


def test_another_prompt_or_a_forced_token_is_not_a_reproduction():
    greedy = replace(START, temperature=0)
    forced = generate(SKY, PROMPT, greedy, forced={1: 3})

    assert "Model, prompt and length" in failing(ReproduceLoop(), run_of(greedy, prompt="blue"))
    assert failing(ReproduceLoop(), run_of(greedy, generation=forced)) == {
        "Model, prompt and length": "forced tokens changed"
    }


@pytest.mark.parametrize("temperature", [0.8, 1.0, 1.2])
def test_a_warmer_temperature_cures_for_at_least_four_seeds(temperature: float):
    verdict = CURE.judge(run_of(replace(START, temperature=temperature)))

    assert verdict.is_met
    assert sum(seed.holds for seed in verdict.seeds) >= 4


def test_a_cold_temperature_does_not_cure_and_the_clause_is_named():
    verdict = CURE.judge(run_of(replace(START, temperature=0.3)))

    assert [clause.name for clause in verdict.failing] == ["No loop at the end", "Repeated 4-grams, at most 0.50"]
    assert verdict.failing[1].measure
    assert verdict.failing[1].measure.over == pytest.approx(0.3, abs=0.02)
    assert [clause.value for clause in verdict.waiting] == ["waits"]
    assert verdict.seeds == ()


def test_one_lucky_run_is_no_cure():
    verdict = CURE.judge(run_of(START))

    assert failing(CURE, run_of(START)) == {"Seeds, at least 4 of 5": "1 of 5"}
    assert [seed.seed for seed in verdict.seeds] == list(SEEDS)


def test_a_cure_by_a_locked_setting_or_by_too_many_does_not_count():
    penalised = replace(START, temperature=1, repetition_penalty=1.5)
    everything = replace(START, temperature=1, top_k=5, top_p=0.99)

    assert failing(CURE, run_of(penalised))["Only unlocked settings changed"] == "repetition penalty"
    assert failing(CURE, run_of(everything)) == {"Settings changed, at most 2": "3"}


def test_gibberish_is_no_cure_where_a_cap_is_set():
    capped = replace(CURE, max_surprisal=1.0)

    assert list(failing(capped, run_of(replace(START, temperature=2)))) == ["Mean surprisal, at most 1 bits"]


def test_a_run_that_was_stopped_is_no_cure():
    run = run_of(replace(START, temperature=1))
    stopped = replace(run, generation=replace(run.generation, finish_reason="cancelled"))

    assert failing(CURE, stopped)["Ended by itself or by the limit"] == "stopped"


@pytest.mark.parametrize("penalty", [1.2, 1.3, 1.5, 2.0])
def test_a_penalty_alone_leaves_the_loop(penalty: float):
    start = SamplingParams(max_new_tokens=48)
    goal = StillLoops(setting="repetition_penalty", at_least=1.2)

    assert goal.judge(run_of(replace(start, repetition_penalty=penalty), start)).is_met


def test_a_penalty_too_small_or_not_alone_shows_nothing():
    start = SamplingParams(max_new_tokens=48)
    goal = StillLoops(setting="repetition_penalty", at_least=1.2)

    small = failing(goal, run_of(replace(start, repetition_penalty=1.1), start))
    mixed = failing(goal, run_of(replace(start, repetition_penalty=1.3, temperature=1), start))

    assert small == {"Repetition penalty, at least 1.2": "1.1"}
    assert mixed["All other settings as at the start"] == "temperature"


def test_one_candidate_is_the_same_as_greedy_and_a_low_temperature_alone_is_not():
    start = SamplingParams(temperature=1, max_new_tokens=24, seed=1)
    seeds = (1, 2, 3, 4, 5)

    assert SameAsGreedy().judge(run_of(replace(start, top_k=1), start, seeds=seeds)).is_met
    assert not SameAsGreedy().judge(run_of(replace(start, temperature=0.02), start, seeds=seeds)).is_met


def test_greedy_itself_is_not_sampling():
    start = SamplingParams(temperature=1, max_new_tokens=24, seed=1)

    assert failing(SameAsGreedy(), run_of(replace(start, temperature=0), start)) == {"Temperature, at least 0.01": "0"}
