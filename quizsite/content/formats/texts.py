"""Texts of other programs' files: decoded, and turned into the Markdown of the bank or refused."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from typing import Any, NamedTuple

from markdownify import MarkdownConverter

from quizsite.content.formats.reading import FileProblem

Say = Callable[[str, str], None]  # takes what is wrong and what would mend it

LONGEST = 20_000  # letters of HTML; a text of the bank has 4,000
BOMS = ((BOM_UTF8, "utf-8"), (BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be"))
IMAGE = re.compile(r"<img\b[^>]{0,60}|@@PLUGINFILE@@|data:image/\w+|!\[[^\]\n]{0,60}\]\([^)\n]{0,400}\)", re.IGNORECASE)
UNHELD = re.compile(
    r"<(table|svg|math|video|audio|iframe|object|embed|canvas|form|input|select|textarea|\?)", re.IGNORECASE
)
MARKUP = re.compile(r"</?[a-z!]|&#?\w+;", re.IGNORECASE)
MEANT_BY_MARKDOWN = re.compile(
    r"""[`*\[\]]
    | \\(?=[!-/:-@\[-`{-~])         # a backslash escapes punctuation alone
    | (?<![^\W_])_ | _(?![^\W_])    # between letters it is a letter
    | &(?=\#?\w+;)
    | <(?=[a-z])
    | ^[ ]*(?:>|~(?=~~)|[-+](?=[-\s]|$)|\#(?=[#\s]|$))
    | ^[ ]*\d+(?=[.)](?:\s|$))      # a number that would begin a list""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


class Marked(NamedTuple):
    """A text and how it is marked up: html, moodle (HTML where paragraphs are blank lines), markdown or plain."""

    text: str
    format: str = "markdown"


def decoded(data: bytes) -> str | FileProblem:
    """Return the text of a file, its lines ended by line feeds: UTF-8, or UTF-16 that says so at its beginning."""
    bom, encoding = next((pair for pair in BOMS if data.startswith(pair[0])), (b"", "utf-8"))
    try:
        text = data.removeprefix(bom).decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        said = f"byte 0x{error.object[error.start]:02X} is not {encoding.upper()}; perhaps the file is Latin-1"
        return FileProblem(line, said, "Save the file in the encoding UTF-8.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        said = "there is a NUL, which no text holds; perhaps the file is UTF-16 without its mark"
        return FileProblem(line, said, "Save the file in the encoding UTF-8.")
    return text


def markdown_of(marked: Marked, say: Say) -> str:
    """Return a text as Markdown without HTML; say what of it the bank cannot hold."""
    text, form = marked.text.strip(), marked.format
    image = form != "plain" and IMAGE.search(text)
    if image:
        say(f"an image is embedded: {image[0][:40]}", "The bank holds no images. Say in words what it shows.")
        return ""
    if form == "markdown":
        return text
    if form == "plain" or not MARKUP.search(text):
        return literal(text)
    return _from_html(text if form == "html" else re.sub(r"\n\s*\n", "<br><br>", text), say)


def literal(text: str) -> str:
    """Return Markdown that shows a text letter for letter."""
    lines = "\n".join(line.strip() for line in text.split("\n"))
    return _escaped(lines)


def _escaped(text: str) -> str:
    return MEANT_BY_MARKDOWN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """Put a backslash before a mark; before the point, where it is the number of a list."""
    start, mark = found[0][:-1], found[0][-1]
    return f"{found[0]}\\" if mark.isdigit() else f"{start}\\{mark}"


class _Converter(MarkdownConverter):
    """HTML as the bank's Markdown: no headings; what stands higher or lower is written as in a formula."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        return _escaped(text)

    def convert_hN(self, n: int, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: N802  (named there)
        return f"\n\n**{text.strip()}**\n\n" if text.strip() else ""

    def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return _beside("^", text)

    def convert_sub(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return _beside("\\_", text)


def _beside(mark: str, text: str) -> str:
    return mark + (text if len(text) < 2 or text.isalnum() else f"({text})") if text else ""


def _from_html(text: str, say: Say) -> str:
    unheld = UNHELD.search(text)
    if unheld:
        say(f"there is <{unheld[1].lower()}>, which the bank cannot hold", "Say it in sentences, lists or code.")
        return ""
    if len(text) > LONGEST:
        say(f"a text has {len(text):,} letters of HTML, more than {LONGEST:,}", "Shorten it.")
        return ""
    try:
        found = _Converter(bullets="-").convert(
            f"<div>{text}"
        )  # an element around it: text alone can look like a file's name
    except Exception as error:  # whatever HTML does to its parser, it is the HTML's fault
        say(f"HTML cannot be read: {type(error).__name__}", "Write the text in Markdown or without markup.")
        return ""
    return re.sub(r"(?<![ \t])[ \t]*\n(?:[ \t]*\n)+", "\n\n", found.replace("\N{NO-BREAK SPACE}", " ")).strip()
