"""A recorded run of the toy, played back on the front page."""

from dataclasses import dataclass

from generation import Candidate, Loop, SamplingParams, find_loop
from quizsite.labs import engine
from quizsite.labs.clauses import Setup
from quizsite.labs.panels.strip import Token, per_cent, prompt_tokens, run_token, visible
from quizsite.labs.panels.trace import FILL, Bar, Row


@dataclass(frozen=True)
class Replay:
    """A recorded run to be played back in the page: all tokens, and the bars of every step."""

    prompt: tuple[Token, ...]
    tokens: list[Token]
    steps: list[tuple[int, list[Row]]]
    n_steps: int
    loop: Loop | None
    loop_known: int  # the step at which the loop is long enough to be called one
    text: str


def looping_replay() -> Replay:
    """Return the toy's greedy run, long enough to be seen looping; computed by the first who asks."""
    params = SamplingParams(max_new_tokens=18)
    recording = engine.record(Setup("sky", "the sky is", params))
    generation = recording.generation
    assert generation
    ids = generation.token_ids
    known = next((n for n in range(1, len(ids) + 1) if find_loop(ids[:n])), len(ids))
    longest = max(step.stages[0].top[0].probability for step in generation.steps)  # one scale for all steps
    return Replay(
        prompt=prompt_tokens(recording.setup),
        tokens=[run_token(step, generation.loop) for step in generation.steps],
        steps=[
            (step.step, [_raw_row(row, row.token_id == step.token_id, longest) for row in step.stages[0].top])
            for step in generation.steps
        ],
        n_steps=len(ids),
        loop=generation.loop,
        loop_known=known,
        text=generation.text,
    )


def _raw_row(candidate: Candidate, is_chosen: bool, longest: float) -> Row:
    role = "chosen" if is_chosen else "kept"
    width = per_cent(candidate.probability / longest * FILL)
    bar = Bar(width, f"{candidate.probability:.3f}", role)
    return Row(candidate.token_id, visible(candidate.token), [bar], is_chosen, is_out=False)
