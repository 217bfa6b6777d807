"""Moments in the zone of a class: how they are typed, and how they are said to somebody who may live in another."""

from datetime import datetime, tzinfo
from typing import Any, NamedTuple

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


class Said(NamedTuple):
    """A moment in words: by the clocks of the class, and by the reader's own where they differ."""

    theirs: str
    mine: str


def said(moment: datetime, zone: tzinfo) -> Said:
    theirs, mine = moment.astimezone(zone), timezone.localtime(moment)
    if theirs.utcoffset() == mine.utcoffset():
        return Said(_words(theirs), "")
    time = f"{mine:%H:%M}" if theirs.date() == mine.date() else _words(mine)
    return Said(_words(theirs), f"{time} in {str(timezone.get_current_timezone()).replace('_', ' ')}")


def _words(moment: datetime) -> str:
    year = "" if moment.year == timezone.now().year else f" {moment.year}"
    return f"{moment:%a} {moment.day} {moment:%B}{year}, {moment:%H:%M}"
