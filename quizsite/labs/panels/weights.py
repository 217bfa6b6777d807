"""Weights: a fact told in a conversation, known in it and not without it, and the fingerprint of all weights."""

from dataclasses import dataclass, replace

from django import forms

from generation import Generation, model_facts
from quizsite.labs.clauses import Chat, Inputs, Outcome, Setup
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import Token, run_tokens

LONGEST = 500  # letters of what is told or asked
SHORT = 8  # digits at each end of a shortened fingerprint


def _line(label: str, initial: str, help_text: str, missing: str, longest: int = LONGEST) -> forms.CharField:
    return forms.CharField(
        label=label,
        initial=initial,
        help_text=help_text,
        max_length=longest,
        error_messages={"required": missing},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class WeightsInputs(PanelInputs):
    told = _line("You tell it", "The password is banana.", "The first turn of the conversation.", "Tell it something.")
    question = _line("Then you ask", "What is the password?", "With the conversation and without it.", "Ask something.")
    expected = _line(
        "Known if the answer says", "banana", "Upper and lower case alike.", "Say what the answer holds.", 60
    )


@dataclass(frozen=True)
class Asked:
    """One of the experiment's requests: what was sent and what came back, as far as it has come."""

    title: str
    chat: Chat
    answer: list[Token]
    is_open: bool
    knows: bool | None = None  # whether the answer says the fact; None where that is not asked
    note: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """A digest over all weights."""

    title: str
    digest: str

    @property
    def short(self) -> str:
        return f"{self.digest[:SHORT]}…{self.digest[-SHORT:]}"


@dataclass(frozen=True)
class Experiment:
    """The whole experiment, as far as it has come."""

    stages: list[Asked | Fingerprint]
    sizes: str
    verdict: str
    problem: str
    is_going_on: bool


def asked(setup: Setup, inputs: Inputs) -> Setup:
    """Ask the bare question: what the model knows without a conversation."""
    return _sent(setup, _user(inputs["question"]))


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Take the fingerprint, hold the conversation, take the fingerprint again, and ask again without it.

    All of it is computed anew: a recording between two fingerprints would show nothing.
    """
    assert generation
    before = ask.fingerprint(setup.model)
    told = _user(inputs["told"])
    reply = ask.time(_sent(setup, told)).generation
    history = [*told, {"role": "assistant", "content": reply.text}, *_user(inputs["question"])]
    answer = ask.time(_sent(setup, history)).generation
    now = ask.fingerprint(setup.model)
    again = ask.time(setup).generation
    return {
        "before": before,
        "after": now,
        "changed": "none" if now == before else "some",
        "n_turns": 2,
        "reply": reply.text,
        "answer": answer.text,
        "again": again.text,
        "is_same_again": again.token_ids == generation.token_ids,
        "knows_with": says(answer.text, inputs),
        "knows_without": says(generation.text, inputs) or says(again.text, inputs),
        "sizes": next((facts.sizes for facts in model_facts() if facts.name == setup.model), ""),
    }


def says(text: str, inputs: Inputs) -> bool:
    """Tell whether an answer says the fact."""
    return inputs["expected"].casefold() in text.casefold()


def view(shown: Shown) -> Experiment:
    """Lay the experiment out in the order in which it was made."""
    outcome, inputs, question = shown.outcome, shown.inputs, shown.setup.chat
    stages: list[Asked | Fingerprint] = [
        Asked(
            title="The question alone",
            chat=question,
            answer=run_tokens(shown.steps, None, is_open=shown.is_open),
            is_open=shown.is_open,
            knows=says(shown.generation.text, inputs) if shown.generation else None,
        )
    ]
    if "after" in outcome:
        told = _user(inputs["told"])
        history = [*told, {"role": "assistant", "content": outcome["reply"]}, *question]
        same = "computed again: the same tokens" if outcome["is_same_again"] else "computed again: other tokens"
        stages += [
            Fingerprint("Fingerprint of all weights, before the conversation", outcome["before"]),
            _answered("Turn one: you tell it", told, outcome["reply"]),
            _answered("Turn two: the question, with turn one sent again", history, outcome["answer"], inputs),
            Fingerprint("Fingerprint of all weights, after the conversation", outcome["after"]),
            _answered("The question alone, once more", question, outcome["again"], inputs, same),
        ]
    return Experiment(
        stages=stages,
        sizes=outcome.get("sizes", ""),
        verdict=_verdict(outcome) if "after" in outcome else "",
        problem=outcome.get("problem", ""),
        is_going_on=bool(shown.generation) and not outcome,
    )


def _answered(title: str, chat: Chat, answer: str, judged: Inputs | None = None, note: str = "") -> Asked:
    knows = says(answer, judged) if judged else None
    return Asked(title, chat, [Token(0, answer)], is_open=False, knows=knows, note=note)


def _verdict(outcome: Outcome) -> str:
    weights = (
        "Both fingerprints are the same: not one of the weights has changed."
        if outcome["changed"] == "none"
        else "The fingerprints differ: some weights have changed."
    )
    match outcome["knows_with"], outcome["knows_without"]:
        case True, False:
            known = "It says the fact while the conversation is sent with the question, and not without it."
        case True, True:
            known = "It says the fact without the conversation, too: that was not learned from you."
        case False, True:
            known = "It says the fact without the conversation, and not with it."
        case _:
            known = "It does not say the fact, with the conversation or without it."
    return f"{weights} {known}"


def _sent(setup: Setup, chat: Chat) -> Setup:
    return replace(setup, prompt="", chat=chat)


def _user(content: str) -> Chat:
    return [{"role": "user", "content": content}]


KIND = Kind(
    name="weights",
    title="Weights: does a conversation change them?",
    about="A fact told in a conversation, asked for with it and without it, and the weights’ fingerprint around it.",
    view=view,
    inputs=WeightsInputs,
    asked=asked,
    after=after,
    settings=("temperature", "max_new_tokens", "seed"),
    asks_prompt=False,
    open_start={"model": "smollm2", "max_new_tokens": 24},
)
