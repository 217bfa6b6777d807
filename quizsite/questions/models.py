"""The bank: Topic, Question, and its immutable versions with their options."""

from typing import Any, ClassVar, NoReturn, Self
from uuid import uuid4

from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.labs.models import Lab
from quizsite.questions.search import matching, texts_of, words_in
from quizsite.questions.validation import KINDS, LEVELS, STATUSES, QuestionSpec


class ImmutableError(TypeError):
    """A version was about to be changed; make a new one instead."""


class Topic(models.Model):
    """A part of the syllabus."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=80)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["position"]

    def __str__(self) -> str:
        return self.name


class QuestionQuerySet(models.QuerySet["Question"]):
    def published(self) -> Self:
        return self.filter(status="published", current__isnull=False)

    def search(self, typed: str, unlocked: models.QuerySet[Any]) -> Self:
        """Questions that ask with these words, and unlocked ones that explain with them; all, if there are none."""
        words = words_in(typed)
        return self.filter(matching(words, unlocked)) if words else self

    def with_current(self) -> Self:
        return self.select_related("topic", "current", "current__lab__first_step")


class Question(models.Model):
    """A question under its address; what it says is in its versions."""

    slug = models.SlugField(unique=True, max_length=80)
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="questions")
    level = models.CharField(max_length=20, choices=LEVELS)
    status = models.CharField(max_length=10, choices=STATUSES, default="draft")
    current = models.OneToOneField(
        "QuestionVersion", null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )

    loaded_digest = models.CharField(max_length=64, blank=True, editable=False)  # of its file, when last loaded

    objects = QuestionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["topic__position", "slug"]
        indexes: ClassVar = [models.Index(fields=["status", "level"])]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return reverse("quizzes:question", args=[self.slug])

    def revise(self, spec: QuestionSpec) -> "QuestionVersion | None":
        """Make a new version of this content; None if the current one says the same."""
        if self.current and self.current.digest == spec.digest:
            if self.current.mistakes != spec.mistakes:
                QuestionVersion.objects.filter(pk=self.current.pk).update(mistakes=spec.mistakes)
            return None
        with transaction.atomic():
            version = QuestionVersion.objects.create(
                question=self,
                lab=Lab.objects.get(slug=spec.lab) if spec.lab else None,
                digest=spec.digest,
                mistakes=spec.mistakes,
                **{name: value for name, value in spec.content.items() if name not in {"lab", "options"}},
            )
            for position, option in enumerate(spec.options):
                Option.objects.create(
                    version=version,
                    position=position,
                    text=option.text,
                    is_key=option.right,
                    why=option.why,
                    pinned=option.pinned,
                )
            version.make_current()
        return version


class Immutable(models.Model):
    """A row that is written once."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            self._refuse()
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ImmutableError(f"{self._meta.verbose_name} {self.pk} is written once: make a new version")


class QuestionVersion(Immutable):
    """What a question said at a time: text, options, key, reasons. Answers point here."""

    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField(editable=False)
    kind = models.CharField(max_length=20, choices=KINDS)
    title = models.CharField(max_length=80, help_text="For lists: a natural question or claim.")
    text = models.TextField(help_text="As an interviewer would ask it, under 60 words. Markdown.")
    facts = models.JSONField(default=list, blank=True)
    lab = models.ForeignKey(Lab, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    answer = models.TextField(blank=True, help_text="The answer as one would say it in 60 seconds.")
    listens_for = models.JSONField(default=list, blank=True)
    warning = models.TextField(blank=True, help_text="A phrase that an interviewer would wince at, and why.")
    follow_ups = models.JSONField(default=list, blank=True)
    explanation = models.TextField(blank=True, help_text="How the key comes about; kind lab: what the runs have shown.")
    details = models.JSONField(default=dict, blank=True, help_text="What the kind needs beside options.")
    mistakes = models.JSONField(default=list, blank=True, editable=False)  # that options or traps stand for
    digest = models.CharField(max_length=64, editable=False)  # of all but the mistakes
    created = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering: ClassVar = ["question", "-number"]
        verbose_name = "question"
        constraints: ClassVar = [models.UniqueConstraint(fields=["question", "number"], name="one_version_of_a_number")]

    def __str__(self) -> str:
        return self.title

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding and not self.number:
            last = QuestionVersion.objects.filter(question=self.question).order_by("-number").first()
            self.number = last.number + 1 if last else 1
        super().save(*args, **kwargs)

    @property
    def asked_words(self) -> str:
        """The question for a list, where nothing is drawn yet: its parameters are left open."""
        text = self.text
        for name in self.details.get("numeric", {}).get("parameters", {}):
            text = text.replace(f"{{{name}}}", "…")
        return text

    @property
    def data(self) -> dict[str, Any]:
        """The version as an author writes it, for the validator; level and status are the question's of today."""
        said = ("title", "kind", "facts", "text", "answer", "listens_for", "warning", "follow_ups", "explanation")
        data: dict[str, Any] = {name: getattr(self, name) for name in said} | self.details
        data |= {"level": self.question.level, "status": self.question.status}
        data["lab"] = self.lab.slug if self.lab else None
        if options := list(self.options.all()):
            data["options"] = self._with_mistakes([option.data for option in options])
        if numeric := self.details.get("numeric"):
            data["numeric"] = numeric | {"traps": self._with_mistakes(numeric["traps"])}
        return data

    def _with_mistakes(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        mistakes = self.mistakes or [""] * len(parts)
        return [part | ({"mistake": mistake} if mistake else {}) for part, mistake in zip(parts, mistakes, strict=True)]

    def make_current(self) -> None:
        """Show this version to learners from now on."""
        self.question.current = self
        self.question.save(update_fields=["current"])
        texts = texts_of(self, self.options.all())
        SearchText.objects.update_or_create(question=self.question, defaults=texts)


class SearchText(models.Model):
    """What can be searched of a question as it is now; each database indexes it in its own way (search.py)."""

    question = models.OneToOneField(Question, primary_key=True, on_delete=models.CASCADE, related_name="+")
    asked = models.TextField()
    reasons = models.TextField()  # for those who have answered it

    def __str__(self) -> str:
        return f"words of {self.question}"


class Option(Immutable):
    """An option of a choice. Its public id says nothing of its place or its truth."""

    version = models.ForeignKey(QuestionVersion, on_delete=models.PROTECT, related_name="options")
    public_id = models.UUIDField(default=uuid4, unique=True, editable=False)
    text = models.TextField()
    is_key = models.BooleanField("right", default=False)
    why = models.TextField("why it is right or wrong", blank=True)
    pinned = models.BooleanField(default=False, help_text="Keeps its place when the others are shuffled.")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["position", "pk"]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def data(self) -> dict[str, Any]:
        return {"text": self.text, "right": self.is_key, "why": self.why, "pinned": self.pinned}


class TooManyReports(ValueError):
    """A learner has said more than the authors can read."""


class ReportManager(models.Manager["Report"]):
    def say(self, version: QuestionVersion, learner: User, reason: str, text: str) -> None:
        """Keep what a learner says is wrong; the same again changes nothing while the first is open.

        Raises
        ------
        TooManyReports
        """
        with transaction.atomic():
            User.objects.select_for_update().get(pk=learner.pk)  # one report at a time of each learner
            mine = self.filter(learner=learner, state="open")
            if mine.filter(version=version, reason=reason).exists():
                return
            if mine.count() >= Report.MOST_OPEN:
                raise TooManyReports(f"{Report.MOST_OPEN} of your reports are open. The authors read those first.")
            self.create(version=version, learner=learner, reason=reason, text=text)

    def broken(self, version: QuestionVersion, failure: str) -> None:
        """Tell the authors that a version could not be judged; once, however many learners meet it."""
        defaults = {"text": failure[: Report.LONGEST]}
        self.get_or_create(version=version, reason="broken", state="open", defaults=defaults)


class Report(models.Model):
    """What somebody says is wrong with a version of a question; the authors' queue."""

    LONGEST = 1000  # letters
    MOST_OPEN = 20  # of one learner
    REASONS: ClassVar = [
        ("key", "The key is wrong"),
        ("unclear", "It can be read in two ways"),
        ("outdated", "It is out of date"),
        ("writing", "A mistake in the writing"),
        ("other", "Something else"),
        ("broken", "It could not be judged"),
    ]
    OFFERED = REASONS[:-1]  # the last is said by the site alone
    STATES: ClassVar = [("open", "Open"), ("mended", "Mended"), ("declined", "No change")]

    version = models.ForeignKey(QuestionVersion, on_delete=models.PROTECT, related_name="reports")
    learner = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL, related_name="reports")
    reason = models.CharField(max_length=10, choices=REASONS)
    text = models.TextField(max_length=LONGEST, blank=True)
    state = models.CharField(max_length=10, choices=STATES, default="open")
    created = models.DateTimeField(auto_now_add=True)

    objects = ReportManager()

    class Meta:
        ordering: ClassVar = ["-created"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["version", "learner", "reason"], condition=models.Q(state="open"), name="said_once"
            ),
            models.UniqueConstraint(
                fields=["version"], condition=models.Q(state="open", reason="broken"), name="broken_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_reason_display()}: {self.version}"
