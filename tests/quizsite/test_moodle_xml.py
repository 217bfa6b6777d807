"""Moodle XML: what Moodle exports becomes drafts, and the bank's questions go there and come back."""

import xml.etree.ElementTree as ET
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quizsite.content.formats.moodle_xml import read, write
from quizsite.content.formats.reading import Row
from quizsite.questions.formulas import compute
from quizsite.questions.validation import lacks
from tests.quizsite.drafts import KEPT, TEXTS, bank, check_same, plain_numeric, said, spec, unsaved

WRONG = '<answer fraction="0"><text>b</text></answer><answer fraction="0"><text>c</text></answer>'
OPTIONS = f'<answer fraction="100"><text>a</text></answer>{WRONG}'


def quiz(*questions: str) -> str:
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<quiz>", *questions, "</quiz>"])


def question(kind: str, inside: str, text: str = "Which?", name: str = "A name") -> str:
    return (
        f'<question type="{kind}"><name><text>{name}</text></name>'
        f'<questiontext format="html"><text><![CDATA[{text}]]></text></questiontext>{inside}</question>'
    )


def row(xml: str) -> Row:
    reading = read(quiz(xml).encode())
    assert not reading.problems
    (found,) = reading.rows
    return found


def answers(*given: tuple[str, str, str], tolerance: str = "0") -> str:
    return "".join(
        f'<answer fraction="{fraction}"><text>{text}</text><tolerance>{tolerance}</tolerance>'
        f"<feedback><text>{feedback}</text></feedback></answer>"
        for fraction, text, feedback in given
    )


def test_a_choice_as_moodle_exports_it():
    reading = read(
        quiz(
            '<question type="category"><category><text>$course$/top/Cost</text></category></question>',
            "<!-- question: 12 -->",
            question(
                "multichoice",
                '<generalfeedback format="markdown"><text>*Blue.*</text></generalfeedback>'
                "<defaultgrade>1.0</defaultgrade><penalty>0.3333333</penalty><idnumber>sky</idnumber>"
                "<single>true</single><shuffleanswers>false</shuffleanswers>"
                '<answer fraction="100" format="html"><text>&lt;b&gt;blue&lt;/b&gt;</text>'
                '<feedback format="plain_text"><text>2*3*4</text></feedback></answer>'
                f"{WRONG}<tags><tag><text>physics</text></tag><tag><text>advanced</text></tag></tags>",
                text="<p>The sky&nbsp;is?</p>",
            ),
        ).encode()
    )

    (found,) = reading.rows
    assert (found.line, found.slug, found.topic) == (5, "sky", "cost")
    assert spec(found).model_dump(exclude_defaults=True) == {
        "title": "A name",
        "level": "advanced",
        "kind": "single_choice",
        "text": "The sky is?",
        "explanation": "*Blue.*",
        "options": [
            {"text": "**blue**", "right": True, "why": r"2\*3\*4", "pinned": True},
            {"text": "b", "pinned": True},
            {"text": "c", "pinned": True},
        ],
    }


@pytest.mark.parametrize("third", ["33", "33.333", "33.33333", "33.3333333"])
def test_several_answers_that_share_the_points_are_multiple_choice(third: str):
    given = [(third, text, "") for text in "abc"] + [("-100", "d", "")]

    found = spec(row(question("multichoice", f"<single>false</single>{answers(*given)}")))

    assert found.kind == "multiple_choice"
    assert [option.right for option in found.options] == [True, True, True, False]


def test_weights_that_give_other_points_than_the_bank_are_named():
    given = answers(("60", "a", ""), ("40", "b", ""), ("-100", "c", ""))

    assert "60 %, 40 %, -100 %" in said(row(question("multichoice", f"<single>false</single>{given}")))


@pytest.mark.parametrize("fraction", ["", "half", "1e9", "NaN", "1" * 5000])
def test_a_fraction_that_is_no_number_is_named(fraction: str):
    given = f'<answer fraction="{fraction}"><text>a</text></answer>{WRONG}'

    assert "is no number of per cent" in said(row(question("multichoice", given)))


def test_true_or_false_is_a_draft_that_lacks_a_third_option():
    given = answers(("0", "true", "Look up."), ("100", "false", ""))

    found = spec(row(question("truefalse", given)))

    assert [(option.text, option.right) for option in found.options] == [("true", False), ("false", True)]
    assert "options must be 3 to 6, got 2" in [problem.message for problem in lacks(found)]


def test_short_answers_keep_their_capitals_if_those_count():
    given = answers(("100", "KV cache", ""), ("0", "mask", "It hides."))

    found = spec(row(question("shortanswer", f"<usecase>1</usecase>{given}")))

    assert (found.accepted, found.ignore_case) == (["KV cache"], False)
    assert [(near.text, near.why) for near in found.near] == [("mask", "It hides.")]


def test_a_number_keeps_its_tolerance_as_a_share_and_its_unit():
    units = "<units><unit><multiplier>1</multiplier><unit_name>MB</unit_name></unit></units>"

    found = spec(row(question("numerical", answers(("100", "12.5", "Halved."), tolerance="0.25") + units)))

    assert found.numeric
    assert compute(found.numeric.formula, {}) == Fraction("12.5")
    assert (found.numeric.tolerance, found.numeric.unit, found.explanation) == (0.02, "MB", "Halved.")


def test_an_ordering_is_sorted_by_its_fractions_and_an_essay_keeps_what_its_graders_read():
    given = answers(("2.0000000", "second", ""), ("1.0000000", "first", ""), ("3.0000000", "third", ""))

    assert spec(row(question("ordering", given))).items == ["first", "second", "third"]
    essay = spec(row(question("essay", "<graderinfo><text>Look for the cache.</text></graderinfo>")))
    assert (essay.kind, essay.answer) == ("explain", "Look for the cache.")


@pytest.mark.parametrize("kind", ["matching", "cloze", "description", "calculated", "stack"])
def test_kinds_that_the_bank_lacks_are_named_and_their_text_is_kept(kind: str):
    found = row(question(kind, ""))

    assert f"no questions of the kind {kind}" in said(found)
    assert found.data["text"] == "Which?"


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ('<questiontext><text>x</text><file name="a.png" encoding="base64">iVBOR</file></questiontext>', "'a.png'"),
        ("<generalfeedback><text>&lt;img src='a.png'&gt;</text></generalfeedback>", "image"),
        ("<generalfeedback><text>&lt;a href='@@PLUGINFILE@@/a'&gt;x&lt;/a&gt;</text></generalfeedback>", "image"),
        ("<generalfeedback><text><p>not escaped</p></text></generalfeedback>", "<p>"),
    ],
)
def test_what_the_bank_cannot_hold_is_a_problem_and_not_dropped(inside: str, word: str):
    assert word in said(row(question("multichoice", inside + OPTIONS)))


def test_one_bad_question_stops_no_other_and_each_has_its_line():
    good = question("multichoice", OPTIONS, name="Good")
    xml = quiz("<question/>", good, question("cloze", "", name="Bad"), question("multichoice", OPTIONS, name="Best"))

    first, second, third, fourth = read(xml.encode()).rows

    assert [found.line for found in (first, second, third, fourth)] == [3, 4, 5, 6]
    assert "does not say its type" in said(first)
    assert not second.problems
    assert third.problems
    assert not fourth.problems


def test_the_same_slug_twice_in_a_file_is_a_named_problem_of_the_second():
    first, second = read(quiz(*[question("multichoice", OPTIONS)] * 2).encode()).rows

    assert not first.problems
    assert "slug 'a-name' is taken by line 3" in said(second)


def test_where_xml_breaks_off_the_questions_before_it_are_read():
    reading = read(quiz(question("multichoice", OPTIONS), "<question type='essay'><name>a & b</name>").encode())

    assert [found.line for found in reading.rows] == [3]
    assert [problem.line for problem in reading.problems] == [4]
    assert "not well-formed XML" in reading.problems[0].message


@pytest.mark.parametrize(
    "attack",
    [
        "<!DOCTYPE quiz>",
        '<!DOCTYPE quiz [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE quiz [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE quiz SYSTEM "http://127.0.0.1:9/quiz.dtd">',
        '<!DOCTYPE quiz [<!ENTITY % a SYSTEM "http://127.0.0.1:9/a"> %a;]>',
    ],
)
def test_document_types_and_entities_are_refused(attack: str):
    reading = read(f'<?xml version="1.0"?>\n{attack}\n<quiz>{question("essay", "", name="&a;")}</quiz>'.encode())

    assert not reading.rows
    assert [problem.line for problem in reading.problems] == [2]
    assert "document type" in reading.problems[0].message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("declared", ["UTF-8", "ISO-8859-1", "no-such-code"])
def test_the_mark_of_a_file_tells_its_encoding_and_not_its_first_line(encoding: str, declared: str):
    xml = quiz(question("essay", "", text="Señor?")).replace("UTF-8", declared).replace("\n", "\r\n")

    (found,) = read(xml.encode(encoding)).rows

    assert (found.line, found.data["text"]) == (3, "Señor?")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (quiz(question("essay", "", text="Señor?")).encode("latin-1"), "Latin-1"),
        (quiz().encode("utf-16-le"), "UTF-16"),
        (b"<html><body>x</body></html>", "<html>, not <quiz>"),
        (b"", "not well-formed"),
        (quiz().encode(), "no question"),
        (b"<quiz>" + b"<a>" * 100_000, "not well-formed"),
    ],
)
def test_other_files_are_refused_in_words(data: bytes, word: str):
    reading = read(data)

    assert not reading.rows
    assert word in reading.problems[0].message


@given(st.one_of(st.text(), st.binary()))
def test_whatever_a_file_holds_its_problems_are_named(content: str | bytes):
    assert read(content if isinstance(content, bytes) else content.encode(errors="replace")).problems


@given(
    st.sampled_from(["multichoice", "truefalse", "shortanswer", "numerical", "ordering", "essay", "matching", ""]),
    st.sampled_from(["html", "markdown", "plain_text", "moodle_auto_format", "x"]),
    st.lists(st.tuples(st.sampled_from(["100", "0", "50", "x"]), st.text("<b>&;#/!-1.*:[]") | TEXTS)),
    st.text("<b>&;#/!-1.*:[]") | TEXTS,
)
def test_whatever_a_question_holds_it_is_a_row(kind: str, form: str, given: list[tuple[str, str]], text: str):
    root = ET.Element("quiz")
    element = ET.SubElement(root, "question", type=kind)
    for parent, words in [
        (ET.SubElement(element, "questiontext", format=form), text),
        *((ET.SubElement(element, "answer", fraction=fraction, format=form), words) for fraction, words in given),
    ]:
        ET.SubElement(parent, "text").text = words.replace("\ufffe", "").replace("\uffff", "")

    assert len(read(ET.tostring(root, encoding="utf-8")).rows) == 1


@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS), min_size=3, max_size=6))
@example("]]>", [("<b>&amp;", "\uffff"), ("b", "-->"), ("c", "&#0;")])
def test_any_text_comes_back_from_its_escapes(title: str, options: list[tuple[str, str]]):
    (found,) = read(write([unsaved(title, options)]).encode()).rows

    assert (found.data["text"], found.data["explanation"]) == (held(title), held(title))
    assert [(option["text"], option["why"]) for option in found.data["options"]] == [
        (held(text), held(why)) for text, why in options
    ]


def held(text: str) -> str:
    """Return a text as XML can hold it: two characters it may not."""
    return text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


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
def test_a_comment_at_the_top_counts_what_the_format_cannot_hold():
    versions = bank()

    top = write(versions).split("-->")[0]

    for kind, words in (("predict", "predict"), ("lab", "lab"), ("numeric", "numeric with parameters")):
        assert f"{sum(version.kind == kind for version in versions)} {words}" in top


@pytest.mark.django_db
@pytest.mark.parametrize("numeric", [{}, {"formula": "-3", "tolerance": 0, "unit": "°C"}, {"formula": "10**6"}])
def test_a_number_without_parameters_comes_back_with_unit_tolerance_and_traps(numeric: dict[str, Any]):
    version = plain_numeric(traps=[{"formula": "25", "why": "Twice & more."}], **numeric)

    found = spec(*read(write([version]).encode()).rows)

    assert found.numeric
    assert (found.text, found.numeric.traps[0].why) == (version.text, "Twice & more.")
    assert compute(found.numeric.formula, {}) == compute(version.details["numeric"]["formula"], {})
    assert (found.numeric.tolerance, found.numeric.unit, found.numeric.decimals) == (
        version.details["numeric"]["tolerance"],
        version.details["numeric"]["unit"],
        version.details["numeric"]["decimals"],
    )


@pytest.mark.django_db
def test_numbers_that_no_decimal_says_are_left_out_and_counted():
    assert "1 numeric without a finite decimal" in write([plain_numeric(formula="1/3")])
