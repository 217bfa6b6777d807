"""What every kind of question can do."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from django.http import QueryDict
from django.utils.crypto import salted_hmac

if TYPE_CHECKING:
    from quizsite.accounts.models import User
    from quizsite.questions.models import QuestionVersion
    from quizsite.questions.validation import QuestionSpec

Response = dict[str, Any]  # what is kept of an answer, as JSON
Problems = Iterator[tuple[tuple[str | int, ...], str]]


class Said(NamedTuple):
    """What a learner answered, and what is right, as plain text."""

    mine: str
    key: str


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


@dataclass(frozen=True)
class Asking:
    """To whom a question is put, and for which time: what orders and numbers are drawn from."""

    key: str  # the same for all that one learner sees of it
    number: int = 1  # of the try

    def lot(self, thing: str) -> bytes:
        """Return a lot for a thing: the same on every page that this learner sees."""
        return sha256(f"{self.key}/{thing}".encode()).digest()

    def draw(self, thing: str, n: int) -> int:
        """Draw a whole number from 0 to n − 1, another one for each try."""
        return int.from_bytes(sha256(f"{self.key}/{self.number}/{thing}".encode()).digest()[:8]) % n


def opaque(version: "QuestionVersion", position: int) -> str:
    """Return an id for a part of a question that says nothing of its place or its truth."""
    return salted_hmac("a part of a question", f"{version.pk}/{position}").hexdigest()[:16]


class Kind(Protocol):
    """A module that knows one kind of question."""

    FIELDS: tuple[str, ...]  # of a question's content, which this kind alone has

    def problems(self, spec: "QuestionSpec") -> Problems:
        """Say what a question of this kind lacks, with the place in its content."""

    def ask(self, version: "QuestionVersion", asking: Asking, typed: QueryDict) -> dict[str, Any]:
        """Return what the template needs before the answer, with what was typed: nothing that gives it away."""

    def read(self, version: "QuestionVersion", data: QueryDict, learner: "User | None", asking: Asking) -> Response:
        """Read what was sent, or raise NotAnswered."""

    def grade(self, version: "QuestionVersion", response: Response) -> Grade:
        """Judge a response."""

    def show(self, version: "QuestionVersion", response: Response, asking: Asking) -> dict[str, Any]:
        """Return what the template needs after the answer."""

    def right(self, version: "QuestionVersion", asking: Asking) -> Response:
        """Return a response that earns everything, for authors."""

    def said(self, version: "QuestionVersion", response: Response) -> Said:
        """Return answer and key in a few words each, for a table of results."""
