"""The site as it is run: its own database and collected files, under uvicorn, in a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent.parent


def manage(var: Path, *command: str, **environment: str) -> str:
    """Run a command of manage.py for the site in `var` and return what it prints."""
    env = os.environ | {"NEXT_TOKEN_VAR": str(var), "DJANGO_SETTINGS_MODULE": "quizsite.settings"} | environment
    return subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextmanager
def served(var: Path, app: str = "quizsite.asgi:application", expected: str = "", **environment: str) -> Iterator[str]:
    """Set the site up in `var` and serve it; the value is its address. No error but the `expected` may be logged."""
    env = os.environ | {"NEXT_TOKEN_VAR": str(var), "DJANGO_SETTINGS_MODULE": "quizsite.settings"} | environment
    for command in (["migrate", "--verbosity", "0"], ["load_content"], ["collectstatic", "--no-input", "-v0"]):
        manage(var, *command, **environment)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--lifespan", "off", "--log-level", "warning"]
    with (var / "server.log").open("w") as log, subprocess.Popen(command, cwd=ROOT, env=env, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            yield url
        finally:
            process.terminate()
    log_text = (var / "server.log").read_text()
    n_expected = log_text.count(f"Error: {expected}") if expected else 0
    assert log_text.count("Traceback (most recent call last)") == n_expected, log_text


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "the server did not start"
        try:
            httpx.get(url)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing answers at {url}")
