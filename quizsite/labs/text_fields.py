"""Fields of authors' forms: lists one a line, and settings or goals as YAML."""

from typing import Any

import yaml
from django import forms
from django.core.exceptions import ValidationError


def area(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "cols": 60})


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = area(3)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(" ".join(str(line).split()) for line in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = value if isinstance(value, list) else (value or "").splitlines()
        return [line.strip() for line in lines if line.strip()]


class YamlField(forms.CharField):
    """Plain data as YAML: a mapping, or a list of them."""

    widget = area(3)

    def __init__(self, kind: type, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.kind = kind
        self.how = "`name: value`, one a line" if kind is dict else "a list, each part beginning with `- `"

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        if not value:
            return ""
        is_flow = None if self.kind is list else False  # what is innermost in a list stands in one line
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100, default_flow_style=is_flow)

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value or self.kind()
        try:
            read = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ValidationError(f"this is written as {self.how}: {error}") from None
        if read is not None and not isinstance(read, self.kind):
            raise ValidationError(f"this is written as {self.how}, got {str(read)[:40]!r}")
        return read or self.kind()
