"""Moodle XML, in which Moodle exports its question banks.

Read by defusedxml's SAX reader: it refuses document types and entities before they act, and knows the line of
each element, which its tree builder does not.
"""

import re
import xml.etree.ElementTree as ET  # writes, never reads
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, InputSource, Locator

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from quizsite.content.formats.moodle import (
    NO_FEEDBACK,
    NOTHING,
    Answer,
    MoodleQuestion,
    percent,
    reading_of,
    weight_of,
)
from quizsite.content.formats.moodle_out import held, left_out_words
from quizsite.content.formats.reading import FileProblem, Problem, Reading
from quizsite.content.formats.texts import Marked, decoded
from quizsite.questions.models import QuestionVersion

FORMATS = {"html": "html", "markdown": "markdown", "plain_text": "plain", "moodle_auto_format": "moodle"}
NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what no XML may hold
ORDERING = {"layouttype": "VERTICAL", "selecttype": "ALL", "gradingtype": "ABSOLUTE_POSITION", "showgrading": "SHOW"}


@dataclass
class Element:
    """An element as it is read, with its line."""

    name: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def all(self, name: str) -> list["Element"]:
        return [child for child in self.children if child.name == name]

    def first(self, *names: str) -> "Element | None":
        """Return the first element at the end of a path."""
        found: Element | None = self
        for name in names:
            found = next(iter(found.all(name)), None) if found else None
        return found

    def words(self, *names: str) -> str:
        """Return the text at the end of a path, or nothing."""
        found = self.first(*names)
        return found.text.strip() if found else ""

    def walk(self) -> Iterator["Element"]:
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


class _Tree(ContentHandler):
    """Builds the questions of a file; those that were complete before a fault stay."""

    def __init__(self) -> None:
        super().__init__()
        self.root = ""
        self.questions: list[Element] = []
        self._open: list[Element] = []
        self._pieces: list[str] = []

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802  (SAX names it)
        self._locator = locator

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        self._take_text()
        element = Element(name, self._locator.getLineNumber() or 1, dict(attrs))
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = name
        self._open.append(element)

    def characters(self, content: str) -> None:
        self._pieces.append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        self._take_text()
        element = self._open.pop()
        if len(self._open) == 1 and name == "question":
            self.questions.append(element)

    def _take_text(self) -> None:
        if self._open:
            self._open[-1].text += "".join(self._pieces)
        self._pieces = []


def read(data: bytes) -> Reading:
    """Read all questions of a file; where its XML breaks off, those before it are read."""
    text = decoded(data)
    if not isinstance(text, str):
        return Reading(problems=[text])
    tree = _Tree()
    problems = _parsed(text, tree)
    if not problems and tree.root != "quiz":
        problems = [FileProblem(1, f"the file is <{tree.root}>, not <quiz>", "Export it from Moodle as Moodle XML.")]
    return reading_of(_questions(tree.questions), problems)


def _parsed(text: str, tree: _Tree) -> list[FileProblem]:
    source = InputSource()
    source.setByteStream(BytesIO(text.encode()))
    source.setEncoding("utf-8")  # whatever the first line says: it is decoded already
    parser = DefusedExpatParser(forbid_dtd=True)
    parser.setContentHandler(tree)
    try:
        parser.parse(source)
    except DefusedXmlException:
        said = "it declares a document type or an entity, which Moodle never does"
        return [FileProblem(parser.getLineNumber() or 1, said, "Remove <!DOCTYPE …> and all that belongs to it.")]
    except SAXParseException as error:
        line = error.getLineNumber() or 1
        said = f"this is not well-formed XML: {error.getMessage()}; nothing after it is read"
        return [FileProblem(line, said, "Export it again, or put HTML between <![CDATA[ and ]]>.")]
    return []


def _questions(elements: list[Element]) -> Iterator[MoodleQuestion]:
    category = ""
    for element in elements:
        if element.attributes.get("type") == "category":
            category = element.words("category", "text")
        else:
            yield _question(element, category)


def _question(element: Element, category: str) -> MoodleQuestion:
    problems = list(_unheld(element))
    return MoodleQuestion(
        line=element.line,
        kind=element.attributes.get("type", ""),
        name=element.words("name", "text"),
        text=_marked(element.first("questiontext")),
        answers=[_answer(answer, problems) for answer in element.all("answer")],
        feedback=_marked(element.first("generalfeedback")),
        slug=element.words("idnumber"),
        category=category,
        tags=tuple(tag.words("text") for tags in element.all("tags") for tag in tags.all("tag")),
        is_single=element.words("single").lower() not in {"false", "0"},
        keeps_order=element.words("shuffleanswers").lower() in {"false", "0"},
        ignore_case=element.words("usecase") != "1",
        unit=element.words("units", "unit", "unit_name"),
        grader_info=_marked(element.first("graderinfo")),
        problems=problems,
    )


def _unheld(question: Element) -> Iterator[Problem]:
    if not question.attributes.get("type"):
        yield Problem("the question does not say its type", 'Write it as <question type="multichoice">, say.')
    for element in question.walk():
        if element.name == "file":
            named = element.attributes.get("name", "")[:40]
            yield Problem(f"a file is embedded: {named!r}", "The bank holds no files. Say in words what it shows.")
        if element.name == "text" and element.children:
            said = f"<text> in line {element.line} holds <{element.children[0].name}>, which is read as XML"
            yield Problem(said, "Put HTML between <![CDATA[ and ]]>.")


def _answer(element: Element, problems: list[Problem]) -> Answer:
    fraction = element.attributes.get("fraction", "0")
    weight = weight_of(fraction)
    if weight is None:
        said = f"the fraction {fraction[:40]!r} of the answer in line {element.line} is no number of per cent"
        problems.append(Problem(said, "Write a number from -100 to 100."))
    feedback = element.first("feedback")
    tolerance = element.words("tolerance")
    return Answer(_marked(element), NOTHING if weight is None else weight, _marked(feedback), tolerance)


def _marked(element: Element | None) -> Marked:
    if element is None:
        return NO_FEEDBACK
    return Marked(element.words("text"), FORMATS.get(element.attributes.get("format", "html"), "html"))


def write(versions: Iterable[QuestionVersion]) -> str:
    """Write what Moodle XML can hold; a comment at the top counts the rest."""
    left_out: Counter[str] = Counter()
    quiz, category = ET.Element("quiz"), ""
    for question in held(versions, left_out):
        if question.category != category:
            category = question.category
            _texted(ET.SubElement(quiz, "question", type="category"), "category", category)
        quiz.append(_written(question))
    quiz.insert(0, ET.Comment(f" {left_out_words(left_out)} "))
    ET.indent(quiz)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(quiz, encoding="unicode")}\n'


def _written(question: MoodleQuestion) -> ET.Element:
    element = ET.Element("question", type=question.kind)
    _texted(element, "name", question.name)
    _texted(element, "questiontext", question.text.text, format="markdown")
    _texted(element, "generalfeedback", question.feedback.text, format="markdown")
    _valued(element, "idnumber", question.slug)
    if question.kind == "multichoice":
        _valued(element, "single", str(question.is_single).lower())
        _valued(element, "shuffleanswers", "0" if question.keeps_order else "1")
    if question.kind == "shortanswer":
        _valued(element, "usecase", "0" if question.ignore_case else "1")
    if question.kind == "ordering":
        for name, value in ORDERING.items():
            _valued(element, name, value)
    for answer in question.answers:
        element.append(_written_answer(question, answer))
    if question.unit:
        unit = ET.SubElement(ET.SubElement(element, "units"), "unit")
        _valued(unit, "multiplier", "1")
        _valued(unit, "unit_name", question.unit)
    if question.grader_info.text:
        _texted(element, "graderinfo", question.grader_info.text, format="markdown")
    tags = ET.SubElement(element, "tags")
    for tag in question.tags:
        _texted(tags, "tag", tag)
    return element


def _written_answer(question: MoodleQuestion, answer: Answer) -> ET.Element:
    is_plain = question.kind in {"shortanswer", "numerical"}
    form = "moodle_auto_format" if is_plain else "markdown"
    weight = f"{Decimal(answer.weight):.7f}" if question.kind == "ordering" else percent(answer.weight)
    element = ET.Element("answer", fraction=weight, format=form)
    _valued(element, "text", answer.text.text)
    _texted(element, "feedback", answer.feedback.text, format="markdown")
    if question.kind == "numerical":
        _valued(element, "tolerance", answer.tolerance)
    return element


def _texted(parent: ET.Element, name: str, text: str, **attributes: str) -> None:
    """Add an element that holds its text in <text>, as Moodle has it."""
    _valued(ET.SubElement(parent, name, attributes), "text", text)


def _valued(parent: ET.Element, name: str, value: str) -> None:
    ET.SubElement(parent, name).text = NO_XML.sub("\N{REPLACEMENT CHARACTER}", value.replace("\r\n", "\n"))
