"""Text while it is being made: half characters, stop strings, control tokens, over a tiny byte-level model."""

from collections.abc import Sequence
from os.path import commonprefix

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation import PromptError, SamplingParams, generate, load_model, pieces, token_bytes
from generation.tokenizer import IncrementalDecoder, StopMatcher, WordTokenizer
from tests.generation.models import ByteModel

END = ByteModel.eos_token_id
MARK = "\N{REPLACEMENT CHARACTER}"


def written(ids: Sequence[int], **settings: object):  # the run of a model that writes exactly these ids
    params = SamplingParams(**{"max_new_tokens": len(ids), **settings})  # type: ignore[arg-type]
    return generate(ByteModel(ids), "Say: ", params)


def ids_of(text: str) -> list[int]:
    return list(text.encode())


TEXTS = ["naïve café", "日本語のテキスト", "👩‍👩‍👧 and 🏳️‍🌈", "مرحبا", "क्षि", " leading", "two\nlines\r\n", "\t"]


@pytest.mark.parametrize("text", TEXTS)
def test_chunks_joined_are_the_text_and_none_shows_half_a_character(text: str):
    run = written([*ids_of(text), END])

    assert run.text == text
    assert "".join(step.piece for step in run.steps) == text
    assert all(MARK not in step.piece for step in run.steps)
    assert ByteModel([]).decode([*run.prompt_ids, *run.token_ids]) == "Say: " + text


def test_each_character_is_shown_as_soon_as_it_is_whole():
    run = written(ids_of("日本"))

    assert [step.piece for step in run.steps] == ["", "", "日", "", "", "本"]


def test_a_run_that_ends_inside_a_character_shows_one_mark():
    run = written(ids_of("a日")[:-1])

    assert run.text == f"a{MARK}"
    assert run.steps[-1].piece == MARK


def test_bytes_that_are_no_text_do_not_hold_back_what_follows():
    run = written([0x80, 0x80, *ids_of("ok"), 0xF0, *ids_of("x")])

    assert run.text == f"{MARK}{MARK}ok{MARK}x"
    assert [step.piece for step in run.steps] == ["", MARK, f"{MARK}o", "k", "", f"{MARK}x"]


@given(st.lists(st.integers(0, 257), max_size=6), st.lists(st.integers(0, 257), max_size=30))
def test_whatever_is_written_comes_out_once_and_in_order(prompt: list[int], ids: list[int]):
    decode = ByteModel([]).decode
    decoder = IncrementalDecoder(decode, prompt)

    chunks = [decoder.add(token_id) for token_id in ids]

    whole, before = decode([*prompt, *ids]), decode(prompt)
    same = len(commonprefix([before, whole]))  # noqa: RUF071  half a character of the prompt may become a whole one
    assert "".join(chunks) + decoder.finish() == whole[same:]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.lists(st.integers(0, 2), max_size=20))
def test_the_space_before_a_word_survives_a_control_token(prompt: list[int], ids: list[int]):
    words = WordTokenizer(["a", "b", "<c>"], control=["<c>"])
    decoder = IncrementalDecoder(words.decode, prompt)

    text = "".join(decoder.add(token_id) for token_id in ids)

    assert words.decode(prompt) + text == words.decode([*prompt, *ids])


def test_a_prompt_that_ends_inside_a_character_is_completed_by_the_run():
    character = list("日".encode())
    run = generate(ByteModel([*character[1:], *b"x"]), character[:1], SamplingParams(max_new_tokens=3))

    assert run.text == "日x"


def test_a_token_costs_the_same_in_a_long_text_as_in_a_short_one():
    lengths = []

    def decode(ids: Sequence[int]) -> str:
        lengths.append(len(ids))
        return bytes(ids).decode(errors="replace")

    decoder = IncrementalDecoder(decode, [])
    for byte in "aé日🙂".encode() * 100:
        decoder.add(byte)

    assert max(lengths) <= 8


def test_a_stop_string_is_never_shown_not_even_its_first_half():
    run = written(ids_of("one END two"), stop=("END",))

    assert run.text == "one "
    assert run.finish_reason == "stop"
    assert len(run.token_ids) == len("one END")
    assert [step.shown for step in run.steps][-3:] == ["", "", ""]
    assert [step.piece for step in run.steps][-3:] == ["E", "N", "D"]  # the record keeps each token's own text


def test_text_held_for_a_stop_string_is_released_when_the_match_fails():
    run = written(ids_of("EN joy"), stop=("END",))

    assert [step.shown for step in run.steps] == ["", "", "EN ", "j", "o", "y"]


@pytest.mark.parametrize("ids", [ids_of("all EN"), [*ids_of("all EN"), END]])
def test_text_held_for_a_stop_string_is_released_at_the_end(ids: list[int]):
    run = written(ids, stop=("END",))

    assert run.text == "all EN"
    assert "".join(step.shown for step in run.steps) == run.text


def test_a_stop_string_completed_by_the_last_token_is_a_stop():
    run = written(ids_of("xEND"), stop=("END",))

    assert run.finish_reason == "stop"
    assert run.text == "x"


def test_the_earliest_of_several_stop_strings_counts():
    run = written(ids_of("a--b\n\nc"), stop=("\n\n", "--", "b"))

    assert run.text == "a"


@given(st.text("ab", max_size=12), st.lists(st.text("ab", min_size=1, max_size=4), max_size=4))
def test_stopping_in_pieces_is_stopping_at_once(text: str, stop: list[str]):
    matcher = StopMatcher(stop)

    shown = "".join(matcher.add(letter) for letter in text)
    shown += "" if matcher.is_stopped else matcher.finish()

    ends = [text.find(one) + len(one) for one in stop if one in text]
    if not ends:
        assert shown == text
    else:
        first = min(ends)  # the first moment at which some stop string is whole
        starts = [text[:first].find(one) for one in stop if one in text[:first]]
        assert shown == text[: min(starts)]


def test_control_tokens_typed_by_a_user_are_ordinary_text():
    run = generate(ByteModel(ids_of("ok")), "<end>", SamplingParams(max_new_tokens=2))

    assert run.prompt_ids == tuple(b"<end>")
    assert ByteModel([]).encode("<end>", control=True) == [END]
    with pytest.raises(PromptError, match="unknown word '<EOS>'"):
        generate(load_model("sky"), "the sky is <EOS>", SamplingParams())


def test_generated_control_tokens_stay_out_of_the_text_but_in_the_record():
    run = written([*ids_of("a"), ByteModel.other_control_id, *ids_of("b"), END])

    assert run.text == "ab"
    assert [step.token for step in run.steps] == ["a", "<other>", "b", "<end>"]
    assert run.steps[1].piece == ""


def test_the_bytes_of_a_toys_token_are_its_word_and_its_end_has_none():
    sky = load_model("sky")

    assert [token_bytes(sky, token_id) for token_id in [0, 1, sky.encode("<EOS>", control=True)[0]]] == [
        b"the",
        b"sky",
        b"",
    ]


def test_the_pieces_of_a_text_are_the_text():
    sky = load_model("sky")
    ids = sky.encode("the sky is blue")

    assert pieces(sky, ids) == ["the", " sky", " is", " blue"]
