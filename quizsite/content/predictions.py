"""Keys of predictions: the likeliest tokens of a run, as the engine finds them when a question is published."""

import re
from dataclasses import replace
from pathlib import Path

import yaml

from generation import generate, load_model
from quizsite.labs.validation import params_of
from quizsite.questions.validation import Found, PredictSpec

DIGITS = 4  # of a probability in a file
BLOCK = re.compile(r"^  found:\n(?:    .*\n)*", re.MULTILINE)


def found_by_engine(spec: PredictSpec) -> list[Found]:
    """Run a prediction up to its step and return the likeliest tokens there, the one that is taken first.

    Raises
    ------
    ModelUnavailable, PromptError, SettingError
    """
    params = replace(params_of({}, spec.settings), max_new_tokens=spec.step)
    steps = generate(load_model(spec.model), spec.prompt, params).steps
    if len(steps) < spec.step:
        raise ValueError(f"the run ends before step {spec.step}")
    last = steps[spec.step - 1]
    taken = last.stages[-1].top[0]
    raw = {row.token_id: row for row in last.stages[0].top}
    ids = [taken.token_id, *(token_id for token_id in raw if token_id != taken.token_id)][: spec.n_options]
    rows = [raw.get(token_id, taken) for token_id in ids]
    return [Found(token=row.token, probability=round(row.probability, DIGITS)) for row in rows]


def written_into(file: Path, found: list[Found]) -> None:
    """Write what the engine found into a question's file, in place of what was there."""
    text = BLOCK.sub("", file.read_text(encoding="utf-8"))
    lines = yaml.safe_dump([row.model_dump() for row in found], sort_keys=False, allow_unicode=True).splitlines()
    block = "predict:\n  found:\n" + "".join(f"    {line}\n" for line in lines)
    file.write_text(text.replace("predict:\n", block, 1), encoding="utf-8")
