"""What a question must be: the one validator of question files and of the admin."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from quizsite.labs.clauses import Settings
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
KINDS = [
    ("single_choice", "Single choice"),
    ("multiple_choice", "Multiple choice"),
    ("numeric", "Number"),
    ("ordering", "Ordering"),
    ("short_text", "Short text"),
    ("explain", "Explain"),
    ("predict", "Predict"),
    ("lab", "Lab"),
]

MAX_WORDS = 60

Text = Annotated[str, Field(min_length=1, max_length=4000)]
DraftText = Annotated[str, Field(max_length=4000)]  # may be missing until the question is published
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,80}$")]


class Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


MistakeId = Annotated[str, Field(pattern=r"^E\d{1,2}$")]  # of the mistakes that interviewers hear


class OptionSpec(Content):
    """An option as an author writes it."""

    text: Text
    right: bool = False
    why: DraftText = ""
    pinned: bool = False
    mistake: MistakeId | None = None  # that a wrong option stands for; for the author alone


class FollowUp(Content):
    """What an interviewer asks next, and the question that answers it."""

    text: Text
    question: Slug | None = None


class Parameter(Content):
    """A number that each try draws: from, to, in steps."""

    lowest: int = Field(alias="from", ge=0, le=10**9)
    highest: int = Field(alias="to", ge=0, le=10**9)
    step: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.lowest >= self.highest:
            raise ValueError(f"from must be less than to, got {self.lowest} and {self.highest}")
        return self


Formula = Annotated[str, BeforeValidator(str), Field(min_length=1, max_length=300)]  # a bare number is one, too


class Trap(Content):
    """A number that a typical mistake gives."""

    formula: Formula
    why: Text
    mistake: MistakeId | None = None


class NumericSpec(Content):
    """A number to be given: a formula of drawn numbers, its unit, and how near is near enough."""

    parameters: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z_]{0,15}$")], Parameter] = Field(
        default={}, max_length=5
    )
    formula: Formula
    unit: Annotated[str, Field(max_length=60)] = ""  # may be missing until the question is published
    tolerance: float = Field(default=0.0, ge=0, le=0.5)  # a share of the key
    decimals: int = Field(default=0, ge=0, le=6)  # of the key as it is shown
    traps: list[Trap] = Field(default=[], max_length=5)


class RubricPoint(Content):
    """What a good explanation says, and words that suggest that it was said."""

    point: Text
    words: list[Annotated[str, Field(min_length=2, max_length=60)]] = Field(min_length=1, max_length=8)


class Near(Content):
    """A plausible wrong answer."""

    text: Annotated[str, Field(min_length=1, max_length=100)]
    why: Text


class Found(Content):
    """A token that the engine found likely; spaces around it are its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    token: str
    probability: float


class PredictSpec(Content):
    """A run whose next token is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    model: str
    prompt: str = Field(max_length=1000)
    settings: Settings = {}
    step: int = Field(default=1, ge=1, le=64)
    n_options: int = Field(default=4, ge=3, le=5)
    found: list[Found] = []  # by the engine, the key first


class QuestionSpec(Content):
    """A question as an author writes it. What may be missing in a draft is asked for by `lacks`."""

    title: str = Field(min_length=3, max_length=80)
    level: Literal["beginner", "intermediate", "advanced", "scenario", "ai-engineering"]
    kind: Literal["single_choice", "multiple_choice", "numeric", "ordering", "short_text", "explain", "predict", "lab"]
    status: Literal["draft", "published", "archived"] = "draft"
    facts: list[FactId] = Field(default=[], max_length=3)
    lab: Slug | None = None
    text: Text
    options: list[OptionSpec] = []
    numeric: NumericSpec | None = None
    items: list[Text] = []
    accepted: list[Annotated[str, Field(min_length=1, max_length=100)]] = []
    ignore_case: bool = True
    near: list[Near] = []
    rubric: list[RubricPoint] = []
    predict: PredictSpec | None = None
    answer: DraftText = ""
    listens_for: list[Text] = Field(default=[], max_length=3)
    warning: DraftText = ""
    follow_ups: list[FollowUp] = Field(default=[], max_length=3)
    explanation: str = Field(default="", max_length=4000)

    @property
    def content(self) -> dict[str, Any]:
        """What a version holds; level and status belong to the question."""
        written = self.model_dump(exclude={"level", "status", *KIND_FIELDS}, by_alias=True)
        details = self.model_dump(include=set(kind_named(self.kind).FIELDS) - {"options"}, by_alias=True)
        for part in (*written["options"], *(details.get("numeric") or {}).get("traps", [])):
            del part["mistake"]
        return written | ({"details": details} if details else {})

    @property
    def mistakes(self) -> list[str]:
        """The mistakes that options or traps stand for, in their order, "" for none: no part of what learners see."""
        parts: list[OptionSpec] | list[Trap] = self.numeric.traps if self.numeric else self.options
        found = [part.mistake or "" for part in parts]
        return found if any(found) else []

    @property
    def digest(self) -> str:
        return sha256(json.dumps(self.content, sort_keys=True).encode()).hexdigest()


KIND_FIELDS = ("numeric", "items", "accepted", "ignore_case", "near", "rubric", "predict")


def read_question(data: Mapping[str, object]) -> QuestionSpec | list[Problem]:
    """Read a question, or say all that is wrong with it; a draft may lack what a published one needs."""
    try:
        spec = QuestionSpec.model_validate(data)
    except ValidationError as error:
        return problems_of(error)
    problems = list(_strays(spec))
    if spec.status != "draft":
        problems += lacks(spec)
    return problems or spec


def _strays(spec: QuestionSpec) -> Iterator[Problem]:
    """Name the parts that belong to another kind of question."""
    for name in ("options", *KIND_FIELDS):
        given = getattr(spec, name)
        if name not in kind_named(spec.kind).FIELDS and name in spec.model_fields_set and given:
            n_given = f", got {len(given)}" if isinstance(given, list) else ""
            yield Problem((name,), f"a question of kind {spec.kind} has no {name}{n_given}")


def lacks(spec: QuestionSpec) -> list[Problem]:
    """Say all that a question lacks before learners may be asked it."""
    problems = [Problem(path, message) for path, message in kind_named(spec.kind).problems(spec)]
    for name, least, what in (("facts", 1, "fact"), ("listens_for", 2, "sign"), ("follow_ups", 2, "follow-up")):
        n = len(getattr(spec, name))
        if n < least:
            problems.append(Problem((name,), f"{least} to 3 {what}s are wanted, got {n}"))
    problems += [Problem((name,), "this is empty") for name in ("answer", "warning") if not getattr(spec, name)]
    problems += [
        Problem(("options", number, "why"), "each option needs its reason, this one has none")
        for number, option in enumerate(spec.options)
        if not option.why
    ]
    n_words = len(spec.text.split())
    if n_words >= MAX_WORDS:
        problems.append(Problem(("text",), f"text must stay under {MAX_WORDS} words, got {n_words}"))
    return problems
