"""Single choice: one option is right, and each has its reason."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from quizsite.questions.kinds.kind import Grade, NotAnswered, Response

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import Option, QuestionVersion
    from quizsite.questions.validation import QuestionSpec

MIN_OPTIONS, MAX_OPTIONS = 3, 6


def problems(spec: "QuestionSpec") -> Iterator[tuple[tuple[str | int, ...], str]]:
    n_options, n_right = len(spec.options), sum(option.right for option in spec.options)
    if not MIN_OPTIONS <= n_options <= MAX_OPTIONS:
        yield ("options",), f"options must be {MIN_OPTIONS} to {MAX_OPTIONS}, got {n_options}"
    elif n_right != 1:
        yield ("options",), f"exactly one option must be right, got {n_right}"
    texts = [option.text for option in spec.options]
    for number, text in enumerate(texts):
        if text in texts[:number]:
            yield ("options", number, "text"), f"options must differ, got {text[:40]!r} twice"


def ask(version: "QuestionVersion", learner_key: str) -> dict[str, Any]:
    return {"options": [{"id": option.public_id, "text": option.text} for option in shuffled(version, learner_key)]}


def read(version: "QuestionVersion", data: Mapping[str, str], learner: "User | None") -> Response:
    chosen = data.get("option", "")
    if chosen not in {str(option.public_id) for option in version.options.all()}:
        raise NotAnswered("Choose one of the options.")
    return {"option": chosen}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    chosen = version.options.get(public_id=response["option"])
    return Grade(Fraction(int(chosen.is_key)))


def show(version: "QuestionVersion", response: Response, learner_key: str) -> dict[str, Any]:
    options = shuffled(version, learner_key)
    return {"options": options, "chosen": next(o for o in options if str(o.public_id) == response["option"])}


def shuffled(version: "QuestionVersion", learner_key: str) -> list["Option"]:
    """Return the options in this learner's order: the same on every page; pinned ones keep their place."""
    options = list(version.options.all())

    def by_lot(option: "Option") -> bytes:
        return sha256(f"{learner_key}/{option.public_id}".encode()).digest()

    loose = iter(sorted((option for option in options if not option.pinned), key=by_lot))
    return [option if option.pinned else next(loose) for option in options]
