"""What is done to each request before any of the site reads it."""

import re

from django.http import HttpRequest, QueryDict
from django.utils.deprecation import MiddlewareMixin

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and half characters: no text column of PostgreSQL takes them
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class StorableText(MiddlewareMixin):
    """Replaces the characters that no database keeps, as browsers do with a page that holds them."""

    def process_request(self, request: HttpRequest) -> None:
        """Replace them in fields and cookies; an address holds none, for no pattern of the site takes them."""
        for where in ("GET", "POST"):
            setattr(request, where, _storable(getattr(request, where)))
        request.COOKIES = {name: UNSTORABLE.sub(UNKNOWN, value) for name, value in request.COOKIES.items()}


def _storable(sent: QueryDict) -> QueryDict:
    if not any(UNSTORABLE.search(text) for name, values in sent.lists() for text in (name, *values)):
        return sent
    storable = QueryDict(mutable=True)
    for name, values in sent.lists():
        storable.setlist(UNSTORABLE.sub(UNKNOWN, name), [UNSTORABLE.sub(UNKNOWN, value) for value in values])
    return storable
