"""The kinds of question: how each is asked, read, graded and shown, and what each refuses."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import uuid4

import pytest
from django.http import QueryDict
from django.test import Client

from quizsite.content.predictions import found_by_engine
from quizsite.questions.formulas import FormulaError, compute
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking, NotAnswered
from quizsite.questions.kinds.short_text import plain
from quizsite.questions.models import Question, QuestionVersion, Topic
from quizsite.questions.numbers import parse_number
from quizsite.questions.validation import PredictSpec, QuestionSpec, read_question
from quizsite.quizzes.models import Answer
from tests.quizsite.pages import HTMX, field, options

BASE: dict[str, Any] = {
    "title": "A question of some kind",
    "level": "beginner",
    "status": "published",
    "facts": ["M5"],
    "text": "What is asked here?",
    "answer": "What one says.",
    "listens_for": ["One sign.", "Another sign."],
    "warning": "A phrase.",
    "follow_ups": [{"text": "And then?"}, {"text": "And after that?"}],
}
POSITIONS = BASE | {
    "kind": "numeric",
    "text": "A prompt of {P} tokens, an answer of {N} tokens. How many positions without a cache?",
    "numeric": {
        "parameters": {"P": {"from": 20, "to": 400, "step": 10}, "N": {"from": 10, "to": 200, "step": 10}},
        "formula": "N*P + N*(N-1)/2",
        "unit": "token positions",
        "traps": [
            {"formula": "P*N", "why": "The sequence grows."},
            {"formula": "P+N", "why": "The last is not fed back."},
        ],
    },
    "explanation": "From {P} on, {N} passes: {key}.",
}
ORDER = BASE | {
    "kind": "ordering",
    "items": ["text", "ids", "vectors", "logits"],
    "explanation": "Each needs the one before.",
}
WORD = BASE | {
    "kind": "short_text",
    "accepted": ["logit", "raw score"],
    "near": [{"text": "probability", "why": "That comes after softmax."}],
    "explanation": "A logit is a score before softmax.",
}
PLAN = BASE | {
    "kind": "explain",
    "rubric": [
        {"point": "Each step sees only the tokens so far.", "words": ["so far", "prefix"]},
        {"point": "One pass gives one distribution.", "words": ["distribution"]},
        {"point": "Nothing else is carried on.", "words": ["carried"]},
        {"point": "A limit is named.", "words": ["inside a pass"]},
    ],
}
SEVERAL = BASE | {
    "kind": "multiple_choice",
    "options": [{"text": f"Option {name}", "right": name in "AB", "why": f"Because of {name}."} for name in "ABCDE"],
}
NEXT = BASE | {
    "kind": "predict",
    "predict": {
        "model": "sky",
        "prompt": "the sky is",
        "found": [
            {"token": "is", "probability": 0.58},
            {"token": "the", "probability": 0.2},
            {"token": "sky", "probability": 0.1},
        ],
    },
    "explanation": "The likeliest token wins.",
}


def asked(data: dict[str, Any], slug: str = "of-some-kind") -> Question:
    spec = read_question(data)
    assert isinstance(spec, QuestionSpec), spec
    topic, _ = Topic.objects.get_or_create(slug="some", defaults={"name": "Some"})
    question = Question.objects.create(slug=slug, topic=topic, level=spec.level, status="published")
    question.revise(spec)
    return question


def version_of(data: dict[str, Any]) -> QuestionVersion:
    version = asked(data).current
    assert version
    return version


def graded(version: QuestionVersion, data: str, number: int = 1) -> tuple[Fraction, dict[str, Any]]:
    kind, asking = kind_named(version.kind), Asking("ada", number)
    response = kind.read(version, QueryDict(data), None, asking)
    return kind.grade(version, response).score, kind.show(version, response, asking)


def answer(client: Client, question: Question, **data: Any) -> str:
    """Answer a question by its form, as a browser without JavaScript does, and return the page after it."""
    html = client.get(f"{question.get_absolute_url()}?again").content.decode()
    hidden = {"token": field(html, "token"), "version": field(html, "version")}
    response = client.post(question.get_absolute_url(), hidden | data, follow=True)
    return response.content.decode()


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("12500", 12500),
        (" 12.5 ", Fraction(25, 2)),
        ("12,5", Fraction(25, 2)),
        ("0,125", Fraction(1, 8)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1,234,567", 1234567),
        ("1.234.567,25", Fraction("1234567.25")),
        ("1,234,567.25", Fraction("1234567.25")),
        ("12 500", 12500),
        ("12\N{NO-BREAK SPACE}500", 12500),
        ("12\N{NARROW NO-BREAK SPACE}500", 12500),
        ("12\N{THIN SPACE}500,5", Fraction("12500.5")),
        ("12’500", 12500),
        ("\N{MINUS SIGN}1.5", Fraction(-3, 2)),
        ("–2", -2),
        ("+3", 3),
        ("١٢٣", 123),
        ("١٢٫٥", Fraction(25, 2)),
        ("१२", 12),
        ("1.5e3", 1500),
        ("2E-2", Fraction(1, 50)),
    ],
)
def test_numbers_are_read_as_people_type_them(typed: str, number: Fraction | int):
    assert parse_number(typed) == number


@pytest.mark.parametrize("typed", ["16,000", "16.000", "-1,234", "999.125"])
def test_a_number_that_can_be_read_in_two_ways_is_asked_again(typed: str):
    with pytest.raises(NotAnswered, match="can be read in two ways"):
        parse_number(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "  ",
        "nan",
        "inf",
        "-",
        "0x10",
        "1_000",
        "1e",
        "twelve",
        "12 MB",
        "1,23,456",
        "1.2.3",
        "1,2.3,4",
        "5%",
        "½",
        "²",
        "\x00",
    ],
)
def test_what_is_no_number_is_said_and_costs_nothing(typed: str):
    with pytest.raises(NotAnswered):
        parse_number(typed)


@pytest.mark.parametrize("typed", ["9" * 100_000, "1e999", "1e-41"])
def test_a_number_out_of_all_bounds_is_refused_at_once(typed: str):
    with pytest.raises(NotAnswered):
        parse_number(typed)


def test_formulas_are_exact_where_they_can_be():
    assert compute("N*P + N*(N-1)/2", {"N": 7, "P": 3}) == 7 * 3 + 21
    assert compute("P/3", {"P": 1}) == Fraction(1, 3)
    assert compute("2**-2", {}) == Fraction(1, 4)
    assert compute("ceil(P/2) + min(P, 3)", {"P": 5}) == 6
    assert float(compute("sqrt(P)", {"P": 2})) == pytest.approx(math.sqrt(2))
    assert float(compute("0.99**200", {})) == pytest.approx(0.99**200)


@pytest.mark.parametrize(
    "formula",
    [
        "1/0",
        "P",
        "__import__('os')",
        "(1).__class__",
        "[1]*10**9",
        "9**9**9",
        "'a'*3",
        "open('x')",
        "log2(0)",
        "N ==",
        "",
    ],
)
def test_a_formula_that_cannot_be_computed_is_named(formula: str):
    with pytest.raises(FormulaError):
        compute(formula, {"N": 1})


@pytest.mark.django_db
def test_a_numeric_question_draws_anew_for_each_try_and_the_same_for_each_reload():
    version = version_of(POSITIONS)
    kind = kind_named("numeric")

    texts = [kind.ask(version, Asking("ada", number), QueryDict())["text"] for number in (1, 1, 2, 3)]

    assert texts[0] == texts[1]
    assert len(set(texts)) == 3
    assert kind.ask(version, Asking("bob", 1), QueryDict())["text"] != texts[0]
    prompt, new = map(int, re.findall(r"\d+", texts[0].replace(",", "")))
    assert 20 <= prompt <= 400
    assert prompt % 10 == 0
    assert graded(version, f"number={new * prompt + new * (new - 1) // 2}")[0] == 1


@pytest.mark.django_db
def test_the_number_of_a_mistake_gets_its_reason():
    version = version_of(POSITIONS)
    prompt, new = map(int, re.findall(r"\d+", kind_named("numeric").ask(version, Asking("ada"), QueryDict())["text"]))

    score, shown = graded(version, f"number={prompt * new}")

    assert score == 0
    assert shown["met"] == ["The sequence grows."]
    assert f"{new} passes: {new * prompt + new * (new - 1) // 2:,}." in shown["working"]


@pytest.mark.django_db
@pytest.mark.parametrize(("typed", "is_right"), [("40.2", True), ("39.8", True), ("40.2000001", False), ("40", True)])
def test_the_edge_of_a_tolerance_is_within_it(typed: str, is_right: bool):
    data = POSITIONS | {
        "text": "How many?",
        "numeric": {"formula": "40", "unit": "ms", "tolerance": 0.005, "decimals": 0},
    }
    version = version_of(data)

    assert (graded(version, f"number={typed}")[0] == 1) == is_right


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formula": "P/3 + N - N"}, "an exact key must have 0 decimals"),
        ({"formula": "P*X"}, "cannot be computed"),
        ({"traps": [{"formula": "N*P + N*(N-1)/2", "why": "…"}]}, "a trap must differ from the key"),
        ({"parameters": {"P": {"from": 5, "to": 5}}}, "from must be less than to"),
    ],
)
def test_a_broken_numeric_question_is_refused(change: dict[str, Any], message: str):
    problems = read_question(POSITIONS | {"numeric": POSITIONS["numeric"] | change})

    assert isinstance(problems, list)
    assert any(message in problem.message for problem in problems)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ticked", "score"),
    [
        ("AB", 1),
        ("A", Fraction(1, 2)),
        ("ABC", Fraction(2, 3)),
        ("ABCDE", 0),
        ("CDE", 0),
        ("AC", Fraction(1, 6)),
        ("C", 0),
    ],
)
def test_multiple_choice_gives_exact_shares_and_ticking_all_never_pays(ticked: str, score: Fraction):
    version = version_of(SEVERAL)
    ids = {option.text[-1]: option.public_id for option in version.options.all()}

    assert graded(version, "&".join(f"option={ids[name]}" for name in ticked))[0] == score


@pytest.mark.django_db
@pytest.mark.parametrize("data", ["", "option=", "option=x", "option=8b2b4b3e-0000-4000-8000-000000000000"])
def test_nothing_ticked_is_no_answer(data: str):
    with pytest.raises(NotAnswered):
        graded(version_of(SEVERAL), data)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("places", "score"),
    [((1, 2, 3, 4), 1), ((2, 1, 3, 4), Fraction(2, 3)), ((4, 3, 2, 1), 0), ((1, 2, 4, 3), Fraction(2, 3))],
)
def test_an_order_is_scored_by_its_pairs(places: tuple[int, ...], score: Fraction):
    version = version_of(ORDER)
    items = kind_named("ordering").ask(version, Asking("ada"), QueryDict())["items"]
    shown = {item_id: text for item_id, text, _ in items}
    by_text = {text: item_id for item_id, text in shown.items()}
    data = "&".join(f"place-{by_text[text]}={place}" for text, place in zip(ORDER["items"], places, strict=True))

    assert graded(version, data)[0] == score


@pytest.mark.django_db
def test_places_given_twice_are_asked_again_and_the_order_shown_says_nothing():
    version = version_of(ORDER)
    kind = kind_named("ordering")

    orders = {
        tuple(text for _, text, _ in kind.ask(version, Asking(f"learner {n}"), QueryDict())["items"]) for n in range(30)
    }

    assert len(orders) > 10
    with pytest.raises(NotAnswered, match="a place of its own"):
        graded(
            version,
            "&".join(f"place-{item_id}=1" for item_id, _, _ in kind.ask(version, Asking("ada"), QueryDict())["items"]),
        )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "typed", ["logit", " Logit ", "LOGIT", "raw\N{NO-BREAK SPACE} score", "lo\N{ZERO WIDTH SPACE}git"]
)
def test_a_short_text_does_not_depend_on_spaces_and_case(typed: str):
    data = QueryDict(mutable=True)
    data["text"] = typed
    version = version_of(WORD)
    kind = kind_named("short_text")

    assert kind.grade(version, kind.read(version, data, None, Asking("ada"))).score == 1


@pytest.mark.django_db
def test_a_plausible_wrong_word_gets_its_reason():
    score, shown = graded(version_of(WORD), "text=Probability")

    assert score == 0
    assert shown["met"] == ["That comes after softmax."]


@pytest.mark.parametrize(
    ("ours", "theirs"), [("café", "cafe\N{COMBINING ACUTE ACCENT}"), ("it’s", "it's"), ("STRASSE", "straße")]
)
def test_the_same_text_in_other_letters(ours: str, theirs: str):
    assert plain(ours, True) == plain(theirs, True)


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ["", "\N{ZERO WIDTH SPACE}", "x" * 101, "a\x00b", "a\N{REPLACEMENT CHARACTER}b"])
def test_a_short_text_that_cannot_be_read_is_asked_again(typed: str):
    data = QueryDict(mutable=True)
    data["text"] = typed

    with pytest.raises(NotAnswered):
        kind_named("short_text").read(version_of(WORD), data, None, Asking("ada"))


@pytest.mark.django_db
def test_an_explanation_is_marked_by_its_learner_after_the_model_answer(signed_in: Client):
    question = asked(PLAN)
    before = signed_in.get(question.get_absolute_url()).content.decode()
    assert "Nothing else is carried on." not in before

    page = answer(signed_in, question, text="Each step sees the tokens so far and gives one distribution.")
    assert re.findall(r'name="point" value="(\d)" checked', page) == ["0", "1"]
    assert "Keep my marks" in page
    given = Answer.objects.get()
    signed_in.post(f"/answers/{given.pk}/marks/", {"point": ["0", "1", "2", "3", "9", "x"]})

    given.refresh_from_db()
    assert (given.verdict, given.score, given.response["marks"]) == ("right", Decimal(1), [0, 1, 2, 3])
    signed_in.post(f"/answers/{given.pk}/marks/", {}, **HTMX)
    given.refresh_from_db()
    assert (given.verdict, given.score) == ("wrong", Decimal(0))


@pytest.mark.django_db
def test_marks_are_ones_own_and_of_explanations_alone(client: Client, signed_in: Client, chatbot: Question):
    question = asked(PLAN)
    answer(signed_in, question, text="It sees the tokens so far, nothing else.")
    given = Answer.objects.get()

    assert Client().post(f"/answers/{given.pk}/marks/", {"point": "1"}).status_code == 404
    html = signed_in.get(chatbot.get_absolute_url()).content.decode()
    answer(signed_in, chatbot, option=options(html)[0])
    choice = Answer.objects.latest("created")
    assert signed_in.post(f"/answers/{choice.pk}/marks/", {"point": "1"}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "too short", "word " * 2000])
def test_an_explanation_of_no_length_or_of_any_is_asked_again(text: str):
    data = QueryDict(mutable=True)
    data["text"] = text

    with pytest.raises(NotAnswered):
        kind_named("explain").read(version_of(PLAN), data, None, Asking("ada"))


@pytest.mark.django_db
def test_what_was_typed_is_there_again_when_it_is_refused(signed_in: Client):
    question = asked(POSITIONS)
    html = signed_in.get(question.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "number": "16,000"}

    response = signed_in.post(question.get_absolute_url(), data, **HTMX)

    assert response.status_code == 422
    page = response.content.decode()
    assert 'name="number" inputmode="decimal" autocomplete="off" maxlength="60" value="16,000"' in page
    assert "can be read in two ways. Write 16000 or 16.0." in page
    assert Answer.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("data", [POSITIONS, ORDER, WORD, PLAN, SEVERAL, NEXT], ids=lambda data: data["kind"])
def test_nothing_that_is_said_after_the_answer_leaves_the_server_before_it(signed_in: Client, data: dict[str, Any]):
    question = asked(data)

    html = signed_in.get(question.get_absolute_url()).content.decode()

    secrets = [data["answer"], data["warning"], *data["listens_for"], *filter(None, [data.get("explanation")])]
    secrets += [option["why"] for option in data.get("options", [])] + [p["point"] for p in data.get("rubric", [])]
    secrets += [trap["why"] for trap in data.get("numeric", {}).get("traps", [])] + data.get("accepted", [])
    assert [secret for secret in secrets if secret in html] == []
    assert "N*P" not in html
    assert "0.58" not in html


@pytest.mark.django_db
def test_a_prediction_is_right_for_the_likeliest_token_alone(signed_in: Client):
    question = asked(NEXT)
    html = signed_in.get(question.get_absolute_url()).content.decode()
    shown = re.findall(r'name="option" value="([^"]*)" required><span><code>([^<]*)</code>', html)
    ids = {token: option_id for option_id, token in shown}

    assert "Right, your choice" in answer(signed_in, question, option=ids["is"])
    assert "Wrong, your choice" in answer(signed_in, question, option=ids["sky"])


def test_the_engine_finds_the_key_of_a_prediction():
    found = found_by_engine(PredictSpec(model="sky", prompt="the sky is", step=2, n_options=3))

    assert found[0].token == "is"  # greedy: is, is, sky, is
    assert found[0].probability == 0.4978
    assert len(found) == 3


def test_a_prediction_whose_key_is_not_computed_is_refused():
    problems = read_question(NEXT | {"predict": NEXT["predict"] | {"found": []}})

    assert isinstance(problems, list)
    assert "compute_predictions" in problems[0].message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ORDER | {"rubric": PLAN["rubric"]}, "a question of kind ordering has no rubric"),
        (ORDER | {"items": ["a", "a", "b"]}, "items must differ"),
        (PLAN | {"rubric": PLAN["rubric"][:3]}, "a rubric must have 4 to 7 points"),
        (WORD | {"near": [{"text": "Logit", "why": "…"}]}, "'Logit' is accepted as well"),
        (
            SEVERAL | {"options": [option | {"right": True} for option in SEVERAL["options"]]},
            "at least one option must be",
        ),
        (POSITIONS | {"text": "How many for {P}?"}, "the text must give the parameter {N}"),
    ],
)
def test_a_question_that_lacks_what_its_kind_needs_is_refused(data: dict[str, Any], message: str):
    problems = read_question(data)

    assert isinstance(problems, list)
    assert any(message in problem.message for problem in problems)


@pytest.mark.django_db
def test_a_second_press_of_a_numeric_form_is_the_same_answer(signed_in: Client):
    question = asked(POSITIONS)
    html = signed_in.get(question.get_absolute_url()).content.decode()
    data = {"token": field(html, "token"), "version": field(html, "version"), "number": "7"}

    for _ in range(3):
        signed_in.post(question.get_absolute_url(), data)

    assert Answer.objects.count() == 1
    signed_in.post(question.get_absolute_url(), data | {"token": str(uuid4())})
    assert Answer.objects.count() == 2
    first, second = Answer.objects.order_by("try_number")
    assert first.response["values"] != second.response["values"]
