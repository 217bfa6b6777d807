"""What a question must be: the one validator of question files and of the admin."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quizsite.labs.validation import FactId, Problem, problems_of
from quizsite.questions.kinds import kind_named

LEVELS = [
    ("beginner", "Beginner"),
    ("intermediate", "Intermediate"),
    ("advanced", "Advanced"),
    ("scenario", "Scenario"),
    ("ai-engineering", "AI engineering"),
]
STATUSES = [("draft", "Draft"), ("published", "Published"), ("archived", "Archived")]
KINDS = [("single_choice", "Single choice"), ("lab", "Lab")]

MAX_WORDS = 60

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,80}$")]


class Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class OptionSpec(Content):
    """An option as an author writes it."""

    text: Text
    right: bool = False
    why: Text
    pinned: bool = False


class FollowUp(Content):
    """What an interviewer asks next, and the question that answers it."""

    text: Text
    question: Slug | None = None


class QuestionSpec(Content):
    """A question as an author writes it."""

    title: str = Field(min_length=3, max_length=80)
    level: Literal["beginner", "intermediate", "advanced", "scenario", "ai-engineering"]
    kind: Literal["single_choice", "lab"]
    status: Literal["draft", "published", "archived"] = "draft"
    facts: list[FactId] = Field(min_length=1, max_length=3)
    lab: Slug | None = None
    text: Text
    options: list[OptionSpec] = []
    answer: Text
    listens_for: list[Text] = Field(min_length=2, max_length=3)
    warning: Text
    follow_ups: list[FollowUp] = Field(min_length=2, max_length=3)
    explanation: str = Field(default="", max_length=4000)

    @property
    def content(self) -> dict[str, Any]:
        """What a version holds; level and status belong to the question."""
        return self.model_dump(exclude={"level", "status"})

    @property
    def digest(self) -> str:
        return sha256(json.dumps(self.content, sort_keys=True).encode()).hexdigest()


def read_question(data: Mapping[str, object]) -> QuestionSpec | list[Problem]:
    """Read a question, or say all that is wrong with it."""
    try:
        spec = QuestionSpec.model_validate(data)
    except ValidationError as error:
        return problems_of(error)
    problems = [Problem(path, message) for path, message in kind_named(spec.kind).problems(spec)]
    n_words = len(spec.text.split())
    if n_words >= MAX_WORDS:
        problems.append(Problem(("text",), f"text must stay under {MAX_WORDS} words, got {n_words}"))
    return problems or spec
