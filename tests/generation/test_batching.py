"""Many runs in one engine: turns, the queue, what ends a run and what leaves the others alone."""

import threading
import time
from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from generation import (
    EngineBusy,
    Job,
    KVCache,
    Limits,
    LogitsError,
    PromptError,
    SamplingParams,
    SettingError,
    SharedEngine,
    generate,
    load_model,
)
from generation.models.sky import SkyModel

PROMPT = "the sky is"


class Gate(SkyModel):
    """The toy, whose passes wait until they are let through; it notes whose turn it was by the prompt's length."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[int] = []
        self.permits = threading.Semaphore(0)

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        assert self.permits.acquire(timeout=10)
        logits = super().forward(token_ids, kv_cache)
        self.passes.append(0 if kv_cache is None else len(kv_cache))
        return logits


class Breaking(SkyModel):
    """The toy, whose pass over six positions and more gives NaN."""

    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.float64]:
        logits = super().forward(token_ids, kv_cache)
        return logits * np.nan if kv_cache is not None and len(kv_cache) > 5 else logits


def settings(n_tokens: int = 12, seed: int = 0) -> SamplingParams:
    return SamplingParams(temperature=0.05, max_new_tokens=n_tokens, seed=seed)


def until(condition: object, seconds: float = 10) -> None:
    """Wait for what another thread does."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def all_over(engine: SharedEngine, jobs: Sequence[Job]) -> None:
    threads = [threading.Thread(target=engine.wait, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert all(job.is_over for job in jobs)


def test_every_run_among_many_is_what_it_is_alone():
    sky, engine = load_model("sky"), SharedEngine(Limits(n_seats=4, n_queue=40))
    jobs = [engine.job(owner, sky, PROMPT, settings(24, seed=owner)) for owner in range(32)]

    all_over(engine, jobs)

    for owner, job in enumerate(jobs):
        alone = generate(sky, PROMPT, settings(24, seed=owner))
        assert job.generation
        assert (job.generation.token_ids, job.generation.text) == (alone.token_ids, alone.text)
        assert job.steps == list(alone.steps)


def test_owners_take_turns_however_many_runs_one_of_them_has():
    gate, engine = Gate(), SharedEngine(Limits(n_seats=2))
    greedy = [engine.job("greedy", gate, PROMPT, settings(6, seed)) for seed in range(3)]
    modest = engine.job("modest", gate, PROMPT, settings(6, seed=9))
    threads = [threading.Thread(target=engine.wait, args=[job]) for job in (*greedy, modest)]
    for thread in threads:
        thread.start()
    until(lambda: engine.load().n_seated == 2)

    for _ in range(7):
        gate.permits.release()
    until(lambda: len(gate.passes) == 7)

    until(lambda: sum(len(job.steps) for job in greedy) + len(modest.steps) == 7)
    assert len(modest.steps) >= 3  # every other pass is its own
    assert sum(bool(job.steps) for job in greedy) == 1  # its own one after another
    for _ in range(40):
        gate.permits.release()
    for thread in threads:
        thread.join(timeout=10)
    assert [(len(job.steps), job.error, job.is_overdue) for job in (*greedy, modest) if not job.generation] == []


def test_a_place_in_the_queue_is_told_and_moves_up():
    gate, engine = Gate(), SharedEngine(Limits(n_seats=1, n_queue=3))
    jobs = [engine.job(owner, gate, PROMPT, settings(2)) for owner in "abcd"]
    threads = []
    for job in jobs:
        threads.append(threading.Thread(target=engine.wait, args=[job]))
        threads[-1].start()
        until(lambda job=job: job.owner in engine._wanted)
    until(lambda: engine.load().n_seated == 1)

    assert [engine.place(job) for job in jobs] == [0, 1, 2, 3]
    with pytest.raises(EngineBusy, match="3 others are waiting, and more cannot queue"):
        engine.check_room("e")
    engine.check_room("a")  # who is in already may go on
    gate.permits.release(2)
    until(lambda: engine.place(jobs[1]) == 0)
    assert [engine.place(job) for job in jobs] == [0, 0, 1, 2]
    gate.permits.release(20)
    for thread in threads:
        thread.join(timeout=10)


def test_who_queues_is_woken_when_the_queue_moves():
    gate, engine = Gate(), SharedEngine(Limits(n_seats=1))
    first, second = (engine.job(owner, gate, PROMPT, settings(2)) for owner in "ab")
    woken = threading.Event()
    waiting = threading.Thread(target=engine.wait, args=[first])
    waiting.start()
    until(lambda: engine.load().n_seated == 1)

    with engine.watched(second, woken.set):
        assert engine.place(second) == 1
        woken.clear()
        gate.permits.release(2)
        assert woken.wait(timeout=10)
        until(lambda: engine.place(second) == 0)
        gate.permits.release(2)
        until(lambda: second.is_over)
    waiting.join(timeout=10)


def test_a_run_that_nobody_watches_stands_still_and_goes_on_where_it_was():
    gate, engine = Gate(), SharedEngine(Limits())
    job = engine.job("a", gate, PROMPT, settings(8))
    gate.permits.release(100)

    engine.wait(job, 3)
    made = len(job.steps)
    time.sleep(0.05)

    assert 3 <= made <= len(job.steps) <= made + 1  # the pass under way
    engine.wait(job)
    assert job.generation
    assert gate.passes == list(range(3, 11))  # nothing was computed twice


def test_a_fault_in_one_run_touches_no_other():
    engine = SharedEngine(Limits())
    sky = load_model("sky")
    broken = engine.job("a", Breaking(), PROMPT, settings(12))
    forced = engine.job("b", sky, PROMPT, settings(12), {99: 0})
    sound = [engine.job(owner, sky, PROMPT, settings(12, seed=owner)) for owner in range(3)]

    all_over(engine, [broken, forced, *sound])

    assert isinstance(broken.error, LogitsError)
    assert str(broken.error) == "step 4: logits must be numbers, got NaN"
    assert len(broken.steps) == 3
    assert isinstance(forced.error, PromptError)
    assert all(job.generation and job.generation.forward_passes == len(job.steps) for job in sound)
    assert engine.load().kv_bytes == 0


def test_a_run_ends_at_its_deadline_and_keeps_its_steps():
    ticks = count()
    engine = SharedEngine(Limits(seconds=12), clock=lambda: float(next(ticks)))
    job = engine.job("a", load_model("sky"), PROMPT, settings(200))

    engine.wait(job)

    assert job.is_overdue
    assert job.generation is None
    assert 0 < len(job.steps) < 200
    assert engine.load().kv_bytes == 0


def test_a_run_over_the_cap_is_refused_before_anything_is_computed():
    engine = SharedEngine(Limits(max_new_tokens=100, kv_bytes=10_000))
    sky = load_model("sky")

    with pytest.raises(SettingError, match="max_new_tokens must be at most 100 here, got 101"):
        engine.job("a", sky, PROMPT, settings(101))
    with pytest.raises(PromptError, match="3 tokens and 12 new ones need 0 MB of KV cache, and this engine has 0 MB"):
        engine.job("a", sky, PROMPT, settings(12))
    with pytest.raises(PromptError, match="unknown word 'green'"):
        engine.job("a", sky, "green", settings(12))


def test_memory_is_bounded_and_a_paused_run_gives_way_and_is_computed_again_to_the_same_steps():
    sky = load_model("sky")
    one = Job("x", sky, [0], settings(12), {}).kv_bytes
    engine = SharedEngine(Limits(n_seats=4, kv_bytes=one))
    paused = engine.job("a", sky, PROMPT, settings(200, seed=3))
    engine.wait(paused, 3)
    assert engine.load().kv_bytes == one
    steps = list(paused.steps)

    other = engine.job("b", sky, PROMPT, settings(12))
    engine.wait(other)

    assert other.generation
    engine.wait(paused)
    assert paused.generation
    assert paused.steps[: len(steps)] == steps
    assert paused.steps == list(generate(sky, PROMPT, settings(200, seed=3)).steps)


def test_runs_wait_for_memory_and_all_end():
    sky = load_model("sky")
    one = Job("x", sky, [0], settings(12), {}).kv_bytes
    engine = SharedEngine(Limits(n_seats=4, kv_bytes=2 * one))
    jobs = [engine.job(owner, sky, PROMPT, settings(30, seed=owner)) for owner in range(8)]

    all_over(engine, jobs)

    assert all(job.generation for job in jobs)


def test_what_stood_still_for_long_gives_its_memory_back():
    gate, engine = Gate(), SharedEngine(Limits(idle_seconds=0.05))
    gate.permits.release(100)
    job = engine.job("a", gate, PROMPT, settings(50))

    engine.wait(job, 2)

    until(lambda: engine.load().n_kept == 0)
    assert len(job.steps) < 50
    engine.wait(job)
    assert job.generation


def test_two_who_watch_one_run_have_it_computed_once():
    gate, engine = Gate(), SharedEngine(Limits())
    gate.permits.release(100)
    job = engine.job("a", gate, PROMPT, settings(20))

    all_over(engine, [job, job])

    assert gate.passes == list(range(3, 23))


def test_a_call_between_two_steps_gives_its_result_or_its_error():
    engine = SharedEngine(Limits())

    assert engine.call(lambda: threading.current_thread().name) != threading.current_thread().name
    with pytest.raises(ZeroDivisionError):
        engine.call(lambda: 1 // 0)
    assert engine.call(lambda: "goes on") == "goes on"


def test_who_leaves_is_woken_and_waits_no_more():
    engine, gate, left = SharedEngine(Limits()), Gate(), threading.Event()
    job = engine.job("ada", gate, PROMPT, settings())
    waiting = threading.Thread(target=engine.wait, args=[job], kwargs={"is_left": left.is_set})
    waiting.start()
    until(waiting.is_alive)

    left.set()
    engine.wake()

    waiting.join(timeout=10)
    assert not waiting.is_alive()
    gate.permits.release(100)
