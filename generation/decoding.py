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
from generation.repetition import Loop, LoopFinder, seq_rep_n
from generation.sampling import (
    Applied,
    Candidate,
    Stage,
    apply_settings,
    choose,
    uniform,
)
from generation.stages import Floats, most_likely
from generation.tokenizer import IncrementalDecoder, StopMatcher

LN2 = float(np.log(2))
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
        Token ids to take at given steps, counted from 1, in place of the drawn ones. The draws of the
        other steps stay as they were.

    Returns
    -------
    Generation
        The value of the generator once it is exhausted. Closing it earlier stops the run.

    Raises
    ------
    PromptError
        For a prompt that cannot be run, before anything is.
    LogitsError
        If the model's logits allow no choice, or a forced token has no probability; it names the step.
    """
    prompt_ids = encode_prompt(model, prompt, params.max_new_tokens)
    forced = _checked_forced(model, forced or {})
    eos_token_id = getattr(model, "eos_token_id", None)
    kv_cache = model.new_cache() if params.use_kv_cache else None
    text, stop = IncrementalDecoder(model.decode, prompt_ids), StopMatcher(params.stop)
    loops, loop = LoopFinder(), None
    output_ids: list[int] = []
    steps: list[Step] = []
    seconds: list[float] = []
    multiply_adds = 0
    finish_reason: FinishReason | None = None

    while finish_reason is None:
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
        raw, last, u = stages[0], stages[-1], uniform(params.seed, number)
        if number in forced:
            token_id = forced[number]
            if raw.logits[token_id] == -np.inf:
                raise LogitsError(f"step {number}: token {token_id} has no probability, so it cannot be forced")
        elif last.kept:
            token_id = choose(last, u)
        else:
            finish_reason = "no_candidate"
            break

        output_ids.append(token_id)
        loop = loops.add(token_id)
        piece = stop.add(text.add(token_id))
        if token_id == eos_token_id:
            finish_reason = "eos"
        elif stop.is_stopped:
            finish_reason = "stop"
        elif number == params.max_new_tokens:
            finish_reason = "length"
        if finish_reason in {"eos", "length"}:
            piece += stop.add(text.finish()) + stop.finish()
        log_prob = float(raw.logits[token_id] - raw.total)  # nats
        step = Step(
            step=number,
            input_length=len(ids),
            computed_positions=len(new_ids),
            token_id=token_id,
            token=_token(model, token_id),
            piece=piece,
            probability=float(np.exp(log_prob)),
            final_probability=float(np.exp(last.logits[token_id] - last.total)) if last.kept else 0.0,
            surprisal=-log_prob / LN2,
            entropy=_entropy(raw),
            rank=_rank(raw.logits, token_id),
            u=u,
            forced=number in forced,
            notes=tuple(notes),
            stages=tuple(_recorded(model, stage) for stage in stages),
        )
        steps.append(step)
        yield step

    held = stop.add(text.finish()) + stop.finish()  # only where there was no last token to release it
    return Generation(
        model=_name(model),
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(output_ids),
        text="".join(step.piece for step in steps) + held,
        steps=tuple(steps),
        finish_reason=finish_reason,
        forward_passes=len(seconds),
        prefill_seconds=seconds[0],
        decode_seconds=sum(seconds[1:]),
        multiply_adds=multiply_adds or None,
        loop=None if finish_reason == "eos" else loop,
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


def _checked_forced(model: Model, forced: Mapping[int, int]) -> dict[int, int]:
    for step, token_id in forced.items():
        if step < 1:
            raise PromptError(f"steps count from 1, got a token for step {step}")
        if not 0 <= token_id < model.vocab_size:
            raise PromptError(f"token ids must be between 0 and {model.vocab_size - 1}, got {token_id}")
    return dict(forced)


def _recorded(model: Model, stage: Applied) -> Stage:
    top = most_likely(stage.logits, TOP_ROWS)
    probs = np.exp(stage.logits[top] - stage.total)
    return Stage(
        name=stage.name,
        kept=stage.kept,
        dropped_mass=stage.dropped_mass,
        top=tuple(Candidate(int(i), _token(model, int(i)), float(p)) for i, p in zip(top, probs, strict=True)),
    )


def _entropy(stage: Applied) -> float:
    """Return the entropy in bits: −Σ p · log₂ p."""
    log_probs = stage.logits - stage.total
    probs = np.exp(log_probs)
    if stage.kept < len(probs):
        log_probs[probs == 0] = 0  # a token at -inf takes no part
    return float(-np.dot(probs, log_probs) / LN2)


def _rank(logits: Floats, token_id: int) -> int:
    above = np.count_nonzero(logits > logits[token_id])
    ties_before = np.count_nonzero(logits[:token_id] == logits[token_id])
    return 1 + int(above) + int(ties_before)


def _name(model: Model) -> str:
    return getattr(model, "name", type(model).__name__)


def _token(model: Model, token_id: int) -> str:
    token = getattr(model, "token", None)
    return token(token_id) if token else model.decode([token_id])


def _multiply_adds(model: Model, n_new: int, n_total: int) -> int:
    count = getattr(model, "multiply_adds", None)
    return count(n_new, n_total) if count else 0
