"""The one door to generation: recordings computed once, runs shown step by step to whoever watches, judged at the end.

The shared engine computes a recording while somebody watches it, so a run that nobody watches stands still
by itself. Everything here belongs to one server process; the database belongs to the threads that ask.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    Inspection,
    Job,
    Limits,
    Load,
    LogitsError,
    ModelUnavailable,
    PromptError,
    SamplingParams,
    SettingError,
    SharedEngine,
    Step,
    fingerprint,
    inspect,
    load_model,
    pieces,
)
from quizsite.accounts.models import User
from quizsite.labs.clauses import Clause, Inputs, Outcome, SeedRun, Setup, Verdict
from quizsite.labs.models import Lab, LabResult, NotNow, Recording, Run
from quizsite.labs.panels.kind import Kind, Timing

logger = logging.getLogger(__name__)

LOST_AFTER = 30.0  # seconds without a watcher until an open run is cancelled
BUSY_SECONDS = 15  # after which to try again when the queue is full
ROOM_SOUGHT_EVERY = 0.5  # seconds, by what comes after a run while the queue is full
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
        return _failure(self.job) if self.job else ""

    def saved(self, recording: Recording) -> Generation:
        """Return the finished run, kept in its row of the database.

        Raises
        ------
        LogitsError
            If the model could not go on, or not before its deadline.
        """
        if not self.generation:
            raise LogitsError(self.failure or f"{recording} did not end before its deadline")
        if not recording.generation:
            recording.save_generation(self.generation)
        return self.generation

    def wait(self, n_steps: int | None = None) -> None:
        """Have it computed up to a step, or to its end."""
        if self.job:
            _let_go_of_connections()
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


class Left(Exception):
    """Nobody waits any more for what comes after a run."""


class Conclusion:
    """What comes after a run: what its panel still asks for, then the verdict. It goes on while somebody watches."""

    def __init__(self) -> None:
        self.is_done = False
        self.is_left = False
        self.watchers = 0
        self.others: list[Live] = []  # that the panel has asked for
        self.seeds: list[Live] = []  # that the goals have asked for

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Have it go on inside the `with`; it stops with the last who watches, within two steps."""
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1
            if not self.watchers:
                self.is_left = True
                shared.wake()

    def wait(self, job: Job | None) -> None:
        """Wait for a job, and for room in the queue before it.

        Raises
        ------
        Left
        """
        while job and not self.is_left:
            try:
                shared.wait(job, is_left=lambda: self.is_left)
            except EngineBusy:
                time.sleep(ROOM_SOUGHT_EVERY)
            else:
                break
        if self.is_left:
            raise Left

    def seed_runs(self) -> list[SeedRun]:
        """Return the goals' runs as far as they have come."""
        return [
            SeedRun(
                seed=live.recording.params.seed,
                text="".join(step.shown for step in live.steps),
                holds=None,
                reason=f"{len(live.steps)} tokens",
            )
            for live in self.seeds
        ]


class SharedInstruments:
    """What a panel may ask of the engine after a run, on the site: in turn with everybody else."""

    def __init__(self, run: Run, conclusion: Conclusion, rest: Callable[[], object]) -> None:
        self._run, self._conclusion, self._rest = run, conclusion, rest

    def record(self, setup: Setup) -> Generation:
        recording = Recording.objects.of(setup)
        self._run.others.add(recording)
        live = live_of(recording, self._run.learner_id)
        self._conclusion.others.append(live)
        self._rest()
        self._conclusion.wait(live.job)
        return live.saved(recording)

    def time(self, setup: Setup) -> Timing:
        model = load_model(setup.model)
        job = shared.job(self._run.learner_id, model, setup.encoded_prompt(model), setup.params)
        self._rest()
        self._conclusion.wait(job)
        if not job.generation:
            raise LogitsError(_failure(job) or "the run did not end before its deadline")
        return Timing(job.generation, tuple(job.pass_seconds))

    def inspect(self, model: str, token_ids: Sequence[int]) -> Inspection:
        self._conclusion.wait(None)
        return shared.call(lambda: inspect(load_model(model), token_ids))

    def fingerprint(self, model: str) -> str:
        self._conclusion.wait(None)
        return fingerprint(load_model(model))


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
_conclusions: dict[UUID, Conclusion] = {}


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


def press(learner: User, lab: Lab | None, kind: Kind, recording: Recording, inputs: Inputs, pace: int | None) -> Run:
    """Start a run in place of the learner's open one; by hand, go on with it where it is the same.

    Raises
    ------
    NotNow
        Over the rate of one learner, or when too many wait for the engine.
    """
    run = Run.objects.by(learner).open_by_hand(lab, kind.name, recording) if pace is None else None
    if run is None:
        if not recording.generation and kind.generates:
            try:
                shared.check_room(learner.pk)
            except EngineBusy as busy:
                raise NotNow(str(busy), BUSY_SECONDS) from None
        for before in Run.objects.by(learner).open().with_recording():
            stop(before)
        run = Run.objects.start(learner, lab, kind.name, recording, inputs, pace)
    if not kind.generates:
        run.close("nothing", 0)
        conclude_now(run)
    elif pace is None:
        _reveal(run)
    return run


def with_token(run: Run, step: int, token_id: int) -> Recording | None:
    """Return the recording in which a step of a run takes another token; None where that cannot be."""
    recording = run.recording
    if not 1 <= step <= len(steps_of(run)) or token_id >= load_model(recording.model).vocab_size:
        return None
    before = {int(at): taken for at, taken in recording.forced.items() if int(at) < step}
    return Recording.objects.of(recording.setup, before | {step: token_id})


def token_typed(run: Run, typed: str) -> int:
    """Return the one token that a text is.

    Raises
    ------
    PromptError
        If it is none, or several.
    """
    model = load_model(run.recording.model)
    ids = model.encode(typed)
    if len(ids) != 1:
        shown = ", ".join(repr(piece) for piece in pieces(model, ids)[:8])
        raise PromptError(f"one token must be typed, but {typed!r} is {len(ids)}{': ' if ids else ''}{shown}")
    return ids[0]


def finish(run: Run) -> None:
    """Wait until a run is computed and judged; a run that fails on the way ends in words."""
    live = live_of(run.recording, run.learner_id)
    live.wait()
    end(run, live)
    conclude_now(run)


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
    judge(run)


def steps_of(run: Run) -> list[Step]:
    """Return the steps that a run has shown, also while they are still coming."""
    show = shown(run)
    return show.live.steps[: show.n_steps] if show else run.steps


def conclusion_of(run: Run) -> Conclusion | None:
    return _conclusions.get(run.pk)


def judge(run: Run, failures: Mapping[str, str] | None = None) -> list[Recording]:
    """Judge the lab's goals over a finished run; what is met is kept once for each learner.

    Returns the recordings that it rests on while some are not computed; none once it stands, or if the panel
    has something left to do before. `failures` says, by the recordings' keys, which of them cannot be had.
    """
    if not run.awaits_verdict or run.awaits_outcome or not run.lab:
        return []
    lab, spec, setup = run.lab, run.lab.spec, run.recording.setup

    def others(wanted: list[SamplingParams]) -> list[Generation]:
        return _others(lambda params: spec.setup(params, run.inputs), wanted, failures or {})

    judged = spec.run_of(setup, run.recording.generation, others, run.inputs, run.outcome or {})
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


def needs_more(run: Run) -> bool:
    """Judge a run if that can be done at once, and tell whether something is left to be computed for it."""
    return run.awaits_outcome or bool(judge(run))


def _let_go_of_connections() -> None:
    """Hold none of the pool's few connections while something is waited for; a transaction keeps its own."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def conclude_now(run: Run) -> None:
    """Do what comes after a run, waiting for all that its panel and its goals ask for."""
    _conclude(run, Conclusion(), _let_go_of_connections)


def conclude_soon(run: Run) -> Conclusion:
    """Do what comes after a run in a thread of its own, for those who watch; one thread for each run."""
    with _lock:
        conclusion = _conclusions.get(run.pk)
        if conclusion is None or conclusion.is_left:
            conclusion = _conclusions[run.pk] = Conclusion()
            threading.Thread(target=_conclude_alone, args=(run, conclusion), daemon=True).start()
        return conclusion


def _conclude_alone(run: Run, conclusion: Conclusion) -> None:
    try:
        _conclude(run, conclusion, _let_go_of_connections)
    except Left:
        pass  # whoever opens the run again has it go on
    except Exception:
        logger.exception("what comes after run %s broke", run.pk)
    finally:
        conclusion.is_done = True
        with _lock:
            if _conclusions.get(run.pk) is conclusion:
                del _conclusions[run.pk]
        connections.close_all()


def _conclude(run: Run, conclusion: Conclusion, rest: Callable[[], object]) -> None:
    """Do what a panel asks for, then judge; `rest` is called before each wait, to let go of what is not needed."""
    if run.awaits_outcome:
        run.outcome = _outcome(run, SharedInstruments(run, conclusion, rest))
        run.save(update_fields=["outcome"])
    failures: dict[str, str] = {}
    while needed := judge(run, failures):
        conclusion.seeds = [live_of(recording, run.learner_id) for recording in needed]
        rest()
        for recording, live in zip(needed, conclusion.seeds, strict=True):
            conclusion.wait(live.job)
            try:
                live.saved(recording)
            except LogitsError as error:
                failures[recording.key] = str(error)


def _outcome(run: Run, ask: SharedInstruments) -> Outcome:
    try:
        return run.kind.after(run.recording.setup, run.inputs, run.recording.generation, ask)
    except (LogitsError, ModelUnavailable, PromptError, SettingError) as error:
        return {"problem": str(error)}


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
    if generation:
        return generation
    live = live_of(recording, owner)
    live.wait()
    return live.saved(recording)


def _failure(job: Job) -> str:
    """Say why a job could not go on; empty unless its model failed."""
    if job.error is None:
        return ""
    return str(job.error) if isinstance(job.error, LogitsError | PromptError) else "something broke on our side"
