"""Goals about how a text is cut into tokens."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import Clause, Run, Verdict, at_least, at_most, nothing_taken, only_allowed, same_setup
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class Split(GoalBase):
    """A word of the learner's own that becomes many pieces."""

    kind: Literal["split"] = "split"
    min_pieces: int
    max_characters: int | None = None
    letters_only: bool = False

    title = "Find a word that splits"
    short = "Split"
    done = "Split"

    @property
    def wanted(self) -> str:
        """What the learner is asked for."""
        letters = ", letters a to z alone" if self.letters_only else ""
        longest = f", at most {self.max_characters} characters long" if self.max_characters else ""
        return f"One word{letters}{longest}, that becomes {self.min_pieces} pieces or more."

    def judge(self, run: Run) -> Verdict:
        text: str = run.inputs["text"]
        has_spaces = any(letter.isspace() for letter in text)
        is_word = bool(text) and not has_spaces
        n_pieces: int = run.outcome.get("n_pieces", 0)
        clauses = [
            Clause(
                "One word, without spaces", "it has spaces" if has_spaces else "yes" if text else "no text", is_word
            ),
            at_least("Pieces", n_pieces, self.min_pieces),
        ]
        if self.max_characters is not None:
            clauses.append(at_most("Characters", len(text), self.max_characters))
        if self.letters_only:
            others = sorted({letter for letter in text if not (letter.isascii() and letter.isalpha())})
            clauses.append(Clause("Letters a to z alone", " ".join(others[:5]) or "yes", not others))
        return Verdict(
            clauses=(*clauses, same_setup(run, "model", "prompt"), nothing_taken(run), only_allowed(run)),
            summary=f"{len(text)} characters, {n_pieces} pieces.",
        )
