"""Goals about what a model knows: only what is sent to it, and nothing of it stays in the weights."""

from dataclasses import dataclass
from typing import Literal

from quizsite.labs.clauses import Clause, Run, Verdict, at_least, nothing_taken, only_allowed, same_setup
from quizsite.labs.goals.goal import GoalBase


@dataclass(frozen=True, kw_only=True)
class ContextLost(GoalBase):
    """What was said earlier is not among what is sent any more, and the answer shows it."""

    kind: Literal["context_lost"] = "context_lost"
    constraint: str  # a text that the message holds
    says: str = ""  # what an answer says that obeys it
    max_words: int = 0  # or how long it is at most

    title = "Have it fall out of the window"
    short = "Lost"
    done = "Lost"
    wanted = "The message that counts is not sent any more, and the answer goes against it."

    def judge(self, run: Run) -> Verdict:
        is_sent, obeys = _is_sent(run, self.constraint), _obeys(run, self.says, self.max_words)
        return Verdict(
            clauses=(
                Clause(f"“{self.constraint}” is not sent", "it is sent" if is_sent else "fell out", not is_sent),
                Clause(f"The answer does not {_wanted(self.says, self.max_words)}", _shortened(run), not obeys),
                _same_question(run),
                _continues(run),
                same_setup(run, "model", "length"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"Without “{self.constraint}” in the window: {_shortened(run)}",
        )


@dataclass(frozen=True, kw_only=True)
class ContextKept(GoalBase):
    """What was said earlier is sent again, within the tokens that are allowed, and the answer obeys it."""

    kind: Literal["context_kept"] = "context_kept"
    constraint: str
    says: str = ""
    max_words: int = 0
    max_sent: int | None = None  # tokens; where the whole conversation would be no art

    title = "Have the model know it"
    short = "Kept"
    done = "Kept"

    @property
    def wanted(self) -> str:
        """What the learner is asked for."""
        limit = f" with at most {self.max_sent} tokens sent" if self.max_sent else ""
        return f"It is sent again{limit}, and the answer follows it."

    def judge(self, run: Run) -> Verdict:
        is_sent, obeys = _is_sent(run, self.constraint), _obeys(run, self.says, self.max_words)
        n_sent = len(run.generation.prompt_ids)
        limit = self.max_sent
        return Verdict(
            clauses=(
                Clause(f"“{self.constraint}” is sent", "yes" if is_sent else "fell out", is_sent),
                Clause(f"The answer must {_wanted(self.says, self.max_words)}", _shortened(run), obeys),
                *([Clause(f"Tokens sent, at most {limit}", str(n_sent), n_sent <= limit)] if limit else []),
                _continues(run),
                same_setup(run, "model", "length"),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"{n_sent} tokens sent: {_shortened(run)}",
        )


@dataclass(frozen=True, kw_only=True)
class Unchanged(GoalBase):
    """A fact is known while its conversation is sent with the question, not without it, and no weight has changed."""

    kind: Literal["unchanged"] = "unchanged"

    title = "Known in the conversation, and not in the weights"
    short = "Unchanged"
    done = "Shown"
    wanted = "Tell the model a fact that it then uses, and show that its weights know nothing of it."

    def judge(self, run: Run) -> Verdict:
        outcome, fact = run.outcome, run.inputs["expected"]
        if "after" not in outcome:
            return Verdict((Clause("The experiment", outcome.get("problem", "not finished"), False),))
        is_same = bool(outcome["before"]) and outcome["before"] == outcome["after"]
        is_told, is_given_away = (fact.casefold() in run.inputs[name].casefold() for name in ("told", "question"))
        again = "the same" if outcome["is_same_again"] else "another"
        return Verdict(
            clauses=(
                at_least("Turns between the fingerprints", outcome["n_turns"], 2),
                Clause("The same fingerprint after them", "yes" if is_same else "no", is_same),
                Clause(f"You tell it “{fact}”", "yes" if is_told else "no", is_told),
                Clause(f"The question does not say “{fact}”", "it does" if is_given_away else "yes", not is_given_away),
                Clause(
                    f"With the conversation it says “{fact}”",
                    "yes" if outcome["knows_with"] else "no",
                    outcome["knows_with"],
                ),
                Clause(
                    "Without the conversation it does not",
                    "it does" if outcome["knows_without"] else "yes",
                    not outcome["knows_without"],
                ),
                Clause("The question alone, once more", f"{again} answer", outcome["is_same_again"]),
                same_setup(run),
                nothing_taken(run),
                only_allowed(run),
            ),
            summary=f"“{fact}” was known from the text alone; fingerprint {outcome['after'][:8]}… before and after.",
        )


def _is_sent(run: Run, constraint: str) -> bool:
    """Tell whether the model was sent a text, by whomever but itself."""
    return any(
        constraint.casefold() in message["content"].casefold()
        for message in run.setup.chat
        if message["role"] != "assistant"
    )


def _obeys(run: Run, says: str, max_words: int) -> bool:
    text = run.generation.text
    return says.casefold() in text.casefold() and (not max_words or len(text.split()) <= max_words)


def _wanted(says: str, max_words: int) -> str:
    wanted = [f"say “{says}”"] if says else []
    if max_words:
        wanted.append(f"have at most {max_words} word{'' if max_words == 1 else 's'}")
    return " and ".join(wanted)


def _shortened(run: Run) -> str:
    text = " ".join(run.generation.text.split())
    return f"“{text if len(text) <= 80 else text[:79] + '…'}”"


def _same_question(run: Run) -> Clause:
    same = run.inputs["message"] == run.start_inputs["message"]
    return Clause("The question of the start", "same" if same else "changed", same)


def _continues(run: Run) -> Clause:
    """Want the lab's own conversation, which may have gone on: one that was rewritten has lost nothing."""
    start = run.start_inputs["earlier"]
    same = run.inputs["earlier"][: len(start)] == start
    return Clause("The conversation of the start", "same" if same else "rewritten", same)
