"""Labs through their pages: runs, judging, one run at a time, permalinks, limits."""

from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.clauses import Setup
from quizsite.labs.models import Lab, LabResult, Recording, Run
from tests.quizsite.pages import HTMX, press

pytestmark = pytest.mark.django_db


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
    recording = Recording.objects.of(Setup("sky", "the sky is", Lab.objects.all()[0].spec.start_params))
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


def test_an_address_that_a_page_has_already_is_refused_for_a_lab(loop_lab: Lab):
    loop_lab.slug = "models"

    with pytest.raises(ValidationError, match="slug must not be models: a page has that address"):
        loop_lab.full_clean()


def test_a_lab_that_is_not_well_written_is_refused_by_its_model(loop_lab: Lab):
    loop_lab.goals[1]["kind"] = "reproduce_loop"

    with pytest.raises(ValidationError, match="max_changed: Unexpected keyword argument"):
        loop_lab.full_clean()


def test_the_steps_of_a_long_run_come_in_parts(signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="0")  # 48 steps

    first = signed_in.get(f"/runs/{run.pk}/steps/", **HTMX).content.decode()
    second = signed_in.get(f"/runs/{run.pk}/steps/?from=26", **HTMX).content.decode()

    assert first.count('<th scope="row">') == 25
    assert f"/runs/{run.pk}/steps/?from=26" in first
    assert second.count('<th scope="row">') == 23
    assert "hx-get" not in second
    steps = run.recording.generation.steps  # type: ignore[union-attr]
    assert f'<td class="number">{steps[30].probability:.3f}</td>' in second


@pytest.mark.parametrize("asked", ["?from=49", "?from=x", "?from=-3", "?from=99999999999999999999"])
def test_steps_that_are_not_there_are_no_error(signed_in: Client, loop_lab: Lab, asked: str):
    run = press(signed_in, loop_lab, temperature="0")

    assert signed_in.get(f"/runs/{run.pk}/steps/{asked}", **HTMX).status_code == 200


def test_the_steps_of_another_are_not_to_be_found(client: Client, signed_in: Client, loop_lab: Lab):
    run = press(signed_in, loop_lab, temperature="0")
    client.force_login(User.objects.create_user("other"))

    assert client.get(f"/runs/{run.pk}/steps/").status_code == 404
