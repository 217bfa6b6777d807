"""What every kind of question can do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

Response = dict[str, Any]  # what is kept of an answer, as JSON


class NotAnswered(Exception):
    """What was sent is not an answer yet; the message says what is missing. It costs no try."""


@dataclass(frozen=True)
class Grade:
    """How an answer was judged."""

    score: Fraction  # of 1

    @property
    def verdict(self) -> str:
        if self.score == 1:
            return "right"
        return "partly" if self.score > 0 else "wrong"


class Kind(Protocol):
    """A module that knows one kind of question."""

    def problems(self, spec: "QuestionSpec") -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Say what a question of this kind lacks, with the place in its content."""

    def ask(self, version: "QuestionVersion", learner_key: str) -> dict[str, Any]:
        """Return what the template needs before the answer: nothing that gives it away."""

    def read(self, version: "QuestionVersion", data: Mapping[str, str], learner: "User | None") -> Response:
        """Read what was sent, or raise NotAnswered."""

    def grade(self, version: "QuestionVersion", response: Response) -> Grade:
        """Judge a response."""

    def show(self, version: "QuestionVersion", response: Response, learner_key: str) -> dict[str, Any]:
        """Return what the template needs after the answer."""
