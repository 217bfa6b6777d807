"""The one door to generation: recordings computed once, runs shown step by step to whoever watches, judged at the end.

The shared engine computes a recording while somebody watches it, so a run that nobody watches stands still
by itself. Everything here belongs to one server process; the database belongs to the threads that ask.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from uuid import UUID
from weakref import WeakValueDictionary

from django.conf import settings
from django.db import connections, transaction
from django.db.models import F
from django.utils import timezone

from generation import (
    EngineBusy,
    Generation,
    Job,
    Limits,
    Load,
    LogitsError,
    PromptError,
    SamplingParams,
    SharedEngine,
    Step,
    load_model,
)
from quizsite.accounts.models import User
from quizsite.labs.clauses import Clause, SeedRun, Setup, Verdict
from quizsite.labs.models import Lab, LabResult, NotNow, Recording, Run

logger = logging.getLogger(__name__)

LOST_AFTER = 30.0  # seconds without a watcher until an open run is cancelled
BUSY_SECONDS = 15  # after which to try again when the queue is full
THE_SITE = "the site"  # who asks for what no learner has asked for


class Live:
    """A recording as far as it has come: kept in the database, or a job of the shared engine."""

    def __init__(self, recording: Recording, owner: object) -> None:
        self.recording = recording
        self._kept = recording.generation
        self.job: Job | None = None
        if not self._kept:
            model, forced = load_model(recording.model), {int(step): i for step, i in recording.forced.items()}
            prompt = recording.setup.encoded_prompt(model)
            self.job = shared.job(owner, model, prompt, recording.params, forced)

    @property
    def generation(self) -> Generation | None:
        return self.job.generation if self.job else self._kept

    @property
    def steps(self) -> list[Step]:
        if self.job:
            return self.job.steps
        return list(self._kept.steps) if self._kept else []

    @property
    def is_over(self) -> bool:
        return self.job.is_over if self.job else True

    @property
    def failure(self) -> str:
        """Why it could not go on, in words; empty unless its model failed."""
        error = self.job.error if self.job else None
        if error is None:
            return ""
        return str(error) if isinstance(error, LogitsError | PromptError) else "something broke on our side"

    def wait(self, n_steps: int | None = None) -> None:
        """Have it computed up to a step, or to its end."""
        if self.job:
            shared.wait(self.job, n_steps)


class Show:
    """An open run on its way to its owner: how far it is, who watches, whether it was stopped."""

    def __init__(self, run: Run, live: Live) -> None:
        self.run = run
        self.live = live
        self.n_steps = run.n_steps
        self.watchers = 0
        self.losses = 0  # how often the last watcher was lost
        self.is_stopped = False
        self._wakes: list[Callable[[], object]] = []

    @property
    def place(self) -> int:
        """The place in the queue, from 1; 0 once it is being computed."""
        return shared.place(self.live.job) if self.live.job else 0

    @contextmanager
    def watched(self, wake: Callable[[], object]) -> Iterator[None]:
        """Have the run computed inside the `with`; `wake` is called, in any thread, when there is news."""
        self.watchers += 1
        self._wakes.append(wake)
        try:
            if self.live.job:
                with shared.watched(self.live.job, wake):
                    yield
            else:
                yield
        finally:
            self._wakes.remove(wake)
            self.watchers -= 1

    def stop(self) -> None:
        self.is_stopped = True
        for wake in list(self._wakes):
            wake()


class Judging:
    """A lab's other runs on their way, such as its five seeds, until the verdict over a run stands."""

    def __init__(self) -> None:
        self.is_done = False
        self.lives: list[Live] = []

    def seeds(self) -> list[SeedRun]:
        """Return the runs as far as they have come."""
        return [
            SeedRun(
                seed=live.recording.params.seed,
                text="".join(step.shown for step in live.steps),
                holds=None,
                reason=f"{len(live.steps)} tokens",
            )
            for live in self.lives
        ]


class Pending(Exception):
    """A verdict waits for runs, some of which nobody has computed yet."""

    def __init__(self, recordings: list[Recording]) -> None:
        super().__init__(f"{len(recordings)} runs")
        self.recordings = recordings


shared = SharedEngine(Limits(kv_bytes=settings.KV_CACHE_MB * 1_000_000))
_lock = threading.Lock()
_lives: WeakValueDictionary[str, Live] = WeakValueDictionary()
_recent: deque[Live] = deque(maxlen=64)  # a run by hand is asked for again with each press
_shows: dict[UUID, Show] = {}
_judgings: dict[UUID, Judging] = {}


def check(setup: Setup) -> None:
    """Refuse what cannot be run here.

    Raises
    ------
    ModelUnavailable, PromptError, SettingError
    """
    model = load_model(setup.model)
    shared.job(THE_SITE, model, setup.encoded_prompt(model), setup.params)


def load() -> Load:
    """Report what the engine is doing."""
    return shared.load()


def live_of(recording: Recording, owner: object) -> Live:
    """Return the one computation of a recording; the first who asks for it takes the turns."""
    with _lock:
        live = _lives.get(recording.key)
        if live is None:
            live = _lives[recording.key] = Live(recording, owner)
        _recent.append(live)
        return live


def show_of(run: Run) -> Show:
    """Return the one show of an open run; one that was ended meanwhile is stopped already."""
    live = live_of(run.recording, run.learner_id)
    with _lock:
        show = _shows.setdefault(run.pk, Show(run, live))
    if not Run.objects.open().filter(pk=run.pk).exists():  # stopped before there was a show to be told
        forget(run)
    return show


def shown(run: Run) -> Show | None:
    return _shows.get(run.pk)


def forget(run: Run) -> None:
    """Let go of a run; its streams see that it has been stopped."""
    show = _shows.pop(run.pk, None)
    if show:
        show.stop()


def record(setup: Setup, forced: Mapping[int, int] | None = None) -> Recording:
    """Return a finished recording, waiting for it if nobody has computed it before.

    Raises
    ------
    LogitsError
        If the model cannot go on.
    """
    recording = Recording.objects.of(setup, forced)
    _computed(recording, THE_SITE)
    return recording


def run_shared(setup: Setup, forced: Mapping[int, int]) -> Generation:
    """Run a setup in the shared engine and wait for it; what the validator runs labs with on the site."""
    generation = record(setup, forced).generation
    assert generation
    return generation


def press(learner: User, lab: Lab | None, recording: Recording, pace: int | None) -> Run:
    """Start a run in place of the learner's open one; by hand, go on with it where it is the same.

    Raises
    ------
    NotNow
        Over the rate of one learner, or when too many wait for the engine.
    """
    run = Run.objects.by(learner).open_by_hand(lab, recording) if pace is None else None
    if run is None:
        if not recording.generation:
            try:
                shared.check_room(learner.pk)
            except EngineBusy as busy:
                raise NotNow(str(busy), BUSY_SECONDS) from None
        for before in Run.objects.by(learner).open().with_recording():
            stop(before)
        run = Run.objects.start(learner, lab, recording, pace)
    if pace is None:
        _reveal(run)
    return run


def with_token(run: Run, step: int, token_id: int) -> Recording | None:
    """Return the recording in which a step of a run takes another token; None where that cannot be."""
    recording = run.recording
    if not 1 <= step <= len(steps_of(run)) or token_id >= load_model(recording.model).vocab_size:
        return None
    before = {int(at): taken for at, taken in recording.forced.items() if int(at) < step}
    return Recording.objects.of(recording.setup, before | {step: token_id})


def finish(run: Run) -> None:
    """Wait until a run is computed and judged; a run that fails on the way ends in words."""
    live = live_of(run.recording, run.learner_id)
    live.wait()
    end(run, live)
    judge_now(run)


def end(run: Run, live: Live) -> None:
    """Close a run whose computation is over: by itself, at its deadline, or because its model failed."""
    if live.generation:
        if not run.recording.generation:
            run.recording.save_generation(live.generation)
        run.close(live.generation.finish_reason, len(live.steps))
    else:
        if live.failure and live.job and not isinstance(live.job.error, LogitsError | PromptError):
            logger.error("run %s broke", run.pk, exc_info=live.job.error)
        run.recording.save_steps(live.steps)
        run.close("cancelled" if live.failure else "deadline", len(live.steps), failure=live.failure)
    forget(run)


def stop(run: Run) -> None:
    """End an open run where it is; its steps are kept."""
    show = shown(run)
    if show:
        run.recording.save_steps(show.live.steps)
    run.close("cancelled", show.n_steps if show else run.n_steps)
    forget(run)


def keep(show: Show) -> None:
    """Keep in the database what a run has shown, while nobody watches it."""
    show.run.recording.save_steps(show.live.steps)
    Run.objects.open().filter(pk=show.run.pk).update(n_steps=show.n_steps)


def settle(run: Run) -> None:
    """Bring a run in order that was left behind: lost for good, ended and never judged, or in an old format."""
    if not run.recording.is_readable:
        _computed(run.recording, THE_SITE)
    is_lost = run.is_open and not run.is_by_hand and not shown(run)
    if is_lost and (timezone.now() - run.created).total_seconds() > LOST_AFTER:
        stop(run)
    if run.awaits_verdict:
        judge(run)


def steps_of(run: Run) -> list[Step]:
    """Return the steps that a run has shown, also while they are still coming."""
    show = shown(run)
    return show.live.steps[: show.n_steps] if show else run.steps


def judging_of(run: Run) -> Judging | None:
    return _judgings.get(run.pk)


def judge(run: Run, failures: Mapping[str, str] | None = None) -> list[Recording]:
    """Judge the lab's goals over a finished run; what is met is kept once for each learner.

    Returns the recordings that it rests on while some are not computed; none once it stands. `failures`
    says, by the recordings' keys, which of them cannot be had.
    """
    generation = run.recording.generation
    if not run.awaits_verdict or not run.lab or not generation:
        return []
    lab, spec = run.lab, run.lab.spec
    judged = spec.run_of(run.recording.setup, generation, lambda wanted: _others(spec.setup, wanted, failures or {}))
    met_before = set(LabResult.objects.filter(learner=run.learner, lab=lab).values_list("goal", flat=True))
    first = spec.goals[0]
    verdicts: dict[str, Verdict] = {}
    for goal in spec.goals:
        try:
            verdict = goal.judge(judged)
        except Pending as pending:
            return pending.recordings
        except LogitsError as error:
            verdict = Verdict((Clause("Its other runs", str(error), False),))
        if goal is not first:
            is_done = first.kind in met_before or verdicts[first.kind].is_met
            wanted = Clause(f"Before it: {first.title.lower()}", "done" if is_done else "not yet", is_done)
            verdict = Verdict((*verdict.clauses, wanted), verdict.seeds, verdict.summary)
        verdicts[goal.kind] = verdict
    with transaction.atomic():
        for kind, verdict in verdicts.items():
            if verdict.is_met:
                LabResult.objects.get_or_create(learner=run.learner, lab=lab, goal=kind, defaults={"run": run})
        run.verdicts = {kind: asdict(verdict) for kind, verdict in verdicts.items()}
        run.save(update_fields=["verdicts"])
    return []


def judge_now(run: Run) -> None:
    """Judge a run, waiting for the other runs that its goals ask for."""
    _judge_to_end(run, Judging(), lambda: None)


def judge_soon(run: Run) -> Judging:
    """Judge a run in a thread of its own, which goes on when the page is left; one thread for each run."""
    with _lock:
        judging = _judgings.get(run.pk)
        if judging is None:
            judging = _judgings[run.pk] = Judging()
            threading.Thread(target=_judge_alone, args=(run, judging), daemon=True).start()
        return judging


def _judge_alone(run: Run, judging: Judging) -> None:
    try:
        _judge_to_end(run, judging, connections.close_all)
    except Exception:
        logger.exception("run %s could not be judged", run.pk)
    finally:
        judging.is_done = True
        _judgings.pop(run.pk, None)
        connections.close_all()


def _judge_to_end(run: Run, judging: Judging, rest: Callable[[], object]) -> None:
    failures: dict[str, str] = {}
    while needed := judge(run, failures):
        judging.lives = [live_of(recording, run.learner_id) for recording in needed]
        rest()  # what the thread holds is not needed while it waits
        for recording, live in zip(needed, judging.lives, strict=True):
            live.wait()
            if live.generation and not recording.generation:
                recording.save_generation(live.generation)
            if not live.generation:
                failures[recording.key] = live.failure or "did not end before its deadline"


def _others(
    setup: Callable[[SamplingParams], Setup], wanted: list[SamplingParams], failures: Mapping[str, str]
) -> list[Generation]:
    """Return runs of a lab under other settings, or raise Pending while some are not there yet."""
    recordings = [Recording.objects.of(setup(params)) for params in wanted]
    for recording in recordings:
        if recording.key in failures:
            raise LogitsError(failures[recording.key])
    generations = [recording.generation for recording in recordings]
    if not all(generations):
        raise Pending(recordings)
    return [generation for generation in generations if generation]


def _reveal(run: Run) -> None:
    """Show one more step of a run by hand; with the last one it ends."""
    live, number = live_of(run.recording, run.learner_id), run.n_steps + 1
    live.wait(number)
    if number > len(live.steps):  # it failed, or was over its deadline
        end(run, live)
        return
    run.recording.save_steps(live.steps)
    Run.objects.open().filter(pk=run.pk, n_steps__lt=len(live.steps)).update(n_steps=F("n_steps") + 1)
    run.refresh_from_db(fields=["n_steps"])
    run.__dict__.pop("steps", None)
    live.wait(number + 1)  # whether there is a next one
    if live.is_over and run.n_steps >= len(live.steps):
        end(run, live)


def _computed(recording: Recording, owner: object) -> Generation:
    generation = recording.generation
    if not generation:
        live = live_of(recording, owner)
        live.wait()
        if not live.generation:
            raise LogitsError(live.failure or f"{recording} did not end before its deadline")
        generation = live.generation
        recording.save_generation(generation)
    return generation
