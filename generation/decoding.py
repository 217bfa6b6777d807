"""The loop: predict, choose, append, repeat."""

import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from generation.errors import LogitsError, PromptError
from generation.kv_cache import KVCache
from generation.params import SamplingParams
from generation.records import Candidate, FinishReason, Generation, Stage, Step
from generation.repetition import LoopFinder, seq_rep_n
from generation.sampling import Applied, apply_settings, choose, uniform
from generation.stages import Floats, most_likely
from generation.tokenizer import IncrementalDecoder, StopMatcher

LN2 = float(np.log(2))
TOP_ROWS = 10  # tokens recorded of each stage


class Model(Protocol):
    """What the loop needs of a model.

    A model may also have a `name`, an `eos_token_id`, a `start_token_id` for empty prompts, `token(id)`
    (the vocabulary's entry), `token_bytes(id)` and `multiply_adds(n_new, n_total)`; for `encode_chat` a
    `chat_template` and its `tokenizer`; for the labs that look inside, `inspect(token_ids)` and `fingerprint()`.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def context_length(self) -> int: ...
    def encode(self, text: str, control: bool = False) -> list[int]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def new_cache(self) -> KVCache: ...
    def forward(self, token_ids: Sequence[int], kv_cache: KVCache | None = None) -> NDArray[np.floating]: ...


def generate(
    model: Model,
    prompt: str | Sequence[int],
    params: SamplingParams,
    forced: Mapping[int, int] | None = None,
) -> Generation:
    """Run to the end and return the record. See `stream`."""
    return run(stream(model, prompt, params, forced))


def run(steps: Generator[Step, None, Generation], see: Callable[[Step], object] = lambda step: None) -> Generation:
    """Take a stream to its end, showing each step to `see`, and return the record."""
    while True:
        try:
            see(next(steps))
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
    forced = _checked_forced(model, forced or {}, params.max_new_tokens)
    eos_token_id = getattr(model, "eos_token_id", None)
    kv_cache = model.new_cache() if params.use_kv_cache else None
    text, stop = IncrementalDecoder(model.decode, prompt_ids), StopMatcher(params.stop)
    loops, loop = LoopFinder(), None
    output_ids: list[int] = []
    steps: list[Step] = []
    seconds: list[float] = []
    multiply_adds = 0
    finish_reason: FinishReason | None = None
    explanation = held = ""

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
        u = uniform(params.seed, number)
        if number in forced:
            token_id = forced[number]
            if stages[0].logits[token_id] == -np.inf:
                raise LogitsError(f"step {number}: token {token_id} has no probability, so it cannot be forced")
        elif stages[-1].kept:
            token_id = choose(stages[-1], u)
        else:
            finish_reason, held = "no_candidate", stop.add(text.finish()) + stop.finish()
            explanation = f"no_repeat_ngram_size {params.no_repeat_ngram_size} bans every token that was left"
            break

        output_ids.append(token_id)
        loop = loops.add(token_id)
        piece = "" if token_id == eos_token_id else text.add(token_id)
        shown = stop.add(piece)
        if token_id == eos_token_id:
            finish_reason = "eos"
        elif stop.is_stopped:
            finish_reason = "stop"
        elif number == params.max_new_tokens:
            finish_reason = "length"
        if finish_reason in {"eos", "length"}:
            rest = text.finish()
            piece, shown = piece + rest, shown + stop.add(rest) + stop.finish()
        log_prob = stages[0].log_prob(token_id)
        step = Step(
            step=number,
            input_length=len(ids),
            computed_positions=len(new_ids),
            token_id=token_id,
            token=token_name(model, token_id),
            piece=piece,
            shown=shown,
            probability=float(np.exp(log_prob)),
            final_probability=float(np.exp(stages[-1].log_prob(token_id))) if stages[-1].kept else 0.0,
            surprisal=max(0.0, -log_prob / LN2),
            entropy=_entropy(stages[0]),
            rank=_rank(stages[0].logits, token_id),
            u=u,
            forced=number in forced,
            notes=tuple(notes),
            stages=tuple(_recorded(model, stage) for stage in stages),
        )
        steps.append(step)
        yield step

    return Generation(
        model=_name(model),
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(output_ids),
        text="".join(step.shown for step in steps) + held,
        steps=tuple(steps),
        finish_reason=finish_reason,
        explanation=explanation,
        forward_passes=len(seconds),
        prefill_seconds=seconds[0],
        decode_seconds=sum(seconds[1:]),
        multiply_adds=multiply_adds or None,
        loop=loop,
        seq_rep_4=seq_rep_n(output_ids, 4),
    )


def encode_prompt(model: Model, prompt: str | Sequence[int], max_new_tokens: int) -> list[int]:
    """Return the ids of a prompt that can be run, or raise the PromptError that says why not."""
    try:
        prompt_ids = model.encode(prompt) if isinstance(prompt, str) else [operator.index(i) for i in prompt]
    except TypeError:
        raise PromptError("a prompt must be text or whole numbers") from None
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


def _checked_forced(model: Model, forced: Mapping[int, int], max_new_tokens: int) -> dict[int, int]:
    checked = {}
    for step, token_id in forced.items():
        try:
            at, taken = operator.index(step), operator.index(token_id)
        except TypeError:
            raise PromptError(f"a step and its token id must be whole numbers, got {step!r}: {token_id!r}") from None
        if not 1 <= at <= max_new_tokens:
            raise PromptError(f"steps are from 1 to {max_new_tokens}, got a token for step {at}")
        if not 0 <= taken < model.vocab_size:
            raise PromptError(f"token ids must be between 0 and {model.vocab_size - 1}, got {taken}")
        checked[at] = taken
    return checked


def _recorded(model: Model, stage: Applied) -> Stage:
    top = most_likely(stage.logits, TOP_ROWS)
    return Stage(
        name=stage.name,
        kept=stage.kept,
        dropped_mass=stage.dropped_mass,
        top=tuple(
            Candidate(int(i), token_name(model, int(i)), float(p)) for i, p in zip(top, stage.probs(top), strict=True)
        ),
    )


def _entropy(stage: Applied) -> float:
    """Return the entropy in bits: −Σ p · log₂ p."""
    log_probs = stage.logits - (stage.largest + np.log(stage.mass))
    probs = np.exp(log_probs)
    if stage.kept < len(probs):
        log_probs[probs == 0] = 0  # a token at -inf takes no part
    return max(0.0, float(-np.dot(probs, log_probs) / LN2))


def _rank(logits: Floats, token_id: int) -> int:
    above = np.count_nonzero(logits > logits[token_id])
    ties_before = np.count_nonzero(logits[:token_id] == logits[token_id])
    return 1 + int(above) + int(ties_before)


def _name(model: Model) -> str:
    return getattr(model, "name", type(model).__name__)


def pieces(model: Model, token_ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds to those before it; empty for a control token, or half a character."""
    text = IncrementalDecoder(model.decode, [])
    return [text.add(token_id) for token_id in token_ids]


def token_name(model: Model, token_id: int) -> str:
    """Return the vocabulary's entry, readable."""
    token = getattr(model, "token", None)
    return token(token_id) if token else model.decode([token_id])


def token_bytes(model: Model, token_id: int) -> bytes:
    """Return the bytes of text that a token stands for; they may be a part of a character, or none.

    Parameters
    ----------
    model : Model
        One without `token_bytes` must decode every token to whole characters.
    token_id : int

    Returns
    -------
    bytes
        UTF-8; those of a text's tokens, joined, are the text, but for the spaces that the toy drops.
        A control token has none.
    """
    of = getattr(model, "token_bytes", None)
    return of(token_id) if of else model.decode([token_id]).encode()


def _multiply_adds(model: Model, n_new: int, n_total: int) -> int:
    count = getattr(model, "multiply_adds", None)
    return count(n_new, n_total) if count else 0
