"""Labs through their pages: runs, judging, one run at a time, permalinks, limits."""

import logging
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from numpy.typing import NDArray

from generation import KVCache, LogitsError, SamplingParams
from generation.catalogue import MODELS
from generation.models.sky import SkyModel
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.models import Lab, LabResult, Recording, Run
from quizsite.labs.stream import _snapshot
from tests.quizsite.pages import HTMX

pytestmark = pytest.mark.django_db


def press(client: Client, lab: Lab, /, **settings: str) -> Run:
    """Press Run as a browser without JavaScript does: the answer is the finished run."""
    response = client.post(lab.get_absolute_url(), {"do": "run", **settings})
    assert response.status_code == 302
    run = Run.objects.with_recording().order_by("-created").first()
    assert run
    return run


def chips(html: str) -> str:
    return html.split('id="lab-chips"')[1].split("</span>\n  </header>", maxsplit=1)[0]


def test_the_loop_is_reproduced_then_cured_and_both_are_remembered(signed_in: Client, loop_lab: Lab):
    assert "Reproduce: not yet" in signed_in.get(loop_lab.get_absolute_url()).content.decode()

    press(signed_in, loop_lab, temperature="0")
    assert set(LabResult.objects.values_list("goal", flat=True)) == {"reproduce_loop"}
    press(signed_in, loop_lab, temperature="1")

    assert set(LabResult.objects.values_list("goal", flat=True)) == {"reproduce_loop", "cure_loop"}
    html = signed_in.get(loop_lab.get_absolute_url()).content.decode()
    assert "Reproduced" in html
    assert "Cured" in html
    assert "It holds for 5 of 5 seeds." in html


def test_a_cold_temperature_is_told_the_clause_and_the_distance(signed_in: Client, loop_lab: Lab):
    press(signed_in, loop_lab, temperature="0.3")

    html = signed_in.get(loop_lab.get_absolute_url()).content.decode()
    assert "No loop at the end" in html
    assert "over by 0.30" in html


def test_a_cure_counts_only_after_its_reproduction(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="1")

    assert LabResult.objects.count() == 0
    assert run.verdicts["cure_loop"]["clauses"][-1] == {
        "name": "Before it: reproduce the loop",
        "value": "not yet",
        "met": False,
        "measure": None,
    }


def test_a_locked_setting_cannot_be_posted(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="0", repetition_penalty="2", max_new_tokens="5", seed="9", model="x")

    assert run.recording.params.as_dict() == loop_lab.spec.start_params.as_dict() | {"temperature": 0.0}


def test_the_same_settings_are_computed_once_for_all(loop_lab: Lab):
    first, second = Client(), Client()

    runs = [press(first, loop_lab, temperature="0"), press(second, loop_lab, temperature="0.0")]

    assert runs[0].recording == runs[1].recording
    assert runs[0].learner != runs[1].learner
    assert Recording.objects.filter(settings__temperature=0.0, settings__max_new_tokens=48).count() == 1


def test_steps_by_hand_reveal_one_token_each_and_the_last_one_judges(signed_in: Client):
    lab = Lab.objects.get(slug="sky-penalty")
    data = {"do": "step", "repetition_penalty": "1.3"}

    for _ in range(47):
        signed_in.post(lab.get_absolute_url(), data, **HTMX)
    run = Run.objects.get()
    assert (run.n_steps, run.finish_reason) == (47, "")
    signed_in.post(lab.get_absolute_url(), data, **HTMX)

    run.refresh_from_db()
    assert (run.n_steps, run.finish_reason) == (48, "length")
    assert LabResult.objects.get().run == run


def test_a_step_with_other_settings_starts_a_run_of_its_own(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "step", "temperature": "0"}, **HTMX)
    signed_in.post(loop_lab.get_absolute_url(), {"do": "step", "temperature": "1"}, **HTMX)

    newest, older = Run.objects.order_by("-created")
    assert (newest.n_steps, newest.finish_reason) == (1, "")
    assert (older.n_steps, older.finish_reason) == (1, "cancelled")


def test_a_second_press_replaces_the_first(signed_in: Client, loop_lab: Lab):
    for temperature in ("0", "0.5", "1"):
        signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": temperature}, **HTMX)

    assert sorted(Run.objects.values_list("finish_reason", flat=True)) == ["", "cancelled", "cancelled"]


def test_the_database_holds_one_open_run_of_a_learner(learner: User):
    recording = Recording.objects.of("sky", "the sky is", Lab.objects.all()[0].spec.start_params)
    Run.objects.create(learner=learner, recording=recording)

    with pytest.raises(IntegrityError):
        Run.objects.create(learner=learner, recording=recording)


def test_too_many_runs_are_told_when_to_come_back_and_keep_the_settings(
    signed_in: Client, loop_lab: Lab, settings: Any
):
    settings.RUNS_PER_MINUTE = 2
    for _ in range(2):
        press(signed_in, loop_lab, temperature="0")

    response = signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0.45"}, **HTMX)

    html = response.content.decode()
    assert response.status_code == 429
    assert 1 <= int(response["Retry-After"]) <= 60
    assert "2 runs in a minute are the most" in html
    assert 'name="temperature" inputmode="decimal" autocomplete="off" value="0.45"' in html


BAD_SETTINGS = [
    ({"temperature": "-1"}, "temperature must be between 0 and 100, got -1.0"),
    ({"temperature": "warm"}, "temperature must be a number, got &#x27;warm&#x27;"),
    ({"temperature": "1e999"}, "temperature must be finite, got inf"),
    ({"top_p": "0"}, "top_p must be in (0, 1], got 0.0"),
    ({"top_k": "9" * 5000}, "top_k must be a whole number, got"),
    ({"top_k": "\x00"}, "top_k must be a whole number, got"),
]


@pytest.mark.parametrize(("data", "message"), BAD_SETTINGS)
def test_a_bad_setting_is_told_the_engines_own_message_and_nothing_runs(
    client: Client, loop_lab: Lab, data: dict[str, str], message: str
):
    response = client.post(loop_lab.get_absolute_url(), {"do": "run", **data}, **HTMX)

    assert response.status_code == 422
    assert message in response.content.decode()
    assert Run.objects.count() == User.objects.count() == 0


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("the moon", "unknown word &#x27;moon&#x27;: this model knows only the sky is blue clear"),
        ("", "the prompt is empty"),
        ("the " * 250, "a prompt of 250 tokens and 32 new ones do not fit into the context of 256"),
        ("<script>alert(1)</script>", "unknown word &#x27;&lt;script&gt;"),
        ("the " * 600, "at most 2000 characters"),
    ],
)
def test_a_prompt_that_cannot_run_is_refused_in_the_open_lab(client: Client, prompt: str, message: str):
    data = {"do": "run", "prompt": prompt, "model": "sky", "temperature": "1", "use_kv_cache": "true"}

    response = client.post(reverse("labs:open"), data, **HTMX)

    assert response.status_code == 422
    assert message in response.content.decode()


def test_the_open_lab_runs_any_settings_without_a_cache_too(client: Client):
    data = {"do": "run", "prompt": " blue   sky ", "model": "sky", "max_new_tokens": "4", "temperature": "0"}

    response = client.post(reverse("labs:open"), data)

    run = Run.objects.with_recording().get()
    assert response.status_code == 302
    assert [step.computed_positions for step in run.steps] == [2, 3, 4, 5]  # the box was not ticked


def test_a_model_that_is_not_there_is_refused(client: Client):
    response = client.post(reverse("labs:open"), {"do": "run", "model": "gpt", "prompt": "the"}, **HTMX)

    assert response.status_code == 422


def test_a_run_has_a_page_for_its_owner_alone_until_it_is_shared(client: Client, loop_lab: Lab):
    run = press(client, loop_lab, temperature="0")
    stranger = Client()
    stranger.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"})

    own = client.get(run.get_absolute_url())
    hidden = [stranger.get(run.get_absolute_url()).status_code, Client().head(run.get_absolute_url()).status_code]
    client.post(reverse("labs:share", args=[run.pk]), {"shared": "true"})
    shared = stranger.get(run.get_absolute_url())
    client.post(reverse("labs:share", args=[run.pk]), {"shared": "false"})

    assert own.status_code == 200
    assert hidden == [404, 404]
    assert shared.status_code == 200
    assert "Shared with you." in shared.content.decode()
    assert "Share by link" not in shared.content.decode()
    assert stranger.get(run.get_absolute_url()).status_code == 404


@pytest.mark.parametrize("name", ["labs:stop", "labs:share"])
def test_another_learners_run_can_be_neither_stopped_nor_shared(client: Client, loop_lab: Lab, name: str):
    client.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    run = Run.objects.get()
    Run.objects.update(shared=True)
    stranger = Client()
    stranger.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"})

    assert stranger.post(reverse(name, args=[run.pk]), {"shared": "false"}).status_code == 404
    assert Client().post(reverse(name, args=[run.pk])).status_code == 404
    assert client.get(reverse(name, args=[run.pk])).status_code == 405
    run.refresh_from_db()
    assert (run.is_open, run.shared) == (True, True)


def test_a_run_that_is_not_there_is_not_found(client: Client):
    assert client.get(reverse("labs:run", args=[uuid4()])).status_code == 404


@pytest.mark.parametrize("step", ["5", "0", "-1", "999", "x", "²", "9" * 400])
def test_any_step_can_be_asked_for_and_only_one_that_exists_is_opened(client: Client, loop_lab: Lab, step: str):
    run = press(client, loop_lab, temperature="0")

    html = client.get(run.get_absolute_url(), {"step": step}, **HTMX).content.decode()

    assert f"Step {'5' if step == '5' else '48'} of 48" in html


def test_stop_ends_an_open_run_and_keeps_what_it_has(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "step", "temperature": "0"}, **HTMX)
    run = Run.objects.get()

    response = signed_in.post(reverse("labs:stop", args=[run.pk]), **HTMX)

    run.refresh_from_db()
    assert response.status_code == 204
    assert (run.finish_reason, run.n_steps) == ("cancelled", 1)
    assert "Run, stopped after 1 token" in signed_in.get(run.get_absolute_url()).content.decode()
    assert LabResult.objects.count() == 0


def test_a_run_that_nobody_shows_is_cancelled_when_it_is_looked_at(signed_in: Client, loop_lab: Lab, monkeypatch: Any):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    run = Run.objects.get()

    assert "Stop</button>" in signed_in.get(run.get_absolute_url()).content.decode()
    monkeypatch.setattr(engine, "LOST_AFTER", 0)
    assert "Run, stopped after 0 tokens" in signed_in.get(run.get_absolute_url()).content.decode()


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/questions/\n", ""]
)
def test_a_plain_post_goes_back_to_a_page_of_this_site(client: Client, loop_lab: Lab, back: str):
    response = client.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0", "back": back})

    assert response["Location"].startswith("/")
    assert not response["Location"].startswith("//")
    assert "evil" not in response["Location"]


def test_the_front_pages_remedy_runs_the_penalty_lab(client: Client):
    lab = Lab.objects.get(slug="sky-penalty")

    response = client.post(lab.get_absolute_url(), {"repetition_penalty": "1.2", "back": lab.get_absolute_url()})

    assert response["Location"] == f"{lab.get_absolute_url()}#lab"
    assert LabResult.objects.get().goal == "still_loops"


def test_a_lab_that_cannot_be_solved_as_stated_is_refused_by_its_model(loop_lab: Lab):
    loop_lab.goals[1]["solution"] = {"temperature": 0.1}

    with pytest.raises(ValidationError, match="a solution must meet its goal"):
        loop_lab.full_clean()


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
    response = client.post(reverse("labs:open"), OPEN | {"do": do, "model": broken_model}, follow=True)

    assert response.status_code == 200
    assert "Run, ended early after 3 tokens: step 4: logits must be numbers, got NaN" in response.content.decode()


def test_everybody_who_waits_for_a_broken_run_is_told_the_same(broken_model: str):
    live = engine.engine.live(Recording.objects.of(broken_model, "the sky is", SamplingParams(max_new_tokens=8)))

    for _ in range(3):
        with pytest.raises(LogitsError, match="step 4: logits must be numbers"):
            live.finish()
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
    show = engine.engine.show(run)
    show.live.step(8)
    show.n_steps = 8

    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "1"}, **HTMX)

    run = Run.objects.with_recording().get(pk=run.pk)
    assert (run.finish_reason, run.n_steps, len(run.steps)) == ("cancelled", 8, 8)
    assert show.is_stopped


def test_a_reconnect_after_a_restart_of_the_server_shows_all_tokens(signed_in: Client, loop_lab: Lab):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"}, **HTMX)
    Run.objects.update(n_steps=6)
    show = engine.engine.show(Run.objects.with_recording().get())  # as a new process finds it

    n_steps, _, html = _snapshot(show)
    engine.engine.forget(show.run)

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
