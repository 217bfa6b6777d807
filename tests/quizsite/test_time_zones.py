"""The zone of one request, also while others are under way in the same thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from quizsite.accounts.time_zones import time_zone_middleware

ZONES = ["Asia/Tokyo", "Europe/Berlin", "Mars/Olympus", "America/New_York"]


def test_requests_that_wait_side_by_side_keep_their_own_zones():
    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop of its own running in this one
        names = thread.submit(lambda: asyncio.run(ask_all_at_once())).result()

    assert names == ["Asia/Tokyo", "Europe/Berlin", "UTC", "America/New_York"]
    assert timezone.get_current_timezone_name() == "UTC"


async def ask_all_at_once() -> list[str]:
    all_are_here = asyncio.Barrier(len(ZONES))

    async def respond(request: HttpRequest) -> HttpResponse:
        await all_are_here.wait()
        return HttpResponse(timezone.get_current_timezone_name())

    waiting: Any = respond  # as Django calls it: the annotation of a middleware knows only the other kind
    middleware: Any = time_zone_middleware(waiting)
    responses = await asyncio.gather(*(middleware(asking_from(zone)) for zone in ZONES))
    return [response.content.decode() for response in responses]


def asking_from(zone: str) -> HttpRequest:
    request = RequestFactory().get("/")
    request.COOKIES["timezone"] = zone
    return request
