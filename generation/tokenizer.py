"""Text to token ids and back: the toy's words, and text that is shown while it is still being made."""

from collections.abc import Callable, Sequence

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
        Bytes that are not UTF-8 must come out as U+FFFD.
    prompt_ids : sequence of int
        What the text goes on from.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], prompt_ids: Sequence[int]) -> None:
        self._decode = decode
        self._ids = list(prompt_ids)
        self._start = 0  # of the ids that are decoded again
        self._read = len(self._ids)  # of those, the ones whose text is out
        self._shown = len(decode(self._ids))

    def add(self, token_id: int) -> str:
        """Take a token and return what can be shown of it; the bytes of half a character are held back."""
        self._ids.append(token_id)
        text = self._decode(self._ids[self._start :])
        whole = text[: -len(INCOMPLETE)] if text.endswith(INCOMPLETE) else text
        added = whole[self._shown :]
        if whole == text:
            self._start, self._read = self._read, len(self._ids)
            self._shown = len(self._decode(self._ids[self._start : self._read]))
        else:
            self._shown = max(self._shown, len(whole))
        return added

    def finish(self) -> str:
        """Return what was held back: one mark for a character that never became whole."""
        text = self._decode(self._ids[self._start :])
        held, self._shown = text[self._shown :], len(text)
        return held


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
