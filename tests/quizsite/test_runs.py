"""Runs that go wrong, go on, or are looked at later: failing models, lost streams, tokens taken, old formats."""

import logging
import threading
import zlib
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse
from numpy.typing import NDArray

from generation import EngineBusy, KVCache, Limits, SamplingParams, SharedEngine, load_model
from generation.catalogue import MODELS
from generation.models.sky import SkyModel
from quizsite.labs import engine
from quizsite.labs.clauses import Setup
from quizsite.labs.models import Lab, LabResult, Recording, Run
from quizsite.labs.stream import _snapshot
from tests.quizsite.pages import HTMX, chips, press

pytestmark = pytest.mark.django_db


class BreaksAtFour(SkyModel):
    """The toy, whose fourth pass gives NaN."""

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        logits = super().forward(token_ids, kv_cache)
        return logits * np.nan if kv_cache is not None and len(kv_cache) > 5 else logits


@pytest.fixture
def broken_model(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(MODELS, "breaks", BreaksAtFour)
    return "breaks"


OPEN = {"prompt": "the sky is", "temperature": "0", "use_kv_cache": "true"}


@pytest.mark.parametrize("do", ["run", "step"])
def test_a_model_that_breaks_ends_the_run_in_words_without_javascript_too(client: Client, broken_model: str, do: str):
    for _ in range(3 if do == "step" else 1):
        response = client.post(reverse("labs:open"), OPEN | {"do": do, "model": broken_model}, follow=True)

    assert response.status_code == 200
    assert "Run, ended early after 3 tokens: step 4: logits must be numbers, got NaN" in response.content.decode()


def test_everybody_who_waits_for_a_broken_run_is_told_the_same(broken_model: str):
    live = engine.live_of(
        Recording.objects.of(Setup(broken_model, "the sky is", SamplingParams(max_new_tokens=8))), "anybody"
    )

    for _ in range(3):
        live.wait()
        assert live.failure == "step 4: logits must be numbers, got NaN"
    assert len(live.steps) == 3


@pytest.mark.parametrize("back", ["http://[", "//[", "\x00"])
def test_an_address_that_is_none_leads_to_the_lab(client: Client, loop_lab: Lab, back: str):
    response = client.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0", "back": back})
    part = client.post(
        loop_lab.get_absolute_url(),
        {"do": "run", "temperature": "0"},
        headers={"HX-Request": "true", "HX-Current-URL": "http://["},
    )

    assert response["Location"] == f"{loop_lab.get_absolute_url()}#lab"
    assert part.status_code == 200


@pytest.mark.parametrize("name", ["top_k", "seed", "max_new_tokens", "repetition_penalty"])
@pytest.mark.parametrize("value", ["1" + "0" * 400, "1e-320", "1e308", "-0"])
def test_no_number_that_can_be_typed_is_an_error_of_the_server(client: Client, name: str, value: str):
    data = OPEN | {"do": "run", "model": "sky", "temperature": "0.01", "max_new_tokens": "3", name: value}

    assert client.post(reverse("labs:open"), data, follow=True).status_code in (200, 422)
    assert client.get(reverse("labs:open")).status_code == 200


def test_a_goal_added_to_a_lab_leaves_earlier_runs_readable(signed_in: Client):
    lab = Lab.objects.get(slug="sky-penalty")
    run = press(signed_in, lab, repetition_penalty="1.3")
    lab.goals = [{"kind": "reproduce_loop", "solution": {}, "min_new_tokens": 36}, *lab.goals]
    lab.save()

    for url in (lab.get_absolute_url(), run.get_absolute_url(), "/questions/penalty-alone-does-not-cure/"):
        html = signed_in.get(url).content.decode()
        assert "Shown" in chips(html)
        assert "Reproduce: not yet" in chips(html)


def test_a_run_that_is_replaced_keeps_what_it_has_shown(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    run = Run.objects.with_recording().get()
    show = engine.show_of(run)
    show.live.wait(8)
    show.n_steps = 8

    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "1"}, **HTMX)

    run = Run.objects.with_recording().get(pk=run.pk)
    assert (run.finish_reason, run.n_steps, len(run.steps)) == ("cancelled", 8, 8)
    assert show.is_stopped


def test_a_reconnect_after_a_restart_of_the_server_shows_all_tokens(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    Run.objects.update(n_steps=6)
    show = engine.show_of(Run.objects.with_recording().get())  # as a new process finds it
    show.live.wait(show.n_steps)

    n_steps, _, html = _snapshot(show, show.n_steps)
    engine.forget(show.run)

    assert n_steps == 6
    assert html.count('type="radio"') == 6


def test_a_run_that_ended_and_was_never_judged_is_judged_when_it_is_looked_at(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="0")
    Run.objects.update(verdicts={})
    LabResult.objects.all().delete()

    assert "Reproduced" in chips(signed_in.get(run.get_absolute_url()).content.decode())


def test_a_goal_met_before_stays_met_and_this_run_says_what_it_misses(signed_in: Client, loop_lab: Lab):
    for temperature in ("0", "1", "0.3"):
        press(signed_in, loop_lab, temperature=temperature)

    html = signed_in.get(loop_lab.get_absolute_url()).content.decode()
    assert "Cured" in chips(html)
    assert "This run does not: no loop at the end, period 1" in html
    assert "over by 0.30" in html


def test_running_again_from_a_runs_page_leads_to_the_new_run(client: Client, loop_lab: Lab):
    old = press(client, loop_lab, temperature="0")
    data = {"do": "run", "temperature": "1", "back": old.get_absolute_url()}

    response = client.post(loop_lab.get_absolute_url(), data)

    new = Run.objects.exclude(pk=old.pk).get()
    assert response["Location"] == new.get_absolute_url()


def test_an_open_run_that_is_shared_is_neither_driven_nor_stopped_by_others(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    run = Run.objects.get()
    Run.objects.update(shared=True)

    html = Client().get(run.get_absolute_url()).content.decode()

    assert "sse-connect" not in html
    assert 'id="do-stop" type="button" disabled' in html
    assert "sse-connect" in signed_in.get(run.get_absolute_url()).content.decode()


def test_settings_are_shown_as_they_ran(client: Client):
    data = OPEN | {"do": "run", "model": "sky", "top_p": "0.9999999", "temperature": "0.1234567891"}

    client.post(reverse("labs:open"), data)

    html = client.get(reverse("labs:open")).content.decode()
    assert 'value="0.9999999"' in html
    assert 'value="0.1234567891"' in html


def test_a_token_taken_at_a_step_goes_on_as_a_run_of_its_own(signed_in: Client):
    lab = Lab.objects.get(slug="sky-early-token")
    old = press(signed_in, lab)
    data = {"step": "2", "token_id": "3", "back": lab.get_absolute_url()}

    response = signed_in.post(reverse("labs:take", args=[old.pk]), data)

    run = Run.objects.with_recording().exclude(pk=old.pk).get()
    assert response["Location"] == f"{lab.get_absolute_url()}#lab"
    assert [step.token for step in run.steps[:2]] == [old.steps[0].token, "blue"]
    assert [step.forced for step in run.steps[:3]] == [False, True, False]
    assert LabResult.objects.get().goal == "early_wrong_token"


def test_a_second_token_keeps_the_first_one_that_was_taken(signed_in: Client):
    old = press(signed_in, Lab.objects.get(slug="sky-early-token"))
    signed_in.post(reverse("labs:take", args=[old.pk]), {"step": "2", "token_id": "3"})
    middle = Run.objects.exclude(pk=old.pk).get()

    signed_in.post(reverse("labs:take", args=[middle.pk]), {"step": "5", "token_id": "0"})
    signed_in.post(reverse("labs:take", args=[middle.pk]), {"step": "1", "token_id": "0"})

    newest, before = Run.objects.with_recording().order_by("-created")[:2]
    assert before.recording.forced == {"2": 3, "5": 0}
    assert newest.recording.forced == {"1": 0}


@pytest.mark.parametrize(("step", "token_id"), [("0", "1"), ("99", "1"), ("1", "6"), ("1", ""), ("x", "1"), ("1", "²")])
def test_a_step_or_token_that_is_not_there_cannot_be_taken(client: Client, loop_lab: Lab, step: str, token_id: str):
    run = press(client, loop_lab, temperature="0")

    response = client.post(reverse("labs:take", args=[run.pk]), {"step": step, "token_id": token_id})

    assert response.status_code == 404
    assert Run.objects.count() == 1


def test_the_open_lab_runs_every_setting_and_shows_a_column_for_each(client: Client):
    data = OPEN | {
        "do": "run",
        "model": "sky",
        "temperature": "0.9",
        "top_k": "5",
        "top_p": "0.95",
        "min_p": "0.02",
        "repetition_penalty": "1.1",
        "penalty_scope": "output",
        "presence_penalty": "0.2",
        "frequency_penalty": "-0.1",
        "no_repeat_ngram_size": "4",
        "temperature_last": "true",
        "stop": " clear sky\n blue blue",
        "max_new_tokens": "12",
    }

    client.post(reverse("labs:open"), data)

    html = client.get(reverse("labs:open")).content.decode()
    for title in ("Raw", "Penalty 1.1", "Frequency −0.1", "Presence 0.2", "No 4-gram twice", "Top-k 5", "Top-p 0.95"):
        assert title in html
    assert " clear sky\n blue blue</textarea>" in html
    assert Run.objects.with_recording().get().recording.params.stop == (" clear sky", " blue blue")


def test_what_goes_wrong_on_the_server_is_logged(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def breaks(*args: object, **kwargs: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("quizsite.labs.views.lab_panel", breaks)
    client.raise_request_exception = False

    response = client.get(reverse("labs:open"))

    assert response.status_code == 500
    assert "Something broke on our side" in response.content.decode()
    assert "broken on purpose" in caplog.text
    assert logging.StreamHandler in {type(handler) for handler in logging.getLogger().handlers}


def test_the_open_lab_says_which_model_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))

    html = client.get(reverse("labs:open")).content.decode()

    assert "Not here yet: smollm2" in html
    assert '<option value="smollm2"' not in html


@pytest.mark.real_model
def test_the_real_model_runs_in_the_open_lab(client: Client):
    data = OPEN | {"do": "run", "model": "smollm2", "prompt": "I am", "max_new_tokens": "40"}

    client.post(reverse("labs:open"), data)

    html = client.get(reverse("labs:open")).content.decode()
    assert "copies of a loop, period 12, 3 full copies from token 1" in html
    assert "49,152 scored" in html


def test_a_stop_string_keeps_its_place_in_the_strip_and_not_its_text(client: Client):
    data = OPEN | {"do": "run", "model": "sky", "stop": " is sky is", "max_new_tokens": "20"}

    client.post(reverse("labs:open"), data)

    html = client.get(reverse("labs:open")).content.decode()
    strip = html.split('id="run-tokens"')[1].split("</div>")[0]
    assert "Run, ended by a stop string after 4 tokens" in html
    assert strip.count(">stop</label>") == 3
    assert strip.count("</label>") == 4


def test_a_run_without_a_token_left_says_why(client: Client, monkeypatch: pytest.MonkeyPatch):
    class Endless(SkyModel):
        eos_token_id = 99

    monkeypatch.setitem(MODELS, "endless", Endless)
    data = OPEN | {"do": "run", "model": "endless", "no_repeat_ngram_size": "1"}

    client.post(reverse("labs:open"), data)

    html = client.get(reverse("labs:open")).content.decode()
    assert "no_repeat_ngram_size 1 bans every token that was left" in html


def test_a_recording_in_an_older_format_is_computed_again_and_its_run_stays_readable(client: Client, loop_lab: Lab):
    run = press(client, loop_lab, temperature="0")
    Recording.objects.update(format=0, packed_steps=zlib.compress(b'[{"step": 1}]'), result={"old": True})

    html = client.get(run.get_absolute_url()).content.decode()
    again = press(client, loop_lab, temperature="0")

    assert "Run, ended by the limit of 48 tokens" in html
    assert html.count('type="radio"') == 48
    assert again.recording_id == run.recording_id
    assert Recording.objects.get(pk=run.recording_id).is_readable


def test_the_front_page_survives_a_recording_in_an_older_format(client: Client):
    client.get("/")
    Recording.objects.update(format=0, packed_steps=b"", result={"old": True})

    assert client.get("/").status_code == 200


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no model has been fetched."""
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))


@pytest.mark.usefixtures("no_models")
def test_without_the_real_model_the_question_has_the_toys_lab_and_the_real_lab_says_what_is_missing(client: Client):
    question = client.get("/questions/chatbot-repeats-one-sentence/").content.decode()
    lab = client.get("/lab/smollm2-loop-i-am/").content.decode()
    refused = client.post("/lab/smollm2-loop-i-am/", {"do": "run", "temperature": "0"}, **HTMX)

    assert 'value="the sky is" readonly' in question
    assert "smollm2 is not here yet" in lab
    assert refused.status_code == 422
    assert "smollm2 has not been fetched" in refused.content.decode()


def test_a_question_shows_the_first_step_of_its_lab_where_it_is_asked_for(client: Client):
    html = client.get("/questions/chatbot-repeats-one-sentence/", {"lab": "sky-loop"}).content.decode()

    assert 'value="the sky is" readonly' in html
    assert 'href="/questions/chatbot-repeats-one-sentence/?lab=smollm2-loop-i-am#lab"' in html


def test_a_run_whose_model_has_gone_can_still_be_looked_at(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MODELS, "gone", SkyModel)
    client.post(reverse("labs:open"), OPEN | {"do": "run", "model": "gone", "max_new_tokens": "5"})
    monkeypatch.delitem(MODELS, "gone")

    run = Run.objects.with_recording().get()
    html = client.get(run.get_absolute_url()).content.decode()

    assert "Run, ended by the limit of 5 tokens" in html
    assert client.get(reverse("labs:open")).status_code == 200


def test_a_full_queue_refuses_a_run_and_says_when_to_come_back(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "shared", SharedEngine(Limits(n_queue=0)))

    response = client.post(reverse("labs:open"), OPEN | {"do": "run", "model": "sky", "seed": "987"}, **HTMX)

    assert response.status_code == 429
    assert response["Retry-After"] == "15"
    assert "0 others are waiting, and more cannot queue" in response.content.decode()
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_run_holds_no_connection(client: Client, monkeypatch: pytest.MonkeyPatch):
    own, is_held = connections["default"], []

    class Watching(SkyModel):
        def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
            is_held.append(own.connection is not None)
            return super().forward(token_ids, kv_cache)

    monkeypatch.setitem(MODELS, "watching", Watching)

    for do in ("run", "step"):
        client.post(reverse("labs:open"), OPEN | {"do": do, "model": "watching", "seed": str(len(is_held))})

    assert is_held
    assert not any(is_held)


def test_more_tokens_than_a_run_may_make_are_refused_at_their_field(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "shared", SharedEngine(Limits(max_new_tokens=20)))

    response = client.post(reverse("labs:open"), OPEN | {"do": "run", "model": "sky", "max_new_tokens": "21"}, **HTMX)

    assert response.status_code == 422
    assert "max_new_tokens must be at most 20 here, got 21" in response.content.decode()


def test_a_run_over_its_deadline_ends_in_words_and_keeps_its_tokens(client: Client, monkeypatch: pytest.MonkeyPatch):
    ticks = count()
    monkeypatch.setattr(engine, "shared", SharedEngine(Limits(seconds=8), clock=lambda: float(next(ticks))))

    client.post(reverse("labs:open"), OPEN | {"do": "run", "model": "sky", "max_new_tokens": "200", "seed": "986"})

    run = Run.objects.with_recording().get()
    assert run.finish_reason == "deadline"
    assert 0 < run.n_steps < 200
    html = client.get(run.get_absolute_url()).content.decode()
    assert f"Run, ended by its deadline after {run.n_steps} tokens" in html
    assert run.recording.generation is None  # the next who asks has it computed


def test_what_comes_after_a_run_waits_for_room_in_the_queue(monkeypatch: pytest.MonkeyPatch):
    full = SharedEngine(Limits(n_queue=0))
    monkeypatch.setattr(engine, "shared", full)
    monkeypatch.setattr(engine, "ROOM_SOUGHT_EVERY", 0.01)
    job = full.job("ada", load_model("sky"), "the sky is", SamplingParams(max_new_tokens=3))
    with pytest.raises(EngineBusy):
        full.wait(job)
    threading.Timer(0.1, lambda: setattr(full, "limits", Limits())).start()

    engine.Conclusion().wait(job)

    assert job.generation


def test_what_comes_after_a_run_ends_with_the_last_who_watches(monkeypatch: pytest.MonkeyPatch):
    full = SharedEngine(Limits(n_queue=0))
    monkeypatch.setattr(engine, "shared", full)
    job = full.job("ada", load_model("sky"), "the sky is", SamplingParams(max_new_tokens=3))
    conclusion = engine.Conclusion()
    with conclusion.watched(), conclusion.watched():
        pass

    with pytest.raises(engine.Left):
        conclusion.wait(job)
