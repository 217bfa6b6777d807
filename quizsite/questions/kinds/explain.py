"""Explain: free text, which the learner marks against a rubric after seeing the model answer."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said
from quizsite.questions.kinds.short_text import plain

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("rubric",)
MIN_WORDS, LONGEST = 5, 6000


def problems(spec: "QuestionSpec") -> Problems:
    if not 4 <= len(spec.rubric) <= 7:
        yield ("rubric",), f"a rubric must have 4 to 7 points, got {len(spec.rubric)}"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    return {"n_points": len(version.details["rubric"]), "longest": LONGEST, "typed": typed.get("text", "")}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    text = data.get("text", "").replace("\x00", "").strip()
    if len(text.split()) < MIN_WORDS:
        raise NotAnswered("Say it in a few sentences, as you would aloud.")
    if len(text) > LONGEST:
        raise NotAnswered(f"An answer of at most {LONGEST:,} letters is wanted, this one has {len(text):,}.")
    return {"text": text, "marks": likely(version, text), "is_marked": False}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    return Grade(Fraction(len(response["marks"]), len(version.details["rubric"])))


def mark(version: "QuestionVersion", response: Response, data: QueryDict) -> Response:
    """Return the response as the learner has marked it."""
    return response | {"marks": _ticked(version, data), "is_marked": True}


def mark_beside(version: "QuestionVersion", response: Response, data: QueryDict) -> Response:
    """Return the response with the learner's own marks beside those that decide."""
    return response | {"own": _ticked(version, data), "is_marked": True}


def mark_by_another(version: "QuestionVersion", response: Response, data: QueryDict) -> Response:
    """Return the response as a teacher has marked it; what its learner ticked, or the first guess, stays beside."""
    return response | {"own": response.get("own", response["marks"]), "marks": _ticked(version, data)}


def _ticked(version: "QuestionVersion", data: QueryDict) -> list[int]:
    """Return the points that are ticked; those that there are not are left out."""
    n_points = len(version.details["rubric"])
    ticked = {int(point) for point in data.getlist("point") if point.isascii() and point.isdigit() and len(point) < 3}
    return sorted(point for point in ticked if point < n_points)


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    given: list[int] = response["marks"]
    own = response.get("own", given)
    points = [(at, part["point"], at in own, at in given) for at, part in enumerate(version.details["rubric"])]
    return {"typed": response["text"], "points": points, "is_marked": response["is_marked"]}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"text": version.answer, "marks": list(range(len(version.details["rubric"]))), "is_marked": True}


def said(version: "QuestionVersion", response: Response) -> Said:
    n_points = len(version.details["rubric"])
    return Said(f"Explained, {len(response['marks'])} of {n_points} points", f"{n_points} points")


def likely(version: "QuestionVersion", text: str) -> list[int]:
    """Return the points whose words stand in a text: a first guess for the learner, never the mark."""
    said = f" {plain(text, True)} "
    return [
        at
        for at, part in enumerate(version.details["rubric"])
        if any(plain(word, True) in said for word in part["words"])
    ]
