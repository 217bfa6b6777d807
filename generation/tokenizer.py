"""Text to token ids and back: the toy's words, byte-level BPE, and text that is shown while it is being made."""

import re
from collections.abc import Callable, Sequence
from os.path import commonprefix

from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE

from generation.errors import PromptError

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what decoding makes of a character that is cut off


class WordTokenizer:
    """A fixed list of words; in a text they are separated by spaces.

    Parameters
    ----------
    words : sequence of str
        The vocabulary in id order.
    control : sequence of str
        Entries that a text can neither contain nor show.
    """

    def __init__(self, words: Sequence[str], control: Sequence[str] = ()) -> None:
        self.words = tuple(words)
        self._ids = {word: token_id for token_id, word in enumerate(self.words)}
        self._control = {self._ids[word] for word in control}

    def encode(self, text: str, control: bool = False) -> list[int]:
        """Return the ids of a text; control entries are words only where `control` allows them.

        Raises
        ------
        PromptError
            For a word that is not in the vocabulary.
        """
        ids = []
        for word in text.split():
            token_id = self._ids.get(word)
            if token_id is None or (token_id in self._control and not control):
                known = " ".join(w for i, w in enumerate(self.words) if i not in self._control)
                shown = word if len(word) <= 40 else f"{word[:36]}…"
                raise PromptError(f"unknown word {shown!r}: this model knows only {known}")
            ids.append(token_id)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without control entries."""
        return " ".join(self.words[i] for i in ids if i not in self._control)


class IncrementalDecoder:
    """The text that each new token adds, where a character may take several tokens.

    Only the ids since the last whole character are decoded again, so a token costs the same in a long
    text as in a short one.

    Parameters
    ----------
    decode : function of ids
        Bytes of an unfinished character must come out as one U+FFFD.
    prompt_ids : sequence of int
        What the text goes on from.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt_ids: Sequence[int]) -> None:
        self._decode = decode
        self._ids = list(prompt_ids)
        self._start = 0  # of the ids that are decoded again
        self._read = len(self._ids)  # of those, where the ones begin that came since
        self._out = decode(self._ids)  # what is out of their text

    def add(self, token_id: int) -> str:
        """Take a token and return what it adds; the bytes of half a character are held back."""
        self._ids.append(token_id)
        text = self._decode(self._ids[self._start :])
        whole = text.removesuffix(INCOMPLETE)
        added = self._new_part(whole)
        if whole == text:
            tail = self._decode(self._ids[self._read :])
            if tail:  # a control token alone says nothing of the space before the next word
                self._start, self._read, self._out = self._read, len(self._ids), tail
        elif added:
            self._out = whole
        return added

    def finish(self) -> str:
        """Return what was held back: one mark for a character that never became whole."""
        return self._new_part(self._decode(self._ids[self._start :]))

    def _new_part(self, text: str) -> str:
        """Return the part of a text that is not out yet; half a character of the prompt may have changed."""
        return text[len(commonprefix([self._out, text])) :]  # noqa: RUF071  (letter by letter is meant)


class StopMatcher:
    """Text on its way out, held back wherever it may be the beginning of a stop string.

    Parameters
    ----------
    stop : sequence of str
        None of them empty.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self._held = ""
        self.is_stopped = False

    def add(self, text: str) -> str:
        """Take text and return what can be shown; after a stop string, nothing more."""
        if self.is_stopped:
            return ""
        self._held += text
        found = [at for at in (self._held.find(stop) for stop in self._stop) if at >= 0]
        if found:
            self.is_stopped = True
            shown, self._held = self._held[: min(found)], ""
            return shown
        n_held = self._longest_beginning()
        shown = self._held[: len(self._held) - n_held]
        self._held = self._held[len(shown) :]
        return shown

    def finish(self) -> str:
        """Return what was held back and turned out to be no stop string."""
        shown, self._held = self._held, ""
        return shown

    def _longest_beginning(self) -> int:
        """Return how long the end of the held text is that some stop string begins with."""
        longest = max((len(stop) for stop in self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stop):
                return length
        return 0


class ByteLevelTokenizer:
    """Byte-level BPE as GGUF files of the Llama architecture carry it: every text has ids, every id its bytes.

    Parameters
    ----------
    tokens : sequence of str
        The vocabulary in id order, bytes written as GPT-2 writes them.
    merges : sequence of str
        Pairs that are joined, most frequent first, a space between the halves.
    control_ids : set of int
        Entries that mark turns and ends; text never becomes one of them unless it is allowed to.
    eos_token_id : int
    start_token_id : int or None
    """

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Sequence[str],
        control_ids: set[int],
        eos_token_id: int,
        start_token_id: int | None,
    ) -> None:
        self.tokens, self.control_ids = list(tokens), control_ids
        self.eos_token_id, self.start_token_id = eos_token_id, start_token_id
        vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
        pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
        self._bpe = Tokenizer(BPE(vocabulary, pairs))
        # each digit alone, then GPT-2's pattern
        self._bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        self.control_tokens = {self.tokens[token_id]: token_id for token_id in control_ids}
        longest_first = sorted(self.control_tokens, key=len, reverse=True)
        self._control_pattern = re.compile("|".join(map(re.escape, longest_first)))

    def encode(self, text: str, control: bool = False) -> list[int]:
        """Return the ids of a text; what looks like a control token is one only where `control` allows it."""
        if not control:
            return list(self._bpe.encode(text, add_special_tokens=False).ids)
        ids: list[int] = []
        for part in self.split_control(text):
            ids += [part] if isinstance(part, int) else self.encode(part)
        return ids

    def split_control(self, text: str) -> list[str | int]:
        """Cut a text at its control tokens: their ids, and the ordinary text before, between and after them."""
        parts: list[str | int] = []
        at = 0
        for found in self._control_pattern.finditer(text) if self.control_tokens else ():
            parts += [text[at : found.start()], self.control_tokens[found[0]]]
            at = found.end()
        return [*parts, text[at:]]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without control tokens; bytes that are no text come out as U+FFFD."""
        return b"".join(self.token_bytes(token_id) for token_id in ids).decode(errors="replace")

    def token(self, token_id: int) -> str:
        """Return an entry as one can read it: its text, a control token's name, or bytes in hexadecimal."""
        if token_id in self.control_ids:
            return self.tokens[token_id]
        data = self.token_bytes(token_id)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "".join(f"<{byte:02X}>" for byte in data)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that an entry stands for; none for a control token."""
        if token_id in self.control_ids:
            return b""
        return bytes(_BYTES[letter] for letter in self.tokens[token_id])


def _byte_letters() -> dict[str, int]:
    """Return GPT-2's letter for each byte: itself where it can be printed, else one from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTES = _byte_letters()
