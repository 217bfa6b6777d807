"""Truth: the number of each token, the scan for what a text states of itself, the goal that sets both side by side."""

from dataclasses import replace
from statistics import fmean

import pytest
from django.test import Client

from generation import Generation, SamplingParams, generate
from quizsite.labs.clauses import Outcome, Run, Setup
from quizsite.labs.goals import StatedAgainstMeasured
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown
from quizsite.labs.panels.truth import KIND, Truth, after, statements, view
from quizsite.labs.validation import read_inputs, run_here
from tests.generation.models import ByteModel
from tests.quizsite.pages import HTMX

SETUP = Setup("sky", "the sky is", SamplingParams(temperature=1, max_new_tokens=12, seed=7))
INPUTS = {"shade_by": "probability"}
ANSWER = Setup("bytes", "", SamplingParams(max_new_tokens=60))


def written(text: str, probability: float = 0.25, stated: float = 0.9) -> Generation:
    """Return a run that writes a text letter by letter; digits and the per cent sign are likelier than the rest."""
    made = generate(ByteModel([*text.encode(), ByteModel.eos_token_id]), "", ANSWER.params)
    steps = [replace(s, probability=stated if s.piece in "0123456789%" else probability) for s in made.steps]
    return replace(made, steps=tuple(steps))


def measured(made: Generation) -> Outcome:
    return after(ANSWER, INPUTS, made, Bench(run_here))


def shown(made: Generation, setup: Setup = ANSWER, shade_by: str = "probability") -> Truth:
    return view(Shown(setup, made.steps, made, made.finish_reason, {"shade_by": shade_by}, measured(made)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Zubrowka. Confidence: 99%.", [("Confidence: 99%", "number", 99)]),
        ("I am 90 percent sure of it.", [("90 percent sure", "number", 90)]),
        ("My certainty is 87,5 per cent.", [("certainty is 87,5 per cent", "number", 87.5)]),
        ("It is Lviv. I'm quite sure.", [("I'm quite sure", "sure", None)]),
        ("It is Lviv, I’m certain.", [("I'm certain", "sure", None)]),
        ("I'm not sure, perhaps Lviv", [("not sure", "unsure", None), ("perhaps", "unsure", None)]),
        ("There is no Nobel Prize in it.", [("There is no ", "abstains", None)]),
        ("I don’t know. It does not exist", [("I don't know", "abstains", None), ("does not exist", "abstains", None)]),
        ("There is no doubt.", [("no doubt", "sure", None)]),
        ("Confidence: 112%", [("Confidence: 112%", "number", 112)]),
        (" 95 %. ", [("95 %", "number", 95)]),
        ("It holds 2.1% of the water. That is certain.", []),
        ("unlikely as it is, 40% of them drowned", []),
        ("The prize went to a mathematician.", []),
        ("", []),
    ],
)
def test_the_scan_finds_what_a_text_says_of_its_certainty(text: str, found: list[tuple[str, str, float | None]]):
    plain = text.replace("’", "'")

    assert [(plain[s.start : s.end], s.manner, s.per_cent) for s in statements(text)] == found


def test_the_measures_are_those_of_the_engines_steps():
    made = run_here(SETUP, {})

    outcome = after(SETUP, INPUTS, made, Bench(run_here))

    assert outcome["answer_probability"] == pytest.approx(fmean(step.probability for step in made.steps))
    assert outcome["least_likely"] == max(made.steps, key=lambda step: step.surprisal).token
    assert outcome["is_fluent"] is (fmean(step.surprisal for step in made.steps) < 2.5)
    assert (outcome["states_confidence"], outcome["stated_per_cent"], outcome["abstains"]) == (False, None, False)


@pytest.mark.parametrize(
    ("text", "reaction", "band", "states"),
    [
        ("Lviv. Confidence: 99%", "fluent", "90 or more", True),
        ("Lviv. Confidence: 50%", "fluent", "50 to 89", True),
        ("Lviv. Confidence: 49.5%", "fluent", "below 50", True),
        ("Lviv, certainly", "fluent", "none", True),
        ("It is fictional", "abstains", "none", False),
    ],
)
def test_a_text_is_told_by_how_it_reacts_and_what_it_states(text: str, reaction: str, band: str, states: bool):
    outcome = measured(written(text))

    assert (outcome["reaction"], outcome["stated_band"], outcome["states_confidence"]) == (reaction, band, states)


def test_improbable_words_are_no_fluent_text():
    made = written("Lviv")
    halting = replace(made, steps=tuple(replace(step, surprisal=2.5) for step in made.steps))

    assert (measured(halting)["is_fluent"], measured(halting)["reaction"]) == (False, "halting")


def test_the_tokens_that_state_a_confidence_do_not_count_as_the_answer():
    outcome = measured(written("Ur. I am 90% sure", probability=0.25, stated=0.9))

    assert outcome["answer_probability"] == pytest.approx(0.25)
    assert measured(written("90%"))["answer_probability"] is None


def test_the_stated_number_stands_beside_the_mean_of_the_answers_tokens():
    found = shown(written("Ur. 90% sure", probability=0.41))

    assert found.words == "The text says 90 %, the tokens of the answer averaged 0.41."
    assert (found.stated, found.stated_bar, found.measured, found.measured_bar) == ("90 %", "90.0%", "0.41", "41.0%")
    assert [(claim.text, claim.manner) for claim in found.claims] == [("90% sure", "a percentage")]
    assert found.claims[0].probabilities.startswith("0.90, 0.90, 0.90, 0.41")
    assert found.parts == [("Ur. ", False), ("90% sure", True)]
    assert "".join(token.text for token in found.tokens if token.is_stated) == "90% sure"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ur", "The text states no confidence; the tokens of the answer averaged 0.25 all the same."),
        ("Ur, probably", "The text says “probably”, the tokens of the answer averaged 0.25."),
        ("No such thing", "The text says “No such”; the tokens of the answer averaged 0.25 all the same."),
        ("112%", "The text says 112 %, there is no other text."),
    ],
)
def test_what_is_stated_is_said_in_a_sentence(text: str, words: str):
    assert shown(written(text)).words == words


def test_a_token_is_the_darker_the_less_probable_it_was_and_the_entropy_can_be_shaded_instead():
    made = written("abcdef")
    values = [(0.95, 0.2), (0.9, 0.5), (0.6, 1.0), (0.3, 2.0), (0.1, 3.9), (0.05, 4.0), (1.0, 0.0)]
    pairs = zip(made.steps, values, strict=True)
    steps = tuple(replace(step, probability=p, entropy=e) for step, (p, e) in pairs)

    by_probability = shown(replace(made, steps=steps))
    by_entropy = shown(replace(made, steps=steps), shade_by="entropy")

    assert [token.level for token in by_probability.tokens] == [0, 0, 1, 2, 3, 4, 0]
    assert [token.number for token in by_probability.tokens][:2] == ["0.95", "0.90"]
    assert [token.level for token in by_entropy.tokens] == [0, 1, 2, 3, 3, 4, 0]
    assert [token.number for token in by_entropy.tokens][:2] == ["0.2", "0.5"]
    assert [len(found.legend) for found in (by_probability, by_entropy)] == [5, 5]


def test_the_least_probable_tokens_are_listed_with_what_would_have_been_likelier():
    made = run_here(SETUP, {})

    doubt = shown(made, SETUP).doubts[0]

    least = min(made.steps, key=lambda step: step.probability)
    others = [row for row in least.stages[0].top if row.token_id != least.token_id]
    assert (doubt.step, doubt.probability, doubt.rank) == (least.step, f"{least.probability:.3f}", least.rank)
    assert doubt.others == [(row.token, f"{row.probability:.2f}") for row in others[:3]]


def test_perplexity_and_geometric_mean_are_one_number_twice():
    made = run_here(SETUP, {})
    counters = dict(shown(made, SETUP).counters)

    product = 1.0
    for step in made.steps:
        product *= step.probability
    assert counters["geometric mean"] == f"{product ** (1 / len(made.steps)):.2f}"
    assert counters["perplexity"] == f"{product ** (-1 / len(made.steps)):.2f}"


def test_a_run_without_steps_an_open_one_and_a_stopped_one_can_be_shown():
    made = run_here(SETUP, {})

    empty = view(Shown(SETUP, [], None, "", INPUTS, {}))
    going = view(Shown(SETUP, made.steps[:3], None, "", INPUTS, {}))
    stopped = view(Shown(SETUP, made.steps[:3], None, "cancelled", INPUTS, {}))

    assert (empty.tokens, empty.words, empty.measured) == ([], "", "")
    assert len(going.tokens) == len(stopped.tokens) == 3
    assert going.words.startswith("The text states no confidence")


def test_an_unknown_shade_is_refused_in_words():
    with pytest.raises(ValueError, match="shade_by: Select a valid choice. colour is not one of"):
        read_inputs(KIND, {}, {"shade_by": "colour"})


GOAL = StatedAgainstMeasured(min_stated=90, max_probability=0.4)


def run_of(made: Generation, setup: Setup = ANSWER, outcome: Outcome | None = None) -> Run:
    return Run(
        start=ANSWER,
        setup=setup,
        made=made,
        allowed=("temperature", "shade_by"),
        seeds=(),
        generate=lambda wanted: [made for _ in wanted],
        start_inputs=INPUTS,
        inputs=INPUTS,
        outcome=measured(made) if outcome is None else outcome,
    )


def failing(run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in GOAL.judge(run).failing}


def test_a_high_percentage_over_improbable_tokens_meets_the_goal():
    verdict = GOAL.judge(run_of(written("Ur. I am 99% sure")))

    assert verdict.is_met
    assert verdict.summary == "The text says 99 %; the tokens of its answer averaged 0.25."


def test_a_lower_percentage_none_or_probable_tokens_do_not():
    stated, mean = (
        "The text states a confidence, at least 90 %",
        "Mean probability of the answer’s tokens, at most 0.40",
    )

    assert failing(run_of(written("Ur. I am 89% sure"))) == {stated: "89 %"}
    assert failing(run_of(written("Ur, certainly"))) == {stated: "none"}
    assert failing(run_of(written("Ur. I am 99% sure", probability=0.41))) == {mean: "0.41"}
    assert failing(run_of(written("99%"))) == {mean: "no tokens"}


def test_another_question_a_taken_token_or_a_locked_setting_does_not_count():
    made = written("Ur. I am 99% sure")
    forced = replace(made, steps=(replace(made.steps[0], forced=True), *made.steps[1:]))
    asked, locked = replace(ANSWER, prompt="x"), replace(ANSWER, params=replace(ANSWER.params, top_k=3))

    assert failing(run_of(made, asked)) == {"Model, prompt and length": "prompt changed"}
    assert failing(run_of(forced)) == {"No token taken by hand": "1"}
    assert failing(run_of(made, locked)) == {"Only unlocked settings changed": "top k"}
    assert len(failing(run_of(made, outcome={"problem": "broken"}))) == 2


@pytest.mark.django_db
def test_the_page_shows_each_token_with_its_number(client: Client):
    address, data = "/lab/panel/truth/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0"}

    before = client.get(address)
    answer = client.post(address, data | {"max_new_tokens": "4", "shade_by": "probability"})
    html = client.get(address).content.decode()

    assert (before.status_code, answer.status_code) == (200, 302)
    assert "<small>0.58</small>" in html  # `is`, 0.5795
    assert "The text states no confidence" in html
    run = StoredRun.objects.get()
    assert run.outcome
    assert run.outcome["least_likely"] == "is"


@pytest.mark.django_db
def test_the_page_refuses_an_unknown_shade(client: Client):
    data = {"do": "run", "model": "sky", "prompt": "the sky is", "shade_by": "colour"}

    answer = client.post("/lab/panel/truth/", data, **HTMX)

    assert answer.status_code == 422
    assert "colour is not one of the available choices" in answer.content.decode()


@pytest.mark.real_model
@pytest.mark.parametrize(("example", "stated"), [("98%", 99), ("20%", 21), ("5%", 4), ("50%", 10)])
def test_the_real_models_confidence_comes_from_the_example_before_it(example: str, stated: float):
    asked = "What is the capital of {}? Add your confidence."
    chat = [
        {"role": "user", "content": asked.format("France")},
        {"role": "assistant", "content": f"Paris. Confidence: {example}."},
        {"role": "user", "content": asked.format("Zubrowka")},
    ]
    setup = Setup("smollm2", "", SamplingParams(max_new_tokens=24), chat)

    made = run_here(setup, {})

    assert after(setup, INPUTS, made, Bench(run_here))["stated_per_cent"] == stated
    assert made.steps[0].probability == pytest.approx(0.21, abs=0.01)  # whatever is stated later
