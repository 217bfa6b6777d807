"""Questions of a file beside those that are here: what taking it would do, and the taking."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quizsite.content.files import SLUG
from quizsite.content.formats import gift, moodle_xml, site_yaml
from quizsite.content.formats.reading import Problem, Reading, Row
from quizsite.content.loading import difference, digest_here, digest_of
from quizsite.content.writing import question_text, spec_of
from quizsite.labs.models import Lab
from quizsite.questions.authoring import in_words
from quizsite.questions.models import Question, Topic
from quizsite.questions.validation import QuestionSpec, read_question

READERS: dict[str, tuple[str, Callable[[bytes], Reading]]] = {
    "yaml": ("YAML of this site", site_yaml.read),
    "gift": ("GIFT", gift.read),
    "xml": ("Moodle XML", moodle_xml.read),
}
MOST_ROWS = 2_000


@dataclass(frozen=True)
class Examined:
    """A row beside the question of its slug."""

    row: Row
    topic: Topic | None = None
    spec: QuestionSpec | None = None  # None where something is wrong
    known: Question | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def state(self) -> str:
        """What taking it would do: "new", "changed", "same", or "broken"."""
        if not self.spec or not self.topic:
            return "broken"
        if not self.known or not self.known.current:
            return "new"
        return "same" if digest_here(self.known) == digest_of(self.spec, self.topic.slug) else "changed"

    @property
    def diff(self) -> str:
        if self.state != "changed" or not self.spec or not self.known or not self.known.current:
            return ""
        here = question_text(spec_of(self.known.current), topic=self.known.topic.slug)
        file = question_text(self.spec, topic=self.topic.slug if self.topic else "")
        return difference(here, file, ("here", "in the file"))


def examined(rows: Sequence[Row], fallback: Topic) -> list[Examined]:
    """Compare each row with what is here now; what is wrong with one row touches no other."""
    topics = {topic.slug: topic for topic in Topic.objects.all()}
    n_of = Counter(row.slug for row in rows)
    known = {
        q.slug: q for q in Question.objects.with_current().filter(slug__in=n_of).prefetch_related("current__options")
    }
    labs = set(Lab.objects.values_list("slug", flat=True))
    return [
        _examined(row, topics.get(row.topic, fallback), known.get(row.slug), n_of[row.slug], labs)
        for row in rows[:MOST_ROWS]
    ]


def take(found: Sequence[Examined]) -> int:
    """Take what is new or changed, and return how many; the caller holds a transaction."""
    n_taken = 0
    for one in found:
        if one.state not in {"new", "changed"} or not one.spec or not one.topic:
            continue
        values = {"topic": one.topic, "level": one.spec.level, "status": one.spec.status}
        question, _ = Question.objects.update_or_create(slug=one.row.slug, defaults=values)
        question.revise(one.spec)
        n_taken += 1
    return n_taken


def _examined(row: Row, topic: Topic, known: Question | None, n_alike: int, labs: set[str]) -> Examined:
    problems = list(row.problems)
    if row.slug and not SLUG.fullmatch(row.slug):
        mend = "Use small letters, digits and hyphens, at most 80."
        problems.append(Problem(f"slug {row.slug[:90]!r} is no address", mend))
    if n_alike > 1 and row.slug:
        problems.append(Problem(f"slug {row.slug!r} stands {n_alike} times in this file", "Rename all but one."))
    if problems:
        return Examined(row, problems=problems)
    found = read_question(row.data)
    if isinstance(found, list):
        problems = [Problem(in_words(path, message), "Mend it in the file.") for path, message in found]
    elif found.lab and found.lab not in labs:
        problems = [Problem(f"there is no lab {found.lab!r}", "Make the lab first, or leave it out.")]
    elif known and known.status == "published" and found.status == "draft":
        mend = "Write status: published, or give it another slug."
        problems = [Problem("it is published here, and a draft would take it from its learners", mend)]
    if problems or isinstance(found, list):
        return Examined(row, problems=problems)
    return Examined(row, topic, found, known)
