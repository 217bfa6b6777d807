"""`python -m generation`: what it prints, and what it says to bad input."""

import json

import pytest

from generation.__main__ import main


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
        (["the", "--model", "gpt"], "model must be one of sky, got 'gpt'"),
        (["the", "--heat", "3"], "unrecognized arguments: --heat 3"),
        ([], "the following arguments are required: prompt"),
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
