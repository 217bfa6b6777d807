"""What single and multiple choice share: options that must differ, in an order of the learner's own."""

from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from quizsite.questions.kinds.kind import Asking, Problems

if TYPE_CHECKING:
    from quizsite.questions.models import Option, QuestionVersion
    from quizsite.questions.validation import QuestionSpec

MIN_OPTIONS, MAX_OPTIONS = 3, 6


def option_problems(spec: "QuestionSpec") -> Problems:
    """Say what is wrong with the options themselves, whichever of them are right."""
    if not MIN_OPTIONS <= len(spec.options) <= MAX_OPTIONS:
        yield ("options",), f"options must be {MIN_OPTIONS} to {MAX_OPTIONS}, got {len(spec.options)}"
    texts = [option.text for option in spec.options]
    for number, text in enumerate(texts):
        if text in texts[:number]:
            yield ("options", number, "text"), f"options must differ, got {text[:40]!r} twice"


def offered(version: "QuestionVersion", asking: Asking, typed: QueryDict) -> list[dict[str, Any]]:
    """Return the options as they are asked: an opaque id, a text, and whether it is chosen already."""
    chosen = typed.getlist("option")
    return [
        {"id": option.public_id, "text": option.text, "is_chosen": str(option.public_id) in chosen}
        for option in shuffled(version, asking)
    ]


def shuffled(version: "QuestionVersion", asking: Asking) -> list["Option"]:
    """Return the options in this learner's order: the same on every page; pinned ones keep their place."""
    options = list(version.options.all())
    loose = iter(sorted((o for o in options if not o.pinned), key=lambda option: asking.lot(str(option.public_id))))
    return [option if option.pinned else next(loose) for option in options]
