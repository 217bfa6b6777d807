"""A conversation as a model's chat template writes it, and its token ids: control tokens are the template's alone."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from generation.decoding import Model
from generation.errors import PromptError

ROLES = ("system", "user", "assistant")
BUDGET = 1_000_000  # loop turns and letters of one rendering
CALL = 20  # loop turns that take as long as the call of a macro
STAND_INS = range(0x10_0000, 0x11_0000)  # the second private-use plane: code points that nobody gave a meaning

Message = Mapping[str, str]


def render_chat(model: Model, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
    """Return a conversation as the model's chat template writes it, to be read; the ids come from `encode_chat`.

    Parameters and errors are those of `encode_chat`.
    """
    return _render(model, _checked(messages), add_generation_prompt)


def encode_chat(model: Model, messages: Sequence[Message], add_generation_prompt: bool = True) -> list[int]:
    """Return the token ids of a conversation, those of transformers where no message holds a control token's text.

    The template is rendered with a stand-in for every letter of the messages. What can be read there as a
    control token has no letter of a message in it; so a message can neither write one nor complete one
    that the template or another message begins.

    Parameters
    ----------
    model : Model
        With a `chat_template` and its `tokenizer`.
    messages : sequence of mappings
        Each with a `role` (system, user or assistant) and a `content`, text.
    add_generation_prompt : bool
        Whether to open the turn of the assistant, so that the model goes on with its answer.

    Raises
    ------
    PromptError
        If the model has no template, a message is not as it must be, or the template refuses it, breaks,
        works too long, or writes another text for stand-ins than for letters.
    """
    checked = _checked(messages)
    text = _render(model, checked, add_generation_prompt)
    stand_ins = _stand_ins(model, checked)
    letters = {stand_in: letter for letter, stand_in in stand_ins.items()}
    hidden = [{**message, "content": message["content"].translate(stand_ins)} for message in checked]
    marked = _render(model, hidden, add_generation_prompt)
    if marked.translate(letters) != text:
        raise PromptError(
            f"the chat template of {_name(model)} takes a message apart by its letters, so the control tokens "
            "of the template cannot be told from the text of the message"
        )
    ids: list[int] = []
    for part in _tokenizer(model).split_control(marked):
        ids += [part] if isinstance(part, int) else model.encode(part.translate(letters))
    return ids


def _checked(messages: Sequence[Message]) -> list[dict[str, str]]:
    if not isinstance(messages, Sequence) or not messages:
        raise PromptError(f"messages must be a list of at least one message, got {shortened(messages)}")
    return [_checked_message(message, number) for number, message in enumerate(messages, start=1)]


def _checked_message(message: object, number: int) -> dict[str, str]:
    if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
        raise PromptError(f"message {number} must have a role and a content, got {shortened(message)}")
    role, content = message["role"], message["content"]
    if role not in ROLES:
        raise PromptError(f"the role of message {number} must be one of {', '.join(ROLES)}, got {shortened(role)}")
    if not isinstance(content, str) or any("\ud800" <= letter <= "\udfff" for letter in content):
        raise PromptError(f"the content of message {number} must be text, got {shortened(content)}")
    return {"role": role, "content": content}


def _render(model: Model, messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
    source = getattr(model, "chat_template", None)
    if source is None:
        raise PromptError(f"{_name(model)} has no chat template: it continues a text, it holds no conversation")
    tokenizer, sandbox = _tokenizer(model), _Sandbox()
    start_token_id = tokenizer.start_token_id
    try:
        pieces = sandbox.from_string(source).generate(
            messages=messages,
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            bos_token="" if start_token_id is None else tokenizer.tokens[start_token_id],
            eos_token=tokenizer.tokens[tokenizer.eos_token_id],
        )
        text = "".join(map(sandbox.paid, pieces))
        text.encode()  # a template can write half a character, which has no ids
    except Exception as error:  # a template is a program: it can raise anything
        raise PromptError(f"the chat template of {_name(model)} fails: {str(error) or type(error).__name__}") from error
    return text


def _stand_ins(model: Model, messages: list[dict[str, str]]) -> dict[int, int]:
    """Give every letter of the messages a code point of its own, for `str.translate`.

    White space stays, because templates trim it, unless a control token has it.
    """
    controls = "".join(_tokenizer(model).control_tokens)
    letters = {letter for message in messages for letter in message["content"]}
    hidden = [letter for letter in letters if letter in controls or not letter.isspace()]
    if len(hidden) > len(STAND_INS):
        raise PromptError(f"a conversation can have at most {len(STAND_INS):,} different letters, got {len(hidden):,}")
    return {ord(letter): stand_in for letter, stand_in in zip(hidden, STAND_INS, strict=False)}


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox as transformers sets it up, and an end to what one rendering may do.

    There is no `strftime_now`: the same messages have the same ids on every day.
    """

    intercepted_binops = frozenset({"*", "**"})  # one of them alone can fill the memory

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        self.globals["raise_exception"] = _refuse
        self.filters |= {"tojson": _to_json, "turns": self._turns}
        self._left = BUDGET

    def paid(self, piece: str) -> str:
        """Return a piece of the text after its letters have been counted."""
        self._spend(len(piece))
        return piece

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._spend(CALL)
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self._spend(_size(left) * _size(right))
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Parse a template and have the turns of each of its loops counted."""
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "turns", [], [], None, None, lineno=loop.lineno)
        template.set_environment(self)
        return template

    def _turns(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._spend(1)
            yield item

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise SecurityError(f"more than {BUDGET:,} loop turns and letters, a call counted as {CALL}")


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    """Jinja2's own filter escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _size(value: Any) -> int:
    if isinstance(value, int):
        return abs(value)
    return len(value) if hasattr(value, "__len__") else 1


def _tokenizer(model: Model) -> Any:
    return model.tokenizer  # type: ignore[attr-defined]


def _name(model: Model) -> str:
    return getattr(model, "name", type(model).__name__)
