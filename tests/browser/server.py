"""The site as it is run: its own database and collected files, under uvicorn, in a process of its own."""

import atexit
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import httpx
import psycopg

ROOT = Path(__file__).parent.parent.parent


def manage(var: Path, *command: str, **environment: str) -> str:
    """Run a command of manage.py for the site in `var` and return what it prints."""
    env = _environment(var) | environment
    return subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextmanager
def served(var: Path, app: str = "quizsite.asgi:application", expected: str = "", **environment: str) -> Iterator[str]:
    """Set the site up in `var` and serve it; the value is its address. No error but the `expected` may be logged."""
    pattern = _pattern()
    with _database_of(var, pattern):
        copytree(pattern, var, dirs_exist_ok=True)
        with _running(var, app, _environment(var) | environment) as url:
            yield url
    log_text = (var / "server.log").read_text()
    n_expected = log_text.count(f"Error: {expected}") if expected else 0
    assert log_text.count("Traceback (most recent call last)") == n_expected, log_text


@cache
def _pattern() -> Path:
    """Set a site up once for this process; those that are served are its copies."""
    pattern = ExitStack()
    atexit.register(pattern.close)
    var = Path(pattern.enter_context(TemporaryDirectory()))
    pattern.enter_context(_database_of(var))
    for command in (["migrate", "--verbosity", "0"], ["load_content"], ["collectstatic", "--no-input", "-v0"]):
        manage(var, *command)
    return var


def _environment(var: Path) -> dict[str, str]:
    """Return the environment of the site in `var`: where PostgreSQL is tested, it has a database of its own there."""
    own = {"NEXT_TOKEN_VAR": str(var), "DJANGO_SETTINGS_MODULE": "quizsite.settings"}
    if url := os.environ.get("DATABASE_URL"):
        own["DATABASE_URL"] = re.sub(r"/[^/?]*(?=\?|$)", f"/{_database_name(var)}", url, count=1)
    return os.environ | own


def _database_name(var: Path) -> str:
    return f"served_{sha256(str(var).encode()).hexdigest()[:16]}"


@contextmanager
def _database_of(var: Path, pattern: Path | None = None) -> Iterator[None]:
    """Make the database of the site in `var`, as a copy if there is a pattern, and drop it in the end.

    SQLite needs neither: its file lies in `var`.
    """
    if url := os.environ.get("DATABASE_URL"):
        name = _database_name(var)
        with psycopg.connect(url, dbname="postgres", autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name} TEMPLATE {_database_name(pattern) if pattern else 'template1'}")
            try:
                yield
            finally:
                server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    else:
        yield


@contextmanager
def _running(var: Path, app: str, env: dict[str, str]) -> Iterator[str]:
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
