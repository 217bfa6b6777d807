"""What the content must cover: each fact has two kinds of question, and a lab where a panel can show it."""

from collections.abc import Mapping

from quizsite.labs.validation import N_HINTS, LabSpec
from quizsite.questions.validation import QuestionSpec

SHOWN_BY = {  # fact → the panels that can show it; facts that only questions can cover have none
    "M1": "tokens",
    "M2": "trace",
    "M3": "trace",
    "M4": "trace",
    "M5": "trace",
    "M6": "stopping",
    "M7": "attention",
    "M8": "intervene",
    "M9": "cost",
    "M10": "weights",
    "M11": "weights",
    "S1": "trace",
    "S2": "trace, compare",
    "S3": "trace, compare",
    "S4": "compare",
    "S5": "compare",
    "S6": "truth",
    "S7": "trace",
    "C1": "latency",
    "C2": "latency",
    "C3": "latency",
    "C4": "cost",
    "C5": "latency",
    "C6": "streaming",
    "C7": "latency",
    "C8": "cost",
    "X1": "weights",
    "X2": "chat",
    "X3": "chat",
    "X4": "chat",
    "T1": "truth",
    "T2": "truth",
    "T3": "",
    "A1": "",
    "A2": "",
    "A3": "",
}


def gaps(labs: Mapping[str, LabSpec]) -> list[str]:
    """Say what is missing: facts without a lab in a panel that shows them, labs without hints or explanation."""
    shown = {(fact, lab.panel) for lab in labs.values() for fact in lab.facts}
    missing = [
        f"fact {fact}: no lab in a panel that shows it ({panels})"
        for fact, panels in SHOWN_BY.items()
        if panels and not any((fact, panel) in shown for panel in panels.split(", "))
    ]
    for slug, lab in labs.items():
        if len(lab.hints) != N_HINTS:
            missing.append(f"lab {slug}: {N_HINTS} hints are wanted, got {len(lab.hints)}")
        if not lab.explanation:
            missing.append(f"lab {slug}: no explanation for whoever has solved it")
        missing += [f"lab {slug}: there is no fact {fact}" for fact in lab.facts if fact not in SHOWN_BY]
    return missing


MISTAKES = [f"E{number}" for number in range(1, 15)]


def bank_gaps(questions: Mapping[str, QuestionSpec]) -> list[str]:
    """Say what is missing in the bank: facts without two published questions of different kinds."""
    kinds: dict[str, set[str]] = {fact: set() for fact in SHOWN_BY}
    missing = []
    for slug, question in questions.items():
        for fact in question.facts:
            if fact not in kinds:
                missing.append(f"question {slug}: there is no fact {fact}")
            elif question.status == "published":
                kinds[fact].add(question.kind)
        if question.level == "scenario" and not question.lab:
            missing.append(f"question {slug}: a scenario needs its lab")
    missing += [
        f"fact {fact}: two questions of different kinds are wanted, got {', '.join(sorted(found)) or 'none'}"
        for fact, found in kinds.items()
        if len(found) < 2
    ]
    tagged = {option.mistake for question in questions.values() for option in question.options}
    tagged |= {trap.mistake for question in questions.values() if question.numeric for trap in question.numeric.traps}
    missing += [f"mistake {mistake}: no option or trap stands for it" for mistake in MISTAKES if mistake not in tagged]
    return missing
