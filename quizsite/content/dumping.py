"""The database's labs and questions as files; what somebody has changed in a file meanwhile stays as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quizsite.content.files import CONTENT_DIR, Content, read_content
from quizsite.content.loading import CONFLICT, Change, difference, digest_here, digest_of
from quizsite.content.writing import lab_text, question_text, spec_of, topics_text
from quizsite.labs.models import Lab
from quizsite.questions.models import Question, Topic


def dump(folder: Path) -> list[Change]:
    """Write what differs from the files of a folder, and say what was written and what was not."""
    found = read_content(folder) if (folder / "bank").exists() else Content()
    return [*_topics(folder, found), *_labs(folder, found), *_questions(folder, found)]


def _topics(folder: Path, found: Content) -> Iterator[Change]:
    topics = {topic.slug: topic.name for topic in Topic.objects.all()}
    if topics != found.topics:
        yield _written(folder / "bank" / "topics.yaml", topics_text(topics), "topics")


def _labs(folder: Path, found: Content) -> Iterator[Change]:
    for lab in Lab.objects.select_related("first_step").order_by("slug"):
        file, known = folder / "labs" / f"{lab.slug}.yaml", found.labs.get(lab.slug)
        text = lab_text(lab.spec)
        ours, theirs = lab.spec.digest, known.digest if known else ""
        if file.exists() and _is_newer(lab, ours, theirs):
            yield Change(f"lab {lab.slug}", CONFLICT, difference(text, file.read_text(encoding="utf-8")))
        elif ours != theirs:
            yield _written(file, text, f"lab {lab.slug}")
            if folder == CONTENT_DIR:
                Lab.objects.filter(pk=lab.pk).update(loaded_digest=ours)


def _questions(folder: Path, found: Content) -> Iterator[Change]:
    questions = Question.objects.with_current().exclude(current=None).order_by("topic__position", "slug")
    for question in questions.prefetch_related("current__options"):
        assert question.current
        spec, known = spec_of(question.current), found.questions.get(question.slug)
        file = folder / "bank" / question.topic.slug / f"{question.slug}.yaml"
        before = folder / "bank" / found.topic_of.get(question.slug, question.topic.slug) / file.name
        ours, theirs = digest_here(question), digest_of(known, found.topic_of[question.slug]) if known else ""
        if before.exists() and _is_newer(question, ours, theirs):
            text = before.read_text(encoding="utf-8")
            yield Change(f"question {question.slug}", CONFLICT, difference(question_text(spec), text))
        elif ours != theirs or (known and known.mistakes != spec.mistakes):
            yield _written(file, question_text(spec), f"question {question.slug}")
            if folder == CONTENT_DIR:  # which is loaded at each start; other folders are copies
                Question.objects.filter(pk=question.pk).update(loaded_digest=ours)
            if before != file:
                before.unlink(missing_ok=True)  # it has moved to another topic


def _is_newer(row: Any, ours: str, theirs: str) -> bool:
    """Tell whether a file was changed since it was loaded, to something else than what is here."""
    return not theirs or theirs not in {ours, row.loaded_digest}


def _written(file: Path, text: str, name: str) -> Change:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return Change(name, "written")
