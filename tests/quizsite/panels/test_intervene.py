"""Intervene: a token taken by hand, and the text that goes on from it beside the original."""

import pytest
from django.test import Client

from generation import SamplingParams, load_model
from quizsite.labs.clauses import Setup
from quizsite.labs.models import Run
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.intervene import Intervention, after, view
from quizsite.labs.panels.kind import Other, Shown
from quizsite.labs.validation import run_here
from tests.quizsite.pages import HTMX

SETUP = Setup("sky", "the sky is", SamplingParams(max_new_tokens=12))
SKY = load_model("sky")
BLUE = SKY.encode("blue")[0]


def intervened(forced: dict[int, int]) -> Intervention:
    made, original = run_here(SETUP, forced), run_here(SETUP, {})
    outcome = after(SETUP, {}, made, Bench(run_here))
    other = Other(SETUP, original.steps, original)
    return view(Shown(SETUP, made.steps, made, made.finish_reason, {}, outcome, [other]))


def test_rank_and_surprisal_of_the_taken_token_are_said():
    (taken,) = intervened({2: BLUE}).taken

    step = run_here(SETUP, {2: BLUE}).steps[1]
    assert (taken.step, taken.token, taken.instead_of) == (2, "blue", "is")
    assert taken.rank == step.rank > 1
    assert taken.surprisal == f"{step.surprisal:.1f}"


def test_both_texts_are_aligned_step_by_step():
    view = intervened({2: BLUE})

    ours = [step.piece for step in run_here(SETUP, {2: BLUE}).steps]
    theirs = [step.piece for step in run_here(SETUP, {}).steps]
    assert [pair.original.text for pair in view.pairs if pair.original] == theirs
    assert [pair.new.text for pair in view.pairs if pair.new] == ours
    assert [pair.differs for pair in view.pairs] == [a != b for a, b in zip(ours, theirs, strict=True)]
    assert view.n_different == sum(a != b for a, b in zip(ours[2:], theirs[2:], strict=True))
    assert view.n_after == 10


def test_a_run_without_a_taken_token_has_no_pairs():
    view = intervened({})

    assert view.taken == []
    assert view.pairs == []


def test_a_shorter_new_text_leaves_places_empty():
    end = SKY.vocab_size - 1  # <EOS>

    view = intervened({3: end})

    assert view.pairs[-1].new is None
    assert view.pairs[-1].differs
    assert view.n_different == 9  # nothing of the rest is there


@pytest.mark.django_db
def test_a_typed_token_is_taken(signed_in: Client):
    signed_in.post("/lab/panel/intervene/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0"})
    run = Run.objects.latest("created")

    signed_in.post(f"/runs/{run.pk}/take/", {"step": "2", "typed": "blue"})

    taken = Run.objects.with_recording().latest("created")
    assert taken.panel == "intervene"
    assert taken.recording.forced == {"2": BLUE}
    html = signed_in.get(taken.get_absolute_url()).content.decode()
    assert "in place of <code>is</code>" in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("the sky", "one token must be typed, but &#x27;the sky&#x27; is 2: &#x27;the&#x27;, &#x27; sky&#x27;"),
        ("", "one token must be typed, but &#x27;&#x27; is 0"),
        ("green", "green"),
    ],
)
def test_what_is_not_one_token_is_said_in_words(signed_in: Client, typed: str, words: str):
    signed_in.post("/lab/panel/intervene/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0"})
    run = Run.objects.latest("created")

    response = signed_in.post(f"/runs/{run.pk}/take/", {"step": "2", "typed": typed}, **HTMX)

    assert response.status_code == 422
    assert words in response.content.decode()
    assert Run.objects.count() == 1
