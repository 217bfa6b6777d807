"""`python -m generation "the sky is" --model sky`: the engine alone, as a table or as JSON."""

import argparse
import json
import sys
from dataclasses import asdict, fields
from typing import Any, NoReturn

from generation import (
    Generation,
    LogitsError,
    ModelUnavailable,
    PromptError,
    SamplingParams,
    SettingError,
    Step,
    list_models,
    load_model,
    parse_setting,
    stream,
)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a prompt and print its trace; 0, or 2 after one line on what was wrong."""
    options = vars(_parser().parse_args(arguments))
    prompt, model_name, as_json = options.pop("prompt"), options.pop("model"), options.pop("json")
    try:
        settings: dict[str, Any] = {
            name: value if isinstance(value, bool) else parse_setting(name, value) for name, value in options.items()
        }
        params = SamplingParams(**settings)
        steps = stream(load_model(model_name), prompt, params)
        show_step, show_end = (_json_step, _json_end) if as_json else (_table_row, _table_end)
        while True:
            try:
                show_step(next(steps))
            except StopIteration as end:
                show_end(end.value)
                return 0
    except (SettingError, PromptError, LogitsError, ModelUnavailable) as error:
        print(f"python -m generation: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m generation", description="Generate text and show how each token came about.")
    parser.add_argument("prompt")
    parser.add_argument("--model", default="sky", help=f"one of: {', '.join(list_models())}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: each step, then the run")
    for field in fields(SamplingParams):
        option = "--" + field.name.replace("_", "-")
        if field.type is bool:
            parser.add_argument(
                option,
                action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
                help=f"default {field.default}",
            )
        else:
            parser.add_argument(option, default=argparse.SUPPRESS, help=f"default {field.default}")
    return parser


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
        flush=True,
    )


def _table_end(generation: Generation) -> None:
    loop = generation.loop
    print(f"text: {generation.text}")
    print(f"ended by {generation.finish_reason} after {generation.forward_passes} forward passes")
    print(f"loop of period {loop.period} from step {loop.start + 1}, {loop.repeats} copies" if loop else "no loop")


if __name__ == "__main__":
    sys.exit(main())
