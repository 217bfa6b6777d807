"""The bank as a table for spreadsheets."""

from collections.abc import Iterable

from quizsite.classes.spreadsheets import csv_of
from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import QuestionVersion

HEAD = ["slug", "topic", "level", "kind", "status", "version", "facts", "title", "text", "key", "lab"]


def write(versions: Iterable[QuestionVersion]) -> str:
    """Return a row for each question; a key of drawn numbers is left to its formula."""
    return csv_of([HEAD, *map(_row, versions)])


def _row(version: QuestionVersion) -> list[object]:
    question = version.question
    lab = version.lab.slug if version.lab else ""
    place = [question.slug, question.topic.slug, question.level, version.kind, question.status, version.number]
    return [*place, " ".join(version.facts), version.title, version.text, _key(version), lab]


def _key(version: QuestionVersion) -> str:
    if version.kind == "numeric":
        return str(version.details["numeric"]["formula"])
    try:
        kind = kind_named(version.kind)
        return kind.said(version, kind.right(version, Asking("table"))).key
    except (LookupError, StopIteration, AssertionError):
        return ""  # a draft without a key
