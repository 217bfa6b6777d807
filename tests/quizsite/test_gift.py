"""GIFT: what is typed for Moodle becomes drafts, and the bank's questions go there and come back."""

import re
from decimal import Decimal
from fractions import Fraction
from html import unescape
from typing import Any

import pytest
from django.utils.html import strip_tags
from hypothesis import example, given
from hypothesis import strategies as st

from quizsite.content.formats.gift import read, write
from quizsite.content.formats.moodle import percent
from quizsite.content.formats.reading import Row
from quizsite.content.formats.texts import literal
from quizsite.markdown import markdown
from quizsite.questions.formulas import compute
from quizsite.questions.validation import lacks
from tests.quizsite.drafts import KEPT, TEXTS, bank, check_same, plain_numeric, said, spec, unsaved


def rows(text: str) -> list[Row]:
    reading = read(text.encode())
    assert not reading.problems
    return reading.rows


def row(text: str) -> Row:
    (found,) = rows(text)
    return found


def test_a_choice_is_read_with_its_title_its_reasons_and_its_explanation():
    found = row(
        "// a comment\n$CATEGORY: $course$/top/Cost\n\n"
        "// [id:its-slug] [tag:advanced]\n"
        "::Grant's tomb::Who is buried\nin Grant's tomb? {\n"
        "  =Grant # He \\= himself.\n  ~nobody\n  ~%0%Jefferson#He is in\nMonticello.\n  ####He and his wife.\n}\n"
    )

    assert (found.line, found.slug, found.topic) == (5, "its-slug", "cost")
    assert spec(found).model_dump(exclude_defaults=True) == {
        "title": "Grant's tomb",
        "level": "advanced",
        "kind": "single_choice",
        "text": "Who is buried\nin Grant's tomb?",
        "explanation": "He and his wife.",
        "options": [
            {"text": "Grant", "right": True, "why": "He = himself."},
            {"text": "nobody"},
            {"text": "Jefferson", "why": "He is in\nMonticello."},
        ],
    }


def test_escapes_take_the_meaning_of_a_mark_away():
    found = row(r"::a\:\:b::if (x \=\= 1) \{ C\:\\x\n\} {=\~1 \# \= \{ ~\\ ~c}")

    assert found.data["title"] == "a::b"
    assert found.data["text"] == "if (x == 1) { C:\\x\n}"
    assert [option["text"] for option in found.data["options"]] == ["~1 # = {", "\\", "c"]


def test_the_answers_of_a_missing_word_leave_a_gap_and_a_question_without_a_title_is_named_by_its_text():
    found = row("The sky is {=blue ~red ~loud} today.")

    assert markdown(found.data["text"]) == "<p>The sky is _____ today.</p>\n"
    assert found.data["title"] == "The sky is _____ today."


def test_a_title_of_a_letter_or_two_gives_way_to_the_text_and_a_long_one_is_cut():
    assert row("::Q1::What is it? {=a ~b ~c}").data["title"] == "What is it?"
    assert len(row(f"::{'word ' * 40}::What? {{=a ~b ~c}}").data["title"]) <= 80


@pytest.mark.parametrize("third", ["33", "33.3", "33.333", "33.33333", "33,33"])
def test_weights_that_are_thirds_in_any_writing_are_multiple_choice(third: str):
    found = spec(row(f"Which? {{~%{third}%a ~%{third}%b ~%{third}%c ~%-50%d ~%-50%e}}"))

    assert found.kind == "multiple_choice"
    assert [option.right for option in found.options] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ("~%60%a ~%40%b ~%-100%c", "60 %, 40 %, -100 %"),
        ("~%50%a ~%50%b ~c", "50 %, 50 %, 0 %"),
        ("~%25%a ~%25%b ~%-50%c ~%-50%d", "25 %, 25 %, -50 %, -50 %"),
        ("=a ~%50%b ~c", "100 %, 50 %, 0 %"),
        ("=a =b ~c", "100 %, 100 %, 0 %"),
    ],
)
def test_weights_that_give_other_points_than_the_bank_are_named_and_refused(answers: str, named: str):
    assert named in said(row(f"Which? {{{answers}}}"))


def test_the_mend_says_which_weights_would_do():
    assert "each right answer 50 and each wrong one -100" in said(row("Which? {~%50%a ~%50%b ~c}"))


def test_true_or_false_is_a_draft_that_lacks_a_third_option():
    found = spec(row("The sky is red. {FALSE#Look up.#Blue it is.}"))

    assert [(option.text, option.right, option.why) for option in found.options] == [
        ("True", False, "Look up."),
        ("False", True, "Blue it is."),
    ]
    assert "options must be 3 to 6, got 2" in [problem.message for problem in lacks(found)]


def test_short_answers_are_accepted_texts_and_wrong_ones_with_their_reason():
    found = spec(row("What? {=mask #It hides. =%100%the \\\\* mask =%0%cache#It keeps. ####Look it up.}"))

    assert found.accepted == ["mask", "the * mask"]
    assert [(near.text, near.why) for near in found.near] == [("cache", "It keeps.")]
    assert found.explanation == "Look it up.\n\nIt hides."


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ("=ma* =mask", "'ma*' holds a wildcard"),
        ("=mask =%50%cache", "'cache' earns 50 %"),
        ("=mask =%0%cache", "'cache' earns nothing and has no feedback"),
    ],
)
def test_short_answers_that_the_bank_would_judge_otherwise_are_named(answers: str, problem: str):
    assert problem in said(row(f"What? {{{answers}}}"))


@pytest.mark.parametrize(
    ("answer", "key", "tolerance", "decimals"),
    [
        ("12", "12", 0, 0),
        ("-0.10", "-1/10", 0, 2),
        ("20:5", "20", 0.25, 0),
        ("=%100%12.5:0.25", "25/2", 0.02, 1),
        ("9..11", "10", 0.1, 0),
        ("=100:1 =%0%50:0.5#Half of it.", "100", 0.01, 0),
    ],
)
def test_a_number_keeps_its_tolerance_as_an_exact_share(answer: str, key: str, tolerance: float, decimals: int):
    found = spec(row(f"// unit: m\nHow long? (m) {{#{answer}}}"))

    assert found.numeric
    assert (found.text, found.numeric.unit) == ("How long?", "m")
    assert compute(found.numeric.formula, {}) == Fraction(key)
    assert (found.numeric.tolerance, found.numeric.decimals) == (tolerance, decimals)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("1822:5", "a share of it that no decimal says exactly"),
        ("0:1", "no decimal"),
        ("10:8", "between 0 and half"),
        ("11..9", "between 0 and half"),
        ("1,822", "can be read in two ways"),
        ("=1:0 =%50%2:0", "'2' earns 50 %"),
        ("=1:0 =2:0", "several numbers are right"),
        ("=10:1 =%0%20:1#why", "different shares"),
        ("=1 ~#Try again.", "'*' is no number"),
        ("", "no number is right"),
    ],
)
def test_numbers_that_the_bank_would_judge_otherwise_are_named(answer: str, problem: str):
    assert problem in said(row(f"How long? {{#{answer}}}"))


def test_the_tolerance_that_is_proposed_is_taken():
    proposed = re.search(r"Choose ([\d.]+), for example", said(row("Born? {#1822:5}")))

    assert proposed
    assert not row(f"Born? {{#1822:{proposed[1]}}}").problems


def test_a_number_without_a_unit_is_a_draft_that_lacks_it():
    assert "a number needs its unit" in [problem.message for problem in lacks(spec(row("How long? {#12}")))]


def test_an_essay_is_an_explain_without_a_rubric_and_an_ordering_keeps_its_order():
    assert spec(row("Say why. {####Because.}")).kind == "explain"
    assert spec(row("Sort. {>ALL VERTICAL\nfirst\n second\nthird\n####So.}")).items == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("text", "kind"), [("Pair them. {=a -> b =c -> d}", "matching"), ("Read the next chapter.", "description")]
)
def test_kinds_that_the_bank_lacks_are_named(text: str, kind: str):
    assert f"no questions of the kind {kind}" in said(row(text))


def test_one_bad_question_stops_no_other_and_each_problem_has_its_line():
    first, second, third = rows("One? {=a ~b ~c}\n\nTwo? {=a ~b\n\nThree? {=a ~b ~c}")

    assert (first.line, second.line, third.line) == (1, 3, 5)
    assert "one { and one }" in said(second)
    assert not first.problems
    assert not third.problems


def test_the_same_slug_twice_in_a_file_is_a_named_problem_of_the_second():
    first, second = rows("::Same title::One? {=a ~b ~c}\n\n::Same title::Two? {=a ~b ~c}")

    assert not first.problems
    assert "slug 'same-title' is taken by line 1" in said(second)


def test_titles_without_latin_letters_get_slugs_that_stay():
    assert row("::空は青い::何? {=a ~b ~c}").slug == row("::空は青い::何か? {=a ~b ~c}").slug != ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_are_read_by_their_mark_and_with_any_ends_of_lines(encoding: str, end: str):
    reading = read("Señor? {=a ~b\n~c}\n\nZwei? {=a ~b ~c}".replace("\n", end).encode(encoding))

    assert [(found.line, found.data["text"]) for found in reading.rows] == [(1, "Señor?"), (4, "Zwei?")]


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        ("One\n\nSeñor? {=a ~b}".encode("latin-1"), 3, "Latin-1"),
        ("One?\n{=a}".encode("utf-16-le"), 1, "UTF-16"),
        (b"\xff\xfea\x00b", 1, "UTF-16"),
        (b"", 1, "no question"),
        (b"// nothing\n", 1, "no question"),
    ],
)
def test_other_files_are_refused_in_words(data: bytes, line: int, word: str):
    reading = read(data)

    assert not reading.rows
    assert [problem.line for problem in reading.problems] == [line]
    assert word in reading.problems[0].message


def test_html_becomes_markdown_and_plain_text_stays_what_it_is():
    html, plain = rows(
        "[html]<p>Is <b>2</b> &lt; 3<sup>2</sup>?</p><script>alert(1)</script> {=[plain]a*b*c ~<i>b</i> ~c}\n\n"
        "[plain]Is <b>2*3*4</b> it? {=a ~b ~c}"
    )

    assert html.data["text"] == "Is **2** < 3^2?"
    assert [option["text"] for option in html.data["options"]] == [r"a\*b\*c", "*b*", "c"]
    assert strip_tags(unescape(markdown(plain.data["text"]))) == strip_tags("Is <b>2*3*4</b> it?\n")
    assert "<em>" not in markdown(plain.data["text"])


@pytest.mark.parametrize(
    ("markup", "word"),
    [
        ('<img src\\="a.png">', "image"),
        ('<a href\\="@@PLUGINFILE@@/a.png">x</a>', "image"),
        ("[markdown]![a](b.png)", "image"),
        ("<table><tr><td>a</table>", "<table>"),
        ("<div>" * 3000, "cannot be read"),
        ("<b>" + "a" * 60_000, "60,003 letters"),
    ],
)
def test_what_the_bank_cannot_hold_is_a_problem_and_not_dropped(markup: str, word: str):
    assert word in said(row(f"What? {{={markup} ~b ~c}}"))


@given(TEXTS)
def test_plain_text_shows_letter_for_letter(text: str):
    shown = unescape(strip_tags(markdown(literal(text)).replace("<", "\ue000<")).replace("\ue000", ""))

    assert "".join(shown.split()) == "".join(text.split())


@given(st.one_of(st.text(), st.text("\\~=#{}:%[]->/*\n1. TF<b>&"), st.binary()))
def test_whatever_a_file_holds_it_is_read_or_its_problems_are_named(content: str | bytes):
    reading = read(content if isinstance(content, bytes) else content.encode(errors="replace"))

    assert reading.rows or reading.problems


@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS), min_size=3, max_size=6))
@example("a ::b:: {c}", [("%50%a", "[html]b"), ("[plain]b", "%1%"), ("c\n\n// d", "####\\n")])
def test_any_text_comes_back_from_its_escapes(title: str, options: list[tuple[str, str]]):
    found = row(write([unsaved(title, options)]))

    assert (found.data["text"], found.data["explanation"]) == (title, title)
    assert [(option["text"], option["why"]) for option in found.data["options"]] == options


def test_an_item_that_begins_like_a_comment_comes_back():
    version = unsaved("Sort.", [])
    version.kind, version.details = "ordering", {"items": ["// first", "second", "[plain] third"]}

    assert spec(row(write([version]))).items == version.details["items"]


@pytest.mark.django_db
def test_the_whole_bank_comes_back_as_far_as_the_format_holds_it():
    versions = bank()

    reading = read(write(versions).encode())

    assert not reading.problems
    assert {found.slug for found in reading.rows if found.problems} == set()
    by_slug = {found.slug: found for found in reading.rows}
    kinds = KEPT | {"ordering", "explain"}
    assert by_slug.keys() == {version.question.slug for version in versions if version.kind in kinds}
    for version in versions:
        if version.kind in KEPT | {"ordering"}:
            check_same(by_slug[version.question.slug], version)


@pytest.mark.django_db
def test_the_first_line_counts_what_the_format_cannot_hold():
    versions = bank()

    first = write(versions).split("\n")[0]

    for kind, words in (("predict", "predict"), ("lab", "lab"), ("numeric", "numeric with parameters")):
        assert f"{sum(version.kind == kind for version in versions)} {words}" in first


@pytest.mark.django_db
def test_a_number_without_parameters_comes_back_with_unit_tolerance_and_traps():
    version = plain_numeric(traps=[{"formula": "25", "why": "Twice as much: 2 = 1 + 1."}])

    found = spec(row(write([version])))

    assert found.numeric
    assert (found.text, found.explanation) == (version.text, "They are 12.50.")
    assert found.numeric.model_dump(by_alias=True) == version.details["numeric"] | {
        "traps": [{"formula": "25", "why": "Twice as much: 2 = 1 + 1.", "mistake": None}]
    }


@pytest.mark.django_db
@pytest.mark.parametrize("details", [{"accepted": ["a -> b"]}, {"ignore_case": False}])
def test_short_texts_that_gift_would_turn_into_something_else_are_left_out(details: dict[str, Any]):
    version = next(version for version in bank() if version.kind == "short_text")
    version.details |= details

    assert "Left out, since the format cannot hold them: 1 short text" in write([version])
    assert not read(write([version]).encode()).rows


@given(st.integers(1, 6))
def test_a_written_share_is_read_as_that_share(n: int):
    share = percent(Fraction(100, n))

    assert abs(Decimal(share) * n - 100) < Decimal("0.0001")
