"""Questions as Moodle has them, and what they become in the bank: the one mapping behind GIFT and Moodle XML.

What the bank has no place for is left behind: penalties, hints, numbering, feedback on a whole response.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from django.utils.text import slugify

from quizsite.content.formats.reading import FileProblem, Problem, Reading, Row
from quizsite.content.formats.texts import Marked, Say, markdown_of
from quizsite.questions.kinds.kind import NotAnswered
from quizsite.questions.numbers import parse_number
from quizsite.questions.validation import LEVELS

LEVEL = "intermediate"  # of a question whose tags name none
LONGEST_TITLE, MOST_DECIMALS = 80, 6
FULL, NOTHING = Decimal(100), Decimal(0)
WEIGHT = re.compile(r"-?\d{1,3}(?:[.,]\d{0,10})?")
WILDCARD = re.compile(r"(?<!\\)\*")
NO_FEEDBACK = Marked("")
ELSEWHERE = {  # Moodle's kinds that the bank lacks: their name in words, and what to do instead
    "matching": ("matching", "Ask it as an ordering, or as one single choice for each pair."),
    "description": ("description", "It asks nothing. Put its text into the questions that need it."),
    "cloze": ("cloze, with gaps of its own", "Make a question of each gap."),
    "multianswer": ("cloze, with gaps of its own", "Make a question of each gap."),
    "calculated": ("calculated", "Write it in YAML: a numeric question with parameters."),
    "calculatedsimple": ("calculated", "Write it in YAML: a numeric question with parameters."),
    "calculatedmulti": ("calculated choice", "Write it in YAML: a numeric question with parameters."),
}


@dataclass(frozen=True)
class Answer:
    """An answer that an author foresees, and what it earns."""

    text: Marked
    weight: Decimal  # per cent of the points
    feedback: Marked = NO_FEEDBACK
    tolerance: str = ""  # of a number, as it is written


@dataclass(frozen=True)
class MoodleQuestion:
    """A question as both formats hold it."""

    line: int
    kind: str  # by Moodle's name; "" if it cannot be told
    name: str
    text: Marked
    answers: list[Answer] = field(default_factory=list)
    feedback: Marked = NO_FEEDBACK  # whatever is answered
    slug: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    is_single: bool = True
    keeps_order: bool = False
    ignore_case: bool = True
    unit: str = ""
    grader_info: Marked = NO_FEEDBACK
    problems: list[Problem] = field(default_factory=list)  # that the format found already


def reading_of(questions: Iterable[MoodleQuestion], problems: list[FileProblem]) -> Reading:
    """Map all questions of a file; of two with the same slug the later one is refused."""
    rows = [_row(question) for question in questions]
    lines: dict[str, int] = {}
    for row in rows:
        first = lines.setdefault(row.slug, row.line)
        if first != row.line:
            row.problems.append(Problem(f"slug {row.slug!r} is taken by line {first}", "Give it another title."))
    if not rows and not problems:
        problems = [FileProblem(1, "the file holds no question", "Choose another file.")]
    return Reading(rows, problems)


def weight_of(written: str) -> Decimal | None:
    """Read a weight in per cent; None if it is none."""
    written = written.strip()
    return Decimal(written.replace(",", ".")) if WEIGHT.fullmatch(written) else None


def percent(weight: Decimal | Fraction) -> str:
    """Write a weight as Moodle does: five decimals, without zeros at the end."""
    return f"{float(weight):.5f}".rstrip("0").rstrip(".")


def _row(question: MoodleQuestion) -> Row:
    problems = list(question.problems)

    def say(message: str, mend: str) -> None:
        problems.append(Problem(message, mend))

    text = markdown_of(question.text, say)
    if question.unit:
        text = text.removesuffix(f" ({question.unit})")
    title = _title(question.name, text)
    data = {"title": title, "level": _level(question.tags), "status": "draft", "text": text}
    data["explanation"] = markdown_of(question.feedback, say)
    if question.kind in KINDS:
        data |= KINDS[question.kind](question, say)
    elif question.kind:
        kind, mend = ELSEWHERE.get(question.kind, (question.kind, "Write it as a choice, a number or a short text."))
        say(f"the bank has no questions of the kind {kind}", mend)
    if question.kind in EXPLAINED_BY_ANSWERS:
        reasons = [markdown_of(answer.feedback, say) for answer in question.answers if answer.weight > NOTHING]
        data["explanation"] = "\n\n".join(filter(None, dict.fromkeys([data["explanation"], *reasons])))
    return Row(question.line, _slug(question.slug, title), _topic(question.category), data, problems)


def _title(name: str, text: str) -> str:
    """Return a question's name, or where that is no more than a letter or two, the beginning of its text."""
    title = " ".join(name.split())
    if len(title) < 3:
        title = " ".join(re.sub(r"\\(?=[!-/:-@\[-`{-~])|[*`]", "", text).split()) or title
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1].rstrip()}…"


def _slug(named: str, title: str) -> str:
    for words in (named, title):
        slug = slugify(words).replace("_", "-")[:80].strip("-")
        if slug:
            return slug
    return f"question-{sha256(title.encode()).hexdigest()[:8]}"  # no Latin letter: the same title is the same slug


def _topic(category: str) -> str:
    """Return the last part of a category's path, unless it is one that Moodle makes by itself."""
    last = re.split(r"(?<!/)/(?!/)", category.strip())[-1].replace("//", "/")
    return "" if last.startswith(("$", "Default for ")) or last == "top" else slugify(last)


def _level(tags: tuple[str, ...]) -> str:
    return next((tag for tag in tags if tag in dict(LEVELS)), LEVEL)


def _choice(question: MoodleQuestion, say: Say) -> dict[str, Any]:
    options = [
        {
            "text": markdown_of(answer.text, say),
            "right": answer.weight > NOTHING,
            "why": markdown_of(answer.feedback, say),
        }
        | ({"pinned": True} if question.keeps_order else {})
        for answer in question.answers
    ]
    _check_weights(question, say)
    return {"kind": "single_choice" if question.is_single else "multiple_choice", "options": options}


def _check_weights(question: MoodleQuestion, say: Say) -> None:
    """Refuse weights that give other points than the bank would."""
    weights = [answer.weight for answer in question.answers]
    named = ", ".join(f"{percent(weight)} %" for weight in weights)
    n_right = sum(weight > NOTHING for weight in weights)
    n_wrong = len(weights) - n_right
    if not n_right:
        say("no answer earns anything", "Mark the right one with =, or with the fraction 100.")
    elif question.is_single and (n_right != 1 or not set(weights) <= {FULL, NOTHING}):
        mend = "Let one answer earn 100 and the others 0, or allow several answers."
        say(f"a single choice has one answer that earns everything, here the weights are {named}", mend)
    elif not question.is_single and not all(
        _is_share(weight, n_right) if weight > NOTHING else _is_share(-weight, n_wrong) for weight in weights
    ):
        right, wrong = percent(Fraction(100, n_right)), percent(Fraction(100, max(n_wrong, 1)))
        mend = f"Give each right answer {right} and each wrong one -{wrong}."
        say(f"a wrong tick costs here what it would have earned, but the weights are {named}", mend)


def _is_share(weight: Decimal, n: int) -> bool:
    """Say if a weight is an n-th of 100, to the decimals it is written with: 33 and 33.33333 are thirds."""
    exponent = weight.as_tuple().exponent
    assert isinstance(exponent, int)  # finite
    return abs(weight - FULL / n) < Decimal(1).scaleb(min(exponent, 0))


def _short_answer(question: MoodleQuestion, say: Say) -> dict[str, Any]:
    accepted, near = [], []
    for answer in question.answers:
        text = answer.text.text.strip()
        if WILDCARD.search(text):
            say(f"{text[:40]!r} holds a wildcard", r"Write each accepted answer in full; a star itself is \*.")
        text = text.replace(r"\*", "*")
        if _is_judged(answer, text, say):
            if answer.weight == FULL:
                accepted.append(text)
            else:
                near.append({"text": text, "why": markdown_of(answer.feedback, say)})
    return {"kind": "short_text", "accepted": accepted, "near": near, "ignore_case": question.ignore_case}


def _is_judged(answer: Answer, text: str, say: Say) -> bool:
    """Say if an answer is plainly right, or plainly wrong for a reason."""
    if answer.weight not in {FULL, NOTHING}:
        mend = "Let each answer earn 100 or 0."
        say(f"{text[:40]!r} earns {percent(answer.weight)} %; an answer here is right or wrong", mend)
    elif answer.weight == NOTHING and not answer.feedback.text.strip():
        say(f"{text[:40]!r} earns nothing and has no feedback", "Say why it is wrong, or take it out.")
    else:
        return True
    return False


def _numerical(question: MoodleQuestion, say: Say) -> dict[str, Any]:
    numeric: dict[str, Any] = {"unit": question.unit, "traps": []}
    shares = {}
    for answer in question.answers:
        found = _number(answer, say)
        if found and _is_judged(answer, answer.text.text, say):
            number, shares[answer.text.text] = found
            if answer.weight == NOTHING:
                trap = {"formula": _formula(number), "why": markdown_of(answer.feedback, say)}
                numeric["traps"].append(trap)
            elif "formula" in numeric:
                say("several numbers are right", "Leave one; a range is one number and its tolerance.")
            else:
                decimals = max(_decimals(number), _decimals_written(answer.text.text))
                share = shares[answer.text.text]
                numeric |= {"formula": _formula(number), "tolerance": share, "decimals": decimals}
    if len(set(shares.values())) > 1:
        say("its numbers have tolerances that are different shares of them", "Give each the same share.")
    if "formula" not in numeric:
        say("no number is right", "Give the number that earns 100.")
    return {"kind": "numeric", "numeric": numeric}


def _number(answer: Answer, say: Say) -> tuple[Fraction, float] | None:
    """Read a number and its tolerance, or a range; the tolerance becomes a share of the number, exactly."""
    written = answer.text.text.strip()
    lowest, dots, highest = written.partition("..")
    try:
        first = parse_number(lowest)
        last = parse_number(highest) if dots else first
        tolerance = parse_number(answer.tolerance) if answer.tolerance.strip() else Fraction(0)
    except NotAnswered as refused:
        say(f"{written[:40]!r} is no number: {refused}", "Write a number, number:tolerance or lowest..highest.")
        return None
    number, tolerance = (first + last) / 2, tolerance + (last - first) / 2
    share = float(tolerance / abs(number)) if number else 0.0
    if tolerance < 0 or share > 0.5:
        say(f"the tolerance of {written[:40]!r} must lie between 0 and half of the number", "Choose a smaller one.")
    elif Fraction(str(share)) * abs(number) != tolerance:
        near = Fraction(f"{share:.3g}") * abs(number)
        mend = f"Choose {decimal(near)}, for example." if near else "Choose 0."
        say(f"the tolerance of {written[:40]!r} is a share of it that no decimal says exactly", mend)
    else:
        return number, share
    return None


def _decimals(number: Fraction) -> int:
    """Count the decimals that a number needs, up to those that the bank shows."""
    return next((n for n in range(MOST_DECIMALS) if (number * 10**n).denominator == 1), MOST_DECIMALS)


def _decimals_written(written: str) -> int:
    found = re.search(r"\.(\d{1,6})\s*$", written)
    return len(found[1]) if found and ".." not in written else 0


def decimal(number: Fraction) -> str | None:
    """Write a number out, if its decimals end."""
    n_decimals = next((n for n in range(100) if (number * 10**n).denominator == 1), None)
    if n_decimals is None:
        return None
    digits = f"{abs(int(number * 10**n_decimals)):0{n_decimals + 1}d}"
    sign, whole = "-" * (number < 0), len(digits) - n_decimals
    return f"{sign}{digits[:whole]}.{digits[whole:]}".rstrip(".")


def _formula(number: Fraction) -> str:
    """Write a number as a formula that is exact: a formula reads 0.1 as a binary fraction, but 1/10 as it is."""
    return str(number)


def _ordering(question: MoodleQuestion, say: Say) -> dict[str, Any]:
    in_order = sorted(question.answers, key=lambda answer: answer.weight)
    return {"kind": "ordering", "items": [markdown_of(answer.text, say) for answer in in_order]}


def _essay(question: MoodleQuestion, say: Say) -> dict[str, Any]:
    return {"kind": "explain", "rubric": [], "answer": markdown_of(question.grader_info, say)}


KINDS: dict[str, Callable[[MoodleQuestion, Say], dict[str, Any]]] = {
    "multichoice": _choice,
    "truefalse": _choice,  # of two options: a draft, since learners are offered three or more
    "shortanswer": _short_answer,
    "numerical": _numerical,
    "ordering": _ordering,
    "essay": _essay,
}
EXPLAINED_BY_ANSWERS = {"shortanswer", "numerical", "ordering"}  # their right answers have no reasons of their own
