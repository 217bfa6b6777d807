"""The settings form of a panel: fields for what may be changed; the engine judges the values."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.utils.functional import cached_property

from generation import (
    ModelUnavailable,
    SamplingParams,
    SettingError,
    list_models,
    parse_setting,
    without_effect,
)
from quizsite.labs import engine
from quizsite.labs.clauses import Inputs, Setup
from quizsite.labs.goals import PREDICTION
from quizsite.labs.models import Lab, Recording, Run
from quizsite.labs.panels.kind import Kind, PanelInputs
from quizsite.labs.validation import QUICK_MODELS, params_of

PACES = {"3": "3 a second", "6": "6 a second", "12": "12 a second", "0": "as they are made"}
DEFAULT_PACE = "6"
AS_MADE = "0"


@dataclass(frozen=True)
class Scale:
    """How the form offers a setting: its name and, where a slider helps, the slider's ends."""

    label: str
    kind: str = "number"  # "slider", "number", "switch", "menu" or "lines"
    lowest: float = 0
    highest: float = 0
    step: float = 0
    low_words: str = ""
    high_words: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    is_seldom: bool = False  # folded away where many settings are unlocked
    about: str = ""  # what it does, in a line


SCALES = {
    "temperature": Scale(
        "Temperature",
        "slider",
        0,
        2,
        0.05,
        "0 greedy",
        "2",
        about="Under 1 the likely tokens gain, over 1 the unlikely ones; their order stays. 0 is greedy.",
    ),
    "top_k": Scale(
        "Top-k",
        "slider",
        0,
        50,
        1,
        "0 off",
        "50",
        about="Keeps the k most likely tokens and drops the rest, whatever their probabilities are; 0 is off.",
    ),
    "top_p": Scale(
        "Top-p",
        "slider",
        0.05,
        1,
        0.05,
        "0.05",
        "1 off",
        about="Keeps the most likely tokens up to and with the one that crosses p; 1 is off.",
    ),
    "min_p": Scale(
        "Min-p",
        "slider",
        0,
        1,
        0.05,
        "0 off",
        "1",
        about="Keeps the tokens that have at least this part of the top token’s probability; 0 is off.",
    ),
    "repetition_penalty": Scale(
        "Repetition penalty",
        "slider",
        1,
        2,
        0.05,
        "1 off",
        "2",
        about="Makes each token that has been seen less likely, once, however often it was seen; 1 is off.",
    ),
    "presence_penalty": Scale(
        "Presence penalty",
        "slider",
        -2,
        2,
        0.1,
        "−2",
        "2",
        is_seldom=True,
        about="Takes this much off the logit of each token that stands in the output; 0 is off.",
    ),
    "frequency_penalty": Scale(
        "Frequency penalty",
        "slider",
        -2,
        2,
        0.1,
        "−2",
        "2",
        is_seldom=True,
        about="Takes this much off the logit for each time a token stands in the output; 0 is off.",
    ),
    "no_repeat_ngram_size": Scale(
        "No n-gram twice",
        "slider",
        0,
        10,
        1,
        "0 off",
        "10",
        is_seldom=True,
        about="Bans each token that would complete a run of n tokens seen before; 0 is off.",
    ),
    "penalty_scope": Scale(
        "Penalty counts",
        "menu",
        choices=(("prompt+output", "prompt and output"), ("output", "output alone")),
        is_seldom=True,
        about="Whether the repetition penalty counts the tokens of the prompt as well.",
    ),
    "stop": Scale(
        "Stop strings, one a line",
        "lines",
        is_seldom=True,
        about="The run ends once its text holds one of these, and shows nothing of it.",
    ),
    "max_new_tokens": Scale(
        "Max tokens", about="The run is cut off after so many tokens; the model does not know of it."
    ),
    "seed": Scale("Seed", about="Fixes the random number of every step: the same seed and settings, the same text."),
    "temperature_last": Scale(
        "Temperature last",
        "switch",
        about="Truncates first and heats afterwards, as llama.cpp does; otherwise the other way round.",
    ),
    "use_kv_cache": Scale(
        "KV cache",
        "switch",
        about="Keeps what was computed for earlier tokens. Off: each step computes all of the text again.",
    ),
}
FEW = 6  # unlocked settings that stand side by side
ALWAYS_NAMED = {"temperature", "top_k", "top_p", "repetition_penalty", "max_new_tokens", "seed"}  # when locked


@dataclass(frozen=True)
class Unlocked:
    """A setting that the learner may change, with what was typed and what is wrong with it."""

    name: str
    scale: Scale
    value: str
    is_on: bool  # of a switch
    errors: list[str]


@dataclass(frozen=True)
class Guess:
    """A prediction to be committed before the run."""

    question: str
    answers: list[tuple[int, str, bool]]  # number, words, whether it is the chosen one


class RunForm(forms.Form):
    """What a run is started with. A lab locks its model, its prompt and most settings."""

    def __init__(
        self,
        data: Any = None,
        *,
        kind: Kind,
        lab: Lab | None = None,
        run: Run | None = None,
        offered: Inputs | None = None,
    ) -> None:
        super().__init__(data)
        self.kind, self.lab = kind, lab
        self.params: SamplingParams | None = None
        names = [name for name in SCALES if kind.settings is None or name in kind.settings]
        if lab:
            spec = lab.spec
            self.start, self.start_model, self.start_prompt = spec.start_params, lab.model, lab.prompt
            self.start_inputs, self.allowed = spec.start_inputs, list(lab.spec.allowed)
            self.unlocked_names = [name for name in spec.allowed if name in names]
        else:
            start = dict(kind.open_start)
            models = list_models()
            self.start_model = start.pop("model", models[0])
            if self.start_model not in models:
                self.start_model = models[0]
            self.start_prompt = start.pop("prompt", "")
            self.start_inputs = {name: start.pop(name, f.initial) for name, f in kind.inputs.base_fields.items()}
            self.start, self.allowed = params_of({}, start), [*kind.inputs.base_fields]
            self.unlocked_names = names
            if kind.asks_model:
                self.fields["model"] = forms.ChoiceField(choices=[(name, name) for name in models])
            if kind.asks_prompt:
                self.fields["prompt"] = forms.CharField(required=False, max_length=2000, strip=False)
        self.shown, self.shown_inputs = self.start, self.start_inputs
        if run:
            self.shown, self.shown_inputs = run.recording.params, self.start_inputs | run.inputs
            if not lab:
                self.start_model, self.start_prompt = run.recording.model, run.recording.prompt
        self.goes_on = bool(offered) and set(offered or {}) <= set(self.allowed)
        if offered and self.goes_on:
            self.shown_inputs = self.shown_inputs | offered
        default_pace = DEFAULT_PACE if self.start_model in QUICK_MODELS else AS_MADE
        self.start_pace = str(run.pace) if run and run.pace is not None else default_pace
        self.chat = lab.chat if lab else []
        self.inputs_form = self._inputs_form()

    def _inputs_form(self) -> PanelInputs:
        """Return the panel's own form; locked inputs are as at the lab's start, whatever is posted."""
        if not self.is_bound:
            return self.kind.inputs(initial=self.shown_inputs, auto_id="input-%s")
        posted = {name: self.data.get(name) for name in self.allowed}
        return self.kind.inputs(self.start_inputs | posted, auto_id="input-%s")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        changes: dict[str, Any] = {}
        for name in self.unlocked_names:
            try:
                changes[name] = parse_setting(name, self._typed(name))
                replace(self.start, **{name: changes[name]})
            except SettingError as error:
                self.add_error(None, forms.ValidationError(str(error), code=name))
        if not self.inputs_form.is_valid():
            for name, problems in self.inputs_form.errors.items():
                for problem in problems:
                    self.add_error(None, forms.ValidationError(problem, code=f"input {name}"))
        if self.errors:
            return cleaned
        self.cleaned_data = cleaned
        try:
            self.params = replace(self.start, **changes)
            if self.kind.generates:
                engine.check(self.setup)
        except SettingError as error:
            self.add_error(None, forms.ValidationError(str(error), code=error.setting))
        except (ValueError, ModelUnavailable) as error:  # what a panel or the engine refuses, in words
            self.add_error("prompt" if "prompt" in self.fields else None, str(error))
        return cleaned

    def recording(self) -> Recording:
        """Return the recording of it."""
        return Recording.objects.of(self.setup)

    @property
    def setup(self) -> Setup:
        """What a valid form asks for."""
        assert self.params
        if self.lab:
            return self.lab.spec.setup(self.params, self.inputs)
        prompt = self.cleaned_data.get("prompt", self.start_prompt)
        setup = Setup(self.cleaned_data.get("model", self.start_model), prompt, self.params)
        return self.kind.asked(setup, self.inputs)

    @property
    def inputs(self) -> Inputs:
        """The panel's inputs of a valid form, and the prediction where the lab asks for one."""
        return dict(self.inputs_form.cleaned_data) | self._prediction()

    def _prediction(self) -> Inputs:
        guess = self.lab.spec.prediction if self.lab else None
        typed = self.data.get(PREDICTION, "")
        if not guess or typed not in map(str, range(len(guess.answers))):
            return {}
        return {PREDICTION: int(typed)}

    @property
    def prediction(self) -> "Guess | None":
        """The prediction that the lab asks for, with the answer that was chosen."""
        guess = self.lab.spec.prediction if self.lab else None
        if not guess:
            return None
        chosen = self._prediction().get(PREDICTION) if self.is_bound else self.shown_inputs.get(PREDICTION)
        return Guess(guess.question, [(n, answer, n == chosen) for n, answer in enumerate(guess.answers)])

    @property
    def inputs_shown(self) -> list[forms.BoundField]:
        """The panel's inputs that can be changed here, and those that are only to be read."""
        return [field for field in self.inputs_form if field.name in self.allowed or field.is_hidden]

    @property
    def idle(self) -> list[tuple[str, str]]:
        """The settings that can change nothing at the values shown, with the reason."""
        values = dict(self.shown.as_dict())
        if self.is_bound:
            for name in self.unlocked_names:
                with suppress(SettingError):
                    values[name] = params_of({}, {name: parse_setting(name, self._typed(name))}).as_dict()[name]  # type: ignore[dict-item]
        idle = without_effect(params_of({}, values))
        return [(SCALES[name].label, reason) for name, reason in idle.items() if name in self.unlocked_names]

    @property
    def chosen_model(self) -> str:
        return str(self.data.get("model") or self.start_model) if self.is_bound else self.start_model

    @property
    def typed_prompt(self) -> str:
        return str(self.data.get("prompt", "")) if self.is_bound and not self.lab else self.start_prompt

    @property
    def paces(self) -> list[tuple[str, str, bool]]:
        """How fast tokens can be shown: value, words, whether it is the chosen one."""
        return [(value, words, value == self.pace) for value, words in PACES.items()]

    @property
    def pace(self) -> str:
        typed = self.data.get("pace", self.start_pace)
        return typed if typed in PACES else DEFAULT_PACE

    @cached_property
    def unlocked(self) -> list[Unlocked]:
        """The settings to be shown as fields."""
        by_name: dict[str, list[str]] = {}
        for error in self.non_field_errors().as_data() if self.is_bound else []:
            by_name.setdefault(error.code or "", []).extend(error.messages)
        values = self.shown.as_dict()
        unlocked = []
        for name in self.unlocked_names:
            typed = self._typed(name) if self.is_bound else as_text(values[name])
            unlocked.append(Unlocked(name, SCALES[name], typed, typed not in {"", "false"}, by_name.get(name, [])))
        return unlocked

    @property
    def problem(self) -> str:
        """What is wrong beside the fields; empty if nothing is."""
        errors = self.non_field_errors().as_data() if self.is_bound else []
        return " ".join(message for error in errors if not error.code for message in error.messages)

    @property
    def common(self) -> list[Unlocked]:
        """The settings that stand side by side."""
        fields = [setting for setting in self.unlocked if setting.scale.kind != "switch"]
        return fields if len(fields) <= FEW else [setting for setting in fields if not setting.scale.is_seldom]

    @property
    def seldom(self) -> list[Unlocked]:
        """The settings that are folded away."""
        common = self.common
        return [setting for setting in self.unlocked if setting not in common and setting.scale.kind != "switch"]

    @property
    def switches(self) -> list[Unlocked]:
        return [setting for setting in self.unlocked if setting.scale.kind == "switch"]

    @property
    def seldom_is_open(self) -> bool:
        """Tell whether what is folded away has something to show: a value that is not neutral, or an error."""
        neutral = SamplingParams().as_dict()
        return any(setting.errors or setting.value != as_text(neutral[setting.name]) for setting in self.seldom)

    @property
    def locked(self) -> list[tuple[str, str]]:
        """The settings that stay as they are, as words; the seldom ones only where they are on."""
        values, neutral = self.start.as_dict(), SamplingParams().as_dict()
        locked = []
        for name, scale in SCALES.items():
            if self.kind.settings is not None and name not in self.kind.settings:
                continue
            is_neutral = values[name] == neutral[name]
            if name in self.unlocked_names or (is_neutral and name not in ALWAYS_NAMED):
                continue
            is_off = is_neutral and scale.kind == "slider" and name != "temperature"
            locked.append((scale.label.lower(), "off" if is_off else as_text(values[name]) or "off"))
        for field in self.inputs_form:
            if field.name not in self.allowed and not field.is_hidden:
                locked.append((str(field.label).lower(), as_text(self.start_inputs[field.name]) or "off"))
        return locked

    def _typed(self, name: str) -> str:
        default = "" if isinstance(self.start.as_dict()[name], bool) else as_text(self.start.as_dict()[name])
        return str(self.data.get(name, default))


def as_text(value: Any) -> str:
    """Write a setting's value as a person would type it."""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list | tuple):
        return "\n".join(text.replace("\n", "\\n").replace("\t", "\\t") for text in value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
