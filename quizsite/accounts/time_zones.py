"""The learner's own days: their browser says its time zone in a cookie."""

from collections.abc import Awaitable, Callable
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware

COOKIE = "timezone"

_known = cache(available_timezones)


@sync_and_async_middleware
def time_zone_middleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], object]:
    """Show and count in the zone that the cookie names, for this request alone; in UTC if there is no such zone."""
    if iscoroutinefunction(get_response):
        waiting: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def wait(request: HttpRequest) -> HttpResponseBase:
            with timezone.override(zone_of(request)):
                return await waiting(request)

        return wait

    def respond(request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_of(request)):
            return get_response(request)

    return respond


def zone_of(request: HttpRequest) -> ZoneInfo:
    name = request.COOKIES.get(COOKIE, "").replace("%2F", "/")
    return ZoneInfo(name if name in _known() else "UTC")
