"""Streaming: what two readers of one run have in front of them, counted in passes."""

from dataclasses import replace
from itertools import accumulate

import pytest
from django.test import Client
from django.urls import reverse

from generation import Generation, SamplingParams, generate
from quizsite.labs.clauses import Inputs, Outcome, Run, Setup
from quizsite.labs.goals import PREDICTION, PredictedFirst
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown
from quizsite.labs.panels.streaming import Comparison, after, view
from quizsite.labs.validation import run_here
from tests.generation.models import ByteModel
from tests.quizsite.pages import HTMX

SETUP = Setup("sky", "the sky is", SamplingParams(temperature=1, max_new_tokens=24, seed=7))
BYTES = Setup("bytes", "", SamplingParams(max_new_tokens=24))


def written(text: str, *stop: str) -> Generation:
    """Return a run that writes a text byte by byte, up to its end token; a byte that is no text has its number."""
    made = generate(ByteModel([*text.encode(), ByteModel.eos_token_id]), "", replace(BYTES.params, stop=stop))
    steps = [replace(s, token=f"<{s.token_id:02X}>") if s.token == "�" else s for s in made.steps]
    return replace(made, steps=tuple(steps))


def measured(made: Generation) -> Outcome:
    return after(BYTES, {}, made, Bench(run_here))


def shown(made: Generation, setup: Setup = BYTES) -> Comparison:
    return view(Shown(setup, made.steps, made, made.finish_reason, {}, measured(made)))


def test_streamed_the_first_word_comes_after_one_pass_and_the_last_one_no_earlier():
    outcome = measured(run_here(SETUP, {}))

    assert outcome == {
        "first_shown": 1,
        "first_and_last": "first 1 instead of 24, last 24 either way",
        "silent_passes": 0,
    }


@pytest.mark.parametrize(
    ("text", "first", "silent"),
    [("油 is", 3, 3), (" \n a", 4, 1), ("é", 2, 2), ("a", 1, 1), ("", 0, 1)],  # the end token is silent, too
)
def test_a_character_is_there_once_all_its_bytes_are_and_a_space_is_not_seen(text: str, first: int, silent: int):
    outcome = measured(written(text))

    assert (outcome["first_shown"], outcome["silent_passes"]) == (first, silent)


def test_a_stop_string_that_may_be_coming_holds_text_back():
    made = written("abcd", "abx")

    assert measured(made)["first_shown"] == 3
    assert shown(made).holds == ["after passes 1 to 2: a stop string may be coming"]
    assert shown(written("abx", "abx")).holds == ["after passes 1 to 3: a stop string may be coming"]
    assert shown(written("a", "abx")).holds == ["after pass 1: a stop string may be coming"]


def test_half_a_character_is_no_text_and_the_end_token_is_nothing_held_back():
    assert shown(written("a油b")).holds == ["after passes 2 to 3: half a character"]
    assert shown(written("ab")).holds == []


def test_the_times_are_those_of_the_recorded_run():
    made = replace(written("油"), prefill_seconds=0.5, decode_seconds=0.9)  # three bytes and the end: four passes

    rows = {name: (streamed, whole) for name, streamed, whole in shown(made).rows}

    assert rows["First character"] == ("after pass 3 of 4", "after pass 4 of 4")
    assert rows["Last character"] == ("after pass 4 of 4", "after pass 4 of 4")
    assert rows["Computing until the first one"] == ("1.10 s", "1.40 s")  # 0.5 and two of three equal parts of 0.9
    assert rows["Computing until the last one"] == ("1.40 s", "1.40 s")


def test_the_first_pass_is_the_prefill_alone_and_short_times_are_in_milliseconds():
    made = replace(written("a"), prefill_seconds=0.0123, decode_seconds=0.02)

    assert ("Computing until the first one", "12.3 ms", "32.3 ms") in shown(made).rows


def test_the_chart_has_what_can_be_read_after_each_pass():
    made = run_here(SETUP, {})
    chart = shown(made, SETUP).chart
    assert chart

    streamed, whole = (line.values for line in chart.series)
    assert list(streamed) == list(accumulate(len(step.shown) for step in made.steps))
    assert list(whole) == [0] * 23 + [len(made.text)]


def test_while_it_goes_on_one_reader_has_text_and_the_other_one_waits():
    made = run_here(SETUP, {})

    empty = view(Shown(SETUP, [], None, "", {}, {}))
    going = view(Shown(SETUP, made.steps[:2], None, "", {}, {}))
    stopped = view(Shown(SETUP, made.steps[:2], None, "cancelled", {}, {}))
    over = shown(made, SETUP)

    assert [found.words.split(".")[0] for found in (empty, going)] == [
        "Neither reader has anything yet",
        "One reader has been reading since pass 1",
    ]
    assert [found.text for found in (empty, going, stopped, over)] == ["", " is is", " is is", made.text]
    assert [found.is_whole for found in (empty, going, stopped, over)] == [False, False, False, True]
    assert [found.is_over for found in (empty, going, stopped, over)] == [False, False, True, True]
    assert "the other one gets nothing" in stopped.words
    assert (going.rows, stopped.rows, stopped.chart) == ([], [], None)


def test_a_run_without_text_has_nothing_to_stream():
    found = shown(written(""))

    assert found.words == "Nothing that can be seen was made, so there is nothing to stream."
    assert found.rows == []


GOAL = PredictedFirst(
    question="When?",
    answers=["first 1, last 12", "first 1, last 24"],
    values=["first 1 instead of 24, last 12 instead of 24", "first 1 instead of 24, last 24 either way"],
    measure="first_and_last",
)


def run_of(inputs: Inputs, setup: Setup = SETUP) -> Run:
    made = run_here(setup, {})
    return Run(
        start=SETUP,
        setup=setup,
        made=made,
        allowed=(),
        seeds=(),
        generate=lambda wanted: [made for _ in wanted],
        inputs=inputs,
        outcome=after(setup, inputs, made, Bench(run_here)),
    )


def failing(run: Run) -> list[str]:
    return [clause.name for clause in GOAL.judge(run).failing]


def test_a_prediction_is_judged_on_the_counted_passes():
    shorter = replace(SETUP, params=replace(SETUP.params, max_new_tokens=12))

    assert failing(run_of({PREDICTION: 1})) == []
    assert failing(run_of({PREDICTION: 0})) == ["What the run shows"]
    assert failing(run_of({})) == ["A prediction before the run", "What the run shows"]
    assert failing(run_of({PREDICTION: 1}, shorter)) == [
        "What the run shows",
        "Model, prompt and length",
        "Only unlocked settings changed",
    ]


@pytest.mark.django_db
def test_the_page_shows_both_readers(client: Client):
    address, data = "/lab/panel/streaming/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0"}

    before = client.get(address)
    answer = client.post(address, data | {"max_new_tokens": "4"})
    html = client.get(address).content.decode()

    assert (before.status_code, answer.status_code) == (200, 302)
    assert html.count(" is is sky is</p>") == 2
    assert "after pass 1 of 4" in html
    run = StoredRun.objects.get()
    assert run.outcome
    assert run.outcome["first_shown"] == 1


@pytest.mark.django_db
def test_a_stopped_run_sends_nothing_at_its_end_even_if_it_was_computed_to_its_end_before(client: Client):
    address, data = "/lab/panel/streaming/", {"model": "sky", "prompt": "the sky is", "max_new_tokens": "4"}
    client.post(address, data | {"do": "run"})

    client.post(address, data | {"do": "step"})
    client.post(reverse("labs:stop", args=[StoredRun.objects.latest("created").pk]))
    html = client.get(address).content.decode()

    assert "Run, stopped after 1 token" in html
    assert "the other one gets nothing" in html
    assert "What each reader waits for" not in html


@pytest.mark.django_db
def test_the_page_refuses_too_many_stop_strings_in_the_engines_words(client: Client):
    data = {"do": "run", "model": "sky", "prompt": "the sky is", "stop": "a\nb\nc\nd\ne"}

    answer = client.post("/lab/panel/streaming/", data, **HTMX)

    assert answer.status_code == 422
    assert "stop must be at most 4 strings" in answer.content.decode()
