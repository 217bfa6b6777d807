"""What a browser would read off a page: its forms' hidden fields."""

import re
from html import unescape
from typing import Any

HTMX: dict[str, Any] = {"headers": {"HX-Request": "true"}}  # what htmx says of itself


def field(html: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found, name
    return unescape(found[1])


def options(html: str) -> list[str]:
    """Return the ids of the options, in the order shown."""
    return re.findall(r'name="option" value="([^"]*)"', html)
