"""Multiple choice: any number of options is right; what is ticked wrongly costs as much as it would have earned."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.choices import offered, option_problems, shuffled
from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("options",)


def problems(spec: "QuestionSpec") -> Problems:
    yield from option_problems(spec)
    n_right = sum(option.right for option in spec.options)
    if spec.options and not 1 <= n_right < len(spec.options):
        yield ("options",), f"at least one option must be right and one wrong, got {n_right} of {len(spec.options)}"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    return {"options": offered(version, asking, typed)}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    known = {str(option.public_id) for option in version.options.all()}
    ticked = sorted(set(data.getlist("option")))
    if not ticked or not set(ticked) <= known:
        raise NotAnswered("Tick every option that is right; at least one is.")
    return {"ticked": ticked}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    """Score right ticks of the right ones less wrong ticks of the wrong ones, never below 0: ticking all earns 0."""
    options = list(version.options.all())
    ticked = set(response["ticked"])
    right = [option for option in options if option.is_key]
    wrong = [option for option in options if not option.is_key]
    hits, misses = (sum(str(option.public_id) in ticked for option in part) for part in (right, wrong))
    return Grade(max(Fraction(0), Fraction(hits, len(right)) - Fraction(misses, len(wrong))))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    ticked = set(response["ticked"])
    return {"options": [(option, str(option.public_id) in ticked) for option in shuffled(version, asking)]}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"ticked": sorted(str(option.public_id) for option in version.options.all() if option.is_key)}


def said(version: "QuestionVersion", response: Response) -> Said:
    options = list(version.options.all())
    mine = [option.text for option in options if str(option.public_id) in response["ticked"]]
    return Said("; ".join(mine), "; ".join(option.text for option in options if option.is_key))
