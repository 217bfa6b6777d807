"""Tables for spreadsheets, which take a cell that begins like a formula for one and run it."""

import csv
import re
from collections.abc import Iterable
from io import StringIO

BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[-−]?\d+([.,]\d+)?")


def csv_of(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. The mark at its start tells spreadsheets that it is UTF-8."""
    file = StringIO()
    csv.writer(file).writerows([safe(cell) for cell in row] for row in rows)
    return "\N{BYTE ORDER MARK}" + file.getvalue()


def safe(cell: object) -> str:
    """Return a cell as text that no spreadsheet runs; a number stays a number."""
    text = str(cell)
    return f"'{text}" if text.startswith(BEGINS_A_FORMULA) and not NUMBER.fullmatch(text) else text
