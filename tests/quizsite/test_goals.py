"""The goals of a lab, each judged both ways over real runs of the toy."""

from dataclasses import replace

import pytest

from generation import Generation, SamplingParams, generate, load_model
from quizsite.labs.clauses import Run, Setup
from quizsite.labs.goals import (
    BreaksAnswer,
    CacheChangesCost,
    CureLoop,
    CutOff,
    EarlyWrongToken,
    EndsByItself,
    ExactlyNSurvive,
    Goal,
    LoopRate,
    OrderMatters,
    PredictedFirst,
    ReproduceLoop,
    SameAsGreedy,
    StillLoops,
)
from tests.generation.models import ByteModel

SKY = load_model("sky")
PROMPT = "the sky is"
START = SamplingParams(temperature=0.7, max_new_tokens=48, seed=17)
SEEDS = (17, 6, 9, 19, 5)
CURE = CureLoop(min_new_tokens_before_end=1, max_seq_rep_4=0.5)


def run_of(params: SamplingParams, start: SamplingParams = START, prompt: str = PROMPT, **changes: object) -> Run:
    def rerun(wanted: list[SamplingParams]) -> list[Generation]:
        return [generate(SKY, PROMPT, params) for params in wanted]

    run = Run(
        start=Setup("sky", PROMPT, start),
        setup=Setup("sky", prompt, params),
        made=generate(SKY, prompt, params),
        allowed=("temperature", "top_k", "top_p"),
        seeds=SEEDS,
        generate=rerun,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def failing(goal: Goal, run: Run) -> dict[str, str]:
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
    assert failing(ReproduceLoop(), run_of(greedy, made=forced)) == {"No token taken by hand": "1"}


@pytest.mark.parametrize("temperature", [0.8, 1.0, 1.2])
def test_a_warmer_temperature_cures_for_at_least_four_seeds(temperature: float):
    verdict = CURE.judge(run_of(replace(START, temperature=temperature)))

    assert verdict.is_met
    assert sum(bool(seed.holds) for seed in verdict.seeds) >= 4


def test_a_cold_temperature_does_not_cure_and_the_clause_is_named():
    verdict = CURE.judge(run_of(replace(START, temperature=0.3)))

    assert [clause.name for clause in verdict.failing] == ["No loop at the end", "Repeated 4-grams, at most 0.50"]
    assert verdict.failing[1].measure
    assert verdict.failing[1].measure.value - verdict.failing[1].measure.limit == pytest.approx(0.3, abs=0.02)
    assert [clause.value for clause in verdict.clauses if clause.met is None] == ["waits"]
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
    stopped = replace(run, made=replace(run.generation, finish_reason="cancelled"))

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


def early(forced: dict[int, int], params: SamplingParams | None = None) -> Run:
    """A run on the prompt of the lab about one early token, with tokens taken by hand."""
    start, prompt = SamplingParams(max_new_tokens=24), "clear sky clear"
    params = params or start
    return Run(
        start=Setup("sky", prompt, start),
        setup=Setup("sky", prompt, params),
        made=generate(SKY, prompt, params, forced),
        allowed=(),
        seeds=(),
        generate=lambda wanted: [generate(SKY, prompt, other) for other in wanted],
    )


def test_one_early_token_bends_what_follows():
    verdict = EarlyWrongToken().judge(early({2: 3}))

    assert verdict.is_met
    assert verdict.summary == "blue at step 2 changed 5 of the next 12 tokens."


@pytest.mark.parametrize(
    ("forced", "clause"),
    [
        ({}, "One token taken, in the first 3 steps"),
        ({4: 3}, "One token taken, in the first 3 steps"),
        ({2: 3, 3: 0}, "One token taken, in the first 3 steps"),
        ({1: 2}, "Not the likeliest token"),
        ({1: 4}, "Different among the next 12 tokens, at least 5"),
        ({1: 5}, "Different among the next 12 tokens, at least 5"),  # the end token: nothing follows
    ],
)
def test_a_late_a_likely_or_a_harmless_token_bends_nothing(forced: dict[int, int], clause: str):
    assert clause in failing(EarlyWrongToken(), early(forced))


def test_an_early_token_with_other_settings_does_not_count():
    run = early({2: 3}, SamplingParams(max_new_tokens=24, temperature=1))

    assert failing(EarlyWrongToken(), run)["Only unlocked settings changed"] == "temperature"


def test_orders_that_keep_different_tokens_matter_and_greedy_ones_never_do():
    start = SamplingParams(temperature=1, top_p=0.8, max_new_tokens=12)
    allowed = ("temperature", "top_p", "temperature_last")

    hot = OrderMatters().judge(run_of(replace(start, temperature=2), start, allowed=allowed))
    last = OrderMatters().judge(run_of(replace(start, temperature=2, temperature_last=True), start, allowed=allowed))

    assert hot.is_met
    assert hot.summary == last.summary == "Temperature first keeps 4, temperature last keeps 3."
    assert not OrderMatters().judge(run_of(start, start, allowed=allowed)).is_met
    assert not OrderMatters().judge(run_of(replace(start, temperature=0), start, allowed=allowed)).is_met


@pytest.mark.parametrize(("top_p", "is_met"), [(0.8, True), (0.7, False), (0.9, False)])
def test_exactly_n_survive_or_not(top_p: float, is_met: bool):
    start = SamplingParams(temperature=1, max_new_tokens=12)

    assert ExactlyNSurvive(n=3).judge(run_of(replace(start, top_p=top_p), start)).is_met is is_met


def test_leaving_three_by_a_locked_setting_does_not_count():
    start = SamplingParams(temperature=1, max_new_tokens=12)
    run = run_of(replace(start, top_k=3), start, allowed=("top_p",))

    assert failing(ExactlyNSurvive(n=3), run) == {"Only unlocked settings changed": "top k"}


def test_without_the_cache_the_same_tokens_cost_many_times_the_arithmetic():
    start = SamplingParams(max_new_tokens=16)
    allowed = ("use_kv_cache", "max_new_tokens")
    goal = CacheChangesCost(min_ratio=20)

    long = run_of(replace(start, use_kv_cache=False, max_new_tokens=48), start, allowed=allowed)
    short = run_of(replace(start, use_kv_cache=False), start, allowed=allowed)
    cached = run_of(replace(start, max_new_tokens=48), start, allowed=allowed)

    assert goal.judge(long).is_met
    assert goal.judge(long).summary == "48 tokens, the same ones, at 28.4 times the multiply-adds."
    assert failing(goal, short) == {"Multiply-adds, at least 20 times as many": "9.7 times"}
    assert failing(goal, cached) == {
        "The KV cache is off": "on",
        "Multiply-adds, at least 20 times as many": "1.0 times",
    }


def prose(text: str, max_new_tokens: int) -> Run:
    """A run of a byte-level model that writes this text and its end token."""

    def write(params: SamplingParams) -> Generation:
        return generate(ByteModel([*text.encode(), ByteModel.eos_token_id]), "", params)

    start = SamplingParams(max_new_tokens=10)
    params = replace(start, max_new_tokens=max_new_tokens)
    return Run(
        start=Setup("bytes", "", start),
        setup=Setup("bytes", "", params),
        made=write(params),
        allowed=("max_new_tokens",),
        seeds=(),
        generate=lambda wanted: [write(other) for other in wanted],
    )


def test_a_sentence_is_cut_off_by_the_limit_and_whole_with_room():
    text = "The sky is blue."

    assert CutOff().judge(prose(text, 10)).is_met
    assert failing(CutOff(), prose(text, 16)) == {"An unfinished sentence": "ends in 'sky is blue.'"}
    assert failing(CutOff(), prose(text, 40))["Ended by the limit alone"] == "its end token"
    assert EndsByItself().judge(prose(text, 40)).is_met
    assert failing(EndsByItself(), prose(text, 10)) == {"Ended by its end token": "the limit"}


def test_an_end_after_another_beginning_is_not_the_same_answer():
    run = prose("The sky is blue.", 40)
    other = generate(ByteModel([*b"No.", ByteModel.eos_token_id]), "", run.setup.params)

    assert failing(EndsByItself(), replace(run, made=other)) == {"The same first 10 tokens": "no"}


def test_a_penalty_that_takes_a_needed_repetition_away_breaks_the_answer():
    start = SamplingParams(max_new_tokens=12)
    goal = BreaksAnswer(setting="repetition_penalty", at_least=1.3, expected="is sky is is")

    broken = run_of(replace(start, repetition_penalty=8.0), start)
    mild = run_of(replace(start, repetition_penalty=1.2), start)
    otherwise = run_of(replace(start, repetition_penalty=8, top_k=1), start)
    never = BreaksAnswer(setting="repetition_penalty", at_least=1.3, expected="clear clear")

    assert goal.judge(broken).is_met
    assert goal.judge(broken).summary == "Under the penalty “is sky is is” is gone."
    assert failing(goal, mild)["Repetition penalty, at least 1.3"] == "1.2"
    assert failing(goal, otherwise) == {"All other settings as at the start": "top k"}
    assert failing(never, broken) == {"The start writes “clear clear”": "no"}


RATE = LoopRate(min_looping=2, max_looping=3)
RATE_SEEDS = (11, 12, 13, 14, 15)


@pytest.mark.parametrize(("temperature", "looping", "is_met"), [(0.0, "5", False), (0.4, "3", True), (0.9, "0", False)])
def test_a_loop_rate_is_neither_never_nor_always(temperature: float, looping: str, is_met: bool):
    verdict = RATE.judge(run_of(replace(START, temperature=temperature), seeds=RATE_SEEDS))

    assert verdict.is_met == is_met
    assert verdict.clauses[0].value == looping
    assert sum(seed.holds is True for seed in verdict.seeds) == int(looping)


GUESS = PredictedFirst(
    question="How many tokens does the last pass read?",
    answers=["three", "fifty", "the same"],
    values=[3, 50, True],
    measure="last_input_length",
    shown="{} tokens",
)


@pytest.mark.parametrize(
    ("inputs", "said", "is_right"),
    [
        ({"prediction": 1}, "fifty", True),
        ({"prediction": 0}, "three", False),
        ({}, "nothing", False),
        ({"prediction": 3}, "nothing", False),
        ({"prediction": -1}, "nothing", False),
        ({"prediction": "1"}, "nothing", False),
    ],
)
def test_a_prediction_is_judged_on_what_the_run_shows(inputs: dict[str, object], said: str, is_right: bool):
    committed, shown, *others = GUESS.judge(run_of(START, inputs=inputs)).clauses

    assert (committed.value, committed.met) == (said, said != "nothing")
    assert (shown.value, shown.met) == ("50 tokens", is_right)
    assert all(clause.met for clause in others)


def test_a_prediction_of_yes_is_not_one_of_the_number_one():
    goal = replace(GUESS, values=[1, 0, True], measure="same_with_cache", shown="the same: {}")

    verdicts = [goal.judge(run_of(START, inputs={"prediction": number})) for number in range(3)]

    assert [verdict.is_met for verdict in verdicts] == [False, False, True]
    assert verdicts[2].clauses[1].value == "the same: yes"


def test_a_prediction_over_changed_settings_is_found_out():
    run = run_of(replace(START, max_new_tokens=2), inputs={"prediction": 0})

    assert {clause.name for clause in GUESS.judge(run).failing} >= {"Model, prompt and length"}
