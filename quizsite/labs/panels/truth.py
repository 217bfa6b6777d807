"""Truth: how probable each token was, beside the confidence that the text states of itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django import forms

from generation import Generation, Step
from quizsite.labs.clauses import Inputs, Outcome, Setup
from quizsite.labs.panels.kind import Instruments, Kind, PanelInputs, Shown
from quizsite.labs.panels.strip import per_cent, run_tokens, visible

FLUENT_BELOW = 2.5  # bits a token: greedy answers of SmolLM2 have 0.5 to 2.2, its broken words 8 and more
SHADES = [("probability", "Probability"), ("entropy", "Entropy")]
PROBABILITIES = (0.9, 0.6, 0.3, 0.1)  # each one that a token is below makes it a step darker
ENTROPIES = (0.5, 1.0, 2.0, 4.0)  # bits; each one that is reached makes it a step darker
N_DOUBTS = 5
N_OTHERS = 3

PER_CENT = re.compile(r"(\d{1,3}(?:[.,]\d+)?) ?(?:%|per ?cent\b)", re.IGNORECASE)
OF_CONFIDENCE = re.compile(r"\b(?:confiden\w*|certain\w*|sure|probab\w*|likel\w*|chances?)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
PHRASES = {
    "sure": r"certainly|definitely|absolutely|undoubtedly|without (?:a |any )?doubt|no doubt|of course"
    r"|i(?: am|'m) (?:quite |very |absolutely |completely |pretty )?(?:sure|certain|confident)",
    "unsure": r"i think|i believe|i guess|probably|perhaps|maybe|possibly|likely|(?:might|may|could) be"
    r"|not (?:sure|certain)|unsure",
    "abstains": r"i (?:do not|don't|cannot|can't) (?:know|have|say|tell|answer|find)|i(?: am|'m) (?:not aware|unable)"
    r"|(?:does|do|did)(?: not|n't) exist|never existed|there (?:is|was|are|were) no (?!doubt)|no such"
    r"|fictional|fictitious|imaginary|not (?:a )?real",
}
PATTERNS = {manner: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for manner, words in PHRASES.items()}
MANNERS = {
    "number": "a percentage",
    "sure": "a phrase of certainty",
    "unsure": "a phrase of doubt",
    "abstains": "a phrase of not knowing, or of not being there",
}


class TruthInputs(PanelInputs):
    shade_by = forms.ChoiceField(label="Number and shade", choices=SHADES, initial="probability")


@dataclass(frozen=True)
class Statement:
    """What a text says of its own certainty, and from which letter to which."""

    start: int
    end: int
    manner: str  # "number", or a key of `PHRASES`
    per_cent: float | None = None


@dataclass(frozen=True)
class Rated:
    """A token with its number."""

    text: str
    spoken: str
    number: str
    level: int  # from 0, where the model was sure, to 4
    is_control: bool
    is_stated: bool


@dataclass(frozen=True)
class Claim:
    """A statement with the probabilities of the tokens that write it."""

    text: str
    manner: str
    probabilities: str


@dataclass(frozen=True)
class Doubt:
    """One of the least probable tokens, and what would have been likelier."""

    step: int
    token: str
    probability: str
    rank: int
    others: list[tuple[str, str]]


@dataclass(frozen=True)
class Truth:
    """A text as it was computed, and as it speaks of itself."""

    tokens: list[Rated]
    legend: list[tuple[int, str]]
    shade: str
    before: str  # the prompt, where the text goes on from it
    parts: list[tuple[str, bool]]  # of the text; whether one states a confidence
    counters: list[tuple[str, str]]
    words: str
    claims: list[Claim]
    stated_bar: str  # empty where no percentage is stated
    stated: str
    measured_bar: str
    measured: str
    doubts: list[Doubt]


def statements(text: str) -> list[Statement]:
    """Return what a text says of its certainty: a plain scan that understands nothing."""
    text = text.replace("’", "'")
    found = [_per_cent_at(text, match) for match in PER_CENT.finditer(text)]
    for manner, pattern in PATTERNS.items():
        found += [Statement(*match.span(), manner) for match in pattern.finditer(text)]
    kept: list[Statement] = []
    for statement in sorted((s for s in found if s), key=lambda s: (s.start, -s.end)):
        if not kept or statement.start >= kept[-1].end:
            kept.append(statement)
    return kept


def _per_cent_at(text: str, match: re.Match[str]) -> Statement | None:
    """Return a percentage with the word of confidence in its sentence; None if it measures something else."""
    value = float(match[1].replace(",", "."))
    ends = [end.end() for end in SENTENCE_END.finditer(text)]
    start = max((end for end in ends if end <= match.start()), default=0)
    end = min((end for end in ends if end >= match.end()), default=len(text))
    words = list(OF_CONFIDENCE.finditer(text, start, end))
    if not words:
        is_all = PER_CENT.fullmatch(text.strip().strip(".!"))
        return Statement(*match.span(), "number", value) if is_all else None
    nearest = min(words, key=lambda word: max(match.start() - word.end(), word.start() - match.end()))
    return Statement(min(match.start(), nearest.start()), max(match.end(), nearest.end()), "number", value)


def after(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Say how the text takes what it was asked, what it states, and what was measured."""
    assert generation
    steps, found = generation.steps, statements(generation.text)
    stated = _stated(found)
    abstains = any(statement.manner == "abstains" for statement in found)
    surprisal = _mean([step.surprisal for step in steps])
    is_fluent = surprisal is not None and surprisal < FLUENT_BELOW
    return {
        "abstains": abstains,
        "is_fluent": is_fluent,
        "reaction": "abstains" if abstains else "fluent" if is_fluent else "halting",
        "states_confidence": any(statement.manner != "abstains" for statement in found),
        "stated_per_cent": stated,
        "stated_band": _band(stated),
        "answer_probability": _mean([step.probability for step in _answer(steps, found)]),
        "least_likely": min(steps, key=lambda step: step.probability).token if steps else "",
    }


def view(shown: Shown) -> Truth:
    """Lay the text out with the number of each token, and what it says of itself beside what was measured."""
    steps = shown.steps
    text = "".join(step.shown for step in steps)
    found = statements(text)
    stated, measured = _stated(found), _mean([step.probability for step in _answer(steps, found)])
    shade = shown.inputs["shade_by"]
    return Truth(
        tokens=_rated(steps, found, shade, shown.is_open),
        legend=_legend(shade),
        shade=shade,
        before="" if shown.setup.chat else shown.setup.prompt,
        parts=_parts(text, found),
        counters=_counters(steps),
        words=_words(text, found, measured) if steps else "",
        claims=[
            Claim(
                text[statement.start : statement.end],
                MANNERS[statement.manner],
                ", ".join(f"{step.probability:.2f}" for step in _within(steps, [statement])),
            )
            for statement in found
        ],
        stated_bar="" if stated is None else per_cent(min(stated, 100)),
        stated="" if stated is None else f"{stated:g} %",
        measured_bar="" if measured is None else per_cent(measured * 100),
        measured="" if measured is None else f"{measured:.2f}",
        doubts=[_doubt(step) for step in sorted(steps, key=lambda step: step.probability)[:N_DOUBTS]],
    )


def _within(steps: Sequence[Step], found: Sequence[Statement]) -> list[Step]:
    """Return the steps that write some part of the statements."""
    inside, end = [], 0
    for step in steps:
        start, end = end, end + len(step.piece)
        if any(start < statement.end and end > statement.start for statement in found):
            inside.append(step)
    return inside


def _answer(steps: Sequence[Step], found: Sequence[Statement]) -> list[Step]:
    """Return the steps that write text, without what it states of its certainty."""
    stating = {step.step for step in _within(steps, found)}
    return [step for step in steps if step.piece and step.step not in stating]


def _stated(found: Sequence[Statement]) -> float | None:
    return next((statement.per_cent for statement in found if statement.per_cent is not None), None)


def _band(stated: float | None) -> str:
    if stated is None:
        return "none"
    return "90 or more" if stated >= 90 else "50 to 89" if stated >= 50 else "below 50"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rated(steps: Sequence[Step], found: Sequence[Statement], shade: str, is_open: bool) -> list[Rated]:
    stating = {step.step for step in _within(steps, found)}
    rated = []
    for step, token in zip(steps, run_tokens(steps, None, is_open=is_open), strict=True):
        value = step.entropy if shade == "entropy" else step.probability
        number = f"{value:.1f}" if shade == "entropy" else f"{value:.2f}"
        level = sum(value >= bound for bound in ENTROPIES) if shade == "entropy" else _doubtful(value)
        rated.append(Rated(token.text, token.spoken, number, level, token.is_control, step.step in stating))
    return rated


def _doubtful(probability: float) -> int:
    return sum(probability < bound for bound in PROBABILITIES)


def _legend(shade: str) -> list[tuple[int, str]]:
    if shade == "entropy":
        words = [f"under {ENTROPIES[0]:g} bits", *(f"{bound:g} and more" for bound in ENTROPIES)]
    else:
        words = [*(f"{bound:g} and more" for bound in PROBABILITIES), f"under {PROBABILITIES[-1]:g}"]
    return list(enumerate(words))


def _parts(text: str, found: Sequence[Statement]) -> list[tuple[str, bool]]:
    parts, at = [], 0
    for statement in found:
        parts += [(text[at : statement.start], False), (text[statement.start : statement.end], True)]
        at = statement.end
    return [(part, is_stated) for part, is_stated in [*parts, (text[at:], False)] if part]


def _counters(steps: Sequence[Step]) -> list[tuple[str, str]]:
    probability, entropy = _mean([step.probability for step in steps]), _mean([step.entropy for step in steps])
    surprisal = _mean([step.surprisal for step in steps])
    if probability is None or entropy is None or surprisal is None:
        return []
    return [
        ("mean probability", f"{probability:.2f}"),
        ("geometric mean", f"{2**-surprisal:.2f}"),
        ("perplexity", f"{2**surprisal:.2f}"),
        ("mean entropy, bits", f"{entropy:.2f}"),
    ]


def _words(text: str, found: Sequence[Statement], measured: float | None) -> str:
    """Say in a sentence what is stated beside what was measured."""
    tokens = "there is no other text" if measured is None else f"the tokens of the answer averaged {measured:.2f}"
    stated = _stated(found)
    if stated is not None:
        return f"The text says {stated:g} %, {tokens}."
    phrase = next((text[s.start : s.end] for s in found if s.manner != "abstains"), "")
    if phrase:
        return f"The text says “{phrase}”, {tokens}."
    if found:
        return f"The text says “{text[found[0].start : found[0].end].strip()}”; {tokens} all the same."
    return f"The text states no confidence; {tokens} all the same."


def _doubt(step: Step) -> Doubt:
    others = [row for row in step.stages[0].top if row.token_id != step.token_id][:N_OTHERS]
    return Doubt(
        step=step.step,
        token=visible(step.token),
        probability=f"{step.probability:.3f}",
        rank=step.rank,
        others=[(visible(row.token), f"{row.probability:.2f}") for row in others],
    )


KIND = Kind(
    name="truth",
    title="Truth: what a text claims, and how likely it was",
    about="The probability and the entropy of each token, beside the confidence that the text states.",
    view=view,
    inputs=TruthInputs,
    after=after,
    settings=("temperature", "top_k", "top_p", "max_new_tokens", "seed"),
    open_start={
        "model": "smollm2",
        "prompt": "The 2019 Nobel Prize in Mathematics was awarded to",
        "max_new_tokens": 40,
    },
)
