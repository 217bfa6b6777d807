"""Moments in the zone of a class: how they are typed, and how they are said to somebody who may live in another."""

from datetime import datetime, tzinfo
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

TYPED = "%Y-%m-%dT%H:%M"  # as browsers send it


class MomentField(forms.DateTimeField):
    """A day and a time in the zone that is active; a time that the clocks leave out or repeat is asked again."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "class": "input"}, format=TYPED)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(input_formats=[TYPED, f"{TYPED}:%S"], **kwargs)
        self.error_messages["invalid"] = "Give a day and a time, such as 2026-03-06T23:59."

    def to_python(self, value: Any) -> datetime | None:
        try:
            return super().to_python(value)
        except ValidationError as error:
            if error.code != "ambiguous_timezone":
                raise
        raise ValidationError("The clocks are changed in that hour: it is left out, or comes twice. Choose another.")

    def clean(self, value: Any) -> datetime | None:
        try:
            moment: datetime | None = super().clean(value)
            if moment:
                moment.astimezone(timezone.get_default_timezone())  # the first and the last days have no such time
        except OverflowError:
            raise ValidationError(self.error_messages["invalid"]) from None
        return moment


def said(moment: datetime, zone: tzinfo) -> str:
    """Say a moment in the zone of a class, and in the reader's own where the clocks differ."""
    theirs, mine = moment.astimezone(zone), timezone.localtime(moment)
    text = f"{theirs:%a} {theirs.day} {theirs:%B %Y, %H:%M} in {_name(zone)}"
    if theirs.utcoffset() == mine.utcoffset():
        return text
    day = "" if theirs.date() == mine.date() else f"{mine:%a} {mine.day} {mine:%B}, "
    return f"{text}; {day}{mine:%H:%M} in {_name(timezone.get_current_timezone())}"


def _name(zone: tzinfo) -> str:
    return str(zone).replace("_", " ")
