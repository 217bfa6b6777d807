"""Single choice: one option is right, and each has its reason."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.choices import option_problems, shuffled
from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("options",)


def problems(spec: "QuestionSpec") -> Problems:
    yield from option_problems(spec)
    n_right = sum(option.right for option in spec.options)
    if spec.options and n_right != 1:
        yield ("options",), f"exactly one option must be right, got {n_right}"


def ask(version: "QuestionVersion", asking: Asking) -> dict[str, Any]:
    return {"options": [{"id": option.public_id, "text": option.text} for option in shuffled(version, asking)]}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    chosen = data.get("option", "")
    if chosen not in {str(option.public_id) for option in version.options.all()}:
        raise NotAnswered("Choose one of the options.")
    return {"option": chosen}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    chosen = version.options.get(public_id=response["option"])
    return Grade(Fraction(int(chosen.is_key)))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    options = shuffled(version, asking)
    return {"options": options, "chosen": next(o for o in options if str(o.public_id) == response["option"])}
