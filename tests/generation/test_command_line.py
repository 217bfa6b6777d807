"""`python -m generation`: what it prints, and what it says to bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generation.__main__ import main
from generation.models.sky import SkyModel


def test_json_is_a_line_for_each_step_and_one_for_the_run(capsys: pytest.CaptureFixture[str]):
    status = main(["the sky is", "--model", "sky", "--max-new-tokens", "4", "--json"])

    *steps, run = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert [step["token"] for step in steps] == ["is", "is", "sky", "is"]
    assert [step["computed_positions"] for step in steps] == [3, 1, 1, 1]
    assert run["forward_passes"] == 4
    assert "steps" not in run


def test_without_the_cache_every_position_is_computed_again(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "4", "--no-use-kv-cache", "--json"])

    *steps, _ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [step["computed_positions"] for step in steps] == [3, 4, 5, 6]


def test_forty_tokens_loop_with_period_one(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "40", "--json"])

    assert json.loads(capsys.readouterr().out.splitlines()[-1])["loop"]["period"] == 1


def test_the_table_shows_each_token_and_how_it_ended(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "4"])

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4 + 3
    assert lines[-2] == "ended by length after 4 forward passes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["the moon is"], "unknown word 'moon'"),
        ([""], "the prompt is empty"),
        (["the", "--max-new-tokens", "256"], "do not fit into the context of 256"),
        (["the", "--top-p", "1.5"], "top_p must be in (0, 1], got 1.5"),
        (["the", "--top-k", "x"], "top_k must be a whole number, got 'x'"),
        (["the", "--temperature", "-1"], "temperature must be between 0 and 100, got -1.0"),
        (["the", "--model", "gpt"], "model must be one of sky"),
        (["the", "--heat", "3"], "unrecognized arguments: --heat 3"),
        ([], "the following arguments are required: prompt"),
        (["the", "--stop", ""], "stop must be at most 4 strings, none of them empty"),
        (["the", "--compare", "temperature"], "--compare takes SETTING=VALUE, got 'temperature'"),
        (["the", "--compare", "heat=1"], "heat is not a setting"),
        (["the", "--compare", "top_p=2"], "top_p must be in (0, 1], got 2.0"),
    ],
)
def test_bad_input_gets_one_line_and_status_two(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code  # type: ignore[assignment]

    captured = capsys.readouterr()
    assert status == 2
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_compare_puts_two_settings_side_by_side_on_the_same_u(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "6", "--compare", "temperature=1", "top-p=0.9"])

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "first difference" in line] == [lines[3]]
    assert lines[3].split()[:2] == ["3", "0.5725"]
    assert lines[-2:] == [
        "A: ended by length, no loop, repeated 4-grams 0.00",
        "B: ended by length, no loop, repeated 4-grams 0.00",
    ]


def test_two_settings_that_write_the_same_have_no_first_difference(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "6", "--json", "--compare", "use_kv_cache=false"])

    ours, theirs, end = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ours["token_ids"] == theirs["token_ids"]
    assert end == {"first_difference": None}


def test_a_run_that_ends_earlier_differs_there(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "4", "--compare", "max_new_tokens=2"])

    assert "   3  0.5725  sky" in capsys.readouterr().out.split("<- first difference")[0]


def test_the_models_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    assert main(["--list-models"]) == 0
    assert capsys.readouterr().out == "sky\n"


def test_a_note_stands_below_its_step(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "1", "--top-k", "3", "--stop", "x"])

    assert "top_k had no effect: greedy decoding" in capsys.readouterr().out


def test_an_end_that_needs_words_has_them(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SkyModel, "eos_token_id", 99)

    main(["the sky is blue clear", "--no-repeat-ngram-size", "1", "--max-new-tokens", "9"])

    assert "no_repeat_ngram_size 1 bans every token that was left" in capsys.readouterr().out


def test_two_runs_of_the_same_settings_have_no_difference_to_mark(capsys: pytest.CaptureFixture[str]):
    main(["the sky is", "--max-new-tokens", "3", "--compare", "max_new_tokens=5"])
    main(["the sky is", "--max-new-tokens", "3", "--compare", "seed=5"])

    assert capsys.readouterr().out.count("<- first difference") == 1


def test_output_that_nobody_reads_to_the_end_is_no_error():
    command = f"{sys.executable} -m generation 'the sky is' --max-new-tokens 200 --json | head -c 10"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.stderr == ""
