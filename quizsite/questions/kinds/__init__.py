"""The kinds of question; one file a kind: what its content must be, how it is asked, read, graded, shown.

A new kind is a module with the functions of `kind.Kind`, a line below, and a template of its name in
`templates/questions/kinds/`.
"""

from quizsite.questions.kinds import (
    explain,
    lab,
    multiple_choice,
    numeric,
    ordering,
    predict,
    short_text,
    single_choice,
)
from quizsite.questions.kinds.kind import Kind

_KINDS: dict[str, Kind] = {
    "single_choice": single_choice,
    "multiple_choice": multiple_choice,
    "numeric": numeric,
    "ordering": ordering,
    "short_text": short_text,
    "explain": explain,
    "predict": predict,
    "lab": lab,
}


def kind_named(name: str) -> Kind:
    """Return the module of a kind."""
    return _KINDS[name]
