"""Proofs of labs, each kept as long as neither the lab nor the code that it ran on has changed."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from django.conf import settings

import generation
from quizsite.labs.validation import LabSpec, Problem, prove

WORDS = {"title", "facts", "hints", "explanation"}  # of a lab, which no verdict rests on
JUDGES = ("clauses.py", "validation.py", "goals/*.py", "panels/kind.py", "panels/bench.py")


def proved(spec: LabSpec) -> list[Problem]:
    """Prove a lab by running it, unless this very lab has been proved by this very code."""
    proof = (
        settings.VAR_DIR
        / "proofs"
        / sha256((spec.model_dump_json(exclude=WORDS) + _code(spec.panel)).encode()).hexdigest()
    )
    if proof.exists():
        return []
    problems = prove(spec)
    if not problems:
        proof.parent.mkdir(exist_ok=True)
        proof.write_text(f"{spec.title}\n", encoding="utf-8")
    return problems


@cache
def _code(panel: str) -> str:
    """Return a digest of all code that a verdict in a panel rests on; it names the models' files, too."""
    assert generation.__file__
    labs = Path(__file__).parent
    judges = [file for pattern in (*JUDGES, f"panels/{panel}.py") for file in labs.glob(pattern)]
    files = [*Path(generation.__file__).parent.rglob("*.py"), *judges]
    return sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
