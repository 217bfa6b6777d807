"""The bank's own YAML in one file: a document for each question, with its slug and topic at the top."""

from collections.abc import Iterable

import yaml

from quizsite.content.formats.reading import FileProblem, Problem, Reading, Row
from quizsite.content.formats.strict_yaml import UntrustedLoader
from quizsite.content.formats.texts import decoded
from quizsite.content.writing import question_text, spec_of
from quizsite.questions.models import QuestionVersion

MEND = "Compare it with a file that was downloaded here."


def read(data: bytes) -> Reading:
    """Read all documents up to the first that is no YAML; what stands before it is kept."""
    text = decoded(data)
    if isinstance(text, FileProblem):
        return Reading(problems=[text])
    rows: list[Row] = []
    try:
        loader = UntrustedLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                rows.append(_row(node.start_mark.line + 1, loader.construct_document(node)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return Reading(rows, [FileProblem(line, error.problem or "this is not YAML", MEND)])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Reading(rows, [FileProblem(1, f"this cannot be read: {error}"[:200], MEND)])
    return Reading(rows)


def write(versions: Iterable[QuestionVersion]) -> str:
    """Return questions as one file."""
    return "---\n".join(
        question_text(spec_of(version), slug=version.question.slug, topic=version.question.topic.slug)
        for version in versions
    )


def _row(line: int, data: object) -> Row:
    if not isinstance(data, dict):
        return Row(line, "", "", {}, [Problem(f"a question is keys and values, got {str(data)[:40]!r}", MEND)])
    named = {str(name): value for name, value in data.items()}
    slug, topic = str(named.pop("slug", "")), str(named.pop("topic", ""))
    problems = [] if slug else [Problem("it has no slug", "Write its address under /questions/ as slug: at the top.")]
    return Row(line, slug, topic, named, problems)
