"""The bank's questions as Moodle can hold them; what it cannot is counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from quizsite.content.formats.moodle import FULL, NO_FEEDBACK, NOTHING, Answer, MoodleQuestion, decimal, percent
from quizsite.content.formats.texts import Marked
from quizsite.questions.formulas import FormulaError, compute
from quizsite.questions.models import QuestionVersion


def held(versions: Iterable[QuestionVersion], left_out: Counter[str]) -> Iterator[MoodleQuestion]:
    """Yield what Moodle can hold, and count what it cannot; versions come with question, topic and options."""
    for version in versions:
        writer = WRITERS.get(version.kind)
        found = writer(version) if writer else version.kind.replace("_", " ")
        if isinstance(found, str):
            left_out[found] += 1
        else:
            question = version.question
            yield MoodleQuestion(
                line=0,
                name=version.title,
                slug=question.slug,
                category=f"$course$/top/{question.topic.slug}",
                tags=(question.level,),
                **({"text": Marked(version.text), "feedback": Marked(version.explanation)} | found),
            )


def left_out_words(left_out: Counter[str]) -> str:
    """Say what a file does not hold."""
    kinds = ", ".join(f"{n} {what}" for what, n in sorted(left_out.items()))
    return f"Questions from Next Token. Left out, since the format cannot hold them: {kinds or 'none'}."


def _write_choice(version: QuestionVersion) -> dict[str, Any]:
    options = list(version.options.all())
    is_single = version.kind == "single_choice"
    n_right = sum(option.is_key for option in options)
    right, wrong = Fraction(100, n_right or 1), Fraction(0 if is_single else -100, len(options) - n_right or 1)
    answers = [
        Answer(Marked(option.text), Decimal(percent(right if option.is_key else wrong)), Marked(option.why))
        for option in options
    ]
    keeps_order = any(option.pinned for option in options)
    return {"kind": "multichoice", "answers": answers, "is_single": is_single, "keeps_order": keeps_order}


def _write_short_answer(version: QuestionVersion) -> dict[str, Any]:
    details = version.details
    answers = [Answer(_starred(text), FULL) for text in details["accepted"]]
    answers += [Answer(_starred(near["text"]), NOTHING, Marked(near["why"])) for near in details["near"]]
    return {"kind": "shortanswer", "answers": answers, "ignore_case": details["ignore_case"]}


def _starred(text: str) -> Marked:
    return Marked(text.replace("*", r"\*"))


def _write_numerical(version: QuestionVersion) -> dict[str, Any] | str:
    numeric = version.details["numeric"]
    if numeric["parameters"]:
        return "numeric with parameters"
    share = Fraction(str(numeric["tolerance"]))
    judged = [(numeric["formula"], FULL, NO_FEEDBACK)]
    judged += [(trap["formula"], NOTHING, Marked(trap["why"])) for trap in numeric["traps"]]
    answers = []
    for formula, weight, feedback in judged:
        try:
            number = compute(formula, {})
        except FormulaError:
            return "numeric whose formula fails"
        written, tolerance = decimal(number), decimal(abs(number) * share)
        if written is None or tolerance is None:
            return "numeric without a finite decimal"
        answers.append(Answer(Marked(_padded(written, numeric["decimals"])), weight, feedback, tolerance))
    explained = Marked(version.explanation.replace("{key}", answers[0].text.text))
    asked = Marked(f"{version.text} ({numeric['unit']})")  # Moodle shows no unit beside the field
    return {"kind": "numerical", "text": asked, "answers": answers, "unit": numeric["unit"], "feedback": explained}


def _padded(written: str, n_decimals: int) -> str:
    whole, _, decimals = written.partition(".")
    return f"{whole}.{decimals.ljust(n_decimals, '0')}".rstrip(".")


def _write_ordering(version: QuestionVersion) -> dict[str, Any]:
    items = enumerate(version.details["items"], start=1)
    return {"kind": "ordering", "answers": [Answer(Marked(text), Decimal(at)) for at, text in items]}


def _write_essay(version: QuestionVersion) -> dict[str, Any]:
    points = "\n".join(f"- {part['point']}" for part in version.details["rubric"])
    return {"kind": "essay", "grader_info": Marked(f"{version.answer}\n\n{points}".strip())}


WRITERS: dict[str, Callable[[QuestionVersion], dict[str, Any] | str]] = {
    "single_choice": _write_choice,
    "multiple_choice": _write_choice,
    "short_text": _write_short_answer,
    "numeric": _write_numerical,
    "ordering": _write_ordering,
    "explain": _write_essay,
}
