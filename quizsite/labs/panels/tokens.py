"""Tokens: a text cut into the pieces that the model reads, with their ids and bytes, word by word."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django import forms
from django.core.exceptions import ValidationError

from generation import Generation, load_model, token_bytes
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import SPACE

LONGEST_TEXT = 2000  # characters
ROWS = 300  # pieces in the table
LONGEST_WORD = 40  # characters of a word beside its pieces
SEEN = {" ": SPACE, "\n": "↵", "\t": "⇥"}

Span = tuple[int, int, int]  # a token's id, and where its bytes begin and end in the text's


class TokensInputs(PanelInputs):
    text = forms.CharField(
        label="Text",
        help_text="Spaces and line ends count. What looks like a control token is ordinary text.",
        required=False,
        strip=False,
        max_length=LONGEST_TEXT,
        initial="unbelievable",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"].replace("\r\n", "\n")  # as it was typed, before the browser sent it
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValidationError("half a character cannot be read")
        return text


@dataclass(frozen=True)
class Run:
    """Characters of a text that belong together: a word or number, signs, or white space."""

    kind: str  # "word", "sign" or "space"
    text: str


@dataclass(frozen=True)
class Piece:
    """A token of the text."""

    token_id: int
    name: str  # what it stands for, so that spaces can be seen; bytes where it is no whole character
    shown: str  # in the strip, where the pieces joined are the text
    octets: str
    note: str  # of which characters it is a part
    is_bare: bool  # named by its bytes or numbers, for nothing of it could be seen

    @property
    def is_line_end(self) -> bool:
        return "\n" in self.shown and not self.shown.strip()


@dataclass(frozen=True)
class Group:
    """The pieces of a word, of signs, or of white space."""

    kind: str
    text: str
    pieces: tuple[Piece, ...]

    @property
    def is_split(self) -> bool:
        return self.kind != "space" and len(self.pieces) > 1

    @property
    def name(self) -> str:
        if self.kind == "space":
            return "white space"
        return self.text if len(self.text) <= LONGEST_WORD else f"{self.text[: LONGEST_WORD - 1]}…"


@dataclass(frozen=True)
class Cut:
    """A text as its pieces."""

    problem: str = ""
    is_done: bool = False
    facts: tuple[str, ...] = ()
    counters: tuple[tuple[str, str], ...] = ()
    groups: tuple[Group, ...] = ()
    rows: tuple[Group, ...] = ()  # of the table
    n_left_out: int = 0  # pieces that the table has no room for


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Cut the text, and count."""
    text = inputs["text"]
    spans = list(_spans(setup.model, text))
    groups = _groups(text, spans)
    words = [group for group in groups if group.kind == "word"]
    return {
        "pieces": spans,
        "n_pieces": len(spans),
        "n_characters": len(text),
        "n_bytes": len(text.encode()),
        "n_words": len(words),
        "n_split_words": sum(word.is_split for word in words),
        "n_split_characters": _n_split_characters(text, spans),
    }


def view(shown: Shown) -> Cut:
    """Lay the pieces out, those of a word together."""
    outcome, text = shown.outcome, shown.inputs["text"]
    if "pieces" not in outcome:
        return Cut(problem=outcome.get("problem", ""))
    groups = _groups(text, outcome["pieces"])
    rows = _rows(groups)
    return Cut(
        is_done=True,
        facts=tuple(_facts(outcome, groups)),
        counters=tuple(_counters(outcome)),
        groups=tuple(groups),
        rows=tuple(rows),
        n_left_out=outcome["n_pieces"] - sum(len(group.pieces) for group in rows),
    )


def _spans(model_name: str, text: str) -> Iterator[Span]:
    """Find each token in the text's bytes; the toy's words have white space between them."""
    model, data, end = load_model(model_name), text.encode(), 0
    for token_id in model.encode(text):
        found = token_bytes(model, token_id)
        start = max(data.find(found, end), end)
        end = start + len(found)
        yield token_id, start, end


def _groups(text: str, spans: list[Span]) -> list[Group]:
    """Put the pieces of a word together; a piece belongs where its first character stands that is no white space."""
    runs, places = _runs(text), list(_places(text))
    run_at = [number for number, run in enumerate(runs) for _ in run.text.encode()]  # of each byte
    place_at = [place for place in places for _ in place[0].encode()]
    found: list[tuple[int, list[Piece]]] = []
    end_before = 0
    for token_id, start, end in spans:
        run = next((run_at[at] for at in range(start, end) if runs[run_at[at]].kind != "space"), run_at[start])
        is_apart = 0 < end_before < start  # by white space that is in no token: the toy's words are
        if not found or found[-1][0] != run:
            found.append((run, []))
        found[-1][1].append(_piece(token_id, start, end, dict.fromkeys(place_at[start:end]), is_apart))
        end_before = end
    return [Group(runs[run].kind, runs[run].text, tuple(pieces)) for run, pieces in found]


def _piece(token_id: int, start: int, end: int, places: Iterable[tuple[str, int]], is_apart: bool) -> Piece:
    """Name a piece by its characters, and by bytes where it has only some of a character's."""
    names, octets, notes = [], b"", []
    for letter, at in places:
        data = letter.encode()
        first, last = max(start - at, 0), min(end - at, len(data))
        octets += data[first:last]
        if last - first == len(data):
            names.append((_seen(letter), letter))
        else:
            names.append(("".join(f"<{byte:02X}>" for byte in data[first:last]), ""))
            notes.append(f"{_seen(letter)}, {_which(first + 1, last)} of {len(data)}")
    return Piece(
        token_id=token_id,
        name="".join(name for name, _ in names),
        shown=" " * is_apart + "".join(letter if len(name) == 1 else name for name, letter in names),
        octets=octets.hex(" ").upper(),
        note="; ".join(notes),
        is_bare=any(len(name) > 1 for name, _ in names),
    )


def _runs(text: str) -> list[Run]:
    """Cut a text into words and numbers, signs, and white space; marks and joiners belong to what is before them."""
    runs: list[Run] = []
    for at, letter in enumerate(text):
        before = runs[-1] if runs else Run("space", "")
        if letter.isspace():
            kind = "space"
        elif letter.isalnum():
            kind = "word"
        elif before.kind != "space" and unicodedata.category(letter) in {"Mn", "Mc", "Me", "Cf"}:
            kind = before.kind
        else:
            inside_word = before.kind == "word" and letter in "'’" and text[at + 1 : at + 2].isalnum()
            kind = "word" if inside_word else "sign"
        if kind == before.kind and runs:
            runs[-1] = Run(kind, before.text + letter)
        else:
            runs.append(Run(kind, letter))
    return runs


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Give each character with the place of its first byte."""
    at = 0
    for letter in text:
        yield letter, at
        at += len(letter.encode())


def _which(first: int, last: int) -> str:
    if first == last:
        return f"byte {first}"
    return f"bytes {first} {'and' if last == first + 1 else 'to'} {last}"


def _seen(letter: str) -> str:
    """Return a character so that it can be seen, if only by its number."""
    if letter in SEEN:
        return SEEN[letter]
    is_selector = "\ufe00" <= letter <= "\ufe0f"  # it says how the sign before it is drawn
    return letter if letter.isprintable() and not is_selector else f"U+{ord(letter):04X}"


def _n_split_characters(text: str, spans: list[Span]) -> int:
    ends = {end for _, _, end in spans}
    return sum(not ends.isdisjoint(range(at + 1, at + len(letter.encode()))) for letter, at in _places(text))


def _facts(outcome: Outcome, groups: list[Group]) -> Iterator[str]:
    if outcome["n_pieces"] == 0:
        yield "There is nothing to be cut: the text is empty."
    if outcome["n_words"]:
        words = f"Words and numbers in more than one piece: {outcome['n_split_words']} of {outcome['n_words']}"
        longest = max((group for group in groups if group.kind == "word"), key=lambda group: len(group.pieces))
        yield f"{words}, “{longest.name}” in {len(longest.pieces)}." if longest.is_split else f"{words}."
    if outcome["n_split_characters"]:
        n_split, n_characters = outcome["n_split_characters"], outcome["n_characters"]
        yield f"Characters cut into bytes, where no piece of the list fits: {n_split} of {n_characters}."


def _counters(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name in ("tokens", "characters", "bytes", "words"):
        yield name, f"{outcome['n_pieces' if name == 'tokens' else f'n_{name}']:,}"
    if outcome["n_words"]:
        yield "tokens a word", f"{outcome['n_pieces'] / outcome['n_words']:.2f}"


def _rows(groups: list[Group]) -> list[Group]:
    """Return the groups for which the table has room, the last of them in part."""
    rows: list[Group] = []
    room = ROWS
    for group in groups:
        if room:
            rows.append(Group(group.kind, group.text, group.pieces[:room]))
            room -= len(rows[-1].pieces)
    return rows


KIND = Kind(
    name="tokens",
    title="Tokens: what the model reads",
    about="A text cut into the pieces that the model reads, each with its id and its bytes.",
    view=view,
    inputs=TokensInputs,
    after=after,
    settings=(),
    generates=False,
    asks_prompt=False,
)
