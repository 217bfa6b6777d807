"""A run's event stream, for its owner: one server-sent event for each token, paced for the eye.

A run is computed while its stream watches it, so a lost connection stops the computation by itself. Steps
that were computed are kept, and a reconnect goes on from there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from generation import Loop
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.engine import Show
from quizsite.labs.frame import concluding_html, finished_html, streaming_panel, waiting_html
from quizsite.labs.models import Run
from quizsite.labs.panels.strip import run_token

Learner = User | AnonymousUser

logger = logging.getLogger(__name__)

RETRY = 1000  # ms until the browser tries again
SHOWN_EVERY = 0.3  # seconds
EXPIRING: set[asyncio.Task[None]] = set()  # a task without a reference may be collected before its end


@require_GET
async def run_stream(request: HttpRequest, run_id: UUID) -> StreamingHttpResponse:
    """Stream a run to its owner; another's, and one made by hand, is not to be found here."""
    user = await request.auser()
    run = await _in_thread(_run_of, run_id, user)
    await sync_to_async(connections.close_all)()  # nothing is held open while the stream waits
    return StreamingHttpResponse(
        _events(run, user),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _events(run: Run, user: Learner) -> AsyncIterator[str]:
    yield f"retry: {RETRY}\n\n"
    try:
        is_whole = not run.is_open
        if run.is_open:
            async for event in _shown_steps(run):
                yield event
        if not is_whole:
            run = await _in_thread(_run_of, run.pk, user)
        if await _in_thread(engine.needs_more, run):
            yield await _in_thread(_finish_event, run, user, is_whole)
            is_whole = True
            async for event in _concluded(run, user):
                yield event
        yield await _in_thread(_finish_event, run, user, is_whole)
        yield _event("done", run.n_steps, "")
    except Exception:  # the browser would come back every second, to the same fault
        logger.exception("the stream of run %s broke", run.pk)
        yield _event("done", 0, "")


async def _shown_steps(run: Run) -> AsyncIterator[str]:
    """Show the steps of an open run as they come, and end it after the last."""
    show = await _in_thread(engine.show_of, run)
    news, loop = asyncio.Event(), asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has gone with the server
            loop.call_soon_threadsafe(news.set)

    live, n_steps, found, place = show.live, 0, None, 0
    try:
        with show.watched(wake):
            while (
                len(live.steps) < show.n_steps and not live.is_over and not show.is_stopped
            ):  # after a restart they are computed again
                await _next_news(news)
            n_steps, found, event = await asyncio.to_thread(_snapshot, show, show.n_steps)
            yield event
            while not show.is_stopped:
                n_made = len(live.steps)
                if n_steps < n_made:
                    n_next = n_made if run.pace == 0 else n_steps + 1
                    n_steps, found, event = await asyncio.to_thread(_steps, show, n_steps, n_next, found)
                    show.n_steps = max(show.n_steps, n_steps)
                    yield event
                    await asyncio.sleep(1 / run.pace if run.pace else 0)
                elif live.is_over:
                    await _in_thread(engine.end, run, live)
                else:
                    if show.place != place:
                        place = show.place
                        yield _event("step", n_steps, await asyncio.to_thread(waiting_html, run, place))
                    await _next_news(news)
    finally:
        if not show.watchers and not show.is_stopped:
            show.losses += 1
            task = loop.create_task(_expire(show, show.losses))
            EXPIRING.add(task)
            task.add_done_callback(EXPIRING.discard)


async def _concluded(run: Run, user: Learner) -> AsyncIterator[str]:
    """Show what comes after a run, such as the other side of a comparison or a lab's five seeds, until all is done."""
    conclusion, before = await _in_thread(engine.conclude_soon, run), ""
    with conclusion.watched():
        while not conclusion.is_done:
            html = await _in_thread(concluding_html, run, user)
            if html != before:
                before = html
                yield _event("step", run.n_steps, html)
            await asyncio.sleep(SHOWN_EVERY)


async def _next_news(news: asyncio.Event) -> None:
    await news.wait()
    news.clear()


async def _expire(show: Show, loss: int) -> None:
    """Keep what a lost stream has shown, and cancel the run if nobody comes back after this loss."""
    await _in_thread(engine.keep, show)
    await asyncio.sleep(engine.LOST_AFTER)
    if show.losses == loss and not show.watchers and not show.is_stopped:
        await _in_thread(engine.stop, show.run)


def _run_of(run_id: UUID, user: Learner) -> Run:
    run = Run.objects.by(user).with_recording().filter(pk=run_id).first()
    if not run or (run.is_open and run.is_by_hand):
        raise Http404
    return run


def _snapshot(show: Show, n_steps: int) -> tuple[int, Loop | None, str]:
    """Return the run up to a step, whole: for whoever connects again, and where earlier tokens change."""
    panel = streaming_panel(show.run, show.live.steps[:n_steps])
    html = render_to_string("labs/panel.html#snapshot", {"panel": panel, "oob": True})
    return n_steps, panel.loop, _event("step", n_steps, html)


def _steps(show: Show, before: int, number: int, loop: Loop | None) -> tuple[int, Loop | None, str]:
    """Render the run up to a step: what that step adds where it is the next one, or all of it."""
    steps, kind = show.live.steps[:number], show.run.kind
    holds_back = bool(show.run.recording.params.stop)  # then earlier tokens may change
    if not kind.appends or holds_back or number != before + 1:
        return _snapshot(show, number)
    panel = streaming_panel(show.run, steps)
    if (loop and (loop.period, loop.start)) != (panel.loop and (panel.loop.period, panel.loop.start)):
        return _snapshot(show, number)
    context = {"panel": panel, "token": run_token(steps[-1], panel.loop), "oob": True}
    html = render_to_string(kind.template + "#appended", context) + render_to_string("labs/panel.html#moved", context)
    return number, panel.loop, _event("step", number, html)


def _finish_event(run: Run, user: Learner, is_whole: bool) -> str:
    run = _run_of(run.pk, user)
    return _event("finish", run.n_steps, finished_html(run, user, is_whole))


def _event(name: str, number: int, data: str) -> str:
    """Write an event; every line of its data is a line of its own."""
    lines = data.replace("\r", "&#13;").split("\n")
    return f"id: {number}\nevent: {name}\n" + "".join(f"data: {line}\n" for line in lines) + "\n"


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Do database work in a thread, without keeping its connection."""

    def work() -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)
