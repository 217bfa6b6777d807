"""Predict: which token comes next? The key and the options come from the engine when the question is published."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Problems, Response, Said, opaque

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

FIELDS: tuple[str, ...] = ("predict",)


def problems(spec: "QuestionSpec") -> Problems:
    if spec.predict is None:
        yield ("predict",), "a question of kind predict must have the block predict"
        return
    if not spec.explanation:
        yield ("explanation",), "a prediction must explain why this token comes"
    if not spec.predict.found:
        yield ("predict", "found"), "its key is not computed yet: run `manage.py compute_predictions`"


def ask(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
    predict = version.details["predict"]
    chosen = typed.get("option")
    options = [(opaque(version, at), found["token"]) for at, found in enumerate(predict["found"])]
    return {
        "prompt": predict["prompt"],
        "model": predict["model"],
        "step": predict["step"],
        "options": [
            (option_id, token, option_id == chosen)
            for option_id, token in sorted(options, key=lambda option: asking.lot(option[0]))
        ],
        "settings": predict["settings"],
    }


def read(version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
    ids = [opaque(version, at) for at in range(len(version.details["predict"]["found"]))]
    chosen = data.get("option", "")
    if chosen not in ids:
        raise NotAnswered("Choose one of the tokens.")
    return {"place": ids.index(chosen)}


def grade(version: "QuestionVersion", response: Response) -> Grade:
    return Grade(Fraction(int(response["place"] == 0)))  # the likeliest token is the first that was found


def show(version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
    predict = version.details["predict"]
    options = [
        {
            "token": found["token"],
            "probability": found["probability"],
            "is_key": at == 0,
            "is_mine": at == response["place"],
        }
        for at, found in enumerate(predict["found"])
    ]
    return {"options": options, "prompt": predict["prompt"], "model": predict["model"]}


def right(version: "QuestionVersion", asking: Asking) -> Response:
    return {"place": 0}


def said(version: "QuestionVersion", response: Response) -> Said:
    found = version.details["predict"]["found"]
    return Said(found[response["place"]]["token"], found[0]["token"])
