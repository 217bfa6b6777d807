"""Numbers as people type them: any decimal digits, comma or point, thousands with every kind of space."""

import re
import unicodedata
from fractions import Fraction

from quizsite.questions.kinds.kind import NotAnswered

LONGEST = 60  # letters
LARGEST_EXPONENT = 40
MINUS = str.maketrans(dict.fromkeys("−–—‒﹣－", "-"))
THOUSANDS = "'’٬"
NUMBER = re.compile(r"([+-]?)(\d[\d.,]*|[.,]\d+)(?:[eE]([+-]?\d{1,3}))?")


def parse_number(typed: str) -> Fraction:
    """Read a number exactly.

    Raises
    ------
    NotAnswered
        If there is none, or if it can be read in two ways; the message says which.
    """
    if len(typed) > LONGEST:
        raise NotAnswered(f"A number of at most {LONGEST} letters is wanted, this one has {len(typed):,}.")
    text = _plain(typed)
    if not text:
        raise NotAnswered("Type a number.")
    found = NUMBER.fullmatch(text)
    if not found:
        raise NotAnswered(f"“{typed.strip()[:40]}” is not a number. Write digits alone, such as 12.5 or 12500.")
    sign, digits, exponent = found.groups()
    power = int(exponent or 0)
    if abs(power) > LARGEST_EXPONENT:
        raise NotAnswered(f"The exponent must lie between −{LARGEST_EXPONENT} and {LARGEST_EXPONENT}, got {power}.")
    return Fraction(f"{sign}{_decimal(digits, typed)}") * Fraction(10) ** power


def _plain(typed: str) -> str:
    """Write a number in ASCII: its digits, its signs, no spaces between its digits."""
    letters = []
    for letter in typed.strip().translate(MINUS):
        if unicodedata.category(letter) in {"Zs", "Cf"} or letter in THOUSANDS:
            continue
        if letter == "٫":
            letters.append(".")
            continue
        digit = unicodedata.decimal(letter, None)
        letters.append(letter if digit is None else str(digit))
    return "".join(letters)


def _decimal(digits: str, typed: str) -> str:
    """Tell thousands from decimals, and refuse what can be either."""
    marks = [letter for letter in digits if letter in ".,"]
    if not marks:
        return digits
    last = max(digits.rfind("."), digits.rfind(","))
    whole, rest = digits[:last], digits[last + 1 :]
    if len(set(marks)) == 2 and marks.count(digits[last]) == 1:
        _check_groups(whole, typed)
        return f"{re.sub('[.,]', '', whole)}.{rest}" if rest else re.sub("[.,]", "", whole)
    if len(marks) > 1:  # the same mark several times separates thousands
        _check_groups(digits, typed)
        return re.sub("[.,]", "", digits)
    if len(rest) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0"):
        as_whole, as_part = whole + rest, f"{whole}.{rest.rstrip('0') or '0'}"
        raise NotAnswered(f"“{typed.strip()[:40]}” can be read in two ways. Write {as_whole} or {as_part}.")
    return f"{whole or '0'}.{rest or '0'}"


def _check_groups(digits: str, typed: str) -> None:
    first, *others = re.split("[.,]", digits)
    if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in others) or len(set(re.findall("[.,]", digits))) > 1:
        raise NotAnswered(f"“{typed.strip()[:40]}” has thousands that are not groups of three digits.")
