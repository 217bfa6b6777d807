"""Text to token ids and back: the toy's words."""

from collections.abc import Sequence

from generation.errors import PromptError


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
