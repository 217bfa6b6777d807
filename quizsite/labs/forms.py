"""The settings form of a panel: fields for what may be changed; the engine judges the values."""

from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.utils.functional import cached_property

from generation import (
    ModelUnavailable,
    PromptError,
    SamplingParams,
    SettingError,
    encode_prompt,
    list_models,
    load_model,
    parse_setting,
)
from quizsite.labs.models import Lab, Recording, Run

OPEN_START = SamplingParams(temperature=0.7, max_new_tokens=32)
OPEN_PROMPT = "the sky is"
PACES = {"3": "3 a second", "6": "6 a second", "12": "12 a second", "0": "all at once"}
DEFAULT_PACE = "6"


@dataclass(frozen=True)
class Scale:
    """How the form offers a setting: its name and, where a slider helps, the slider's ends."""

    label: str
    lowest: float = 0
    highest: float = 0
    step: float = 0
    low_words: str = ""
    high_words: str = ""
    off: float | None = None  # the neutral value, shown as "off"


SCALES = {
    "temperature": Scale("Temperature", 0, 2, 0.05, "0 greedy", "2"),
    "top_k": Scale("Top-k", 0, 6, 1, "0 off", "6", off=0),
    "top_p": Scale("Top-p", 0.05, 1, 0.05, "0.05", "1 off", off=1),
    "repetition_penalty": Scale("Repetition penalty", 1, 2, 0.05, "1 off", "2", off=1),
    "max_new_tokens": Scale("Max new tokens"),
    "seed": Scale("Seed"),
    "use_kv_cache": Scale("KV cache"),
}


@dataclass(frozen=True)
class Unlocked:
    """A setting that the learner may change, with what was typed and what is wrong with it."""

    name: str
    scale: Scale
    value: str
    is_switch: bool
    is_on: bool
    errors: list[str]


class RunForm(forms.Form):
    """What a run is started with. A lab locks its model, its prompt and most settings."""

    def __init__(self, data: Any = None, *, lab: Lab | None, run: Run | None = None) -> None:
        super().__init__(data)
        self.lab = lab
        self.params: SamplingParams | None = None
        if lab:
            self.start, self.start_model, self.start_prompt = lab.spec.start_params, lab.model, lab.prompt
            self.unlocked_names = list(lab.spec.allowed)
        else:
            self.start, self.start_model, self.start_prompt = OPEN_START, list_models()[0], OPEN_PROMPT
            self.unlocked_names = list(self.start.as_dict())
            self.fields["model"] = forms.ChoiceField(choices=[(name, name) for name in list_models()])
            self.fields["prompt"] = forms.CharField(required=False, max_length=2000, strip=False)
        self.shown = self.start
        if run:
            self.shown = run.recording.params
            if not lab:
                self.start_model, self.start_prompt = run.recording.model, run.recording.prompt
        self.start_pace = str(run.pace) if run and run.pace is not None else DEFAULT_PACE

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        changes: dict[str, Any] = {}
        for name in self.unlocked_names:
            try:
                changes[name] = parse_setting(name, self._typed(name))
                replace(self.start, **{name: changes[name]})
            except SettingError as error:
                self.add_error(None, forms.ValidationError(str(error), code=name))
        if self.errors:
            return cleaned
        if self.lab:
            cleaned |= {"model": self.start_model, "prompt": self.start_prompt}
        try:
            self.params = replace(self.start, **changes)
            encode_prompt(load_model(cleaned["model"]), cleaned["prompt"], self.params.max_new_tokens)
        except (PromptError, ModelUnavailable) as error:
            self.add_error(None if self.lab else "prompt", str(error))
        return cleaned

    def recording(self) -> Recording:
        """Return the recording of what a valid form asks for."""
        assert self.params
        return Recording.objects.of(self.cleaned_data["model"], self.cleaned_data["prompt"], self.params)

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
            is_switch = isinstance(values[name], bool)
            unlocked.append(
                Unlocked(name, SCALES[name], typed, is_switch, typed not in {"", "false"}, by_name.get(name, []))
            )
        return unlocked

    @property
    def locked(self) -> list[tuple[str, str]]:
        """The settings that stay as they are, as words."""
        values = self.start.as_dict()
        return [
            (scale.label.lower(), "off" if values[name] == scale.off else as_text(values[name]))
            for name, scale in SCALES.items()
            if name not in self.unlocked_names
        ]

    def _typed(self, name: str) -> str:
        default = "" if isinstance(self.start.as_dict()[name], bool) else as_text(self.start.as_dict()[name])
        return str(self.data.get(name, default))


def as_text(value: float | int | bool) -> str:
    """Write a setting's value as a person would."""
    if isinstance(value, bool):
        return "on" if value else ""
    return f"{value:g}" if isinstance(value, float) else str(value)
