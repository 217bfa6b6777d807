"""The bank and the labs as YAML files: found, read, and proved, each problem with its file and line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from quizsite.content.formats.strict_yaml import Lines, Loader, lines_of
from quizsite.labs.proofs import proved
from quizsite.labs.validation import TAKEN_SLUGS, LabSpec, Problem, prove, read_lab
from quizsite.questions.validation import QuestionSpec, read_question

CONTENT_DIR = Path(__file__).parent
SLUG = re.compile(r"[a-z0-9-]{1,80}")


class Mistake(NamedTuple):
    """What is wrong with a file, and where."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass
class Content:
    """All that the files hold, by slug, in the order of their names."""

    topics: dict[str, str] = field(default_factory=dict)
    labs: dict[str, LabSpec] = field(default_factory=dict)
    questions: dict[str, QuestionSpec] = field(default_factory=dict)
    topic_of: dict[str, str] = field(default_factory=dict)  # question → topic
    mistakes: list[Mistake] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)  # labs whose models are not here


def read_content(folder: Path = CONTENT_DIR, prove_all: bool = False) -> Content:
    """Read every file under `bank/` and `labs/`; labs on quick models are proved here, the others if `prove_all`."""
    content = Content()
    topics_file = folder / "bank" / "topics.yaml"
    topics, lines = _read(topics_file, content)
    for number, topic in enumerate(topics or []):
        if isinstance(topic, dict) and topic.keys() == {"slug", "name"} and SLUG.fullmatch(str(topic["slug"])):
            content.topics[topic["slug"]] = str(topic["name"])
        else:
            problem = Problem((number,), "a topic must be a slug and a name")
            content.mistakes += _located(topics_file, lines, [problem])

    for file in sorted((folder / "labs").glob("*.yaml")):
        data, lines = _read(file, content)
        if data is not None:
            lab = read_lab(data)
            if isinstance(lab, LabSpec) and (lab.is_quick or prove_all):
                lab = _proof(file.stem, lab, content) or lab
            content.mistakes += _bad_name(file)
            if file.stem in TAKEN_SLUGS:
                content.mistakes.append(Mistake(file, 1, f"slug must not be {file.stem}: a page has that address"))
            if isinstance(lab, list):
                content.mistakes += _located(file, lines, lab)
            else:
                content.labs[file.stem] = lab

    files: dict[str, Path] = {}
    for file in sorted((folder / "bank").glob("*/*.yaml")):
        data, lines = _read(file, content)
        if data is None:
            continue
        question = read_question(data)
        content.mistakes += _bad_name(file)
        if isinstance(question, list):
            content.mistakes += _located(file, lines, question)
            continue
        if file.stem in files:
            content.mistakes.append(Mistake(file, 1, f"slug {file.stem!r} is taken by {files[file.stem]}"))
        if file.parent.name not in content.topics:
            content.mistakes.append(Mistake(file, 1, f"topic {file.parent.name!r} is not in {topics_file.name}"))
        if question.lab and question.lab not in content.labs:
            content.mistakes += _located(file, lines, [Problem(("lab",), f"lab {question.lab!r} has no valid file")])
        files[file.stem] = file
        content.questions[file.stem] = question
        content.topic_of[file.stem] = file.parent.name
    content.mistakes += _dead_follow_ups(content, files)
    for slug, lab in content.labs.items():
        if lab.first_step and lab.first_step not in content.labs:
            file = folder / "labs" / f"{slug}.yaml"
            problem = Problem(("first_step",), f"lab {lab.first_step!r} has no valid file")
            content.mistakes += _located(file, _read(file, content)[1], [problem])
    return content


def _proof(slug: str, lab: LabSpec, content: Content) -> list[Problem]:
    """Return what is wrong with a lab when it runs; one whose model is not here is noted as unproved."""
    if lab.is_quick:
        return prove(lab)
    if not lab.is_ready:
        content.unproved.append(slug)
        return []
    return proved(lab)


def _bad_name(file: Path) -> list[Mistake]:
    if SLUG.fullmatch(file.stem):
        return []
    return [Mistake(file, 1, f"a file's name must be small letters, digits and hyphens, got {file.stem!r}")]


def _dead_follow_ups(content: Content, files: dict[str, Path]) -> Iterator[Mistake]:
    for slug, question in content.questions.items():
        for number, follow_up in enumerate(question.follow_ups):
            if follow_up.question and follow_up.question not in files:
                _, lines = _read(files[slug], content)
                problem = Problem(("follow_ups", number, "question"), f"no question {follow_up.question!r}")
                yield from _located(files[slug], lines, [problem])


def _read(file: Path, content: Content) -> tuple[Any, Lines]:
    """Return what a file holds and the line of everything in it; a broken file is noted as a mistake."""
    try:
        loader = Loader(file.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        data = loader.construct_document(node) if node else None
        lines = dict(lines_of(node)) if node else {}
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        content.mistakes.append(Mistake(file, line, error.problem or "this is not YAML"))
        return None, {}
    except (yaml.YAMLError, ValueError, RecursionError, OSError) as error:
        content.mistakes.append(Mistake(file, 1, f"cannot be read: {error}"))
        return None, {}
    if not isinstance(data, list if file.stem == "topics" else dict):
        content.mistakes.append(Mistake(file, 1, f"must hold keys and values, got {str(data)[:40]!r}"))
        return None, {}
    return data, lines


def _located(file: Path, lines: Lines, problems: list[Problem]) -> Iterator[Mistake]:
    """Give each problem the line of its place, or of the nearest thing around it."""
    for path, message in problems:
        at: tuple[str | int, ...] = ()
        for part in path:
            at = (*at, part) if (*at, part) in lines else at  # a goal's kind is in the path, not in the file
        where = ".".join(str(part) for part in path)
        yield Mistake(file, lines.get(at, 1), f"{where}: {message}" if where else message)
