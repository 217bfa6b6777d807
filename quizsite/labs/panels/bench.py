"""Instruments that work here and now, in this thread: for the validator, which has no shared engine to wait for."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from generation import Generation, Inspection, fingerprint, inspect, load_model, stream
from quizsite.labs.clauses import Setup
from quizsite.labs.panels.kind import Timing

Runner = Callable[[Setup, Mapping[int, int]], Generation]  # runs a setup with tokens taken by hand


class Bench:
    """The instruments over a function that runs a setup."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def record(self, setup: Setup) -> Generation:
        return self.runner(setup, {})

    def time(self, setup: Setup) -> Timing:
        model = load_model(setup.model)
        source = stream(model, setup.encoded_prompt(model), setup.params)
        seconds: list[float] = []
        began = perf_counter()
        while True:
            try:
                next(source)
            except StopIteration as end:
                return Timing(end.value, tuple(seconds))
            seconds.append(perf_counter() - began)
            began = perf_counter()

    def inspect(self, model: str, token_ids: Sequence[int]) -> Inspection:
        return inspect(load_model(model), token_ids)

    def fingerprint(self, model: str) -> str:
        return fingerprint(load_model(model))
