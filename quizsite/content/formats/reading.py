"""What a reader of a format finds in a file: rows that may become questions, and what is wrong with it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """Why a row cannot be taken, and what would mend it."""

    message: str
    mend: str


class FileProblem(NamedTuple):
    """What is wrong with a file as a whole, and from which line on."""

    line: int
    message: str
    mend: str


@dataclass(frozen=True)
class Row:
    """What may become a question."""

    line: int  # where it stands in the file, from 1
    slug: str  # as named there, or made of its title
    topic: str  # slug of a topic, "" if the file does not say
    data: dict[str, Any]  # for quizsite.questions.validation.read_question
    problems: list[Problem] = field(default_factory=list)  # why it cannot be read; data goes as far as it can


@dataclass(frozen=True)
class Reading:
    """All that a file holds."""

    rows: list[Row] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)
