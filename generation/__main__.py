"""`python -m generation "the sky is" --model sky`: the engine alone, as a table or as JSON."""

import argparse
import json
import os
import sys
from dataclasses import asdict, fields, replace
from itertools import zip_longest
from typing import Any, NoReturn

from generation import (
    Generation,
    LogitsError,
    ModelUnavailable,
    PromptError,
    SamplingParams,
    SettingError,
    Step,
    generate,
    list_models,
    load_model,
    parse_setting,
    run,
    stream,
)
from generation.params import unescaped


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a prompt and print its trace; 0, or 2 after one line on what was wrong."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    if options.pop("list_models"):
        print("\n".join(list_models()))
        return 0
    prompt, model_name, as_json = options.pop("prompt"), options.pop("model"), options.pop("json")
    other = options.pop("compare")
    if prompt is None:
        parser.error("the following arguments are required: prompt")
    try:
        params = SamplingParams(**{name: _read(name, value) for name, value in options.items()})
        model = load_model(model_name)
        if other is None:
            show_step, show_end = (_json_step, _json_end) if as_json else (_table_row, _table_end)
            show_end(run(stream(model, prompt, params), show_step))
        else:
            changes: dict[str, Any] = dict(_read_change(change) for change in other)
            both = [generate(model, prompt, one) for one in (params, replace(params, **changes))]
            (_compare_json if as_json else _compare)(*both)
    except BrokenPipeError:  # whoever read the output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SettingError, PromptError, LogitsError, ModelUnavailable) as error:
        print(f"python -m generation: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m generation", description="Generate text and show how each token came about.")
    parser.add_argument("prompt", nargs="?")
    parser.add_argument("--model", default="sky", help="a name from --list-models")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: each step, then the run")
    parser.add_argument("--list-models", action="store_true", help="print the names of the models and stop")
    parser.add_argument(
        "--compare",
        nargs="+",
        metavar="SETTING=VALUE",
        help="run a second time with these settings on the same random numbers, and mark the first difference",
    )
    for field in fields(SamplingParams):
        option = "--" + field.name.replace("_", "-")
        more: dict[str, Any] = {"default": argparse.SUPPRESS, "help": f"default {field.default}"}
        if field.type is bool:
            more["action"] = argparse.BooleanOptionalAction
        elif field.name == "stop":
            more |= {"action": "append", "help": "may be given up to four times"}
        parser.add_argument(option, **more)
    return parser


def _read(name: str, value: Any) -> Any:
    if name == "stop":
        return tuple(unescaped(text) for text in value)
    return parse_setting(name, value) if isinstance(value, str) else value


def _read_change(change: str) -> tuple[str, Any]:
    name, equals, value = change.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise SettingError(name, f"--compare takes SETTING=VALUE, got {change!r}")
    return name, parse_setting(name, value)


def _json_step(step: Step) -> None:
    print(json.dumps(asdict(step), ensure_ascii=False), flush=True)


def _json_end(generation: Generation) -> None:
    record = asdict(generation)
    del record["steps"]
    print(json.dumps(record, ensure_ascii=False), flush=True)


def _table_row(step: Step) -> None:
    if step.step == 1:
        print(f"{'step':>4} {'seen':>5} {'computed':>8}  {'token':<14} {'raw':>7} {'final':>7} {'rank':>5} {'u':>7}")
    print(
        f"{step.step:>4} {step.input_length:>5} {step.computed_positions:>8}  {step.token:<14} "
        f"{step.probability:>7.4f} {step.final_probability:>7.4f} {step.rank:>5} {step.u:>7.4f}",
        *(f"\n     {note}" for note in step.notes),
        flush=True,
    )


def _table_end(generation: Generation) -> None:
    print(f"text: {generation.text}")
    if generation.explanation:
        print(generation.explanation)
    print(f"ended by {generation.finish_reason} after {generation.forward_passes} forward passes")
    print(_loop_words(generation))


def _compare(ours: Generation, theirs: Generation) -> None:
    """Print two runs side by side; they share u, so every difference comes from the settings."""
    first = _first_difference(ours, theirs)
    print(f"{'step':>4} {'u':>7}  {'A':<14} {'final':>7}  {'B':<14} {'final':>7}")
    for a, b in zip_longest(ours.steps, theirs.steps):
        one = a or b
        cells = [f"{s.token:<14} {s.final_probability:>7.4f}" if s else f"{'':<22}" for s in (a, b)]
        mark = "  <- first difference" if one.step == first else ""
        print(f"{one.step:>4} {one.u:>7.4f}  {cells[0]}  {cells[1]}{mark}")
    for name, side in (("A", ours), ("B", theirs)):
        print(f"{name}: ended by {side.finish_reason}, {_loop_words(side)}, repeated 4-grams {side.seq_rep_4:.2f}")


def _compare_json(ours: Generation, theirs: Generation) -> None:
    for generation in (ours, theirs):
        _json_end(generation)
    print(json.dumps({"first_difference": _first_difference(ours, theirs)}))


def _first_difference(ours: Generation, theirs: Generation) -> int | None:
    for number, (a, b) in enumerate(zip_longest(ours.token_ids, theirs.token_ids), start=1):
        if a != b:
            return number
    return None


def _loop_words(generation: Generation) -> str:
    loop = generation.loop
    return f"loop of period {loop.period} from step {loop.start + 1}, {loop.repeats} copies" if loop else "no loop"


if __name__ == "__main__":
    sys.exit(main())
