"""The one door to generation: recordings computed once, runs shown step by step to whoever watches.

A recording in the making is computed only when a watcher asks for its next step, so a run that nobody
watches stands still by itself. Everything here belongs to one server process.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from uuid import UUID
from weakref import WeakValueDictionary

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from generation import Generation, LogitsError, SamplingParams, Step, load_model, stream
from quizsite.accounts.models import User
from quizsite.labs.clauses import Clause, Setup, Verdict
from quizsite.labs.models import Lab, LabResult, Recording, Run

COMPUTING = threading.Lock()  # one pass at a time: BLAS threads that overlap would slow each other down
LOST_AFTER = 30.0  # seconds without a watcher until an open run is cancelled


class Live:
    """A recording that is being computed, for all who watch it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.steps: list[Step] = []
        self.generation: Generation | None = recording.generation
        if self.generation:
            self.steps = list(self.generation.steps)
        else:
            params, forced = recording.params, {int(k): v for k, v in recording.forced.items()}
            self._source = stream(load_model(recording.model), recording.prompt, params, forced)
        self._error: LogitsError | None = None
        self._lock = threading.Lock()

    def step(self, number: int) -> Step | None:
        """Return a step, counted from 1, computing no further than that; None after the last.

        Raises
        ------
        LogitsError
            If the model fails before that step; the same for everybody who asks.
        """
        with self._lock:
            while len(self.steps) < number and not self.generation:
                if self._error:
                    raise self._error
                try:
                    with COMPUTING:
                        self.steps.append(next(self._source))
                except StopIteration as end:
                    self.generation = end.value
                except LogitsError as error:
                    self._error = error
        return self.steps[number - 1] if number <= len(self.steps) else None

    def finish(self) -> Generation:
        """Compute to the end."""
        while self.step(len(self.steps) + 1):
            pass
        assert self.generation
        return self.generation


class Show:
    """An open run on its way to its owner: how far it is, who watches, whether it was stopped."""

    def __init__(self, run: Run, live: Live) -> None:
        self.run = run
        self.live = live
        self.n_steps = run.n_steps
        self.watchers = 0
        self.losses = 0  # how often the last watcher was lost
        self.is_stopped = False
        self.ending = threading.Lock()  # two tabs end a run once


class Engine:
    """What is being computed and shown in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: WeakValueDictionary[str, Live] = WeakValueDictionary()
        self._shows: dict[UUID, Show] = {}

    def live(self, recording: Recording) -> Live:
        """Return the one computation of a recording."""
        with self._lock:
            live = self._live.get(recording.key)
            if live is None:
                live = self._live[recording.key] = Live(recording)
            return live

    def show(self, run: Run) -> Show:
        """Return the one show of an open run."""
        live = self.live(run.recording)
        with self._lock:
            return self._shows.setdefault(run.pk, Show(run, live))

    def shown(self, run: Run) -> Show | None:
        return self._shows.get(run.pk)

    def forget(self, run: Run) -> None:
        """Let go of a run; its streams see that it has been stopped."""
        show = self._shows.pop(run.pk, None)
        if show:
            show.is_stopped = True


engine = Engine()


def record(model: str, prompt: str, params: SamplingParams, forced: Mapping[int, int] | None = None) -> Recording:
    """Return a finished recording, computing it if nobody has before."""
    recording = Recording.objects.of(model, prompt, params, forced)
    _generation_of(recording)
    return recording


def press(learner: User, lab: Lab | None, recording: Recording, pace: int | None) -> Run:
    """Start a run in place of the learner's open one; by hand, go on with it where it is the same.

    Raises
    ------
    TooManyRuns
        Over the rate of one learner.
    """
    run = Run.objects.by(learner).open_by_hand(lab, recording) if pace is None else None
    if run is None:
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
    return Recording.objects.of(recording.model, recording.prompt, recording.params, before | {step: token_id})


def finish(run: Run) -> None:
    """Compute a run to its end, at once, and judge it; a run that fails on the way ends in words."""
    show = engine.shown(run)
    try:
        generation = _generation_of(run.recording)
    except LogitsError as error:
        fail(run, str(error))
        return
    with show.ending if show else threading.Lock():
        if Run.objects.open().filter(pk=run.pk).exists():
            with transaction.atomic():
                judge(run)
                run.close(generation.finish_reason, len(generation.steps))
    engine.forget(run)


def fail(run: Run, reason: str) -> None:
    """End a run whose model failed; the steps so far are kept, and the reason in words."""
    live = engine.live(run.recording)
    run.recording.save_steps(live.steps)
    run.close("cancelled", len(live.steps), failure=reason)
    engine.forget(run)


def stop(run: Run) -> None:
    """End an open run where it is; its steps are kept."""
    show = engine.shown(run)
    if show:
        run.recording.save_steps(show.live.steps)
    run.close("cancelled", show.n_steps if show else run.n_steps)
    engine.forget(run)


def settle(run: Run) -> None:
    """Bring a run in order that was left behind: lost for good, ended and never judged, or in an old format."""
    if not run.recording.is_readable:
        _generation_of(run.recording)
    is_lost = run.is_open and not run.is_by_hand and not engine.shown(run)
    if is_lost and (timezone.now() - run.created).total_seconds() > LOST_AFTER:
        stop(run)
    if run.lab and not run.is_open and run.finish_reason != "cancelled" and not run.verdicts:
        judge(run)


def steps_of(run: Run) -> list[Step]:
    """Return the steps that a run has shown, also while they are still coming."""
    show = engine.shown(run)
    return show.live.steps[: show.n_steps] if show else run.steps


def judge(run: Run) -> None:
    """Judge the lab's goals over a finished run; what is met is kept once for each learner."""
    generation = run.recording.generation
    if not run.lab or not generation:
        return
    lab, spec = run.lab, run.lab.spec
    setup = Setup(run.recording.model, run.recording.prompt, run.recording.params)
    judged = spec.run_of(setup, generation, partial(_generate, spec.model, spec.prompt))
    met_before = set(LabResult.objects.filter(learner=run.learner, lab=lab).values_list("goal", flat=True))
    first = spec.goals[0]
    verdicts: dict[str, Verdict] = {}
    for goal in spec.goals:
        verdict = goal.judge(judged)
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


def _reveal(run: Run) -> None:
    """Show one more step of a run by hand; with the last one it ends and is judged."""
    try:
        generation = _generation_of(run.recording)
    except LogitsError as error:
        fail(run, str(error))
        return
    Run.objects.open().filter(pk=run.pk, n_steps__lt=len(generation.steps)).update(n_steps=F("n_steps") + 1)
    run.refresh_from_db(fields=["n_steps"])
    if run.n_steps >= len(generation.steps):
        finish(run)


def _generate(model: str, prompt: str, params: SamplingParams) -> Generation:
    return _generation_of(Recording.objects.of(model, prompt, params))


def _generation_of(recording: Recording) -> Generation:
    generation = recording.generation
    if not generation:
        generation = engine.live(recording).finish()
        recording.save_generation(generation)
    return generation
