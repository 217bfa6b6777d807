"""What a run can be taken elsewhere as: other engines' words, a picture, the open laboratory."""

import ast
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.test import Client

from generation import SamplingParams
from quizsite.accounts.models import User
from quizsite.labs.clauses import Setup
from quizsite.labs.exports import Export, exports
from quizsite.labs.forms import SCALES
from quizsite.labs.models import Lab, Run
from quizsite.labs.panels import KINDS
from tests.quizsite.pages import HTMX, press

SETUP = Setup("smollm2", 'I\'m "here"; $HOME', SamplingParams(max_new_tokens=40))
SAMPLED = replace(
    SETUP,
    params=SamplingParams(
        temperature=0.7, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.2, seed=2**40, max_new_tokens=40
    ),
)


def both(setup: Setup) -> tuple[Export, Export]:
    transformers, llama_cpp = exports(setup)
    return transformers, llama_cpp


def arguments(call: str) -> dict[str, object]:
    """Return the keyword arguments of `model.generate` in a text that must be Python."""
    calls = [node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call)]
    (generate,) = [node for node in calls if ast.unparse(node.func) == "model.generate"]
    return {
        keyword.arg: ast.literal_eval(keyword.value)
        for keyword in generate.keywords
        if keyword.arg and not isinstance(keyword.value, ast.Name)
    }


def test_a_greedy_run_is_a_call_without_sampling():
    transformers, _ = both(SETUP)

    assert arguments(transformers.text) == {"max_new_tokens": 40, "do_sample": False}
    assert repr(SETUP.prompt) in transformers.text
    assert "manual_seed" not in transformers.text


def test_a_sampled_run_names_every_setting_since_their_defaults_differ():
    transformers, llama_cpp = both(SAMPLED)

    assert arguments(transformers.text) == {
        "max_new_tokens": 40,
        "do_sample": True,
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.05,
        "repetition_penalty": 1.2,
    }
    words = shlex.split(llama_cpp.text.replace("\\\n", ""))
    pairs = dict(pairwise(words))
    assert pairs["--prompt"] == SAMPLED.prompt  # as the shell reads it
    assert pairs["--temp"] == "0.7"
    assert pairs["--samplers"] == "penalties;temperature;top_k;top_p;min_p"
    assert pairs["--repeat-last-n"] == "-1"
    assert 0 <= int(pairs["--seed"]) < 2**32


def test_top_k_off_is_said_since_the_other_engine_has_it_on():
    warm = replace(SETUP, params=SamplingParams(temperature=0.7))

    assert arguments(both(warm)[0].text)["top_k"] == 0


@pytest.mark.parametrize(
    ("params", "of_transformers", "of_llama_cpp"),
    [
        (SamplingParams(temperature=1, top_k=5), "exactly k survive", "other random numbers"),
        (SamplingParams(temperature=0.7, top_p=0.9, temperature_last=True), "cannot be asked for", "quantised weights"),
        (SamplingParams(temperature=0.7, top_p=0.9), "other random numbers", "temperature last"),
        (SamplingParams(repetition_penalty=1.2, penalty_scope="output"), "counts the prompt", "counts the prompt"),
        (SamplingParams(presence_penalty=1), "no presence and no frequency", "count the prompt, too"),
        (SamplingParams(no_repeat_ngram_size=3), "reader of GGUF", "no n-gram blocking"),
        (SamplingParams(stop=("\n",)), "stays in its output", "quantised weights"),
        (SamplingParams(use_kv_cache=False), "reader of GGUF", "always uses its KV cache"),
    ],
)
def test_where_they_mean_something_else_is_said(params: SamplingParams, of_transformers: str, of_llama_cpp: str):
    transformers, llama_cpp = both(replace(SETUP, params=params))

    assert of_transformers in " ".join(transformers.notes)
    assert of_llama_cpp in " ".join(llama_cpp.notes)


def test_temperature_last_is_an_order_of_samplers_in_llama_cpp():
    last = replace(SETUP, params=SamplingParams(temperature=0.7, top_p=0.9, temperature_last=True))

    assert "'penalties;top_k;top_p;min_p;temperature'" in both(last)[1].text


@pytest.mark.real_model
def test_a_chat_is_sent_with_its_template():
    chat = [{"role": "user", "content": "Say 'hi'"}]

    transformers, llama_cpp = both(Setup("smollm2", "", SamplingParams(), chat))

    assert "apply_chat_template" in transformers.text
    ast.parse(transformers.text)
    words = shlex.split(llama_cpp.text.replace("\\\n", ""))
    assert words[words.index("--prompt") + 1].endswith("Say 'hi'<|im_end|>\n<|im_start|>assistant\n")


def test_the_toy_has_no_other_engine():
    assert exports(Setup("sky", "the sky is", SamplingParams())) == []


COMPARE = {
    "do": "run",
    "model": "sky",
    "prompt": "the sky is",
    "temperature": "0",
    "b_temperature": "1.2",
    "b_top_k": "0",
    "b_top_p": "1",
    "b_min_p": "0",
    "b_repetition_penalty": "1",
}


@pytest.fixture
def comparison(signed_in: Client) -> Run:
    signed_in.post("/lab/panel/compare/", COMPARE)
    return Run.objects.latest("created")


@pytest.mark.django_db
def test_the_picture_of_a_comparison_is_svg_that_stands_alone(signed_in: Client, comparison: Run):
    response = signed_in.get(f"/runs/{comparison.pk}/picture.svg")

    root = ElementTree.fromstring(response.content.decode())
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert response.headers["Content-Type"] == "image/svg+xml"
    assert "The first difference is at token 3. Read on from there." in texts
    assert "A: temperature 0 (loops)" in texts
    assert texts.count(" blue") + texts.count(" sky") >= 3
    assert "style=" not in response.content.decode()


@pytest.mark.django_db
def test_anothers_picture_is_not_to_be_found_until_it_is_shared(client: Client, comparison: Run):
    other = User.objects.create_user("other")
    client.force_login(other)

    assert client.get(f"/runs/{comparison.pk}/picture.svg").status_code == 404
    Run.objects.update(shared=True)
    assert client.get(f"/runs/{comparison.pk}/picture.svg").status_code == 200


@pytest.mark.django_db
def test_a_trace_has_no_picture(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab)

    assert signed_in.get(f"/runs/{run.pk}/picture.svg").status_code == 404


@pytest.mark.django_db
def test_a_labs_run_opens_in_the_laboratory_with_its_settings(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="0.35", top_k="4")
    page = signed_in.get(run.get_absolute_url()).content.decode()
    assert f"/lab/?like={run.pk}" in page

    html = signed_in.get(f"/lab/?like={run.pk}").content.decode()

    assert 'name="temperature" inputmode="decimal" autocomplete="off" value="0.35"' in html
    assert 'name="top_k" inputmode="decimal" autocomplete="off" value="4"' in html
    assert 'name="max_new_tokens" inputmode="decimal" autocomplete="off" value="48"' in html


@pytest.mark.django_db
@pytest.mark.parametrize("like", ["", "x", "8b2b4b3e-0000-4000-8000-000000000000"])
def test_a_run_that_is_not_there_opens_the_laboratory_as_it_is(signed_in: Client, like: str):
    assert signed_in.get(f"/lab/?like={like}").status_code == 200


@pytest.mark.django_db
def test_a_preset_fills_the_form_and_runs_nothing(signed_in: Client):
    data = {"do": "preset-penalty", "model": "sky", "prompt": "blue", "temperature": "1.7"}

    html = signed_in.post("/lab/", data, **HTMX).content.decode()

    assert 'name="repetition_penalty" inputmode="decimal" autocomplete="off" value="1.3"' in html
    assert 'name="temperature" inputmode="decimal" autocomplete="off" value="0"' in html
    assert 'name="prompt" value="blue"' in html
    assert Run.objects.count() == 0


@pytest.mark.django_db
def test_neutral_leaves_the_models_distribution_as_it_is_and_the_rest_as_typed(signed_in: Client):
    data = {"do": "neutral", "model": "sky", "prompt": "blue", "temperature": "0", "top_k": "3", "seed": "9"}

    html = signed_in.post("/lab/", data, **HTMX).content.decode()

    assert 'name="temperature" inputmode="decimal" autocomplete="off" value="1"' in html
    assert 'name="top_k" inputmode="decimal" autocomplete="off" value="0"' in html
    assert 'name="seed" inputmode="decimal" autocomplete="off" value="9"' in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"temperature": "0", "top_k": "3"}, "Top-k: no effect at these values, greedy decoding takes"),
        ({"temperature": "0.7", "top_k": "1", "top_p": "0.9"}, "Top-p: no effect at these values, top-k leaves one"),
        (
            {"temperature": "0.7", "penalty_scope": "output"},
            "Penalty counts: no effect at these values, the repetition",
        ),
        ({"temperature": "0.7", "temperature_last": "on"}, "Temperature last: no effect at these values, top-p and"),
    ],
)
def test_a_setting_without_effect_says_so_while_it_is_typed(signed_in: Client, typed: dict[str, str], words: str):
    html = signed_in.post("/lab/", {"do": "look", "model": "sky", "prompt": "x", **typed}, **HTMX).content.decode()

    assert words in html
    assert Run.objects.count() == 0


@pytest.mark.django_db
def test_settings_with_an_effect_and_unreadable_ones_say_nothing(signed_in: Client):
    data = {"do": "look", "model": "sky", "prompt": "x", "temperature": "warm", "top_k": "3", "top_p": "7"}

    html = signed_in.post("/lab/", {**data, "temperature": "0.7"}, **HTMX).content.decode()

    assert "no effect" not in html


def test_each_setting_has_a_line_that_explains_it():
    assert all(20 < len(scale.about) < 110 for scale in SCALES.values())
    assert set(SCALES) == set(SamplingParams().as_dict())


def test_templates_of_panels_lie_beside_them():
    folder = Path("quizsite/labs/panels")
    assert all((folder / f"{name}.html").exists() for name in KINDS)
