"""`make bench-peers`: our engine and others on the same weights, each in a process of its own, run in turn."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np

N_THREADS = 2
ROUNDS = 9
TOLERANCE = 2e-3  # between the logits of two engines in float32
REST = 0.1  # seconds between two turns: the idle threads of the one before spin for a while
PEERS = Path("var/peers")
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": str(N_THREADS),
    "OPENBLAS_NUM_THREADS": str(N_THREADS),
    "HF_HUB_OFFLINE": "1",
}
LLAMA_CPP = "llama-cpp-python==0.3.36"  # only as source, so its absence is no fault
LLAMA_CPP_MINUTES = 15
GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "smollm2.json").read_text(encoding="utf-8"))["runs"]

Variant = dict[str, str]  # settings of a worker's tasks among which its fastest are chosen


def text(n_tokens: int) -> list[int]:
    """Return as many token ids of running text."""
    written = [token_id for case in GOLDEN for token_id in (*case["prompt_ids"], *case["greedy_ids"])]
    return list(islice(cycle(written), n_tokens))


@dataclass(frozen=True, eq=False)
class Row:
    """A line of the table: a task, the tokens that one run of it reads or makes, and the least ratio wanted."""

    name: str
    task: str
    settings: dict[str, Any]
    n_tokens: int
    floor: float | None = None


ROWS = [
    Row("decode at 64", "decode", {"prompt_ids": text(64), "n_tokens": 24}, 24, 1.25),
    Row("decode at 1024", "decode", {"prompt_ids": text(1024), "n_tokens": 24}, 24, 1.2),
    Row("prefill of 32", "prefill", {"prompt_ids": text(32)}, 32),
    Row("prefill of 256", "prefill", {"prompt_ids": text(256)}, 256, 0.7),
    Row("prefill of 1024", "prefill", {"prompt_ids": text(1024)}, 1024, 0.6),
    Row("16 streams at 64", "batch", {"prompt_ids": text(64), "n_tokens": 8, "n_streams": 16}, 8 * 16, 1.0),
    Row("64 streams at 64", "batch", {"prompt_ids": text(64), "n_tokens": 4, "n_streams": 64}, 4 * 64, 1.0),
    Row("start to first token", "start", {"prompt_ids": text(5), "n_tokens": 1}, 1),
]


def serve(tasks: Mapping[str, Callable[..., Any]]) -> None:
    """Do what standard input says, a line of JSON for each task and one for each reply, until it is closed."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no reply
    for line in sys.stdin:
        task, settings = json.loads(line)
        print(json.dumps(tasks[task](**settings)), file=replies, flush=True)


class Worker:
    """A process with an engine in it. It opens its model when the first task needs it."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )

    def ask(self, task: str, **settings: Any) -> Any:
        """Have a task done, and wait for the reply."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([task, settings]), file=self._process.stdin, flush=True)
        reply = self._process.stdout.readline()
        if not reply:
            raise SystemExit(f"{' '.join(self.command[:3])} has stopped at {task}; its last words are above")
        return json.loads(reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # closes its input, and with that it ends


class Engine:
    """A worker, what it can do, and its times."""

    def __init__(self, name: str, worker: Worker) -> None:
        about = worker.ask("about")
        self.name, self.worker, self.versions = name, worker, about["versions"]
        self.variants: list[Variant] = about["variants"]
        self.rows = [row for row in ROWS if row.task in {"start", *about["tasks"]}]
        self.fastest: dict[Row, Variant] = {}
        self.seconds: dict[Row, list[float]] = {row: [] for row in self.rows}

    def run(self, row: Row, variant: Variant) -> float:
        """Return the seconds that one run takes."""
        time.sleep(REST)
        if row.task != "start":
            seconds: float = self.worker.ask(row.task, **row.settings, **variant)
            return seconds
        began = time.perf_counter()
        with Worker(self.worker.command) as fresh:
            fresh.ask("greedy", **row.settings, **variant)
            return time.perf_counter() - began

    def choose_variants(self) -> None:
        """Run each row once to warm up and, where there is a choice, three times to find its fastest variant."""
        for row in self.rows:
            medians = []
            for variant in self.variants if row.task != "start" else self.variants[:1]:
                self.run(row, variant)
                n_timed = 3 if len(self.variants) > 1 else 1
                medians.append(statistics.median(self.run(row, variant) for _ in range(n_timed)))
            self.fastest[row] = self.variants[int(np.argmin(medians))]


def prove_the_same(ours: Engine, peer: Engine) -> None:
    """Refuse to measure a peer of other tokens or logits than ours; each of its variants is tried."""
    prompts = [case["prompt_ids"] for case in GOLDEN[:3]]
    for prompt_ids in prompts:
        expected = ours.worker.ask("greedy", prompt_ids=prompt_ids, n_tokens=32)
        for variant in peer.variants:
            found = peer.worker.ask("greedy", prompt_ids=prompt_ids, n_tokens=32, **variant)
            if found != expected:
                raise SystemExit(f"{peer.name} is not the same model: {variant} says {found}, ours {expected}")
    largest = 0.0
    for prompt_ids in [*prompts, text(1024)]:
        expected = ours.worker.ask("logits", prompt_ids=prompt_ids, next_ids=text(8))
        for variant in peer.variants:
            found = peer.worker.ask("logits", prompt_ids=prompt_ids, next_ids=text(8), **variant)
            largest = max(largest, float(np.abs(np.subtract(found, expected)).max()))
    if not largest <= TOLERANCE:
        raise SystemExit(f"{peer.name} is not the same model: logits {largest:.1e} apart, {TOLERANCE} is allowed")
    print(f"{peer.name}: the same 32 greedy tokens after 3 prompts, logits at most {largest:.1e} apart", flush=True)


def prove_the_copied_calls(original: Path) -> None:
    """Run the calls that the site offers to copy, on the file of the model, and refuse another text than ours."""
    # here, since the peers' own workers import this module, and have not what the site needs
    from generation import SamplingParams, generate, gguf_file, load_model  # noqa: PLC0415
    from quizsite.labs.clauses import Setup  # noqa: PLC0415
    from quizsite.labs.exports import exports  # noqa: PLC0415

    greedy = SamplingParams(max_new_tokens=48)
    setups = [
        Setup("smollm2", "I am", greedy),
        Setup("smollm2", "The capital of Australia is", replace(greedy, repetition_penalty=1.3)),
        Setup("smollm2", "", greedy, [{"role": "user", "content": "What is a noun?"}]),
    ]
    model = load_model("smollm2")
    with TemporaryDirectory() as folder:
        (Path(folder) / gguf_file("smollm2")).symlink_to(original.absolute())
        for setup in setups:
            call = exports(setup)[0].text
            command = [str(PEERS.absolute() / "bin" / "python"), "-c", call]
            done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, text=True)
            ours = generate(model, setup.encoded_prompt(model), setup.params).text
            if done.stdout.strip() != ours.strip():
                raise SystemExit(f"the copied call writes {done.stdout!r}, ours is {ours!r}:\n{call}")
    print(
        f"the calls copied for transformers: the same text for {len(setups)} of {len(setups)} greedy runs", flush=True
    )


def measure(engines: list[Engine], rounds: int) -> None:
    """Run each row once a round, on one engine after the other; every other round in the opposite order."""
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", flush=True)
        for row in ROWS:
            for engine in engines[:: -1 if number % 2 else 1]:
                if row in engine.rows:
                    engine.seconds[row].append(engine.run(row, engine.fastest[row]))


def print_table(ours: Engine, peer: Engine) -> None:
    """Print both medians in tokens a second, and the median and quartiles of the ratios of the rounds."""
    head = f"{'tokens/s, medians':<22}{'ours':>8}{peer.name:>19}{'ratio':>8}"
    print(f"\n{head}  {'quartiles':<12}{'floor':<16}the peer's fastest way")
    for row in peer.rows:
        wanted = row.floor if peer.name == "transformers" else None
        how, floor = ", ".join(peer.fastest[row].values()), "" if wanted is None else f"≥ {wanted:.2f}×"
        mine = compared = "–"
        quartiles = ""
        if row in ours.rows:
            low, ratio, high = np.quantile(np.divide(peer.seconds[row], ours.seconds[row]), [0.25, 0.5, 0.75])
            mine, compared, quartiles = _speed(row, ours), f"{ratio:.2f}×", f"{low:.2f}–{high:.2f}"
            floor += " missed" if wanted is not None and ratio < wanted else ""
        print(f"{row.name:<22}{mine:>8}{_speed(row, peer):>19}{compared:>8}  {quartiles:<12}{floor:<16}{how}")


def _speed(row: Row, engine: Engine) -> str:
    median = statistics.median(engine.seconds[row])
    return f"{median:.2f} s" if row.task == "start" else f"{row.n_tokens / median:.1f}"


def llama_cpp_is_missing() -> str:
    """Try to build llama.cpp, once and with patience; return why it is not there, or nothing."""
    outcome, log = PEERS / "llama-cpp", PEERS / "llama-cpp.log"
    if not outcome.exists():
        print(f"building {LLAMA_CPP}, for {LLAMA_CPP_MINUTES} minutes at most", flush=True)
        command = f"timeout {LLAMA_CPP_MINUTES}m nice -n 15 {PEERS}/bin/python -m pip install {LLAMA_CPP}".split()
        variables = ENVIRONMENT | {"CMAKE_ARGS": "-DLLAVA_BUILD=OFF", "CMAKE_BUILD_PARALLEL_LEVEL": str(N_THREADS)}
        with log.open("w", encoding="utf-8") as lines:
            done = subprocess.run(command, stdout=lines, stderr=lines, env=variables, check=False)
        last_line = log.read_text(encoding="utf-8").strip().rpartition("\n")[-1]
        reasons = {0: "", 124: f"not ready after {LLAMA_CPP_MINUTES} minutes"}
        outcome.write_text(reasons.get(done.returncode, last_line), encoding="utf-8")
    return outcome.read_text(encoding="utf-8")


def machine() -> str:
    """Name the processor and count its cores."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    name = next(line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name"))
    load = os.getloadavg()[0]
    return f"{name}, {os.cpu_count()} cores with a load of {load:.1f}, {N_THREADS} threads for each engine"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without-llama-cpp", action="store_true", help="neither build nor measure it")
    options = parser.parse_args()
    python = [f"{PEERS}/bin/python", "-m"]
    if not Path(python[0]).exists():
        raise SystemExit(f"{python[0]} is missing: `make bench-peers` installs it")
    print(machine())
    with ExitStack() as stack:

        def start(name: str, *command: str) -> Engine:
            engine = Engine(name, stack.enter_context(Worker([*command])))
            print(f"{name}: {engine.versions}", flush=True)
            return engine

        ours = start("ours", sys.executable, "-m", "tests.bench.ours", "worker")
        peers = [start("transformers", *python, "tests.bench.peer_transformers", ours.worker.ask("weights"))]
        prove_the_same(ours, peers[0])
        original, widened = ours.worker.ask("gguf", folder=str(PEERS))
        prove_the_copied_calls(Path(original))
        if not options.without_llama_cpp:
            reason = llama_cpp_is_missing()
            if reason:
                print(f"llama.cpp could not be built: {reason}")
            else:
                llama_cpp = [*python, "tests.bench.peer_llama_cpp"]
                peers.append(start("llama.cpp float32", *llama_cpp, widened, "repacked"))
                prove_the_same(ours, peers[1])
                crashes = subprocess.run([*llama_cpp, original, "try"], capture_output=True, check=False).returncode
                peers.append(start("llama.cpp Q4_1", *llama_cpp, original, "unpacked" if crashes else "repacked"))
        for engine in (ours, *peers):
            engine.choose_variants()
            print(f"{engine.name}: warm", flush=True)
        measure([ours, *peers], options.rounds)
    for peer in peers:
        print_table(ours, peer)


if __name__ == "__main__":
    main()
