"""What a browser would do with a page: read its hidden fields, press its buttons."""

import re
from html import unescape
from typing import Any

from django.test import Client

from quizsite.labs.models import Lab, Run

HTMX: dict[str, Any] = {"headers": {"HX-Request": "true"}}  # what htmx says of itself


def field(html: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found, name
    return unescape(found[1])


def options(html: str) -> list[str]:
    """Return the ids of the options, in the order shown."""
    return re.findall(r'name="option" value="([^"]*)"', html)


def press(client: Client, lab: Lab, /, **settings: str) -> Run:
    """Press Run as a browser without JavaScript does: the answer is the finished run."""
    response = client.post(lab.get_absolute_url(), {"do": "run", **settings})
    assert response.status_code == 302
    run = Run.objects.with_recording().order_by("-created").first()
    assert run
    return run


def chips(html: str) -> str:
    """Return the chips in the head of a lab: which goals are met."""
    return html.split('id="lab-chips"')[1].split("</span>\n  </header>", maxsplit=1)[0]


def same(html: bytes) -> str:
    """Return a page without its CSRF tokens, whose mask is another one each time."""
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", html.decode())
