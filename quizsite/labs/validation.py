"""What a lab must be: the one validator of lab files and of the admin.

It reads plain data into a `LabSpec`. `prove` then runs it: the start must not meet all goals, and each
goal's solution must meet it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from generation import (
    Generation,
    ModelUnavailable,
    PromptError,
    SamplingParams,
    SettingError,
    generate,
    list_models,
    load_model,
    missing_models,
)
from quizsite.labs.clauses import Generate, Run, Settings, Setup, Verdict
from quizsite.labs.goals import Goal

TAKEN_SLUGS = {"models"}  # addresses under /lab/ that are no lab's
N_SEEDS = 5
QUICK_MODELS = {"sky"}  # so quick that their labs are proved at each load, and their tokens paced for the eye
OVER_SEEDS = {"cure_loop", "same_as_greedy"}  # goals that a single run cannot meet

Record = Callable[[Setup, Mapping[int, int]], Generation]  # runs a setup with tokens taken by hand

FactId = Annotated[str, Field(pattern=r"^[MSCXTA]\d{1,2}$")]


class Problem(NamedTuple):
    """What is wrong with content, and where: the keys and indexes that lead to it."""

    path: tuple[str | int, ...]
    message: str


class Message(BaseModel):
    """A turn of a chat."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=2000)


class LabSpec(BaseModel):
    """A lab as an author writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=3, max_length=80)
    panel: Literal["trace"] = "trace"
    facts: list[FactId] = Field(min_length=1, max_length=3)
    model: str
    prompt: str = Field(default="", max_length=2000)
    chat: list[Message] = Field(default=[], max_length=20)
    first_step: str = Field(default="", max_length=80)  # the lab that leads to this one, on the toy
    start: Settings
    allowed: list[str]
    seeds: list[int] = Field(default=[], max_length=N_SEEDS)
    goals: list[Annotated[Goal, Field(discriminator="kind")]] = Field(min_length=1, max_length=2)

    @model_validator(mode="after")
    def _prompt_or_chat(self) -> Self:
        if self.prompt and self.chat:
            raise ValueError("a lab must have a prompt or a chat, got both")
        return self

    @model_validator(mode="after")
    def _goals_have_what_they_need(self) -> Self:
        kinds = [goal.kind for goal in self.goals]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"goals must be of different kinds, got {kinds[0]} twice")
        for kind in OVER_SEEDS & set(kinds):
            if len(self.seeds) != N_SEEDS:
                raise ValueError(f"the goal {kind} needs {N_SEEDS} seeds, got {len(self.seeds)}")
        return self

    @field_validator("model", mode="after")
    @classmethod
    def _model_is_known(cls, model: str) -> str:
        known = [*list_models(), *missing_models()]
        if model not in known:
            raise ValueError(f"model must be one of {', '.join(known)}, got {model!r}")
        return model

    @field_validator("start", mode="after")
    @classmethod
    def _start_is_settings(cls, start: Settings) -> Settings:
        params_of({}, start)
        return start

    @field_validator("allowed", mode="after")
    @classmethod
    def _allowed_are_settings(cls, allowed: list[str]) -> list[str]:
        known = SamplingParams().as_dict()
        unknown = [name for name in allowed if name not in known]
        if unknown:
            raise ValueError(f"allowed must name settings ({', '.join(known)}), got {unknown[0]!r}")
        return allowed

    @field_validator("seeds", mode="after")
    @classmethod
    def _seeds_are_five(cls, seeds: list[int]) -> list[int]:
        if seeds and len(set(seeds)) != N_SEEDS:
            raise ValueError(f"seeds must be {N_SEEDS} different numbers, got {seeds}")
        return seeds

    @property
    def is_quick(self) -> bool:
        return self.model in QUICK_MODELS

    @property
    def is_ready(self) -> bool:
        """Tell whether its model is here."""
        return self.model in list_models()

    @property
    def start_params(self) -> SamplingParams:
        return params_of({}, self.start)

    def setup(self, params: SamplingParams) -> Setup:
        """Return the lab's model and prompt under some settings."""
        return Setup(self.model, self.prompt, params, [message.model_dump() for message in self.chat])

    def judge(
        self, params: SamplingParams, forced: Mapping[int, int] | None = None, record: Record | None = None
    ) -> list[Verdict]:
        """Run the lab's model under the settings and judge every goal; `record` runs it elsewhere than here and now."""
        setup, runner = self.setup(params), record or run_here

        def others(wanted: list[SamplingParams]) -> list[Generation]:
            return [runner(self.setup(params), {}) for params in wanted]

        run = self.run_of(setup, runner(setup, forced or {}), others)
        return [goal.judge(run) for goal in self.goals]

    def judge_solution(self, number: int, record: Record | None = None) -> Verdict:
        """Run the solution of a goal, counted from 0, and judge that goal."""
        goal = self.goals[number]
        params, forced = params_of(self.start, goal.solution), getattr(goal, "solution_forced", None)
        return self.judge(params, forced, record)[number]

    def run_of(self, setup: Setup, generation: Generation, generate: Generate) -> Run:
        """Return a run to be judged against this lab; `generate` gives the other runs that a goal asks for."""
        return Run(
            start=self.setup(self.start_params),
            setup=setup,
            generation=generation,
            allowed=tuple(self.allowed),
            seeds=tuple(self.seeds),
            generate=generate,
        )


def params_of(start: Settings, changes: Settings) -> SamplingParams:
    """Return the start's settings with changes; an unknown name or a bad value is a SettingError."""
    known = SamplingParams().as_dict()
    for name in changes:
        if name not in known:
            raise SettingError(name, f"{name} is not a setting; there are {', '.join(known)}")
    return replace(SamplingParams(), **start | changes)  # type: ignore[arg-type]


def run_here(setup: Setup, forced: Mapping[int, int]) -> Generation:
    """Run a model in this thread."""
    model = load_model(setup.model)
    return generate(model, setup.encoded_prompt(model), setup.params, forced)


def read_lab(data: Mapping[str, object]) -> LabSpec | list[Problem]:
    """Read a lab, or say all that is wrong with it; nothing is run."""
    try:
        return LabSpec.model_validate(data)
    except ValidationError as error:
        return problems_of(error)


def prove(spec: LabSpec, record: Record | None = None) -> list[Problem]:
    """Run the start and each solution through the engine and the goals."""
    try:
        if all(verdict.is_met for verdict in spec.judge(spec.start_params, record=record)):
            return [Problem(("start",), "the start must not meet all goals, but it does")]
        problems = []
        for number in range(len(spec.goals)):
            verdict = spec.judge_solution(number, record)
            if not verdict.is_met:
                failing = "; ".join(f"{c.name}: {c.value}" for c in verdict.failing)
                problems.append(
                    Problem(
                        ("goals", number, "solution"), f"a solution must meet its goal, but this one fails: {failing}"
                    )
                )
        return problems
    except SettingError as error:
        return [Problem(("goals",), str(error))]
    except PromptError as error:
        return [Problem(("prompt",), str(error))]
    except ModelUnavailable as error:
        return [Problem(("model",), str(error))]


def problems_of(error: ValidationError) -> list[Problem]:
    """Say what a validation error found, in the order of the content, each with the value it found."""
    problems = []
    for found in error.errors(include_url=False):
        message = found["msg"].removeprefix("Value error, ")
        value = found["input"]
        if isinstance(value, str | int | float | bool) and found["type"] != "value_error":
            message = f"{message}, got {str(value)[:60]!r}"
        problems.append(Problem(tuple(found["loc"]), message))
    return problems
