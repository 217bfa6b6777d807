"""Which tokens come next: what questions that ask for a prediction take their keys from."""

from dataclasses import replace

from generation import SamplingParams, list_models, missing_models
from quizsite.labs.clauses import Settings, Setup
from quizsite.labs.validation import Record, params_of, run_here


def known_models() -> list[str]:
    """Return the models that are here, then those that could be fetched."""
    return [*list_models(), *missing_models()]


def changed_settings(params: SamplingParams) -> Settings:
    """Return the settings that are not neutral."""
    neutral = SamplingParams().as_dict()
    return {name: value for name, value in params.as_dict().items() if value != neutral[name]}


def is_here(model: str) -> bool:
    return model in list_models()


def likely_tokens(
    model: str, prompt: str, settings: Settings, step: int, n: int, run: Record = run_here
) -> list[tuple[str, float]]:
    """Return the likeliest tokens at a step with their raw probabilities; the one that the settings prefer is first.

    Raises
    ------
    ModelUnavailable, PromptError, SettingError
    ValueError
        If the run ends before that step.
    """
    params = replace(params_of({}, settings), max_new_tokens=step)
    steps = run(Setup(model, prompt, params), {}).steps
    if len(steps) < step:
        raise ValueError(f"the run ends before step {step}")
    last = steps[step - 1]
    preferred = last.stages[-1].top[0]
    raw = {row.token_id: row for row in last.stages[0].top}
    ids = [preferred.token_id, *(token_id for token_id in raw if token_id != preferred.token_id)][:n]
    rows = [raw.get(token_id, preferred) for token_id in ids]
    return [(row.token, row.probability) for row in rows]
