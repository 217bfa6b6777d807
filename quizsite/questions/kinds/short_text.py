"""Short text: one to three words, compared without regard to spaces, and to case where the question says so."""

import unicodedata
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("accepted", "ignore_case", "near")
LONGEST = 100
QUOTES = str.maketrans("‘’“”‐‑–—", "''\"\"----")


def problems(spec: "QuestionSpec") -> Problems:
    if not spec.accepted:
        yield ("accepted",), "a short text must have an accepted answer"
    if not spec.explanation:
        yield ("explanation",), "a short text must explain its answer"
    accepted = {plain(text, spec.ignore_case) for text in spec.accepted}
    for number, near in enumerate(spec.near):
        if plain(near.text, spec.ignore_case) in accepted:
            yield ("near", number), f"{near.text!r} is accepted as well"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    return {"ignore_case": version.details["ignore_case"], "longest": LONGEST, "typed": typed.get("text", "")}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    typed = data.get("text", "")
    if not plain(typed, True):
        raise NotAnswered("Type an answer of one to three words.")
    if len(typed) > LONGEST:
        raise NotAnswered(f"An answer of at most {LONGEST} letters is wanted, this one has {len(typed):,}.")
    if any(unicodedata.category(letter) == "Cc" or letter == "\N{REPLACEMENT CHARACTER}" for letter in typed):
        raise NotAnswered("The answer holds characters that cannot be read.")
    return {"text": typed.strip()}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    ignore_case = version.details["ignore_case"]
    accepted = {plain(text, ignore_case) for text in version.details["accepted"]}
    return Grade(Fraction(int(plain(response["text"], ignore_case) in accepted)))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    ignore_case = version.details["ignore_case"]
    typed = plain(response["text"], ignore_case)
    return {
        "typed": response["text"],
        "is_right": grade(version, response).score == 1,
        "accepted": version.details["accepted"],
        "met": [near["why"] for near in version.details["near"] if plain(near["text"], ignore_case) == typed],
    }


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"text": version.details["accepted"][0]}


def said(version: "QuestionVersion", response: Response) -> Said:
    return Said(response["text"], " or ".join(version.details["accepted"]))


def plain(text: str, ignore_case: bool) -> str:
    """Return a text without what nobody means to type: doubled spaces, curly quotes, letters that cannot be seen."""
    seen = "".join(letter for letter in unicodedata.normalize("NFC", text) if unicodedata.category(letter) != "Cf")
    words = " ".join(seen.translate(QUOTES).split())
    return words.casefold() if ignore_case else words
