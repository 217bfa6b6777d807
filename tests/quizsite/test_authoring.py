"""Writing questions and labs: forms of every kind, the preview, versions side by side, many at once."""

import re
from html import unescape
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs.models import Lab, Run
from quizsite.questions.authoring import VersionForm
from quizsite.questions.formulas import compute
from quizsite.questions.models import Question, QuestionVersion, Report
from quizsite.quizzes.models import Answer
from tests.quizsite.author import form_of

pytestmark = pytest.mark.django_db

LIST, ADD = "admin:questions_questionversion_changelist", "admin:questions_questionversion_add"
PREVIEW, TRY = "quizzes:preview", "admin:labs_lab_try"
NEW = {"slug": "brand-new", "topic": 1, "level": "beginner", "status": "draft", "title": "A new one", "text": "Why?"}

LOOP = {"title": "Loop", "slug": "loop", "panel": "trace", "model": "sky", "prompt": "the sky is", "facts": "S2"}
LOOP |= {"allowed": "temperature", "goals": "- kind: reproduce_loop\n  solution: {temperature: 0}"}


def one_of(kind: str) -> Question:
    return Question.objects.with_current().filter(current__kind=kind).order_by("slug")[0]


def words_of(html: bytes) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.decode())).split())


def test_every_question_of_the_bank_goes_through_the_form_and_says_the_same():
    for question in Question.objects.with_current().exclude(current__kind="predict"):
        version = question.current
        assert version
        form = VersionForm(form_of(question), instance=version)
        form.question = question

        assert form.is_valid(), (question.slug, form.errors)
        assert form.spec
        assert form.spec.digest == version.digest, question.slug


def test_the_key_of_a_prediction_comes_from_the_engine_when_it_is_saved(author: Client):
    data = NEW | {"kind": "predict", "model": "sky", "prompt": "the sky is", "step": 1, "n_options": 3}

    response = author.post(reverse(ADD), data)

    assert response.status_code == 302, response.context["errors"]
    version = Question.objects.get(slug="brand-new").current
    assert version
    found = version.details["predict"]["found"]
    assert [row["token"] for row in found] == ["is", "clear", "the"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"step": 5, "settings": "stop: [is]"}, "the run ends before step 5"),
        ({"model": "smollm3"}, "smollm3 is not one of the available choices"),
        ({"settings": "- warm"}, "one a line"),
        ({"settings": "warmth: 3"}, "warmth is not a setting"),
    ],
)
def test_a_prediction_without_a_key_is_not_published(author: Client, given: dict[str, Any], message: str):
    question = Question.objects.with_current().filter(current__kind="predict", current__details__predict__model="sky")[
        0
    ]

    response = author.post(change_url(question), form_of(question, **given))

    assert message in words_of(response.content)
    assert question.versions.count() == 1


def test_a_draft_may_lack_everything_and_is_told_what(author: Client):
    response = author.post(reverse(ADD), NEW | {"kind": "single_choice"}, follow=True)

    said = words_of(response.content)
    assert "is saved as version 1" in said
    assert "Before it is published: options: options must be 3 to 6, got 0" in said
    assert "Before it is published: answer: this is empty" in said
    assert Client().get("/questions/brand-new/").status_code == 404


def test_a_draft_that_lacks_something_is_not_published_with_others(author: Client, chatbot: Question):
    author.post(reverse(ADD), NEW | {"kind": "explain"})
    draft = Question.objects.get(slug="brand-new")
    Question.objects.filter(pk=chatbot.pk).update(status="draft")

    response = bulk(author, "publish", draft, chatbot)

    assert "“A new one” stays as it is. rubric: a rubric must have 4 to 7 points, got 0, and" in response
    assert status_of(draft, chatbot) == ["draft", "published"]


def test_level_topic_facts_and_status_of_many_are_set_at_once(author: Client, chatbot: Question):
    other = one_of("numeric")
    facts = [*(chatbot.current.facts if chatbot.current else []), "A2"]

    assert "2 now Advanced." in bulk(author, "set_level", chatbot, other, to_level="advanced")
    assert "2 now in Truth." in bulk(author, "move", chatbot, other, to_topic=topic_of("truth"))
    assert "2 changed." in bulk(author, "add_fact", chatbot, other, fact="a2")
    assert "Choose the level" in bulk(author, "set_level", chatbot)
    assert "No action selected" in bulk(author, "set_level", chatbot, to_level="guru")
    assert "Choose the topic" in bulk(author, "move", chatbot)
    assert "No action selected" in bulk(author, "move", chatbot, to_topic="99999999999999999999")
    assert "stays as it is. facts" in bulk(author, "add_fact", chatbot, fact="Z1")

    chatbot.refresh_from_db()
    assert chatbot.current
    assert (chatbot.level, chatbot.topic.slug, chatbot.current.facts) == ("advanced", "truth", facts)
    assert chatbot.current.number == 2
    assert "1 changed." in bulk(author, "remove_fact", chatbot, fact="A2")
    assert "0 changed." in bulk(author, "remove_fact", chatbot, fact="A2")


def test_the_list_is_filtered_by_fact_facility_and_reports(author: Client, chatbot: Question):
    version = chatbot.current
    assert version
    Report.objects.broken(version, "it broke")
    for number in range(20):
        learner = User.objects.create_user(f"learner-{number}")
        values = {"response": {}, "verdict": "wrong", "score": 0, "token": f"{number:032}"}
        Answer.objects.create(learner=learner, version=version, try_number=1, **values)
        Answer.objects.create(
            learner=learner, version=version, try_number=2, **values | {"score": 1, "token": f"1{number:031}"}
        )

    with_fact = QuestionVersion.objects.filter(question__current=F("pk"), facts__icontains='"S5"').count()
    assert shown(author, fact="S5") == with_fact > 1
    assert shown(author, reports="open") == shown(author, facility="hard") == 1
    assert shown(author, facility="easy") == shown(author, facility="middling") == 0
    assert shown(author, facility="few") == Question.objects.count() - 1


@pytest.mark.parametrize(
    "kind", ["single_choice", "multiple_choice", "numeric", "ordering", "short_text", "explain", "lab"]
)
def test_the_preview_shows_question_and_verdict_and_saves_nothing(author: Client, kind: str):
    question = one_of(kind)
    version = question.current
    assert version
    n_versions = QuestionVersion.objects.count()

    response = author.post(preview_url(question), form_of(question, answer="I would say: typed a moment ago."))

    assert response.status_code == 200
    html = response.content.decode()
    assert "Nothing is missing." in html
    assert 'class="verdict right"' in html
    assert "typed a moment ago" in html
    assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in response["Content-Security-Policy"]
    assert QuestionVersion.objects.count() == n_versions
    assert Question.objects.filter(pk=question.pk, current=version).exists()


def test_the_preview_says_what_is_missing_and_what_to_look_at(author: Client, chatbot: Question):
    data = form_of(chatbot, **{"options-1-right": "", "answer": "word " * 200, "lab": "", "status": "draft"})

    said = words_of(author.post(preview_url(chatbot), data).content)

    assert "options: exactly one option must be right, got 0" in said
    assert "The answer has 200 words." in said
    assert "A scenario without a lab" in said


@pytest.mark.parametrize(
    "data", [{}, {"kind": "numeric"}, NEW | {"kind": "numeric", "formula": "1/0"}, NEW | {"kind": "x"}]
)
def test_the_preview_of_anything_is_an_answer(author: Client, data: dict[str, Any]):
    response = author.post(reverse(PREVIEW), data)

    assert response.status_code == 200
    assert "Before it can be published" in response.content.decode()


def test_what_an_author_writes_is_text_in_the_preview_and_in_the_comparison(author: Client, chatbot: Question):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> [a](javascript:alert(1))"
    data = form_of(chatbot, text=hostile, answer=hostile, warning=hostile)

    preview = author.post(preview_url(chatbot), data).content.decode()
    author.post(change_url(chatbot), data)
    compared = author.get(versions_url(chatbot)).content.decode()

    for html in (preview, compared):
        assert "&lt;script&gt;alert" in html
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert 'href="javascript' not in html


def test_any_two_versions_are_compared_word_by_word(author: Client, chatbot: Question):
    for title in ("A chatbot repeats itself", "A chatbot repeats one sentence"):
        author.post(change_url(chatbot), form_of(chatbot, title=title))
        chatbot.refresh_from_db()

    newest = author.get(versions_url(chatbot)).content.decode()
    all_in_one = author.get(versions_url(chatbot), {"from": 1, "to": 3}).content.decode()
    same = author.get(versions_url(chatbot), {"from": 3, "to": 3}).content.decode()

    assert "<del>itself</del><ins>one sentence</ins>" in newest
    assert "<ins>repeats</ins>" in all_in_one
    assert "They say the same." in same
    assert author.get(versions_url(chatbot), {"from": "9" * 30, "to": "x"}).status_code == 200


def test_a_copy_begins_with_what_the_question_says_and_saves_nothing_by_itself(author: Client, chatbot: Question):
    html = author.get(reverse(ADD), {"copy": str(chatbot.current_id)}).content.decode()

    assert 'value="chatbot-repeats-one-sentence-copy"' in html
    assert chatbot.current
    assert chatbot.current.options.all()[1].text[:30] in html
    assert Question.objects.filter(slug__endswith="-copy").count() == 0
    assert author.get(reverse(ADD), {"copy": "nobody"}).status_code == 200


def test_a_lab_is_tried_as_typed_and_as_saved(author: Client, loop_lab: Lab):
    data = {"title": "Loop", "slug": loop_lab.slug, "panel": "trace", "model": "sky", "prompt": "the sky is"}
    data |= {
        "facts": "S2",
        "start": "temperature: 0.7\nseed: 17",
        "allowed": "temperature",
        "seeds": "[17, 6, 9, 19, 5]",
    }
    data["goals"] = "- kind: reproduce_loop\n  solution: {temperature: 1.5}"

    as_typed = words_of(author.post(reverse(TRY), data).content)
    as_saved = words_of(author.post(f"{reverse(TRY)}?lab={loop_lab.pk}").content)

    assert "Reproduce the loop, with its solution Not met, it should be otherwise" in as_typed
    assert "Reproduce the loop, at the start Not met, as it should be" in as_typed
    assert "Cure it, with its solution Met, as it should be" in as_saved
    loop_lab.refresh_from_db()
    assert loop_lab.title != "Loop"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"goals": "- kind: reproduce_loop\n  solution: {warmth: 1}"}, "warmth is not a setting"),
        ({"goals": "{"}, "this is written as a list"),
        ({"start": "[1]"}, "this is written as `name: value`"),
        ({"goals": ""}, "goals"),
        ({"model": "x"}, "Select a valid choice"),
    ],
)
def test_a_lab_that_cannot_be_tried_says_why(author: Client, given: dict[str, str], message: str):
    response = author.post(reverse(TRY), LOOP | given)

    assert response.status_code == 200
    assert message in words_of(response.content)


def test_a_run_of_ones_own_begins_a_lab_and_a_question(author: Client, instructor: User):
    author.post("/lab/panel/trace/", {"do": "run", "model": "sky", "prompt": "the sky is", "temperature": "0.5"})
    run = Run.objects.by(instructor).get()
    page = author.get(run.get_absolute_url()).content.decode()

    lab = author.get(reverse("admin:labs_lab_add"), {"run": str(run.pk)}).context["adminform"].form
    question = author.get(reverse(ADD), {"run": str(run.pk)}).context["adminform"].form

    assert f"?run={run.pk}" in page
    assert (lab["model"].value(), lab["prompt"].value()) == ("sky", "the sky is")
    assert "temperature: 0.5" in lab["start"].value()
    assert (question["kind"].value(), question["model"].value()) == ("predict", "sky")
    strangers = author.get(reverse(ADD), {"run": "nonsense"}).context["adminform"].form
    assert strangers["prompt"].value() in (None, "")


def test_a_bill_becomes_a_question_whose_key_is_the_bills(author: Client, instructor: User):
    lengths = {"n_turns": 10, "n_system": 800, "n_user": 150, "n_answer": 250, "n_reasoning": 0, "cached_percent": 90}
    prices = {"input_price": 2, "cached_price": 0.2, "output_price": 10}
    author.post("/lab/panel/cost/", {"do": "run", "model": "sky"} | lengths | prices)
    run = Run.objects.by(instructor).get()
    form = author.get(reverse(ADD), {"run": str(run.pk)}).context["adminform"].form
    begun = form.initial

    values = {row["name"]: row["lowest"] for row in begun["parameters"]}
    assert values == {"T": 10, "S": 800, "U": 150, "A": 250}
    assert run.outcome
    assert compute(begun["formula"], values) == run.outcome["input_tokens"]
    assert all(f"{{{name}}}" in begun["text"] for name in values)


def test_a_learner_is_offered_neither(signed_in: Client):
    signed_in.post("/lab/panel/trace/", {"do": "run", "model": "sky", "prompt": "the sky is"})

    page = signed_in.get(Run.objects.get().get_absolute_url()).content.decode()

    assert "Make a" not in page


@pytest.mark.parametrize("name", [PREVIEW, TRY])
def test_only_authors_see_keys_before_an_answer(signed_in: Client, name: str, instructor: User, chatbot: Question):
    instructor.groups.clear()
    staff = Client()
    staff.force_login(instructor)
    data = form_of(chatbot)

    for client, statuses in ((Client(), {302}), (signed_in, {302, 403}), (staff, {403})):
        assert client.post(reverse(name), data).status_code in statuses
    assert staff.get(versions_url(chatbot)).status_code == 403


def change_url(question: Question) -> str:
    return reverse("admin:questions_questionversion_change", args=[question.current_id])


def preview_url(question: Question) -> str:
    return f"{reverse(PREVIEW)}?version={question.current_id}"


def versions_url(question: Question) -> str:
    return reverse("admin:questions_questionversion_history", args=[question.current_id])


def bulk(author: Client, action: str, *questions: Question, **given: Any) -> str:
    ids = [Question.objects.get(pk=question.pk).current_id for question in questions]
    response = author.post(reverse(LIST), {"action": action, "_selected_action": ids} | given, follow=True)
    return words_of(response.content)


def status_of(*questions: Question) -> list[str]:
    return [Question.objects.get(pk=question.pk).status for question in questions]


def topic_of(slug: str) -> int:
    return Question.objects.filter(topic__slug=slug).values_list("topic", flat=True)[0]


def shown(author: Client, **filters: str) -> int:
    return int(author.get(reverse(LIST), filters).context["cl"].result_count)
