"""What a lab must be: the one validator of lab files and of the admin.

It reads plain data into a `LabSpec`. `prove` then runs it: the start must not meet all goals, and each
goal's solution must meet it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
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
from quizsite.labs.clauses import Generate, Inputs, Outcome, Run, Settings, Setup, Verdict
from quizsite.labs.goals import PREDICTION, Goal, PredictedFirst
from quizsite.labs.panels import KINDS
from quizsite.labs.panels.bench import Bench
from quizsite.labs.panels.kind import Kind

TAKEN_SLUGS = {"models"}  # addresses under /lab/ that are no lab's
N_HINTS = 3
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
N_SEEDS = 5
QUICK_MODELS = {"sky"}  # so quick that their labs are proved at each load, and their tokens paced for the eye
OVER_SEEDS = {"cure_loop", "cure_beside", "loop_rate", "same_as_greedy"}  # goals that a single run cannot meet

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
    panel: str = "trace"
    facts: list[FactId] = Field(min_length=1, max_length=3)
    model: str
    prompt: str = Field(default="", max_length=2000)
    chat: list[Message] = Field(default=[], max_length=20)
    first_step: str = Field(default="", max_length=80)  # the lab that leads to this one, on the toy
    start: Settings = {}
    inputs: Inputs = {}  # of the panel, at the start
    allowed: list[str]  # settings and inputs that the learner may change
    seeds: list[int] = Field(default=[], max_length=N_SEEDS)
    goals: list[Annotated[Goal, Field(discriminator="kind")]] = Field(min_length=1, max_length=2)
    hints: list[Annotated[str, Field(min_length=10, max_length=300)]] = Field(default=[], max_length=N_HINTS)
    explanation: str = Field(default="", max_length=2000)  # Markdown, shown once all goals are met

    @field_validator("panel", mode="after")
    @classmethod
    def _panel_is_known(cls, panel: str) -> str:
        if panel not in KINDS:
            raise ValueError(f"panel must be one of {', '.join(KINDS)}, got {panel!r}")
        return panel

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
        guess = self.prediction
        if guess and not 2 <= len(guess.answers) == len(guess.values):
            raise ValueError(f"a prediction must have two answers or more, and a value for each, got {guess.values}")
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

    @field_validator("seeds", mode="after")
    @classmethod
    def _seeds_are_five(cls, seeds: list[int]) -> list[int]:
        if seeds and len(set(seeds)) != N_SEEDS:
            raise ValueError(f"seeds must be {N_SEEDS} different numbers, got {seeds}")
        return seeds

    @model_validator(mode="after")
    def _inputs_are_the_panels(self) -> Self:
        read_inputs(self.kind, {}, self.inputs)
        for goal in self.goals:
            read_inputs(self.kind, self.inputs, goal.solution_inputs)
        return self

    @model_validator(mode="after")
    def _allowed_are_known(self) -> Self:
        known = [*SamplingParams().as_dict(), *self.kind.inputs.base_fields]
        unknown = [name for name in self.allowed if name not in known]
        if unknown:
            raise ValueError(f"allowed must name settings or inputs ({', '.join(known)}), got {unknown[0]!r}")
        return self

    @model_validator(mode="after")
    def _hints_keep_the_solution(self) -> Self:
        numbers = {number for goal in self.goals for number in _numbers_of(goal)}
        for hint in self.hints:
            for written in NUMBER.findall(hint):
                if float(written.replace(",", "")) in numbers:
                    raise ValueError(f"a hint must not contain a number of the solution, but one says {written}")
        return self

    @property
    def kind(self) -> Kind:
        return KINDS[self.panel]

    @property
    def prediction(self) -> PredictedFirst | None:
        """The prediction that the learner commits before a run, if the lab asks for one."""
        return next((goal for goal in self.goals if isinstance(goal, PredictedFirst)), None)

    @property
    def start_inputs(self) -> Inputs:
        return read_inputs(self.kind, {}, self.inputs)

    @property
    def is_quick(self) -> bool:
        return self.model in QUICK_MODELS

    @property
    def digest(self) -> str:
        """What it says as a short text; in whatever order a database gives back the keys of what it holds."""
        return sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()

    @property
    def is_ready(self) -> bool:
        """Tell whether its model is here."""
        return self.model in list_models()

    @property
    def start_params(self) -> SamplingParams:
        return params_of({}, self.start)

    def setup(self, params: SamplingParams, inputs: Inputs | None = None) -> Setup:
        """Return what the model is asked under settings and inputs; the inputs of the start where none are given."""
        setup = Setup(self.model, self.prompt, params, [message.model_dump() for message in self.chat])
        return self.kind.asked(setup, self.start_inputs if inputs is None else inputs)

    def judge(
        self,
        params: SamplingParams,
        forced: Mapping[int, int] | None = None,
        inputs: Inputs | None = None,
        record: Record | None = None,
    ) -> list[Verdict]:
        """Run the lab's model under the settings and judge every goal; `record` runs it elsewhere than here and now."""
        given = self.start_inputs if inputs is None else inputs
        setup, bench = self.setup(params, given), Bench(record or run_here)

        def others(wanted: list[SamplingParams]) -> list[Generation]:
            return [bench.record(self.setup(params, given)) for params in wanted]

        generation = bench.runner(setup, forced or {}) if self.kind.generates else None
        outcome = self.kind.after(setup, given, generation, bench)
        run = self.run_of(setup, generation, others, given, outcome)
        return [goal.judge(run) for goal in self.goals]

    def judge_solution(self, number: int, record: Record | None = None) -> Verdict:
        """Run the solution of a goal, counted from 0, and judge that goal."""
        goal = self.goals[number]
        inputs = read_inputs(self.kind, self.inputs, goal.solution_inputs)
        return self.judge(params_of(self.start, goal.solution), goal.solution_forced, inputs, record)[number]

    def run_of(
        self, setup: Setup, generation: Generation | None, generate: Generate, inputs: Inputs, outcome: Outcome
    ) -> Run:
        """Return a run to be judged against this lab; `generate` gives the other runs that a goal asks for."""
        return Run(
            start=self.setup(self.start_params, inputs),  # a prompt may be built of inputs, which are judged apart
            setup=setup,
            made=generation,
            allowed=tuple(self.allowed),
            seeds=tuple(self.seeds),
            generate=generate,
            start_inputs=self.start_inputs,
            inputs=inputs,
            outcome=outcome,
        )


def read_inputs(kind: Kind, start: Inputs, changes: Inputs) -> Inputs:
    """Return a panel's inputs, at their start where nothing is said, as the panel's own form cleans them.

    A prediction is not the panel's, and is passed on.

    Raises
    ------
    ValueError
        Names the input, the rule and the value.
    """
    form = kind.inputs()
    given = {name: field.initial for name, field in form.fields.items()} | start | changes
    prediction = {PREDICTION: given.pop(PREDICTION)} if PREDICTION in given else {}
    unknown = [name for name in given if name not in form.fields]
    if unknown:
        known = ", ".join(form.fields) or "none"
        raise ValueError(f"the panel {kind.name} has no input {unknown[0]!r}; it has {known}")
    form = kind.inputs(given)
    if not form.is_valid():
        name, problems = next(iter(form.errors.items()))
        raise ValueError(f"{name}: {problems[0]}, got {str(given.get(name))[:60]!r}")
    return form.cleaned_data | prediction


def _numbers_of(goal: Goal) -> Iterator[float]:
    """Return the numbers of a goal's solution, in its settings, in its inputs, and in the right prediction."""
    given = [*goal.solution.values(), *goal.solution_inputs.values()]
    if isinstance(goal, PredictedFirst):
        given = [value for value in given if value != goal.solution_inputs.get(PREDICTION)]
        given.append(goal.values[goal.solution_inputs[PREDICTION]])
    for value in given:
        if isinstance(value, str):
            yield from (float(written.replace(",", "")) for written in NUMBER.findall(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)


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
