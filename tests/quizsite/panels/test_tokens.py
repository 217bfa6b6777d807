"""Tokens: a text as the pieces that a model reads, word by word, and the goal of a word that splits."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from generation import PromptError, SamplingParams, load_model
from quizsite.labs.clauses import Run, Setup
from quizsite.labs.goals import PREDICTION, PredictedFirst, Split
from quizsite.labs.models import Lab
from quizsite.labs.models import Run as KeptRun
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Shown
from quizsite.labs.panels.tokens import KIND, ROWS, Cut, after, view
from quizsite.labs.validation import read_inputs, run_here
from tests.generation.gguf_files import write_tiny_llama

ADDRESS = "/lab/panel/tokens/"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in whose list there is nothing but single bytes."""
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    write_tiny_llama(tmp_path / "bytes.gguf")
    return "bytes"


def setup_of(model: str) -> Setup:
    return Setup(model, "", SamplingParams())


def outcome_of(model: str, text: str) -> dict[str, Any]:
    return after(setup_of(model), {"text": text}, None, Bench(run_here))


def cut(model: str, text: str) -> Cut:
    return view(Shown(setup_of(model), (), None, "nothing", {"text": text}, outcome_of(model, text)))


def test_the_toys_pieces_are_its_words_with_their_ids_and_bytes():
    groups = cut("sky", "the  sky is").groups

    assert [(piece.token_id, piece.name, piece.octets) for group in groups for piece in group.pieces] == [
        (0, "the", "74 68 65"),
        (1, "sky", "73 6B 79"),
        (2, "is", "69 73"),
    ]
    assert "".join(piece.shown for group in groups for piece in group.pieces) == "the sky is"


def test_tokens_characters_bytes_and_words_are_counted(tiny: str):
    outcome = outcome_of(tiny, "né, 🙂")

    assert outcome | {"pieces": []} == {
        "pieces": [],
        "n_pieces": 9,  # one for each byte
        "n_characters": 5,
        "n_bytes": 9,
        "n_words": 1,
        "n_split_words": 1,
        "n_split_characters": 2,
    }
    assert ("tokens a word", "9.00") in cut(tiny, "né, 🙂").counters


def test_a_piece_that_is_part_of_a_character_is_named_by_its_bytes_and_says_so(tiny: str):
    first, second = cut(tiny, "é").groups[0].pieces

    assert (first.name, first.octets, first.note) == ("<C3>", "C3", "é, byte 1 of 2")
    assert (second.name, second.octets, second.note) == ("<A9>", "A9", "é, byte 2 of 2")


def test_what_cannot_be_seen_is_shown_by_a_sign_or_its_number(tiny: str):
    pieces = [piece for group in cut(tiny, " \n\t\x7f").groups for piece in group.pieces]

    assert [piece.name for piece in pieces] == ["·", "↵", "⇥", "U+007F"]
    assert [piece.is_bare for piece in pieces] == [False, False, False, True]


def test_pieces_stand_with_their_word_their_signs_or_their_white_space(tiny: str):
    groups = cut(tiny, "It's  2024: 'a_b…'\n").groups

    assert [(group.text, group.kind) for group in groups] == [
        ("It's", "word"),
        ("  ", "space"),
        ("2024", "word"),
        (":", "sign"),
        (" ", "space"),
        ("'", "sign"),
        ("a", "word"),
        ("_", "sign"),
        ("b", "word"),
        ("…'", "sign"),
        ("\n", "space"),
    ]
    assert [group.is_split for group in groups] == [True, False, True, *[False] * 6, True, False]


def test_marks_and_joiners_stay_with_what_they_belong_to(tiny: str):
    assert [group.text for group in cut(tiny, "नमस्ते 👩‍👧 ❤️").groups] == ["नमस्ते", " ", "👩‍👧", " ", "❤️"]


@pytest.mark.parametrize("text", ["one two\n three", "  a\tb  ", "<end> is text"])
def test_the_strip_is_the_text(tiny: str, text: str):
    assert "".join(piece.shown for group in cut(tiny, text).groups for piece in group.pieces) == text


def test_what_looks_like_a_control_token_is_ordinary_text(tiny: str):
    assert load_model(tiny).encode("<end>", control=True) == [257]
    assert outcome_of(tiny, "<end>")["n_pieces"] == 5


def test_a_long_text_has_all_its_pieces_in_the_strip_and_the_first_in_the_table():
    long = cut("sky", " ".join(["sky"] * (ROWS + 20)))

    assert len(long.groups) == ROWS + 20
    assert len(long.rows) == ROWS
    assert long.n_left_out == 20


def test_a_word_with_more_pieces_than_the_table_has_room_for_is_there_in_part(tiny: str):
    long = cut(tiny, "ab " + "c" * 1990)

    assert sum(len(group.pieces) for group in long.rows) == ROWS
    assert long.n_left_out == 1993 - ROWS
    assert long.rows[-1].name == f"{'c' * 39}…"


def test_an_empty_text_has_no_pieces_and_says_so():
    empty = cut("sky", "")

    assert empty.facts == ("There is nothing to be cut: the text is empty.",)
    assert empty.rows == ()


def test_a_run_without_an_outcome_shows_nothing_and_one_that_failed_says_why():
    def shown(outcome: dict[str, Any]) -> Shown:
        return Shown(setup_of("sky"), (), None, "nothing", {"text": "the"}, outcome)

    assert view(shown({})) == Cut()
    assert view(shown({"problem": "no such model"})) == Cut(problem="no such model")


def test_a_word_that_a_model_does_not_know_is_the_engines_own_message():
    with pytest.raises(PromptError, match="unknown word 'moon': this model knows only the sky is blue clear"):
        outcome_of("sky", "the moon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" * 2001, "at most 2000 characters"),
        ("\x00", "Null characters are not allowed"),
        ("\ud800", "half a character cannot be read"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_in_words(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        read_inputs(KIND, {}, {"text": text})


def test_a_line_end_is_one_character_whatever_the_browser_sends():
    assert read_inputs(KIND, {}, {"text": " a\r\nb\n"}) == {"text": " a\nb\n"}


# The goal


def run_of(text: str, model: str = "sky", **changes: object) -> Run:
    setup = setup_of(model)
    run = Run(
        start=setup,
        setup=setup,
        made=None,
        allowed=("text",),
        seeds=(),
        generate=lambda wanted: [],
        start_inputs={"text": "the"},
        inputs={"text": text},
        outcome={"n_pieces": len(text.encode())},  # as the model of single bytes counts
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def failing(goal: Split | PredictedFirst, run: Run) -> dict[str, str]:
    return {clause.name: clause.value for clause in goal.judge(run).failing}


SPLIT = Split(min_pieces=4, max_characters=6, letters_only=True)


def test_a_word_of_many_pieces_splits():
    verdict = SPLIT.judge(run_of("gnocch"))

    assert verdict.is_met
    assert verdict.summary == "6 characters, 6 pieces."


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("sky", {"Pieces, at least 4": "3"}),
        ("skyline", {"Characters, at most 6": "7"}),
        ("sk1e", {"Letters a to z alone": "1"}),
        ("ёжик", {"Letters a to z alone": "ж и к ё"}),  # letters, but of two bytes each
        ("a sky", {"One word, without spaces": "it has spaces", "Letters a to z alone": " "}),
        ("skies\n", {"One word, without spaces": "it has spaces", "Letters a to z alone": "\n"}),
        ("", {"One word, without spaces": "no text", "Pieces, at least 4": "0"}),
    ],
)
def test_what_is_no_such_word_is_told_the_clause(text: str, missed: dict[str, str]):
    assert failing(SPLIT, run_of(text)) == missed


def test_signs_and_length_are_free_where_the_lab_says_nothing_of_them():
    assert Split(min_pieces=4).judge(run_of("🙂")).is_met
    assert Split(min_pieces=4).wanted == "One word, that becomes 4 pieces or more."


def test_another_model_or_a_locked_text_does_not_count():
    elsewhere = run_of("gnocch", setup=setup_of("smollm2"))

    assert failing(SPLIT, elsewhere) == {"Model and prompt": "model changed"}
    assert failing(SPLIT, run_of("gnocch", allowed=())) == {"Only unlocked settings changed": "text"}


def test_a_run_that_failed_has_no_pieces():
    assert failing(SPLIT, run_of("gnocch", outcome={"problem": "no model"})) == {"Pieces, at least 4": "0"}


def test_the_number_of_pieces_can_be_predicted():
    guess = PredictedFirst(question="How many?", answers=["3", "4"], values=[3, 4], measure="n_pieces")

    def said(number: int) -> Run:
        return run_of("the", inputs={"text": "the", PREDICTION: number})

    assert guess.judge(said(0)).is_met
    assert failing(guess, said(1)) == {"What the run shows": "3"}
    assert "A prediction before the run" in failing(guess, run_of("the"))


# The page


@pytest.mark.django_db
def test_the_panel_cuts_a_text_without_javascript(client: Client):
    assert client.get(ADDRESS).status_code == 200

    response = client.post(ADDRESS, {"do": "run", "model": "sky", "text": "the sky"})

    html = client.get(response["Location"]).content.decode()
    assert response.status_code == 302
    assert "Words and numbers in more than one piece: 0 of 2." in html
    assert "<td>73 6B 79</td>" in html


@pytest.mark.django_db
def test_an_unknown_word_is_a_notice_and_the_text_is_kept(client: Client):
    client.post(ADDRESS, {"do": "run", "model": "sky", "text": "the <b>moon</b>"})

    html = client.get(ADDRESS).content.decode()
    assert "unknown word &#x27;&lt;b&gt;moon&lt;/b&gt;&#x27;: this model knows only the sky is blue clear" in html
    assert "the &lt;b&gt;moon&lt;/b&gt;</textarea>" in html


@pytest.mark.django_db
def test_a_lab_whose_model_is_not_here_says_so_and_is_not_met(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    lab = Lab.objects.get(slug="smollm2-split-number")

    client.post(lab.get_absolute_url(), {"do": "run", "prediction": "2"})

    run = KeptRun.objects.get()
    assert "smollm2 has not been fetched" in (run.outcome or {})["problem"]
    assert run.results.count() == 0
    assert "smollm2 has not been fetched" in client.get(lab.get_absolute_url()).content.decode()


@pytest.mark.real_model
def test_the_real_model_cuts_words_numbers_and_emoji():
    def names(text: str) -> list[str]:
        return [piece.name for group in cut("smollm2", text).groups for piece in group.pieces]

    assert names("unbelievable") == ["un", "belie", "vable"]
    assert names("the 2024") == ["the", "·", "2", "0", "2", "4"]
    assert names("🙂 🙂") == ["<F0><9F>", "<99><82>", "·🙂"]  # with a space before it, it has a piece
    assert "".join(names("<|im_end|>")) == "<|im_end|>"
