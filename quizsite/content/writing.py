"""Questions and labs as YAML texts: the same content is the same text, in the form in which one would write it."""

from typing import Any

import yaml

from quizsite.labs.validation import LabSpec
from quizsite.questions.models import QuestionVersion
from quizsite.questions.validation import QuestionSpec

LINE = 100  # letters; longer texts are folded
ORDER = list(QuestionSpec.model_fields)


class _Dumper(yaml.SafeDumper):
    """Long texts as folded blocks, several lines as they are, short lists in one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else ">" if len(text) > LINE * 0.7 else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(value, str | int | float) for value in values) and len(str(values)) < LINE * 0.7
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def spec_of(version: QuestionVersion) -> QuestionSpec:
    """Return a version as its author would write it; level and status are the question's of today."""
    return QuestionSpec.model_validate(version.data)


def question_text(spec: QuestionSpec, **beside: str) -> str:
    """Return a question's file; `beside` stands at its top, such as the slug where several stand in one file."""
    written = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return _yaml(beside | {name: written[name] for name in ORDER if name in written})


def lab_text(spec: LabSpec) -> str:
    """Return a lab's file."""
    written = spec.model_dump(mode="json", exclude_defaults=True)
    written["goals"] = [
        {"kind": goal.kind} | data for goal, data in zip(spec.goals, written["goals"], strict=True)
    ]  # a kind is the default of its class
    return _yaml({name: written[name] for name in LabSpec.model_fields if name in written})


def topics_text(topics: dict[str, str]) -> str:
    return _yaml([{"slug": slug, "name": name} for slug, name in topics.items()])


def _yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=LINE)
