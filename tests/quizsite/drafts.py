"""Questions on their way to another program's format and back."""

from typing import Any

from hypothesis import strategies as st

from quizsite.content.formats.reading import Row
from quizsite.questions.models import Option, Question, QuestionVersion, Topic
from quizsite.questions.validation import QuestionSpec, read_question

KEPT = {"single_choice", "multiple_choice", "short_text"}  # kinds that come back as they went
LETTERS = st.characters(blacklist_categories=["Cc", "Cs"])
TEXTS = st.text(st.one_of(st.sampled_from("\\~=#{}:%[]->/*\n1n "), LETTERS), max_size=60).map(str.strip)
TEXTS = TEXTS.filter(lambda text: text and "![" not in text)  # an image would be refused


def spec(found: Row) -> QuestionSpec:
    """Return the draft that a row makes, which nothing may keep from being one."""
    assert not found.problems
    read_as = read_question(found.data)
    assert isinstance(read_as, QuestionSpec), read_as
    return read_as


def said(found: Row) -> str:
    return " ".join(f"{problem.message} {problem.mend}" for problem in found.problems)


def bank() -> list[QuestionVersion]:
    found = Question.objects.published().select_related("topic").prefetch_related("current__options")
    return [question.current for question in found if question.current]


def plain_numeric(**numeric: Any) -> QuestionVersion:
    """Return a question whose number is the same for everybody."""
    question = Question.objects.create(slug="bytes-of-a-key", topic=Topic.objects.all()[0], level="beginner")
    data = {
        "title": "How many bytes?",
        "level": "beginner",
        "kind": "numeric",
        "text": "How many megabytes are {this}?",
        "explanation": "They are {key}.",
        "numeric": {"formula": "25/2", "unit": "MB", "tolerance": 0.02, "decimals": 2} | numeric,
    }
    read_as = read_question(data)
    assert isinstance(read_as, QuestionSpec), read_as
    version = question.revise(read_as)
    assert version
    return version


def unsaved(title: str, options: list[tuple[str, str]]) -> QuestionVersion:
    """Return a single choice that no database has seen; the first option is right."""
    question = Question(slug="a-question", topic=Topic(slug="cost", name="Cost"), level="advanced")
    version = QuestionVersion(pk=1, question=question, kind="single_choice", title=title, text=title, explanation=title)
    made = [Option(version=version, text=text, why=why, is_key=not at) for at, (text, why) in enumerate(options)]
    version._prefetched_objects_cache = {"options": made}  # type: ignore[attr-defined]  # Django fills it by prefetching
    return version


def check_same(found: Row, version: QuestionVersion) -> None:
    read_as = spec(found)
    assert (found.topic, read_as.level) == (version.question.topic.slug, version.question.level)
    assert (read_as.kind, read_as.title, read_as.text) == (version.kind, version.title, version.text)
    assert read_as.explanation == version.explanation
    assert [(option.text, option.right, option.why) for option in read_as.options] == [
        (option.text, option.is_key, option.why) for option in version.options.all()
    ]
    assert read_as.content.get("details", {}) == version.details
