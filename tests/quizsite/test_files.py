"""The bank as files: out and in again, conflicts between the two sides, and what an author uploads."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.content import dumping
from quizsite.content.models import Upload
from quizsite.content.writing import question_text, spec_of
from quizsite.labs.models import Lab
from quizsite.questions.models import Option, Question, QuestionVersion, SearchText, Topic
from tests.quizsite.author import form_of
from tests.quizsite.test_authoring import change_url, words_of

pytestmark = pytest.mark.django_db

UPLOAD = "content:upload"
GIFT = "::One:: What is drawn? {=a token ~a word ~a letter}\n\n::Two:: Broken {=a ~%77%b}\n"


def said(command: str, *args: Any, **options: Any) -> str:
    out = StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.yaml"))}


def test_the_whole_bank_goes_out_in_and_out_again_as_the_same_bytes(tmp_path: Path):
    said("dump_content", folder=tmp_path / "first")

    loaded = said("load_content", folder=tmp_path / "first")
    said("dump_content", folder=tmp_path / "second")

    first = files_of(tmp_path / "first")
    assert "nothing changed" in loaded
    assert len(first) == Question.objects.count() + Lab.objects.count() + 1
    assert first == files_of(tmp_path / "second")
    assert "nothing changed" in said("dump_content", folder=tmp_path / "first")


def test_a_dumped_bank_fills_an_empty_site_with_all_that_the_files_hold(tmp_path: Path):
    said("dump_content", folder=tmp_path)
    n_questions, n_mistakes = Question.objects.count(), QuestionVersion.objects.exclude(mistakes=[]).count()
    before = {question.slug: question_text(spec_of(question.current)) for question in everything()}
    Question.objects.update(current=None)
    for model in (SearchText, Option, QuestionVersion, Question, Lab, Topic):
        raw_delete(model)

    said("load_content", folder=tmp_path)

    assert Question.objects.count() == n_questions
    assert QuestionVersion.objects.exclude(mistakes=[]).count() == n_mistakes > 10
    assert before == {question.slug: question_text(spec_of(question.current)) for question in everything()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that belong to this site, as they were loaded."""
    said("dump_content", folder=tmp_path)
    said("load_content", folder=tmp_path)
    monkeypatch.setattr(dumping, "CONTENT_DIR", tmp_path)
    return tmp_path


def test_what_changed_in_the_admin_is_kept_by_a_load_and_written_by_a_dump(
    author: Client, chatbot: Question, folder: Path
):
    author.post(change_url(chatbot), form_of(chatbot, title="Changed in the admin"))

    assert "nothing changed" in said("load_content", folder=folder)
    assert "1 files written" in said("dump_content", folder=folder)

    assert "title: Changed in the admin\n" in file_of(chatbot, folder).read_text()
    assert "nothing changed" in said("load_content", folder=folder)


def test_what_changed_on_both_sides_is_shown_and_overwritten_nowhere(author: Client, chatbot: Question, folder: Path):
    author.post(change_url(chatbot), form_of(chatbot, title="Changed in the admin"))
    file = file_of(chatbot, folder)
    file.write_text(file.read_text().replace("title: A chatbot", "title: In the file, a chatbot"))

    for command in ("load_content", "dump_content"):
        output = said(command, folder=folder)
        assert "conflict, changed here and in its file; nothing was overwritten" in output
        assert "-title: Changed in the admin" in output
        assert "+title: In the file, a chatbot" in output

    chatbot.refresh_from_db()
    assert chatbot.current
    assert chatbot.current.title == "Changed in the admin"
    assert "In the file" in file.read_text()


@pytest.mark.parametrize(("option", "title"), [("take_file", "In the file"), ("keep", "Changed in the admin")])
def test_a_person_decides_a_conflict(author: Client, chatbot: Question, folder: Path, option: str, title: str):
    author.post(change_url(chatbot), form_of(chatbot, title="Changed in the admin"))
    file = file_of(chatbot, folder)
    file.write_text(
        file.read_text().replace("title: A chatbot keeps coming back to one sentence", "title: In the file")
    )

    said("load_content", folder=folder, **{option: [chatbot.slug]})

    chatbot.refresh_from_db()
    assert chatbot.current
    assert chatbot.current.title == title
    assert "conflict" not in said("load_content", folder=folder)
    assert "conflict" not in said("dump_content", folder=folder)
    assert f"title: {title}\n" in file.read_text()


def test_a_file_that_says_the_same_keeps_its_comments(chatbot: Question, folder: Path):
    file = file_of(chatbot, folder)
    file.write_text(f"# a note for authors\n{file.read_text()}")

    said("dump_content", folder=folder)

    assert file.read_text().startswith("# a note for authors\n")


def test_a_file_is_shown_first_taken_by_choice_and_the_second_time_changes_nothing(author: Client):
    text = author.get(reverse("content:download", args=["yaml"])).content.decode()
    documents = list(yaml.safe_load_all(text))
    documents[0] |= {"slug": "quite-new"}
    documents[1] |= {"title": "With another title"}
    file = yaml.safe_dump_all(documents, allow_unicode=True)
    n_questions = Question.objects.count()

    shown = uploaded(author, "yaml", file.encode())
    assert Question.objects.count() == n_questions == len(documents)
    assert f"1 new, 1 changed, {n_questions - 2} as they are, 0 broken" in words_of(shown.content)
    assert "+title: With another title" in words_of(shown.content)
    taken = author.post(shown.wsgi_request.path, {"take": "all"}, follow=True)
    again = uploaded(author, "yaml", file.encode())

    assert "2 taken" in words_of(taken.content)
    assert Question.objects.count() == n_questions + 1
    assert f"0 new, 0 changed, {n_questions} as they are, 0 broken" in words_of(again.content)


def test_a_broken_row_stops_no_good_one_and_nothing_is_half_taken(author: Client):
    shown = uploaded(author, "gift", GIFT.encode())
    assert "1 new, 0 changed, 0 as they are, 1 broken" in words_of(shown.content)

    refused = author.post(shown.wsgi_request.path, {"take": "all"})
    assert refused.status_code == 422
    assert not Question.objects.filter(slug__in=["one", "two"]).exists()
    author.post(shown.wsgi_request.path, {"take": "good"})

    assert Question.objects.get(slug="one").status == "draft"
    assert not Question.objects.filter(slug="two").exists()
    assert not Upload.objects.exists()


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
ROW = "slug: {slug}\ntopic: cost\ntitle: A title\nlevel: beginner\nkind: explain\ntext: Why?\n"


@pytest.mark.parametrize(
    ("form", "content", "message"),
    [
        ("yaml", BOMB.encode(), "an alias (*name) is not taken"),
        ("yaml", b"!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("yaml", b"[" * 5000, "this cannot be read"),
        ("yaml", (ROW.format(slug="twin") + "---\n" + ROW.format(slug="twin")).encode(), "stands 2 times in this file"),
        ("yaml", ROW.format(slug="../../etc").encode(), "is no address"),
        ("yaml", b"title: no slug", "it has no slug"),
        ("yaml", b"- a\n- list", "a question is keys and values"),
        ("yaml", ROW.format(slug="a").encode() + b"lab: nowhere\n", "there is no lab"),
        ("yaml", ROW.format(slug="a").encode() + b"title: twice\n", "given twice"),
        ("yaml", "title: é".encode("latin-1"), "is not UTF-8"),
        ("yaml", b"PK\x03\x04" + bytes(100), "which no text holds"),
        ("yaml", ROW.format(slug="chatbot-repeats-one-sentence").encode(), "a draft would take it from its learners"),
        ("xml", b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><quiz>&x;</quiz>', ""),
        ("yaml", b"", "file is empty"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_nothing_is_taken(
    author: Client, form: str, content: bytes, message: str
):
    n_versions = QuestionVersion.objects.count()

    shown = uploaded(author, form, content)
    if shown.wsgi_request.path != reverse(UPLOAD):
        author.post(shown.wsgi_request.path, {"take": "good"})

    assert message.lower() in words_of(shown.content).lower()
    assert "root:" not in shown.content.decode()
    assert QuestionVersion.objects.count() == n_versions


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_line_ends_and_marks_of_other_systems_are_read(author: Client, encoding: str):
    shown = uploaded(author, "yaml", ROW.format(slug="from-elsewhere").replace("\n", "\r\n").encode(encoding))

    assert "1 new" in words_of(shown.content)


def test_a_file_of_over_five_megabytes_is_refused_in_words(author: Client):
    shown = uploaded(author, "yaml", b"#" * (Upload.LARGEST + 1))

    assert shown.status_code == 422
    assert "A file has at most 5,000,000 bytes, this one has 5,000,001." in words_of(shown.content)
    assert not Upload.objects.exists()


def test_a_selection_comes_as_a_file_of_its_own(author: Client, chatbot: Question):
    other = Question.objects.with_current().filter(current__kind="numeric")[0]
    data = {"action": "download", "_selected_action": [chatbot.current_id, other.current_id]}

    response = author.post(reverse("admin:questions_questionversion_changelist"), data, follow=True)

    slugs = {document["slug"] for document in yaml.safe_load_all(response.content)}
    assert slugs == {chatbot.slug, other.slug}


@pytest.mark.parametrize("form", ["yaml", "gift", "xml", "csv"])
def test_the_whole_bank_is_downloaded(author: Client, form: str):
    response = author.get(reverse("content:download", args=[form]))

    assert response.status_code == 200
    assert "attachment" in response["Content-Disposition"]
    assert len(response.content) > 50_000


def test_no_cell_of_the_table_is_a_formula(author: Client, chatbot: Question):
    author.post(change_url(chatbot), form_of(chatbot, title="=HYPERLINK(1)", text="@SUM(1) or what else do you do?"))

    table = author.get(reverse("content:download", args=["csv"])).content.decode("utf-8-sig")

    rows = {row["slug"]: row for row in csv.DictReader(StringIO(table))}
    assert (rows[chatbot.slug]["title"], rows[chatbot.slug]["text"][:5]) == ("'=HYPERLINK(1)", "'@SUM")
    assert len(rows) == Question.objects.count()


def test_files_are_of_authors_and_an_upload_is_of_its_owner(signed_in: Client, author: Client, instructor: User):
    kept = uploaded(author, "gift", GIFT.encode()).wsgi_request.path
    other, teacher = User.objects.create_user("mary", is_staff=True), Client()
    other.groups.set(instructor.groups.all())
    staff = User.objects.create_user("staff", is_staff=True)
    second, third = Client(), Client()
    second.force_login(other)
    third.force_login(staff)
    teacher.force_login(User.objects.create_user("teacher"))

    for path in (reverse(UPLOAD), kept, reverse("content:download", args=["yaml"])):
        assert Client().get(path).status_code == 302
        assert teacher.get(path).status_code == third.get(path).status_code == 403
        assert Client().post(path).status_code in {302, 405}
        assert third.post(path).status_code in {403, 405}
    assert second.get(kept).status_code == second.post(kept, {"take": "good"}).status_code == 404
    assert author.get(reverse("content:download", args=["exe"])).status_code == 404


def uploaded(author: Client, form: str, content: bytes) -> Any:
    data = {"file": SimpleUploadedFile("bank.txt", content), "format": form, "topic": Topic.objects.all()[0].pk}
    return author.post(reverse(UPLOAD), data, follow=True)


def file_of(question: Question, folder: Path) -> Path:
    return folder / "bank" / question.topic.slug / f"{question.slug}.yaml"


def everything() -> Any:
    return Question.objects.with_current().prefetch_related("current__options")


def raw_delete(model: Any) -> None:
    model.objects.all()._raw_delete("default")
