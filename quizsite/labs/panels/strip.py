"""The strip of tokens that most panels show: the prompt, and what the run has made of it so far."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from generation import (
    Loop,
    ModelUnavailable,
    SamplingParams,
    Step,
    encode_prompt,
    find_loop,
    load_model,
    pieces,
    token_name,
)
from quizsite.labs.clauses import Setup

NUMBER_EACH_FROM = 3  # shorter copies of a loop are numbered 1, 5, 10 …, so that the words stay readable
SPACE = "·"


@dataclass(frozen=True)
class Token:
    """A token in the strip."""

    number: int  # its step; 0 in the prompt
    text: str
    is_control: bool = False
    is_forced: bool = False
    tint: str = ""  # "a" or "b" inside a loop
    copy: int = 0  # at the first token of a loop's copy: its number
    is_chosen: bool = False
    is_changed: bool = False  # where two runs part

    @property
    def spoken(self) -> str:
        """What a screen reader says where there is nothing to be seen."""
        return "" if self.text.strip() else "line end" if "\n" in self.text else "space"


def prompt_tokens(setup: Setup) -> tuple[Token, ...]:
    """Return the prompt as the model reads it, or as it was typed where the model is not here any more."""
    try:
        return _prompt_tokens(setup.model, json.dumps([setup.prompt, setup.chat]))
    except ModelUnavailable:
        return (Token(0, setup.asked),)


@lru_cache(maxsize=256)
def _prompt_tokens(model_name: str, asked: str) -> tuple[Token, ...]:
    prompt, chat = json.loads(asked)
    model = load_model(model_name)
    setup = Setup(model_name, prompt, SamplingParams(), chat)
    ids = encode_prompt(model, setup.encoded_prompt(model), 1)
    return tuple(
        Token(0, piece or token_name(model, token_id), is_control=not piece)
        for token_id, piece in zip(ids, pieces(model, ids), strict=True)
    )


def loop_of(steps: Sequence[Step]) -> Loop | None:
    """Return the loop at the end of a run as far as it has come; one that ended by itself has none."""
    return find_loop([step.token_id for step in steps])


def run_tokens(steps: Sequence[Step], loop: Loop | None, chosen: int = 0, is_open: bool = False) -> list[Token]:
    """Return the tokens of a run; what may be a stop string, or was one, keeps its place and not its text."""
    tokens, n_shown, n_made = [], sum(len(step.shown) for step in steps), 0
    for step in steps:
        n_made += len(step.piece)
        token = run_token(step, loop, chosen)
        if step.piece and n_made > n_shown:
            token = replace(token, text="…" if is_open else "stop", is_control=True)
        tokens.append(token)
    return tokens


def run_token(step: Step, loop: Loop | None, chosen: int = 0) -> Token:
    """Return a step's token, tinted if it stands in the loop."""
    text, is_control = (step.piece, False) if step.piece else (step.token, True)
    index = step.step - 1
    token = Token(step.step, text, is_control, step.forced, is_chosen=step.step == chosen)
    if loop is None or index < loop.start:
        return token
    copy, place = divmod(index - loop.start, loop.period)
    numbered = place == 0 and (loop.period >= NUMBER_EACH_FROM or copy == 0 or (copy + 1) % 5 == 0)
    return replace(token, tint="ab"[copy % 2], copy=copy + 1 if numbered else 0)


def visible(token: str) -> str:
    """Return a token in which spaces and line ends can be seen."""
    return token.replace(" ", SPACE).replace("\n", "↵") or SPACE


def per_cent(value: float) -> str:
    """Write a place or a width in a drawing."""
    return f"{value:.1f}%"
