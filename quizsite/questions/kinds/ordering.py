"""Ordering: parts to be put in order; what counts is how many pairs stand the right way round."""

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said, opaque

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("items",)


def problems(spec: "QuestionSpec") -> Problems:
    if not 3 <= len(spec.items) <= 7:
        yield ("items",), f"items must be 3 to 7, got {len(spec.items)}"
    if len(set(spec.items)) < len(spec.items):
        yield ("items",), "items must differ"
    if not spec.explanation:
        yield ("explanation",), "an ordering must explain why this order"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    items = [(opaque(version, at), text) for at, text in enumerate(version.details["items"])]
    items.sort(key=lambda item: asking.lot(item[0]))
    places = [str(at) for at in range(1, len(items) + 1)]
    placed = [typed.get(f"place-{item_id}", "") for item_id, _ in items]
    placed = placed if sorted(placed) == places else places
    return {"items": [(*item, place) for item, place in zip(items, placed, strict=True)], "places": places}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    n_items = len(version.details["items"])
    ids = [opaque(version, at) for at in range(n_items)]
    typed = [data.get(f"place-{item_id}", "") for item_id in ids]
    if sorted(typed) != sorted(map(str, range(1, n_items + 1))):
        raise NotAnswered(f"Give each part a place of its own, from 1 to {n_items}.")
    return {"places": [int(place) for place in typed]}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    """Score the pairs in order less those out of order, of all; an order by chance earns nothing on average."""
    pairs = list(combinations(response["places"], 2))
    in_order = sum(first < second for first, second in pairs)
    return Grade(max(Fraction(0), Fraction(2 * in_order - len(pairs), len(pairs))))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    rows = zip(version.details["items"], response["places"], strict=True)
    return {"items": [(at, text, place, at == place) for at, (text, place) in enumerate(rows, start=1)]}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"places": list(range(1, len(version.details["items"]) + 1))}


def said(version: "QuestionVersion", response: Response) -> Said:
    places = response["places"]
    n_in_place = sum(place == at for at, place in enumerate(places, start=1))
    return Said(f"{n_in_place} of {len(places)} in their place", " → ".join(version.details["items"]))
