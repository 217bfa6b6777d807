"""A form field that holds rows: options, rubric points, traps; each row is a small form."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

MOST_ROWS, N_BLANK = 12, 2


class RowsWidget(forms.Widget):
    """Rows of small forms, with blank ones at the end."""

    def __init__(self, row: type[forms.Form], what: str) -> None:
        super().__init__()
        self.what = what  # a row is called
        self.formset = forms.formset_factory(row, extra=N_BLANK, max_num=MOST_ROWS, absolute_max=MOST_ROWS)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        return self.formset(data, prefix=name) if f"{name}-TOTAL_FORMS" in data else []

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-TOTAL_FORMS" not in data

    def id_for_label(self, id_: str | None) -> str:
        return ""  # each field of a row has its own

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        rows = value if isinstance(value, forms.BaseFormSet) else self.formset(initial=value or None, prefix=name)
        return render_to_string("authoring/rows.html", {"rows": rows, "what": self.what})


class RowsField(forms.Field):
    """A list of rows as plain data; a row in which nothing is written is left out."""

    def __init__(self, row: type[forms.Form], what: str, **kwargs: Any) -> None:
        super().__init__(required=False, widget=RowsWidget(row, what), **kwargs)

    def clean(self, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, forms.BaseFormSet):
            return []
        if not value.is_valid():
            raise ValidationError([*_problems(value)])
        return [row for row in (form.cleaned_data for form in value.forms) if any(_written(row))]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return True


def _written(row: dict[str, Any]) -> list[Any]:
    return [value for value in row.values() if value not in (None, "", False, [])]


def _problems(formset: Any) -> list[str]:
    found = [
        f"row {number}: {text}" for number, errors in enumerate(formset.errors, start=1) for text in _texts(errors)
    ]
    return found + [str(error) for error in formset.non_form_errors()]


def _texts(errors: Any) -> list[str]:
    return [f"{name}: {message}" for name, messages in errors.items() for message in messages]
