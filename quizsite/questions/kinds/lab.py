"""Lab: the answer is what the learner's recorded runs have shown."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.labs.models import LabResult
from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec


FIELDS: tuple[str, ...] = ()


def problems(spec: "QuestionSpec") -> Problems:
    if not spec.lab:
        yield ("lab",), "a question of kind lab must name its lab"
    if not spec.explanation:
        yield ("explanation",), "a question of kind lab must explain what its runs have shown"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    assert version.lab
    return {"goals": [goal.title for goal in version.lab.spec.goals]}


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    assert version.lab
    goals = [goal.kind for goal in version.lab.spec.goals]
    found = LabResult.objects.filter(learner=learner, lab=version.lab, goal__in=goals) if learner else None
    met = sorted(found.values_list("goal", flat=True)) if found is not None else []
    given_up = data.get("do") == "give_up"
    if len(met) < len(goals) and not given_up:
        missing = [goal.title.lower() for goal in version.lab.spec.goals if goal.kind not in met]
        raise NotAnswered(f"Your runs do not show it yet. Still to do: {', then '.join(missing)}.")
    return {"met": met}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    assert version.lab
    return Grade(Fraction(len(response["met"]), len(version.lab.spec.goals)))


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    assert version.lab
    return {"goals": [(goal.title, goal.kind in response["met"]) for goal in version.lab.spec.goals]}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    assert version.lab
    return {"met": sorted(goal.kind for goal in version.lab.spec.goals)}


def said(version: "QuestionVersion", response: Response) -> Said:
    assert version.lab
    n_goals = len(version.lab.spec.goals)
    return Said(f"{len(response['met'])} of {n_goals} goals shown", f"{n_goals} goals")
