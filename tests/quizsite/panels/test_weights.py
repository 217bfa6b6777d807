"""Weights: the experiment against runs of the same requests, what it says of them, and the goal over it."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from generation import Generation, PromptError, SamplingParams, fingerprint, load_model
from quizsite.labs.clauses import Inputs, Outcome, Run, Setup
from quizsite.labs.goals import PredictedFirst, Unchanged
from quizsite.labs.models import Run as StoredRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown, Timing
from quizsite.labs.panels.weights import KIND, Asked, Fingerprint, after, asked, says, view
from quizsite.labs.validation import read_inputs, run_here
from tests.quizsite.pages import HTMX

TOLD = "The train leaves at nine."
INPUTS = read_inputs(KIND, {}, {"told": TOLD, "question": "When?", "expected": "nine"})


class Learning(Bench):
    """Instruments over a model that learns: it answers with all that it has been told, and its weights change."""

    def __init__(self) -> None:
        super().__init__(run_here)
        self.n_asked = 0

    def time(self, setup: Setup) -> Timing:
        self.n_asked += 1
        timing = super().time(setup)
        return Timing(replace(timing.generation, text=TOLD, token_ids=(self.n_asked,)), timing.seconds)

    def fingerprint(self, model: str) -> str:
        return f"{self.n_asked}" * 64


def setup_of(model: str) -> Setup:
    return Setup(model, "", SamplingParams(max_new_tokens=4))


def experiment(model: str, inputs: Inputs = INPUTS) -> tuple[Setup, Generation, Outcome]:
    setup = asked(setup_of(model), inputs)
    made = run_here(setup, {})
    return setup, made, after(setup, inputs, made, Bench(run_here))


def test_the_shown_run_is_the_question_alone(tiny: str):
    assert asked(setup_of(tiny), INPUTS).chat == [{"role": "user", "content": "When?"}]


def test_the_conversation_sends_what_was_told_and_the_models_own_answer(tiny: str):
    setup, made, outcome = experiment(tiny)

    reply = run_here(replace(setup, chat=[{"role": "user", "content": TOLD}]), {})
    history = [
        {"role": "user", "content": TOLD},
        {"role": "assistant", "content": reply.text},
        {"role": "user", "content": "When?"},
    ]
    assert outcome["reply"] == reply.text
    assert outcome["answer"] == run_here(replace(setup, chat=history), {}).text
    assert outcome["again"] == made.text
    assert outcome["is_same_again"]


def test_the_fingerprints_are_those_of_the_weights(tiny: str):
    _, _, outcome = experiment(tiny)

    assert outcome["before"] == outcome["after"] == fingerprint(load_model(tiny))
    assert outcome["changed"] == "none"
    assert "parameters" in outcome["sizes"]


def test_a_model_that_learns_is_found_out(tiny: str):
    setup = asked(setup_of(tiny), INPUTS)
    made = run_here(setup, {})

    outcome = after(setup, INPUTS, made, Learning())

    assert outcome["changed"] == "some"
    assert (outcome["before"][0], outcome["after"][0]) == ("0", "2")  # two turns lie between them
    assert outcome["knows_with"]
    assert outcome["knows_without"]
    assert not outcome["is_same_again"]
    verdict = view(Shown(setup, made.steps, made, "length", INPUTS, outcome)).verdict
    assert "The fingerprints differ" in verdict
    assert "without the conversation, too" in verdict


def test_the_whole_experiment_is_shown_in_its_order(tiny: str):
    setup, made, outcome = experiment(tiny)

    stages = view(Shown(setup, made.steps, made, made.finish_reason, INPUTS, outcome)).stages

    assert [isinstance(stage, Fingerprint) for stage in stages] == [False, True, False, False, True, False]
    assert [len(stage.chat) for stage in stages if isinstance(stage, Asked)] == [1, 1, 3, 1]
    assert [stage.knows for stage in stages if isinstance(stage, Asked)] == [False, None, False, False]
    marks = [stage for stage in stages if isinstance(stage, Fingerprint)]
    assert marks[0].short == f"{marks[0].digest[:8]}…{marks[0].digest[-8:]}"


def test_an_open_a_waiting_a_stopped_and_a_failed_experiment_are_shown_as_far_as_they_go(tiny: str):
    setup, made, _ = experiment(tiny)
    open_run = view(Shown(setup, made.steps[:2], None, "", INPUTS, {}))
    waiting = view(Shown(setup, made.steps, made, "length", INPUTS, {}))
    stopped = view(Shown(setup, (), None, "cancelled", INPUTS, {}))
    failed = view(Shown(setup, made.steps, made, "length", INPUTS, {"problem": "the model has gone"}))

    assert [len(shown.stages) for shown in (open_run, waiting, stopped, failed)] == [1, 1, 1, 1]
    assert [shown.is_going_on for shown in (open_run, waiting, stopped, failed)] == [False, True, False, False]
    assert open_run.stages[0] == Asked("The question alone", setup.chat, open_run.stages[0].answer, is_open=True)  # type: ignore[union-attr]
    assert failed.problem == "the model has gone"
    assert failed.verdict == ""


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [("It leaves at Nine.", "nine", True), ("STRASSE", "straße", True), ("ten", "nine", False)],
)
def test_a_fact_is_found_whatever_its_case(text: str, expected: str, found: bool):
    assert says(text, {"expected": expected}) is found


def test_a_model_without_a_template_is_refused_by_the_engine_in_words():
    with pytest.raises(PromptError, match="sky has no chat template"):
        run_here(asked(setup_of("sky"), INPUTS), {})


SHOWN: Outcome = {
    "before": "f" * 64,
    "after": "f" * 64,
    "changed": "none",
    "n_turns": 2,
    "is_same_again": True,
    "knows_with": True,
    "knows_without": False,
}


def failing(
    tiny: str, outcome: Outcome, goal: Any = None, allowed: tuple[str, ...] = ("told",), **inputs: Any
) -> list[str]:
    setup, made, _ = experiment(tiny)
    run = Run(
        start=setup,
        setup=setup,
        made=made,
        allowed=allowed,
        seeds=(),
        generate=lambda wanted: [],
        start_inputs=INPUTS | {"told": "Hello."},
        inputs=INPUTS | inputs,
        outcome=outcome,
    )
    return [clause.name for clause in (goal or Unchanged()).judge(run).failing]


def test_a_fact_known_in_the_conversation_alone_meets_the_goal(tiny: str):
    assert failing(tiny, SHOWN) == []


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"after": "e" * 64}, "The same fingerprint after them"),
        ({"before": "", "after": ""}, "The same fingerprint after them"),
        ({"n_turns": 1}, "Turns between the fingerprints, at least 2"),
        ({"knows_with": False}, "With the conversation it says “nine”"),
        ({"knows_without": True}, "Without the conversation it does not"),
        ({"is_same_again": False}, "The question alone, once more"),
    ],
)
def test_each_part_of_the_experiment_must_have_shown_it(tiny: str, changes: Outcome, clause: str):
    assert failing(tiny, SHOWN | changes) == [clause]


def test_an_experiment_that_failed_shows_nothing(tiny: str):
    assert failing(tiny, {"problem": "the model has gone"}) == ["The experiment"]


def test_the_fact_must_be_told_not_asked_and_nothing_locked_changed(tiny: str):
    assert failing(tiny, SHOWN, told="Hello.") == ["You tell it “nine”"]
    assert failing(tiny, SHOWN, question="At nine?", allowed=("told", "question")) == [
        "The question does not say “nine”"
    ]
    assert failing(tiny, SHOWN, allowed=()) == ["Only unlocked settings changed"]


def test_how_many_weights_change_can_be_said_before(tiny: str):
    _, _, outcome = experiment(tiny)
    goal = PredictedFirst(question="How many?", answers=["some", "none"], values=["some", "none"], measure="changed")

    assert failing(tiny, outcome, goal, prediction=1) == []
    assert failing(tiny, outcome, goal, prediction=0) == ["What the run shows"]


@pytest.mark.django_db
def test_the_experiment_is_made_on_its_page(client: Client, tiny: str):
    data = {"do": "run", "model": tiny, "max_new_tokens": "4", **INPUTS}

    assert client.get("/lab/panel/weights/").status_code == 200
    client.post("/lab/panel/weights/", data)

    html = client.get("/lab/panel/weights/").content.decode()
    digest = fingerprint(load_model(tiny))
    assert html.count(f'<code class="digest">{digest}</code>') == 2
    assert "Both fingerprints are the same: not one of the weights has changed." in html
    assert "The train leaves at nine." in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "sky"}, "sky has no chat template: it continues a text, it holds no conversation"),
        ({"told": " "}, "Tell it something."),
        ({"question": ""}, "Ask something."),
        ({"expected": ""}, "Say what the answer holds."),
        ({"told": "a" * 501}, "at most 500 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(client: Client, tiny: str, changes: dict[str, str], message: str):
    data = {"do": "run", "model": tiny, "max_new_tokens": "4", **INPUTS}

    response = client.post("/lab/panel/weights/", data | changes, **HTMX)

    assert response.status_code == 422
    assert message in response.content.decode()
    assert not StoredRun.objects.exists()
