"""Files and database side by side: what has changed on one side is taken, a conflict is left to a person.

Each question and each lab keeps the digest of its file as it was last loaded or dumped. So each side can be
compared with what both once were.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import unified_diff
from hashlib import sha256
from typing import NamedTuple

from quizsite.content.files import Content
from quizsite.content.writing import lab_text, question_text, spec_of
from quizsite.labs.models import Lab
from quizsite.labs.validation import LabSpec
from quizsite.questions.models import Question, Topic
from quizsite.questions.validation import QuestionSpec


class Change(NamedTuple):
    """What was done, or was not done, with a topic, a lab or a question."""

    name: str
    what: str
    diff: str = ""  # of a conflict

    def __str__(self) -> str:
        return f"{self.name}: {self.what}" + (f"\n{self.diff}" if self.diff else "")


class Choice(NamedTuple):
    """Whose side a person takes in conflicts, by slug."""

    files: Collection[str] = ()
    database: Collection[str] = ()


NOBODYS = Choice()
CONFLICT = "conflict, changed here and in its file; nothing was overwritten"


def load(content: Content, choice: Choice = NOBODYS) -> list[Change]:
    """Take what the files have new; the caller holds a transaction."""
    return [*_topics(content), *_labs(content, choice), *_questions(content, choice)]


def digest_of(spec: QuestionSpec, topic: str) -> str:
    """Return what a question's file says as a short text, its folder and status with it."""
    return _digest(spec.digest, topic, spec.level, spec.status)


def digest_here(question: Question) -> str:
    """Return the same of a question as it is in the database."""
    said = question.current.digest if question.current else ""
    return _digest(said, question.topic.slug, question.level, question.status)


def difference(before: str, after: str, names: tuple[str, str] = ("database", "file")) -> str:
    """Return two texts as a unified diff."""
    return "".join(unified_diff(before.splitlines(True), after.splitlines(True), *names))


def _topics(content: Content) -> Iterator[Change]:
    for position, (slug, name) in enumerate(content.topics.items()):
        values = {"name": name, "position": position}
        topic, is_new = Topic.objects.get_or_create(slug=slug, defaults=values)
        if is_new or (topic.name, topic.position) != (name, position):
            Topic.objects.filter(pk=topic.pk).update(**values)
            yield Change(f"topic {slug}", "new" if is_new else "changed")


def _labs(content: Content, choice: Choice) -> Iterator[Change]:
    for slug, spec in sorted(content.labs.items(), key=lambda item: bool(item[1].first_step)):
        first_step = Lab.objects.get(slug=spec.first_step) if spec.first_step else None
        values = spec.model_dump(mode="json") | {"first_step": first_step}
        lab, is_new = Lab.objects.get_or_create(slug=slug, defaults=values)

        def take(lab: Lab = lab, spec: LabSpec = spec, values: Mapping[str, object] = values) -> str:
            Lab.objects.filter(pk=lab.pk).update(**values)
            return "changed"

        def compare(lab: Lab = lab, spec: LabSpec = spec) -> str:
            return difference(lab_text(lab.spec), lab_text(spec))

        yield from _settled(lab, lab.spec.digest, spec.digest, is_new, take, compare, choice)


def _questions(content: Content, choice: Choice) -> Iterator[Change]:
    topics = {topic.slug: topic for topic in Topic.objects.all()}
    for slug, spec in content.questions.items():
        values = {"topic": topics[content.topic_of[slug]], "level": spec.level, "status": spec.status}
        question, is_new = Question.objects.select_related("topic", "current").get_or_create(slug=slug, defaults=values)

        def take(
            question: Question = question, spec: QuestionSpec = spec, values: Mapping[str, object] = values
        ) -> str:
            moved = [name for name, value in values.items() if getattr(question, name) != value]
            Question.objects.filter(pk=question.pk).update(**values)
            version = question.revise(spec)
            return ", ".join([*([f"version {version.number}"] if version else []), *moved])

        def compare(question: Question = question, spec: QuestionSpec = spec) -> str:
            assert question.current
            return difference(question_text(spec_of(question.current)), question_text(spec))

        theirs = digest_of(spec, content.topic_of[slug])
        if is_new or digest_here(question) == theirs:
            question.revise(spec)
        yield from _settled(question, digest_here(question), theirs, is_new, take, compare, choice)


def _settled(
    row: Lab | Question,
    ours: str,
    theirs: str,
    is_new: bool,
    take: Callable[[], str],
    compare: Callable[[], str],
    choice: Choice,
) -> Iterator[Change]:
    """Compare the database with the file and with what was loaded last, and take what changed on one side."""
    name, loaded = f"{type(row).__name__.lower()} {row.slug}", row.loaded_digest
    is_conflict = ours != theirs and loaded not in {ours, theirs}
    if is_new:
        yield Change(name, "new")
    elif ours != theirs and (ours == loaded or (is_conflict and row.slug in choice.files)):
        yield Change(name, take())
    elif is_conflict and row.slug in choice.database:
        yield Change(name, "kept as it is here; its file is as it was read")
    elif is_conflict:
        yield Change(name, CONFLICT, compare())
        return
    elif ours != theirs:
        return  # edited in the admin since; the file is as it was
    type(row).objects.filter(pk=row.pk).exclude(loaded_digest=theirs).update(loaded_digest=theirs)


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()
