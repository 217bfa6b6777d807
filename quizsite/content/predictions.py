"""Keys of predictions: the likeliest tokens of a run, as the engine finds them when a question is published."""

import re
from pathlib import Path

import yaml

from quizsite.content.files import CONTENT_DIR, Content, Mistake
from quizsite.labs.next_tokens import is_here, likely_tokens
from quizsite.questions.validation import Found, PredictSpec

DIGITS = 4  # of a probability in a file
NEAR = 2e-3  # between the probabilities of two machines
BLOCK = re.compile(r"^  found:\n(?:    .*\n)*", re.MULTILINE)


def found_by_engine(spec: PredictSpec) -> list[Found]:
    """Run a prediction up to its step and return the likeliest tokens there, the one that is taken first."""
    tokens = likely_tokens(spec.model, spec.prompt, spec.settings, spec.step, spec.n_options)
    return [Found(token=token, probability=round(probability, DIGITS)) for token, probability in tokens]


def wrong_keys(content: Content) -> list[Mistake]:
    """Compute the keys of all predictions anew, as far as their models are here, and name those that differ."""
    mistakes = []
    for slug, question in content.questions.items():
        spec = question.predict
        if spec is None or not is_here(spec.model):
            continue
        found = found_by_engine(spec)
        tokens, before = [row.token for row in found], [row.token for row in spec.found]
        if tokens != before or any(
            abs(a.probability - b.probability) > NEAR for a, b in zip(found, spec.found, strict=True)
        ):
            file = CONTENT_DIR / "bank" / content.topic_of[slug] / f"{slug}.yaml"
            mistakes.append(Mistake(file, 1, f"predict.found: the engine finds {found}; run `compute_predictions`"))
    return mistakes


def _alike(ours: list[Found], theirs: list[Found]) -> bool:
    same_tokens = [row.token for row in ours] == [row.token for row in theirs]
    return same_tokens and all(abs(a.probability - b.probability) <= NEAR for a, b in zip(ours, theirs, strict=True))


def written_into(file: Path, found: list[Found]) -> None:
    """Write what the engine found into a question's file, in place of what was there."""
    text = BLOCK.sub("", file.read_text(encoding="utf-8"))
    lines = yaml.safe_dump([row.model_dump() for row in found], sort_keys=False, allow_unicode=True).splitlines()
    block = "predict:\n  found:\n" + "".join(f"    {line}\n" for line in lines)
    file.write_text(text.replace("predict:\n", block, 1), encoding="utf-8")
