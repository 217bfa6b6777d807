"""One engine for many runs: they join and leave between steps, and take their steps in turn, owner by owner."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from generation.decoding import Model, encode_prompt, stream
from generation.errors import EngineBusy, PromptError, SettingError
from generation.params import SamplingParams
from generation.records import Generation, Step

Wake = Callable[[], object]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What one engine takes on."""

    n_seats: int = 4  # owners whose runs take steps in turn; the others queue
    n_queue: int = 64  # owners that may queue
    kv_bytes: int = 1 << 30  # for the KV caches of all runs together
    max_new_tokens: int = 1024  # of a run
    seconds: float = 180.0  # of a run, from its first step on; not while it is paused
    idle_seconds: float = 60.0  # that a paused run keeps its KV cache


@dataclass(frozen=True)
class Load:
    """What the engine is doing."""

    n_seated: int
    n_queued: int
    n_kept: int  # runs with a KV cache, paused ones included
    kv_bytes: int  # reserved for these
    kv_bytes_limit: int

    @property
    def kv_megabytes(self) -> str:
        return f"{self.kv_bytes / 1e6:,.0f}"

    @property
    def kv_megabytes_limit(self) -> str:
        return f"{self.kv_bytes_limit / 1e6:,.0f}"


class Job:
    """A run in the engine. Its steps can be read at any time; whoever wants more of them watches it."""

    def __init__(
        self, owner: Hashable, model: Model, prompt_ids: list[int], params: SamplingParams, forced: Mapping[int, int]
    ) -> None:
        self.owner = owner
        self.model, self.prompt_ids, self.params, self.forced = model, prompt_ids, params, dict(forced)
        self.kv_bytes = model.new_cache().nbytes_for(len(prompt_ids) + params.max_new_tokens)
        self.steps: list[Step] = []
        self.generation: Generation | None = None  # once it has ended by itself
        self.error: Exception | None = None  # why the model could not go on
        self.is_overdue = False  # ended by its deadline
        self.seconds = 0.0  # that it took so far, waiting for its turns included
        self.pass_seconds: list[float] = []  # of each step alone, as computed last
        self._source: Iterator[Step] | None = None
        self._n_given = 0  # steps that the source has given, fewer than `steps` after its cache was let go
        self._watchers: list[Wake] = []
        self._turn_began: float | None = None
        self._paused_at = 0.0

    @property
    def is_over(self) -> bool:
        return self.generation is not None or self.error is not None or self.is_overdue


class SharedEngine:
    """The one thread that computes. A job that nobody watches stands still; one that fails ends alone.

    Parameters
    ----------
    limits : Limits
    clock : function, optional
        Seconds that never go back.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._changed = threading.Condition()
        self._wanted: dict[Hashable, deque[Job]] = {}  # the watched jobs of each owner, the first one computed
        self._seated: deque[Hashable] = deque()  # owners, whose turn is next at the left
        self._queue: deque[Hashable] = deque()
        self._kept: set[Job] = set()  # jobs with a source, and so with a KV cache
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._thread: threading.Thread | None = None

    def job(
        self,
        owner: Hashable,
        model: Model,
        prompt: str | Sequence[int],
        params: SamplingParams,
        forced: Mapping[int, int] | None = None,
    ) -> Job:
        """Return a job; nothing of it is computed until it is watched.

        Raises
        ------
        PromptError
            For a prompt that cannot be run, or whose KV cache is larger than all that there is.
        SettingError
            For more tokens than a run may make here.
        """
        n_new, most = params.max_new_tokens, self.limits.max_new_tokens
        if n_new > most:
            raise SettingError("max_new_tokens", f"max_new_tokens must be at most {most} here, got {n_new}")
        job = Job(owner, model, encode_prompt(model, prompt, n_new), params, forced or {})
        if job.kv_bytes > self.limits.kv_bytes:
            raise PromptError(
                f"{len(job.prompt_ids)} tokens and {n_new} new ones need {_megabytes(job.kv_bytes)} of KV cache, "
                f"and this engine has {_megabytes(self.limits.kv_bytes)}"
            )
        return job

    def check_room(self, owner: Hashable) -> None:
        """Refuse a newcomer while the queue is full.

        Raises
        ------
        EngineBusy
        """
        with self._changed:
            if owner not in self._wanted and len(self._queue) >= self.limits.n_queue:
                raise EngineBusy(f"{len(self._queue)} others are waiting, and more cannot queue")

    @contextmanager
    def watched(self, job: Job, wake: Wake = lambda: None) -> Iterator[None]:
        """Have a job computed inside the `with`; `wake` is called after each change, in the engine's thread.

        Raises
        ------
        EngineBusy
            If the queue is full.
        """
        self.check_room(job.owner)
        with self._changed:
            job._watchers.append(wake)
            if len(job._watchers) == 1 and not job.is_over:
                self._want(job)
            self._run_thread()
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                job._watchers.remove(wake)
                if not job._watchers:
                    self._let_go(job)

    def wait(self, job: Job, n_steps: int | None = None, is_left: Callable[[], bool] = lambda: False) -> None:
        """Watch a job until it has so many steps, is over, or nobody waits any more."""
        with self.watched(job), self._changed:
            self._changed.wait_for(
                lambda: job.is_over or is_left() or (n_steps is not None and len(job.steps) >= n_steps)
            )

    def wake(self) -> None:
        """Have everybody who waits look again whether to go on waiting."""
        with self._changed:
            self._changed.notify_all()

    def call(self, function: Callable[[], Result]) -> Result:
        """Have a function computed between two steps, and return its result; for what takes a few steps' time."""
        future: Future[Result] = Future()
        with self._changed:
            self._calls.append((function, future))
            self._run_thread()
            self._changed.notify_all()
        return future.result()

    def place(self, job: Job) -> int:
        """Return the place of a job's owner in the queue, from 1; 0 where it does not queue."""
        with self._changed:
            return self._queue.index(job.owner) + 1 if job.owner in self._queue else 0

    def load(self) -> Load:
        """Report what the engine is doing."""
        with self._changed:
            return Load(
                n_seated=len(self._seated),
                n_queued=len(self._queue),
                n_kept=len(self._kept),
                kv_bytes=self._kv_bytes(),
                kv_bytes_limit=self.limits.kv_bytes,
            )

    def _want(self, job: Job) -> None:
        if job.owner not in self._wanted:
            self._wanted[job.owner] = deque()
            self._queue.append(job.owner)
            self._seat()
        self._wanted[job.owner].append(job)

    def _let_go(self, job: Job) -> None:
        """Take a job out of the turns; what it holds is kept for a while, unless it is over."""
        job._turn_began, job._paused_at = None, self._clock()
        jobs = self._wanted.get(job.owner, deque())
        if job in jobs:
            jobs.remove(job)
            if not jobs:
                del self._wanted[job.owner]
                (self._seated if job.owner in self._seated else self._queue).remove(job.owner)
                self._seat()
        if job.is_over:
            self._drop(job)

    def _drop(self, job: Job) -> None:
        """Free a job's KV cache; watched again, it is computed again, to the same steps."""
        self._kept.discard(job)
        job._source, job._n_given = None, 0

    def _run_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (job := self._next()) is None and not self._calls:
                    self._changed.wait(timeout=self.limits.idle_seconds if self._kept else None)
                calls, self._calls = self._calls, deque()
                if job and job._turn_began is None:
                    job._turn_began = self._clock()
            for function, future in calls:
                _answer(function, future)
            if job is None:
                continue
            began = self._clock()
            outcome = _one_step(job)
            with self._changed:
                wakes = self._take(job, outcome, self._clock() - began)
                self._changed.notify_all()
            for wake in wakes:
                wake()

    def _take(self, job: Job, outcome: Step | Generation | Exception, seconds: float) -> list[Wake]:
        """Note what a step has brought and how long it took, and return who is to hear of it."""
        now = self._clock()
        if isinstance(outcome, Step):
            job._n_given += 1
            job.pass_seconds[job._n_given - 1 :] = [seconds]
            if job._n_given > len(job.steps):
                job.steps.append(outcome)
        elif isinstance(outcome, Generation):
            job.generation = outcome
        else:
            job.error = outcome
        if job._turn_began is not None:
            job.seconds += now - job._turn_began
            job._turn_began = now
        job.is_overdue = job.seconds > self.limits.seconds and job.generation is None and job.error is None
        wakes = list(job._watchers)
        if job.is_over:
            queued = list(self._queue)
            self._let_go(job)
            wakes += [wake for owner in queued for other in self._wanted[owner] for wake in other._watchers]
        return wakes

    def _next(self) -> Job | None:
        """Return the job whose turn it is; one that there is no memory for loses its turn."""
        self._forget_idle()
        for _ in range(len(self._seated)):
            owner = self._seated[0]
            self._seated.rotate(-1)
            job = self._first(owner)
            if self._has_memory(job):
                self._kept.add(job)
                return job
        return None

    def _seat(self) -> None:
        while self._queue and len(self._seated) < self.limits.n_seats:
            self._seated.append(self._queue.popleft())

    def _first(self, owner: Hashable) -> Job:
        """Return the job that an owner's turn belongs to: one that has its memory, else the oldest."""
        jobs = self._wanted[owner]
        return next((job for job in jobs if job in self._kept), jobs[0])

    def _forget_idle(self) -> None:
        oldest = self._clock() - self.limits.idle_seconds
        for job in [job for job in self._kept if not job._watchers and job._paused_at <= oldest]:
            self._drop(job)

    def _has_memory(self, job: Job) -> bool:
        """Tell whether a job's KV cache fits beside the others, letting go of paused ones for it."""
        if job in self._kept:
            return True
        paused = sorted((kept for kept in self._kept if not kept._watchers), key=lambda kept: kept._paused_at)
        while paused and self._kv_bytes() + job.kv_bytes > self.limits.kv_bytes:
            self._drop(paused.pop(0))
        return self._kv_bytes() + job.kv_bytes <= self.limits.kv_bytes

    def _kv_bytes(self) -> int:
        return sum(job.kv_bytes for job in self._kept)


def _one_step(job: Job) -> Step | Generation | Exception:
    """Compute the next step of a job; whatever goes wrong is its own matter."""
    try:
        if job._source is None:
            job._source = stream(job.model, job.prompt_ids, job.params, job.forced)
        return next(job._source)
    except StopIteration as end:
        generation: Generation = end.value
        return generation
    except Exception as error:
        return error


def _answer(function: Callable[[], Any], future: "Future[Any]") -> None:
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"
