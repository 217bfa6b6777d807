"""The loop: predict, choose, append, repeat; and the record of a run."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from generation.errors import LogitsError, PromptError
from generation.kv_cache import KVCache
from generation.params import SamplingParams
from generation.repetition import Loop, find_loop, seq_rep_n
from generation.sampling import (
    Applied,
    Candidate,
    Floats,
    Stage,
    apply_settings,
    descending,
    draw,
    softmax,
    survivors,
    uniform,
)

TOP_ROWS = 10  # tokens recorded of each stage

FinishReason = Literal["eos", "stop", "length", "no_candidate", "cancelled", "deadline"]


class Model(Protocol):
    """What the loop needs of a model.

    A model may also have a `name`, an `eos_token_id`, a `start_token_id` for empty prompts, `token(id)`
    (the vocabulary's entry) and `multiply_adds(n_new, n_total)`.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def context_length(self) -> int: ...
    def encode(self, text: str, control: bool = False) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def new_cache(self) -> KVCache: ...
    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.floating]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of the model and the token that came of it."""

    step: int  # from 1
    input_length: int  # tokens that the model saw
    computed_positions: int  # positions that this pass really processed
    token_id: int
    token: str  # the vocabulary's entry
    piece: str  # the exact text that it adds
    probability: float  # raw, before any setting
    final_probability: float  # under the settings
    surprisal: float  # bits, raw
    entropy: float  # bits, raw
    rank: int  # 1 is the most likely, raw
    u: float
    forced: bool
    notes: tuple[str, ...]  # settings that had no effect here, with the reason
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished run."""

    model: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]  # the end token included
    text: str  # control tokens excluded
    steps: tuple[Step, ...]
    finish_reason: FinishReason
    forward_passes: int
    prefill_seconds: float
    decode_seconds: float
    multiply_adds: int | None  # None where the model does not count them
    loop: Loop | None
    seq_rep_4: float


def generate(
    model: Model,
    prompt: str | Sequence[int],
    params: SamplingParams,
    forced: Mapping[int, int] | None = None,
) -> Generation:
    """Run to the end and return the record. See `stream`."""
    steps = stream(model, prompt, params, forced)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            generation: Generation = end.value
            return generation


def stream(
    model: Model,
    prompt: str | Sequence[int],
    params: SamplingParams,
    forced: Mapping[int, int] | None = None,
) -> Generator[Step, None, Generation]:
    """Run the loop, giving out each step as it is made.

    Parameters
    ----------
    model : Model
    prompt : str or sequence of int
        Text, in which control tokens are ordinary words, or token ids.
    params : SamplingParams
    forced : mapping of int to int, optional
        Token ids to take at given steps, counted from 1, in place of the drawn ones.

    Returns
    -------
    Generation
        The value of the generator once it is exhausted. Closing it earlier stops the run.

    Raises
    ------
    PromptError
        For a prompt that cannot be run, before anything is.
    LogitsError
        If the model's logits allow no choice; the message names the step.
    """
    prompt_ids = encode_prompt(model, prompt, params.max_new_tokens)
    forced = dict(forced or {})
    eos_token_id = getattr(model, "eos_token_id", None)
    kv_cache = model.new_cache() if params.use_kv_cache else None
    output_ids: list[int] = []
    steps: list[Step] = []
    seconds: list[float] = []
    multiply_adds = 0
    prompt_text = text = model.decode(prompt_ids)
    finish_reason: FinishReason = "length"

    while len(steps) < params.max_new_tokens:
        number = len(steps) + 1
        ids = [*prompt_ids, *output_ids]
        new_ids = ids if kv_cache is None else ids[len(kv_cache) :]
        began = perf_counter()
        logits = model.forward(new_ids, kv_cache)
        seconds.append(perf_counter() - began)
        multiply_adds += _multiply_adds(model, len(new_ids), len(ids))

        try:
            stages, notes = apply_settings(logits, params, prompt_ids, output_ids)
        except LogitsError as error:
            raise LogitsError(f"step {number}: {error}") from None
        u = uniform(params.seed, number)
        candidates, probs = survivors(stages[-1].logits)
        token_id = forced.get(number, int(candidates[draw(probs, u)]))

        output_ids.append(token_id)
        before, text = text, model.decode([*prompt_ids, *output_ids])
        raw = stages[0].logits
        raw_probs = softmax(raw)
        probability = float(raw_probs[token_id])
        positive = raw_probs[raw_probs > 0]
        step = Step(
            step=number,
            input_length=len(ids),
            computed_positions=len(new_ids),
            token_id=token_id,
            token=_token(model, token_id),
            piece=text[len(before) :],
            probability=probability,
            final_probability=float(probs[candidates == token_id].sum()),
            surprisal=_bits(probability),
            entropy=float(-(positive * np.log2(positive)).sum()),
            rank=_rank(raw, token_id),
            u=u,
            forced=number in forced,
            notes=tuple(notes),
            stages=tuple(_recorded(model, stage) for stage in stages),
        )
        steps.append(step)
        yield step
        if token_id == eos_token_id:
            finish_reason = "eos"
            break

    return Generation(
        model=_name(model),
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(output_ids),
        text=text[len(prompt_text) :],
        steps=tuple(steps),
        finish_reason=finish_reason,
        forward_passes=len(steps),
        prefill_seconds=seconds[0],
        decode_seconds=sum(seconds[1:]),
        multiply_adds=multiply_adds or None,
        loop=None if finish_reason == "eos" else find_loop(output_ids),
        seq_rep_4=seq_rep_n(output_ids, 4),
    )


def encode_prompt(model: Model, prompt: str | Sequence[int], max_new_tokens: int) -> list[int]:
    """Return the ids of a prompt that can be run, or raise the PromptError that says why not."""
    prompt_ids = model.encode(prompt) if isinstance(prompt, str) else [int(i) for i in prompt]
    if not prompt_ids:
        start_token_id = getattr(model, "start_token_id", None)
        if start_token_id is None:
            raise PromptError(f"the prompt is empty, and {_name(model)} has no start token: give it at least one word")
        prompt_ids = [start_token_id]
    outside = [i for i in prompt_ids if not 0 <= i < model.vocab_size]
    if outside:
        raise PromptError(f"token ids must be between 0 and {model.vocab_size - 1}, got {outside[0]}")
    if len(prompt_ids) + max_new_tokens > model.context_length:
        raise PromptError(
            f"a prompt of {len(prompt_ids)} tokens and {max_new_tokens} new ones do not fit "
            f"into the context of {model.context_length}"
        )
    return prompt_ids


def _recorded(model: Model, stage: Applied) -> Stage:
    probs = softmax(stage.logits)
    kept = int(np.isfinite(stage.logits).sum())
    top = (int(i) for i in descending(stage.logits)[: min(kept, TOP_ROWS)])
    return Stage(
        name=stage.name,
        kept=kept,
        dropped_mass=stage.dropped_mass,
        top=tuple(Candidate(i, _token(model, i), float(probs[i])) for i in top),
    )


def _rank(logits: Floats, token_id: int) -> int:
    above = logits > logits[token_id]
    ties_before = logits[:token_id] == logits[token_id]
    return 1 + int(above.sum()) + int(ties_before.sum())


def _bits(probability: float) -> float:
    return float(-np.log2(probability)) if probability > 0 else float("inf")


def _name(model: Model) -> str:
    return getattr(model, "name", type(model).__name__)


def _token(model: Model, token_id: int) -> str:
    token = getattr(model, "token", None)
    return token(token_id) if token else model.decode([token_id])


def _multiply_adds(model: Model, n_new: int, n_total: int) -> int:
    count = getattr(model, "multiply_adds", None)
    return count(n_new, n_total) if count else 0
