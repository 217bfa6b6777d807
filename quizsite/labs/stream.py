"""A run's event stream, for its owner: one server-sent event for each token, paced for the eye.

The stream pulls: the next step is computed when this watcher is ready for it, so a lost connection
stops the computation by itself. Steps that were computed are kept, and a reconnect goes on from there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from generation import LogitsError, Loop
from quizsite.accounts.models import User
from quizsite.labs import engine
from quizsite.labs.engine import Show
from quizsite.labs.models import Run
from quizsite.labs.panels import finished_html, streaming_panel, strip_token

Learner = User | AnonymousUser

logger = logging.getLogger(__name__)

RETRY = 1000  # ms until the browser tries again
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
    if not run.is_open:
        yield await _in_thread(_last_events, run, user, True)
        return
    show = engine.engine.show(run)
    show.watchers += 1
    try:
        n_steps, loop, text = await asyncio.to_thread(_snapshot, show)
        yield text
        while not show.is_stopped:
            found = await asyncio.to_thread(_next, show, n_steps + 1, loop)
            if found is None:
                break
            n_steps, loop, text = found
            show.n_steps = max(show.n_steps, n_steps)
            yield text
            if run.pace:
                await asyncio.sleep(1 / run.pace)
        if not show.is_stopped:
            await _in_thread(engine.finish, run)
        yield await _in_thread(_last_events, run, user, False)
    except LogitsError as error:
        await _in_thread(engine.fail, run, str(error))
        yield await _in_thread(_last_events, run, user, True)
    except Exception:  # the browser would come back every second, to the same fault
        logger.exception("the stream of run %s broke", run.pk)
        await _in_thread(engine.fail, run, "something broke on our side")
        yield _event("done", 0, "")
    finally:
        show.watchers -= 1
        if not show.watchers and not show.is_stopped:
            show.losses += 1
            task = asyncio.get_running_loop().create_task(_expire(show, show.losses))
            EXPIRING.add(task)
            task.add_done_callback(EXPIRING.discard)


async def _expire(show: Show, loss: int) -> None:
    """Keep what a lost stream has shown, and cancel the run if nobody comes back after this loss."""
    await _in_thread(_keep, show)
    await asyncio.sleep(engine.LOST_AFTER)
    if show.losses == loss and not show.watchers and not show.is_stopped:
        await _in_thread(engine.stop, show.run)


def _keep(show: Show) -> None:
    show.run.recording.save_steps(show.live.steps)
    Run.objects.open().filter(pk=show.run.pk).update(n_steps=show.n_steps)


def _run_of(run_id: UUID, user: Learner) -> Run:
    run = Run.objects.by(user).with_recording().filter(pk=run_id, pace__isnull=False).first()
    if not run:
        raise Http404
    return run


def _snapshot(show: Show) -> tuple[int, Loop | None, str]:
    """Return the run as far as it has been shown: whoever connects again sees it whole."""
    if show.n_steps:
        show.live.step(show.n_steps)  # after a restart of the server they are not there yet
    panel = streaming_panel(show.run, show.live.steps[: show.n_steps])
    trace = panel.trace
    assert trace
    html = render_to_string("labs/trace.html#snapshot", {"panel": panel, "oob": True})
    return show.n_steps, trace.loop, _event("step", show.n_steps, html)


def _next(show: Show, number: int, loop: Loop | None) -> tuple[int, Loop | None, str] | None:
    """Compute and render the next step; a change of the loop redraws the strip."""
    step = show.live.step(number)
    if step is None:
        return None
    panel = streaming_panel(show.run, show.live.steps[:number])
    trace = panel.trace
    assert trace
    same_loop = (loop and (loop.period, loop.start)) == (trace.loop and (trace.loop.period, trace.loop.start))
    holds_back = bool(show.run.recording.params.stop)  # then earlier tokens may change
    part = "appended" if same_loop and not holds_back else "snapshot"
    context = {"panel": panel, "token": strip_token(step, trace.loop), "oob": True}
    return number, trace.loop, _event("step", number, render_to_string(f"labs/trace.html#{part}", context))


def _last_events(run: Run, user: Learner, whole: bool) -> str:
    run = _run_of(run.pk, user)
    return _event("finish", run.n_steps, finished_html(run, user, whole)) + _event("done", run.n_steps, "")


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
