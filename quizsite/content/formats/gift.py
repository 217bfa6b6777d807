r"""GIFT, Moodle's format for typing questions: `::Title:: Text? {=right ~wrong #why}`, a blank line between two.

Read as Moodle reads it: a backslash before ~ = # { } : or itself takes its meaning away, \n is a new line.
Beyond Moodle, `// unit: tokens` above a number names its unit.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

from quizsite.content.formats.moodle import (
    FULL,
    NO_FEEDBACK,
    NOTHING,
    Answer,
    MoodleQuestion,
    percent,
    reading_of,
    weight_of,
)
from quizsite.content.formats.moodle_out import held, left_out_words
from quizsite.content.formats.reading import Problem, Reading
from quizsite.content.formats.texts import Marked, decoded
from quizsite.questions.models import QuestionVersion

Numbered = list[tuple[int, str]]  # lines with their numbers

CATEGORY = "$CATEGORY:"
GAP = "_____"  # where the answers of a question stand in mid-sentence
FORMAT = re.compile(r"\[(html|moodle|plain|markdown)\]")
WEIGHTED = re.compile(r"%([^%\s]{1,12})%")
NOTE = re.compile(r"\[(id|tag):((?:\\.|[^\]\\]){0,255})\]")  # in a comment: Moodle's ID number and tags
UNIT = re.compile(r"//\s*unit:(.*)")
ESCAPE = re.compile(r"\\([\\~=#{}:n])")
SPECIAL = re.compile(r"[\\~=#{}:\n]")
TRUTHS = {"T": True, "TRUE": True, "F": False, "FALSE": False}


def read(data: bytes) -> Reading:
    """Read all questions of a file; what is wrong with one does not touch the others."""
    text = decoded(data)
    if not isinstance(text, str):
        return Reading(problems=[text])
    return reading_of(_questions(text), [])


def write(versions: Iterable[QuestionVersion]) -> str:
    """Write what GIFT can hold; the first line counts the rest."""
    left_out: Counter[str] = Counter()
    parts, category = [], ""
    for question in held(versions, left_out):
        reason = _unheld(question)
        if reason:
            left_out[reason] += 1
            continue
        if question.category != category:
            category = question.category
            parts.append(f"{CATEGORY} {category}\n")
        parts.append(_written(question))
    return "\n".join([f"// {left_out_words(left_out)}\n", *parts])


def _questions(text: str) -> Iterator[MoodleQuestion]:
    category = ""
    for block in _blocks(text):
        comments = [line.strip() for _, line in block if line.strip().startswith("//")]
        lines = [(number, line) for number, line in block if not line.strip().startswith("//")]
        while lines and lines[0][1].strip().startswith(CATEGORY):
            category = lines.pop(0)[1].strip().removeprefix(CATEGORY)
        if lines:
            yield _question(lines, comments, category)


def _blocks(text: str) -> Iterator[Numbered]:
    """Cut a file at its blank lines."""
    block: Numbered = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []


def _question(lines: Numbered, comments: list[str], category: str) -> MoodleQuestion:
    name, text = _titled("\n".join(line for _, line in lines).strip())
    notes = [(kind, re.sub(r"\\(.)", r"\1", note)) for line in comments for kind, note in NOTE.findall(line)]
    about: dict[str, Any] = {
        "line": lines[0][0],
        "name": name,
        "category": category,
        "slug": next((note for kind, note in notes if kind == "id"), ""),
        "tags": tuple(note for kind, note in notes if kind == "tag"),
        "unit": next((found[1].strip() for found in map(UNIT.match, comments) if found), ""),
    }
    braces = _places("[{}]", text)
    if [text[place] for place in braces] not in ([], ["{", "}"]):
        said = f"it must have one {{ and one }} after it, but has {' '.join(text[place] for place in braces)}"
        mend = "Put a backslash before each brace that is only text; no blank line stands between { and }."
        return MoodleQuestion(kind="", text=_marked(text), problems=[Problem(said, mend)], **about)
    if not braces:
        return MoodleQuestion(kind="description", text=_marked(text), **about)

    start, end = braces
    before, body, after = text[:start], text[start + 1 : end].strip(), text[end + 1 :]
    asked = _marked(f"{before}{GAP}{after}" if after.strip() else before)
    general = _places("####", body)
    feedback = _marked(body[general[-1] + 4 :], asked.format) if general else NO_FEEDBACK
    body = body[: general[-1]].strip() if general else body
    kind, problems = _kind(body), []
    if kind == "multichoice" and not body.startswith(("=", "~")):
        said = f"{body[:40]!r} stands before the first = or ~"
        problems = [Problem(said, "Mark it as an answer, or put a backslash before each = and ~ that is only text.")]
    return MoodleQuestion(
        kind=kind,
        text=asked,
        answers=_answers(kind, body, asked.format),
        feedback=feedback,
        is_single=kind == "truefalse" or bool(_places("=", body)),
        problems=problems,
        **about,
    )


def _titled(text: str) -> tuple[str, str]:
    """Take the title off that stands between two pairs of colons."""
    ends = _places("::", text)
    if len(ends) > 1 and ends[0] == 0:
        return _unescaped(text[2 : ends[1]]), text[ends[1] + 2 :].strip()
    return "", text


def _kind(body: str) -> str:
    """Tell the kind by what stands between the braces, in the order in which Moodle asks."""
    answers = _cut(body, _places("=", body))
    if not body:
        return "essay"
    if body.startswith("#"):
        return "numerical"
    if body.startswith(">"):
        return "ordering"
    if _places("~", body):
        return "multichoice"
    if body.startswith("=") and all("->" in answer for answer in answers):
        return "matching"
    if _cut(body, _places("#", body))[0].strip().upper() in TRUTHS:
        return "truefalse"
    return "shortanswer"


def _answers(kind: str, body: str, form: str) -> list[Answer]:
    if kind == "ordering":
        items = [line for line in body.split("\n")[1:] if line.strip()]  # the first line holds settings
        return [Answer(_marked(item, form), Decimal(at)) for at, item in enumerate(items, start=1)]
    if kind == "truefalse":
        said, *reasons = [_marked(part.removeprefix("#"), form) for part in _cut(body, _places("#", body)[:2])]
        wrong, right = (*reasons, NO_FEEDBACK, NO_FEEDBACK)[:2]
        is_true = TRUTHS[said.text.upper()]
        return [
            Answer(Marked(str(truth)), FULL if truth == is_true else NOTHING, right if truth == is_true else wrong)
            for truth in (True, False)
        ]
    if kind in {"multichoice", "shortanswer", "numerical"}:
        body = body.removeprefix("#") if kind == "numerical" else body
        parts = _cut(body, _places("[~=]", body))
        answers = [_answer(part.strip(), form) for part in parts if part.strip()]
        return [_toleranced(answer) for answer in answers] if kind == "numerical" else answers
    return []


def _answer(part: str, form: str) -> Answer:
    """Read an answer: its mark, its weight, its text, and after # its feedback."""
    weight = NOTHING if part.startswith("~") else FULL
    part = part.removeprefix("~").removeprefix("=").strip()
    found = WEIGHTED.match(part)
    written = weight_of(found[1]) if found else None
    if found and written is not None:
        weight, part = written, part[found.end() :]
    end = (*_places("#", part), len(part))[0]
    return Answer(_marked(part[:end], form), weight, _marked(part[end + 1 :], form))


def _toleranced(answer: Answer) -> Answer:
    """Read number:tolerance; what has only feedback, after ~, is feedback on every other number."""
    number, _, tolerance = answer.text.text.partition(":")
    return Answer(Marked(number or "*", "plain"), answer.weight, answer.feedback, tolerance)


def _marked(raw: str, form: str = "moodle") -> Marked:
    found = FORMAT.match(raw.strip())
    if found:
        return Marked(_unescaped(raw.strip()[found.end() :]), found[1])
    return Marked(_unescaped(raw), form)


def _places(mark: str, text: str) -> list[int]:
    """Return where a mark stands, except where a backslash takes its meaning away."""
    found = re.finditer(rf"\\[\\~=#{{}}:n]|{mark}", text)
    return [match.start() for match in found if not match[0].startswith("\\")]


def _cut(text: str, places: list[int]) -> list[str]:
    """Cut a text before each place; what stands before the first is a part, too, unless it is blank."""
    edges = [0, *places, len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return parts if parts[0].strip() or len(parts) == 1 else parts[1:]


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text).strip()


def _escaped(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return SPECIAL.sub(lambda found: r"\n" if found[0] == "\n" else f"\\{found[0]}", text)


def _unheld(question: MoodleQuestion) -> str:
    """Say why GIFT cannot hold a question that Moodle can, or nothing."""
    if not question.ignore_case:
        return "short text where capitals count"
    answers = [part.text for answer in question.answers for part in (answer.text, answer.feedback)]
    if question.kind == "shortanswer" and any("->" in text for text in answers):
        return "short text with an arrow"  # Moodle would take it for matching
    return ""


def _written(question: MoodleQuestion) -> str:
    notes = [f"[id:{question.slug}]", *(f"[tag:{tag}]" for tag in question.tags)]
    unit = [f"// unit: {question.unit}"] if question.unit else []
    start = {"numerical": "{#", "ordering": "{>ALL VERTICAL ABSOLUTE_POSITION SHOW none"}.get(question.kind, "{")
    asked = f"::{_escaped(question.name)}::[markdown]{_escaped(question.text.text)}{start}"
    answers = [f"\t{_written_answer(question, answer)}" for answer in question.answers]
    feedback = [f"\t####{_guarded(question.feedback)}"] if question.feedback.text else []
    return "\n".join([f"// {' '.join(notes)}", *unit, asked, *answers, *feedback, "}\n"])


def _written_answer(question: MoodleQuestion, answer: Answer) -> str:
    if question.kind == "ordering":
        return _guarded(answer.text)
    if question.kind == "multichoice":
        mark = "=" if question.is_single and answer.weight == FULL else "~"
        weight = "" if question.is_single else f"%{percent(answer.weight)}%"
    else:
        mark, weight = "=", f"%{percent(answer.weight)}%"
    text = f"{answer.text.text}:{answer.tolerance}" if question.kind == "numerical" else _guarded(answer.text)
    feedback = f"#{_guarded(answer.feedback)}" if answer.feedback.text else ""
    return f"{mark}{weight}{text}{feedback}"


def _guarded(marked: Marked) -> str:
    """Escape a text; a beginning that means something else, a weight or a comment, has a format before it."""
    return ("[markdown]" if marked.text.startswith(("[", "%", "//")) else "") + _escaped(marked.text)
