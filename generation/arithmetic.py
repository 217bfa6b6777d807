"""What a run, a chat and a cache cost, by counting: positions, tokens, bytes, prices."""

from decimal import Decimal
from typing import NamedTuple


class TurnTokens(NamedTuple):
    """The tokens of one turn of a chat, by how they are billed."""

    new_input: int
    cached_input: int
    reasoning: int
    answer: int

    @property
    def n_input(self) -> int:
        return self.new_input + self.cached_input

    @property
    def n_output(self) -> int:
        return self.reasoning + self.answer


def forward_positions(n_prompt: int, n_new: int, use_kv_cache: bool = True) -> int:
    """Count the positions that a model computes to write `n_new` tokens after a prompt.

    With a cache each is computed once, and the last token is never fed back: P + N − 1. Without one
    every pass computes the whole sequence again: N·P + N(N − 1)/2.
    """
    if n_new == 0:
        return 0
    if use_kv_cache:
        return n_prompt + n_new - 1
    return n_new * n_prompt + n_new * (n_new - 1) // 2


def kv_bytes_per_token(n_layer: int, n_kv_head: int, head_dim: int, bytes_per_number: int) -> int:
    """Count the bytes that the keys and values of one position take."""
    return 2 * n_layer * n_kv_head * head_dim * bytes_per_number


def chat_tokens(turn: int, n_system: int, n_user: int, n_answer: int) -> int:
    """Count the input tokens sent in one turn of a chat, from 1: the system prompt and all that was said."""
    return n_system + turn * n_user + (turn - 1) * n_answer


def chat_tokens_in_all(n_turns: int, n_system: int, n_user: int, n_answer: int) -> int:
    """Count the input tokens sent over a whole chat; they grow with the square of its length."""
    return n_turns * n_system + n_user * n_turns * (n_turns + 1) // 2 + n_answer * n_turns * (n_turns - 1) // 2


def new_chat_tokens(turn: int, n_system: int, n_user: int, n_answer: int) -> int:
    """Count the input tokens of one turn that a cached prefix does not hold.

    The prefix ends with the last request: that turn's answer comes back as input, too.
    """
    if turn == 1:
        return n_system + n_user
    return n_answer + n_user


def turn_tokens(
    turn: int, n_system: int, n_user: int, n_answer: int, n_reasoning: int = 0, cached_percent: int = 0
) -> TurnTokens:
    """Divide the tokens of one turn of a chat by how they are billed.

    Reasoning is output that nobody is shown, and it is not sent again; the answer is, from the next turn on.

    Parameters
    ----------
    turn : int
        From 1.
    n_system, n_user, n_answer, n_reasoning : int
        Tokens; all but the system prompt come anew in each turn.
    cached_percent : int
        How much of what the request before had sent is read from a prefix cache, 0 … 100.

    Returns
    -------
    TurnTokens
        Whole tokens; a part of one is not cached.
    """
    n_input = chat_tokens(turn, n_system, n_user, n_answer)
    repeated = n_input - new_chat_tokens(turn, n_system, n_user, n_answer)
    cached = repeated * cached_percent // 100
    return TurnTokens(n_input - cached, cached, n_reasoning, n_answer)


def exact_price(n_tokens: int, price_per_million: Decimal) -> Decimal:
    """Return what tokens cost, as one would reckon it on paper; the price is for a million, in any currency."""
    return n_tokens * price_per_million / 1_000_000


def price(n_input: int, n_output: int, input_price: float, output_price: float) -> float:
    """Return what a request costs; prices are for a million tokens, in any currency."""
    return (n_input * input_price + n_output * output_price) / 1e6


def time_to_last_token(time_to_first: float, time_per_token: float, n_new: int) -> float:
    """Return how long an answer takes: the first token, then one step for each other; in one unit of time."""
    return time_to_first + (n_new - 1) * time_per_token
