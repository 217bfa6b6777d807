"""Settings: ranges, types, messages."""

from typing import Any

import numpy as np
import pytest

from generation import SamplingParams, SettingError, parse_setting, without_effect

BAD = [
    ("temperature", -0.1, "temperature must be between 0 and 100, got -0.1"),
    ("temperature", float("nan"), "temperature must be finite, got nan"),
    ("temperature", float("1e999"), "temperature must be finite, got inf"),
    ("temperature", True, "temperature must be a number, got True"),
    ("temperature", "0.5", "temperature must be a number, got '0.5'"),
    ("top_k", -1, "top_k must be 0 (off) or more, got -1"),
    ("top_k", 2.5, "top_k must be a whole number, got 2.5"),
    ("top_p", 0, "top_p must be in (0, 1], got 0"),
    ("top_p", 1.5, "top_p must be in (0, 1], got 1.5"),
    ("repetition_penalty", 0, "repetition_penalty must be greater than 0, got 0"),
    ("max_new_tokens", 0, "max_new_tokens must be between 1 and 8192, got 0"),
    ("max_new_tokens", 10**9, "max_new_tokens must be between 1 and 8192, got 1000000000"),
    ("temperature", 10**400, "temperature must be finite, got a whole number of 401 digits"),
    ("seed", -1, "seed must be between 0 and 2**63 - 1, got -1"),
    ("seed", 2**63, "seed must be between 0 and 2**63 - 1, got 9223372036854775808"),
    ("use_kv_cache", 1, "use_kv_cache must be true or false, got 1"),
    ("min_p", 1.1, "min_p must be in [0, 1], got 1.1"),
    ("min_p", -0.1, "min_p must be in [0, 1], got -0.1"),
    ("presence_penalty", 2.5, "presence_penalty must be between -2 and 2, got 2.5"),
    ("frequency_penalty", -3, "frequency_penalty must be between -2 and 2, got -3"),
    ("no_repeat_ngram_size", 11, "no_repeat_ngram_size must be between 0 (off) and 10, got 11"),
    ("penalty_scope", "prompt", "penalty_scope must be one of prompt+output, output, got 'prompt'"),
    ("penalty_scope", 1, "penalty_scope must be text, got 1"),
    ("temperature_last", 0, "temperature_last must be true or false, got 0"),
    ("stop", ["a", ""], "stop must be at most 4 strings, none of them empty, got ['a', '']"),
    ("stop", list("abcde"), "stop must be at most 4 strings, none of them empty, got ['a', 'b', 'c', 'd', 'e']"),
    ("stop", "end", "stop must be a list of strings, got 'end'"),
    ("stop", [1], "stop must be a list of strings, got [1]"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_a_bad_value_is_told_the_setting_the_rule_and_the_value(name: str, value: object, message: str):
    with pytest.raises(SettingError) as caught:
        SamplingParams(**{name: value})  # type: ignore[arg-type]

    assert str(caught.value) == message
    assert caught.value.setting == name


def test_numbers_of_numpy_are_numbers():
    params = SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3))  # type: ignore[arg-type]

    assert params.as_dict()["temperature"] == 0.5
    assert type(params.top_k) is int


def test_temperatures_under_a_hundredth_are_greedy():
    assert SamplingParams(temperature=0.009).is_greedy
    assert not SamplingParams(temperature=0.01).is_greedy


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", " 0.70 ", 0.7),
        ("top_k", "40", 40),
        ("use_kv_cache", "off", False),
        ("use_kv_cache", "on", True),
        ("stop", "END\r\n\\n\\n\n", ("END", "\n\n")),
        ("stop", "", ()),
        ("penalty_scope", " output ", "output"),
    ],
)
def test_a_typed_setting_is_read(name: str, text: str, value: object):
    assert parse_setting(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("temperature", "warm", "temperature must be a number, got 'warm'"),
        ("temperature", "1_0", "temperature must be a number, got '1_0'"),
        ("temperature", "", "temperature must be a number, got ''"),
        ("top_k", "4.0", "top_k must be a whole number, got '4.0'"),
        ("seed", "9" * 100_000, "seed must be a whole number, got '"),
        ("use_kv_cache", "maybe", "use_kv_cache must be true or false, got 'maybe'"),
        ("temprature", "1", "temprature is not a setting; there are temperature, top_k"),
    ],
)
def test_a_typed_setting_that_cannot_be_read_is_told_why(name: str, text: str, message: str):
    with pytest.raises(SettingError) as caught:
        parse_setting(name, text)

    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 300


def test_the_edges_of_each_range_are_inside_it():
    for name, values in {
        "temperature": (0, 100),
        "top_k": (0, 10**30),
        "top_p": (1e-300, 1),
        "min_p": (0, 1),
        "presence_penalty": (-2, 2),
        "frequency_penalty": (-2, 2),
        "no_repeat_ngram_size": (0, 10),
        "max_new_tokens": (1, 8192),
        "seed": (0, 2**63 - 1),
        "stop": ([], list("abcd")),
    }.items():
        for value in values:
            SamplingParams(**{name: value})  # type: ignore[arg-type]


def test_a_number_of_thousands_of_digits_is_told_without_being_written():
    with pytest.raises(
        SettingError, match=r"seed must be between 0 and 2\*\*63 - 1, got a whole number of 5001 digits"
    ):
        SamplingParams(seed=10**5000)


@pytest.mark.parametrize(
    ("settings", "idle"),
    [
        ({"temperature": 0, "top_k": 5, "seed": 3}, {"top_k", "seed"}),
        ({"top_k": 1, "top_p": 0.5, "temperature": 0.7}, {"top_p", "temperature"}),
        ({"temperature": 1, "temperature_last": True, "top_p": 0.5}, {"temperature_last"}),
        ({"temperature": 0.5, "temperature_last": True}, {"temperature_last"}),
        ({"temperature": 0.5, "temperature_last": True, "min_p": 0.1}, set()),
        ({"penalty_scope": "output"}, {"penalty_scope"}),
        ({"penalty_scope": "output", "repetition_penalty": 1.2}, set()),
        ({}, set()),
    ],
)
def test_settings_that_can_change_nothing_are_named(settings: dict[str, Any], idle: set[str]):
    assert set(without_effect(SamplingParams(**settings))) == idle
