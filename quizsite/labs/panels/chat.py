"""Chat: a conversation, what of it is sent at each turn, and what has fallen out of the window."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from generation import Generation, PromptError, encode_chat, load_model
from quizsite.labs.clauses import Chat, Inputs, Outcome, Setup
from quizsite.labs.panels.chart import Chart, Series
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import Token, prompt_tokens, run_tokens

MOST_MESSAGES = 40  # before the one that is sent now
LONGEST = 2000  # letters of a message
LONGEST_TALK = 20_000  # letters of all of them
SPEAKERS = ("user", "assistant")  # in turn
KEPT_TURNS = 2  # turns before this one that compaction leaves word by word
SUMMARY_WORDS = 10  # of each older message


class Earlier(forms.HiddenInput):
    """The messages so far, to be read, and sent again with the next one."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string("panels/chat.html#earlier", {"name": name, "chat": value, "value": json.dumps(value)})


class EarlierField(forms.Field):
    """A conversation up to the last answer: messages of user and assistant in turn, as JSON where it is posted."""

    widget = Earlier

    def to_python(self, value: Any) -> Chat:
        try:
            messages = (json.loads(value) if value else []) if isinstance(value, str) else value or []
        except (ValueError, RecursionError):
            raise ValidationError("The conversation so far must be JSON.") from None
        if not isinstance(messages, list) or len(messages) % 2:
            raise ValidationError("The conversation so far must be a list of messages, each with its answer.")
        if len(messages) > MOST_MESSAGES:
            raise ValidationError(f"A conversation has at most {MOST_MESSAGES // 2 + 1} turns here. Start a new one.")
        chat = [_checked(message, SPEAKERS[number % 2]) for number, message in enumerate(messages)]
        n_letters = sum(len(message["content"]) for message in chat)
        if n_letters > LONGEST_TALK:
            raise ValidationError(
                f"A conversation has at most {LONGEST_TALK:,} letters here, this one {n_letters:,}. Start a new one."
            )
        return chat

    def prepare_value(self, value: Any) -> Chat:
        try:
            return self.to_python(value)
        except ValidationError:
            return []


def _checked(message: object, role: str) -> dict[str, str]:
    if not isinstance(message, dict) or set(message) != {"role", "content"} or message["role"] != role:
        raise ValidationError("Messages must have a role and a content, user and assistant in turn.")
    content = message["content"]
    if not isinstance(content, str) or len(content) > LONGEST or not _is_storable(content):
        raise ValidationError(f"A message must be text of at most {LONGEST:,} letters.")
    return {"role": role, "content": content}


def _is_storable(text: str) -> bool:
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)


class ChatInputs(PanelInputs):
    earlier = EarlierField(label="Conversation so far", required=False, initial=[])
    message = forms.CharField(
        label="Your message",
        max_length=LONGEST,
        initial="My favourite fruit is mango.",
        error_messages={"required": "Write a message to be sent."},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    system = forms.CharField(
        label="System message",
        required=False,
        max_length=LONGEST,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Left empty, the template may write its own.",
    )
    window = forms.IntegerField(
        label="Window, tokens",
        min_value=40,
        max_value=1000,
        initial=1000,
        help_text="Whole turns drop out until the rest fits, the oldest first; the system message goes last.",
    )
    cache = forms.BooleanField(label="Prefix cache", required=False)
    compaction = forms.BooleanField(label="Compaction", required=False)


class Turn(NamedTuple):
    """What is sent at a turn, in tokens; nothing where its message alone is longer than the window."""

    sent: int
    new: int  # after what the server has read or written before
    plain: int  # sent with all that was said before, whatever the window and compaction


@dataclass(frozen=True)
class Said:
    """A message of the conversation, and what became of it."""

    role: str
    text: str
    fate: str = ""  # "fell out" or "shortened"; empty where it was sent as it is


@dataclass(frozen=True)
class Talk:
    """A turn of a conversation."""

    said: list[Said]
    answer: list[Token]
    is_open: bool
    sent: list[list[tuple[Token, bool]]]  # line by line, each token with whether it is new
    n_sent: int
    turn: Turn | None
    counters: list[tuple[str, str]]
    words: list[str]
    chart: Chart | None
    problem: str


def conversation(inputs: Inputs) -> Chat:
    """Return all that was said up to the message that is sent now, without the system message."""
    return [*inputs["earlier"], {"role": "user", "content": inputs["message"]}]


def asked(setup: Setup, inputs: Inputs) -> Setup:
    """Send the conversation as far as compaction and window let it through.

    Raises
    ------
    PromptError
    """
    if setup.chat:
        raise PromptError("a lab of the panel chat gives its conversation as the input earlier, not as chat")
    return replace(setup, prompt="", chat=sent_at(setup.model, inputs, len(inputs["earlier"]) + 1))


def sent_at(model: str, inputs: Inputs, n_messages: int) -> Chat:
    """Return what is sent with the last of so many messages.

    Raises
    ------
    PromptError
        If the message alone is longer than the window.
    """
    messages, n_older = conversation(inputs)[:n_messages], n_compacted(inputs, n_messages)
    system = "\n".join(part for part in (inputs["system"], summary(messages[:n_older])) if part)
    head = [{"role": "system", "content": system}] if system else []
    starts = range(n_older, n_messages, 2)

    def fits(start: int) -> bool:
        return len(token_ids(model, head + messages[start:])) <= int(inputs["window"])

    number = bisect_left(starts, True, key=fits)  # the fewer turns, the fewer tokens
    if number < len(starts):
        return head + messages[starts[number] :]
    n_tokens = len(token_ids(model, messages[-1:]))
    if n_tokens > inputs["window"]:
        raise PromptError(
            f"the message alone has {n_tokens} tokens with the template around it, and the window holds "
            f"{inputs['window']}"
        )
    return messages[-1:]


def n_compacted(inputs: Inputs, n_messages: int) -> int:
    """Return how many messages compaction replaces at a turn, from the first on."""
    return max(0, n_messages - 1 - 2 * KEPT_TURNS) if inputs["compaction"] else 0


def summary(messages: Chat) -> str:
    """Return the first words of each message of the user; empty if there is none."""
    firsts = [" ".join(m["content"].split()[:SUMMARY_WORDS]) for m in messages if m["role"] == "user"]
    return f"Earlier the user said: {' / '.join(firsts)}" if firsts else ""


def token_ids(model: str, chat: Chat, is_answered: bool = False) -> list[int]:
    """Return the ids of a conversation, with the turn of the assistant opened unless it has answered."""
    return encode_chat(load_model(model), chat, add_generation_prompt=not is_answered)


def turns_of(model: str, inputs: Inputs) -> list[Turn]:
    """Return what each turn of the conversation sends under these switches, up to this one."""
    messages = conversation(inputs)
    system = [{"role": "system", "content": inputs["system"]}] if inputs["system"] else []
    turns: list[Turn] = []
    known: list[int] = []  # what the server has read or written
    for n_messages in range(1, len(messages) + 1, 2):
        n_plain = len(token_ids(model, system + messages[:n_messages]))
        try:
            sent = sent_at(model, inputs, n_messages)
        except PromptError:
            turns.append(Turn(0, 0, n_plain))
            continue
        ids = token_ids(model, sent)
        turns.append(Turn(len(ids), len(ids) - _n_shared(ids, known), n_plain))
        known = token_ids(model, sent + messages[n_messages : n_messages + 1], is_answered=True)
    return turns


def _n_shared(ids: Sequence[int], known: Sequence[int]) -> int:
    """Return how many ids two sequences have in common at their beginning."""
    pairs = zip(ids, known, strict=False)
    return next((n for n, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(ids), len(known)))


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Count what each turn has sent so far, and what of it was new."""
    turns = turns_of(setup.model, inputs)
    sent, new, plain = (sum(numbers) for numbers in zip(*turns, strict=True))
    return {
        "turns": [list(turn) for turn in turns],
        "n_sent": turns[-1].sent,
        "n_new": turns[-1].new,
        "times_first": round(turns[-1].sent / max(turns[0].sent, 1)),
        "total_sent": sent,
        "total_new": new,
        "total_plain": plain,
        "total_computed": new if inputs["cache"] else sent,
    }


def view(shown: Shown) -> Talk:
    """Lay a turn out: who said what, what of it was sent, and the numbers of all turns."""
    outcome = shown.outcome
    turns = [Turn(*numbers) for numbers in outcome.get("turns", [])]
    tokens = prompt_tokens(shown.setup)
    n_known = turns[-1].sent - turns[-1].new if turns else len(tokens)
    said = [*_system(shown), *_said(shown)]
    return Talk(
        said=said,
        answer=run_tokens(shown.steps, None, is_open=shown.is_open),
        is_open=shown.is_open,
        sent=_lines([(token, number >= n_known) for number, token in enumerate(tokens)]),
        n_sent=len(tokens),
        turn=turns[-1] if turns else None,
        counters=_counters(outcome) if turns else [],
        words=_words(shown, said),
        chart=_chart(turns) if len(turns) > 1 else None,
        problem=outcome.get("problem", ""),
    )


def _system(shown: Shown) -> Iterable[Said]:
    first = shown.setup.chat[0]
    if first["role"] == "system":
        yield Said("system", first["content"])
    elif shown.inputs["system"]:
        yield Said("system", shown.inputs["system"], "fell out")


def _said(shown: Shown) -> Iterable[Said]:
    messages, sent = conversation(shown.inputs), shown.setup.chat
    has_system = sent[0]["role"] == "system"
    first = len(messages) - len(sent) + has_system
    n_shortened = n_compacted(shown.inputs, len(messages)) if has_system else 0
    for number, message in enumerate(messages):
        is_shortened = number < n_shortened and message["role"] == "user"
        fate = "shortened" if is_shortened else "fell out" if number < first else ""
        yield Said(message["role"], message["content"], fate)


def _lines(tokens: Sequence[tuple[Token, bool]]) -> list[list[tuple[Token, bool]]]:
    lines: list[list[tuple[Token, bool]]] = [[]]
    for token, is_new in tokens:
        lines[-1].append((token, is_new))
        if token.text.endswith("\n"):
            lines.append([])
    return [line for line in lines if line]


def _counters(outcome: Outcome) -> list[tuple[str, str]]:
    return [
        ("sent at this turn", f"{outcome['n_sent']:,}"),
        ("of these new", f"{outcome['n_new']:,}"),
        ("sent in all turns", f"{outcome['total_sent']:,}"),
        ("new in all turns", f"{outcome['total_new']:,}"),
        ("computed in all turns", f"{outcome['total_computed']:,}"),
    ]


def _words(shown: Shown, said: Sequence[Said]) -> list[str]:
    words = ["The model keeps nothing between two turns, so this page sends the whole conversation again each time."]
    if any(message.fate == "fell out" for message in said):
        words.append("What fell out is not sent, and the model cannot know it.")
    if shown.inputs["compaction"]:
        words.append(
            f"Compaction leaves the {KEPT_TURNS} turns before this one as they are and puts the first {SUMMARY_WORDS} "
            "words of each older message of yours into the system message. Products have a model write that summary. "
            "It rewrites the beginning, so a prefix cache finds less of it again."
        )
    if shown.inputs["cache"]:
        words.append(
            "With a prefix cache the beginning that was read before is not computed again; it is sent all the same. "
            "The cache is counted here, as a server would use it: this run has computed all of its tokens."
        )
    return words


def _chart(turns: Sequence[Turn]) -> Chart:
    lines = [Series("all sent again", [turn.plain for turn in turns])]
    if any(turn.sent != turn.plain for turn in turns):
        lines.append(Series("sent here", [turn.sent for turn in turns]))
    return Chart(
        name="tokens-sent",
        title="Tokens sent, by turn",
        x_name="turn",
        y_name="tokens",
        x=range(1, len(turns) + 1),
        series=[*lines, Series("new", [turn.new for turn in turns])],
        digits=0,
    )


def next_inputs(shown: Shown) -> Inputs:
    """Offer the next turn: what was said and answered so far, and room for another message."""
    assert shown.generation
    answer = shown.generation.text[:LONGEST].replace("\0", "")
    return {"earlier": [*conversation(shown.inputs), {"role": "assistant", "content": answer}], "message": ""}


KIND = Kind(
    name="chat",
    title="Chat: what is sent at each turn",
    about="A conversation, and all of it that is sent again at each turn, until the window is full.",
    view=view,
    inputs=ChatInputs,
    asked=asked,
    after=after,
    settings=("temperature", "top_p", "max_new_tokens", "seed"),
    asks_prompt=False,
    appends=True,
    next_inputs=next_inputs,
    fresh_words="New conversation",
    open_start={"model": "smollm2", "max_new_tokens": 40},
)
