"""Single choice: one option is right, and each has its reason."""

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.choices import offered, option_problems, shuffled
from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import Option, QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("options",)


def problems(spec: "QuestionSpec") -> Problems:
    yield from option_problems(spec)
    n_right = sum(option.right for option in spec.options)
    if spec.options and n_right != 1:
        yield ("options",), f"exactly one option must be right, got {n_right}"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    return {"options": offered(version, asking, typed)}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    chosen = data.get("option", "")
    if chosen not in {str(option.public_id) for option in version.options.all()}:
        raise NotAnswered("Choose one of the options.")
    return {"option": chosen}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    return Grade(Fraction(int(_chosen(version.options.all(), response).is_key)))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    options = shuffled(version, asking)
    return {"options": options, "chosen": _chosen(options, response)}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"option": next(str(option.public_id) for option in version.options.all() if option.is_key)}


def said(version: "QuestionVersion", response: Response) -> Said:
    options = version.options.all()
    return Said(_chosen(options, response).text, next(option.text for option in options if option.is_key))


def _chosen(options: Iterable["Option"], response: Response) -> "Option":
    return next(option for option in options if str(option.public_id) == response["option"])
