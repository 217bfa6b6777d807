"""What changed between two versions of a question: field by field, word by word."""

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import yaml

WORDS = re.compile(r"\s+|[^\s]+")


class Piece(NamedTuple):
    """Some words, and whether they stand on both sides (" "), only before ("-") or only after ("+")."""

    side: str
    text: str


class Change(NamedTuple):
    """A field that differs, as its words before and after."""

    field: str
    pieces: list[Piece]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the fields in which two questions differ, in the order of the content."""
    names = [*before, *(name for name in after if name not in before)]
    return [
        Change(name.replace("_", " "), [*_pieces(_text(before.get(name)), _text(after.get(name)))])
        for name in names
        if before.get(name) != after.get(name)
    ]


def _pieces(before: str, after: str) -> Iterator[Piece]:
    old, new = WORDS.findall(before), WORDS.findall(after)
    for how, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if how == "equal":
            yield Piece(" ", "".join(old[a:b]))
            continue
        if a < b:
            yield Piece("-", "".join(old[a:b]))
        if c < d:
            yield Piece("+", "".join(new[c:d]))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=10_000) if value else ""
