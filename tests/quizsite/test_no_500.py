"""Nothing that can be sent is an error of the server: each address and each form, with what nobody means to send.

The addresses are the resolver's and those that a walk over the pages comes by; the forms are those of the
pages, and the names of fields those that the code reads: what is added to the site needs no line here.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urldefrag, urlsplit
from uuid import UUID

import pytest
from django.conf import settings as site_settings
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, URLPattern, get_resolver, resolve
from pytest_django import Settings

from quizsite.accounts.models import User
from quizsite.labs.models import Lab
from quizsite.questions.models import Question
from tests.quizsite.pages import HTMX

pytestmark = pytest.mark.django_db

CHARSET = "unicode_escape"  # a form may claim it, and write half a character in it
HALF = rb"\ud800"
HOSTILE = {
    "nothing": b"",
    "NUL": b"a\x00b",
    "half a character": HALF,
    "no UTF-8": b"\xff\xfe",
    "over 64 bits": b"99999999999999999999",
    "over 4,300 digits": b"9" * 5000,
    "below 0": b"-1",
    "no number": b"nan",
    "no ASCII": "²".encode(),
    "100 kB": b"a" * 100_000,
    "JSON": b'[{"role": [null, "\\u0000", "\\ud800", 1e999]}]',
    "another site": b"//example.org/\r\nSet-Cookie: a=b",
}
HOSTILE_PARTS = {
    "int": ["0", "99999999999999999999", "9" * 5000],
    "slug": ["nowhere", "x" * 5000],
    "uuid": [str(UUID(int=0))],
    "str": ["%00", "x" * 5000],
    "path": ["%00", "x" * 5000, "99999999999999999999"],
}
READ = re.compile(r'\b(?:GET|POST|data|typed)\.get(?:list)?\(\s*"([\w-]+)"')
NAMES = sorted({name for file in Path("quizsite").rglob("*.py") for name in READ.findall(file.read_text())})
MOST_OF_A_PATTERN = 2  # addresses that a walk goes to
TYPED = "words enough for an answer, such as 12"


class Field(NamedTuple):
    """A field of a form, as it is sent if nobody changes it."""

    name: str
    value: bytes
    tag: str = ""


class Form(NamedTuple):
    """A form of a page, with the first of its buttons."""

    method: str
    action: str
    fields: list[Field]


class Page(HTMLParser):
    """The links and forms of a page; where nothing is typed or chosen, something is."""

    def __init__(self, address: str, html: str) -> None:
        super().__init__()
        self.address = address
        self.links: list[str] = []
        self.forms: list[Form] = []
        self._menu = ""  # that is open
        self._is_typed = False  # a text area is open
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        self.links += [given[key] for key in ("href", "src", "hx-get", "sse-connect") if key in given]
        if tag == "form":
            self.forms.append(Form(given.get("method", "get").upper(), given.get("action") or self.address, []))
        elsewhere = given.get("formaction") or given.get("hx-post")
        if self.forms and elsewhere not in {None, self.forms[-1].action}:
            self.forms.append(self.forms[-1]._replace(method="POST", action=elsewhere))  # the same fields
        if tag == "select":
            self._menu = name
        elif tag == "option" and self._menu:
            self._add(Field(self._menu, given.get("value", "").encode(), "select"), "selected" in given)
        elif tag == "textarea" and name:
            self._add(Field(name, TYPED.encode(), tag), True)
            self._is_typed = True
        elif tag in {"input", "button"} and name:
            self._add(Field(name, given.get("value", "12").encode(), tag), "checked" in given)

    def handle_data(self, data: str) -> None:
        if self._is_typed and data.strip():
            self._add(self.forms[-1].fields[-1]._replace(value=data.encode()), True)

    def handle_endtag(self, tag: str) -> None:
        self._menu = "" if tag == "select" else self._menu
        self._is_typed = self._is_typed and tag != "textarea"

    def _add(self, field: Field, is_chosen: bool) -> None:
        """Keep a field; of those with one name the first, or the one that is chosen."""
        fields = self.forms[-1].fields if self.forms else []
        names = [known.name for known in fields]
        if field.name not in names:
            fields.append(field)
        elif is_chosen:
            fields[names.index(field.name)] = field


class Walker:
    """Somebody who opens every page and presses every button."""

    def __init__(self, client: Client, keeps_cookies: bool) -> None:
        self.client = client
        self.client.raise_request_exception = False
        self.keeps_cookies = keeps_cookies
        self.addresses: list[str] = []
        self.forms: list[Form] = []
        self.failed: list[str] = []

    def walk(self, starts: list[str]) -> None:
        """Open these pages and, of each pattern, some of those that they lead to; press what is on them."""
        todo, n_kept = deque(starts), Counter[str]()
        while todo:
            address = urldefrag(todo.popleft()).url
            route = route_of(address)
            if address in self.addresses or not route or n_kept[route] == MOST_OF_A_PATTERN:
                continue
            n_kept[route] += address not in starts
            self.addresses.append(address)
            todo += self._press(self.get(address), address)
            todo += self._press(self.get(address), address)  # another page, now that its buttons were pressed

    def _press(self, response: Any, address: str) -> list[str]:
        """Press each button of a page, and return where they and the links lead."""
        found = [response.headers.get("Location", "")]
        if "html" in response.headers.get("Content-Type", ""):
            page = Page(address, response.content.decode())
            found += page.links
            for form in page.forms:
                if route_of(form.action):
                    self.forms.append(form)
                    found.append(self.send(form).headers.get("Location", ""))
        return found

    def send(self, form: Form, **changes: bytes) -> Any:
        fields = [field._replace(value=changes.get(field.name, field.value)) for field in form.fields]
        if form.method == "GET":
            return self.get(form.action, fields)
        return self.post(form.action, fields, **(HTMX if changes else {}))

    def get(self, address: str, fields: Iterable[Field] = (), method: str = "GET") -> Any:
        path, _, query = address.partition("?")
        query = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value, _ in fields) or query
        claimed = f"application/x-www-form-urlencoded; charset={CHARSET}" if quote_plus(HALF) in query else ""
        return self._sent(method, path, QUERY_STRING=query, CONTENT_TYPE=claimed)

    def post(self, address: str, fields: Iterable[Field], **extra: Any) -> Any:
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"
            for name, value, _ in fields
        ]
        body = b"".join(parts) + b"--x--\r\n"
        claimed = f"; charset={CHARSET}" if HALF in body else ""
        return self._sent("POST", address, body, f"multipart/form-data; boundary=x{claimed}", **extra)

    def _sent(self, method: str, address: str, *body: Any, **extra: Any) -> Any:
        """Send a request; where it ends the session (signs out, say), it is undone and the walk goes on."""
        cookies = self.client.cookies.copy() if self.keeps_cookies else {}
        with transaction.atomic():
            response = self.client.generic(method, address, *body, **extra)
            is_left = _session_in(cookies) not in {"", _session_in(self.client.cookies)}
            transaction.set_rollback(is_left or response.status_code >= 500)
        if is_left or not self.keeps_cookies:
            self.client.cookies.clear()
            self.client.cookies.update(cookies)
        if response.status_code >= 500:
            self.failed.append(f"{method} {address[:100]} {str(body)[:200]} {str(extra)[:200]}")
        return response


def _session_in(cookies: Any) -> str:
    session = cookies.get(site_settings.SESSION_COOKIE_NAME)
    return session.value if session else ""


def route_of(address: str) -> str:
    """Return the pattern of an address of this site; empty for any other."""
    parts = urlsplit(address)
    if parts.netloc or not parts.path.startswith("/") or parts.path.startswith("/admin/"):
        return ""
    try:
        return resolve(parts.path).route
    except Resolver404:
        return ""


def routes(patterns: Iterable[Any], before: str = "/") -> Iterator[str]:
    """Return every pattern of the site from its root."""
    for pattern in patterns:
        route = before + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from routes(pattern.url_patterns, route)


def hostile_addresses() -> list[str]:
    """Return addresses of every pattern, with what its parts cannot mean."""
    addresses = set[str]()
    for route in routes(get_resolver().url_patterns):
        plain = re.sub(r"\(\?P<\w+>.*\)", "nowhere", route).removesuffix("$")
        for number in range(max(map(len, HOSTILE_PARTS.values()))):
            address = plain
            for part, kind in re.findall(r"(<(?:(\w+):)?\w+>)", plain):
                values = HOSTILE_PARTS[kind or "str"]
                address = address.replace(part, values[number % len(values)])
            addresses.add(address)
    return sorted(addresses)


@pytest.fixture(autouse=True)
def _the_toy_without_a_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    settings.RUNS_PER_MINUTE = 100_000
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None  # or all that is long is refused before anything reads it


@pytest.fixture
def starts() -> list[str]:
    """Pages to begin with: a lab of each panel, a question of each kind."""
    labs = {lab.panel: lab for lab in Lab.objects.filter(model="sky").order_by("panel", "-pk")}
    asked = Question.objects.published().with_current().exclude(current__lab__model="smollm2").order_by("-pk")
    questions = {question.current.kind: question for question in asked if question.current}
    pages: list[Lab | Question] = [*labs.values(), *questions.values()]
    return ["/", *[page.get_absolute_url() for page in pages]]


@pytest.fixture(params=["visitor", "guest", "learner"])
def walker(request: pytest.FixtureRequest, client: Client, starts: list[str]) -> Walker:
    """Somebody who has been everywhere: with no cookies at all, as a guest, or with an account."""
    if request.param == "learner":
        client.force_login(request.getfixturevalue("learner"))
    walker = Walker(client, keeps_cookies=request.param != "visitor")
    walker.walk(starts)
    return walker


def test_every_address_is_answered_whatever_is_sent_there(walker: Walker):
    one_of_each = {route_of(address): address for address in walker.addresses}
    for address in one_of_each.values():
        for value in HOSTILE.values():
            fields = [Field(name, value) for name in NAMES]
            walker.get(address, fields)
            walker.post(address, fields)
        walker.get(address, method="HEAD")

    assert walker.failed == []


@pytest.mark.parametrize("walker", ["learner"], indirect=True)
def test_every_form_is_answered_whatever_stands_in_one_of_its_fields(walker: Walker):
    tried = set[tuple[str, str, str]]()
    for form in walker.forms:
        for field in form.fields[form.method == "POST" :]:  # the first is the CSRF token
            kind = (form.action.split("/")[1], field.name, field.tag)
            for value in HOSTILE.values() if kind not in tried else []:
                walker.send(form, **{field.name: value})
            tried.add(kind)

    assert walker.failed == []


@pytest.mark.parametrize("who", ["visitor", "learner", "instructor"])
def test_no_address_is_an_error_whatever_stands_in_it(client: Client, who: str, learner: User, instructor: User):
    if who != "visitor":
        client.force_login({"learner": learner, "instructor": instructor}[who])
    walker = Walker(client, keeps_cookies=True)
    for address in hostile_addresses():
        walker.get(address)
        walker.get(address, [Field(name, HOSTILE["NUL"]) for name in ("q", "p", "o", "id__exact")])
        walker.post(address, [])

    assert walker.failed == []


def test_a_cookie_that_nobody_has_set_is_a_visitors(client: Client):
    for value in (r"'abcdefgh\000ijklmnop'", "x" * 3000, "²"):
        cookie = (
            f"{site_settings.SESSION_COOKIE_NAME}={value}; {site_settings.CSRF_COOKIE_NAME}={value}; messages={value}"
        )

        assert client.get("/", headers={"cookie": cookie.replace("'", '"')}).status_code == 200, value
