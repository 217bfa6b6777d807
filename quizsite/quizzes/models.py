"""What learners do with questions: quizzes, attempts and their slots, answers, cards for review, saved questions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self
from uuid import UUID, uuid4

from django.contrib.auth.models import AnonymousUser
from django.db import models, transaction
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from quizsite.accounts.models import User
from quizsite.questions.kinds import explain, kind_named
from quizsite.questions.kinds.kind import Asking, Grade, NotAnswered, Response
from quizsite.questions.models import Question, QuestionVersion, Report, Topic
from quizsite.questions.validation import LEVELS
from quizsite.quizzes import review

VERDICTS = [("right", "Right"), ("partly", "Partly right"), ("wrong", "Wrong")]
SURE = [(1, "A guess, 50%"), (2, "Fairly sure, 75%"), (3, "Sure, 95%")]
MODES = [
    ("drill", "Drill"),
    ("weak", "My weak spots"),
    ("missed", "What I got wrong"),
    ("review", "Review"),
    ("mock", "Mock interview"),
    ("assigned", "Assignment"),
]
FEEDBACK = [
    ("each", "After each answer"),
    ("end", "At the end of each try"),
    ("due", "Once it is due for everybody"),
    ("never", "Never"),
]
WAITS: dict[str, Any] = {  # answers that wait for a teacher's mark
    "version__kind": "explain",
    "slot__attempt__quiz__mode": "assigned",
    "given_mark": None,
}
LATE = timedelta(seconds=5)  # what was typed before the end may arrive a little after it


class AnswerQuerySet(models.QuerySet["Answer"]):
    def by(self, learner: User | AnonymousUser) -> Self:
        return self.filter(learner=learner) if learner.is_authenticated else self.none()

    def to(self, question: Question) -> Self:
        return self.filter(version__question=question)

    def shown(self) -> Self:
        """Answers whose verdict and key their learner may see now."""
        at_once = models.Q(slot=None) | models.Q(slot__attempt__quiz__feedback__in=["each", "end"])
        by_now = models.Q(slot__attempt__quiz__feedback="due", slot__attempt__quiz__shows_from__lte=timezone.now())
        return self.filter(at_once | by_now)

    def waiting(self) -> Self:
        """Explanations in assignments that nobody has marked: what their verdict says is a guess from the words."""
        return self.filter(**WAITS)

    def judged(self) -> Self:
        return self.exclude(**WAITS)

    def newest_first(self) -> Self:
        return self.select_related("version__lab__first_step", "slot__attempt__quiz", "given_mark").order_by(
            "-created", "-pk"
        )

    def record(
        self,
        learner: User,
        version: QuestionVersion,
        response: Response,
        token: UUID,
        asking: Asking,
        slot: "Slot | None" = None,
    ) -> "Answer":
        """Grade the response and keep it; the same token again returns the same answer."""
        with transaction.atomic():
            User.objects.select_for_update().get(pk=learner.pk)  # one answer at a time for each learner
            known = self.select_related("version").filter(learner=learner, token=token).first()
            if known and known.version.question_id == version.question_id:
                return known
            if known:
                raise NotAnswered("This form has been used for another question. Choose again.")
            grade = graded(version, response)
            last = self.filter(learner=learner, version=version).aggregate(last=models.Max("try_number"))["last"]
            answer = self.create(
                learner=learner,
                version=version,
                slot=slot,
                token=token,
                try_number=(last or 0) + 1,
                response=response,
                verdict=grade.verdict,
                score=_stored(grade.score),
                sure=slot.sure if slot else None,
                asking_key=asking.key,
            )
            ReviewCard.objects.schedule(learner, version.question_id)
        return answer


def graded(version: QuestionVersion, response: Response) -> Grade:
    """Judge a response. A grader that fails costs the learner nothing, and the authors hear of it."""
    try:
        return kind_named(version.kind).grade(version, response)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    raise Ungraded(version, failure)


class Ungraded(NotAnswered):
    """A question whose grader failed on an answer."""

    def __init__(self, version: QuestionVersion, failure: str) -> None:
        super().__init__(
            "This question cannot be judged at the moment. No try is spent, and its authors have been told. "
            "Your answer is kept below."
        )
        self.version, self.failure = version, failure

    def report(self) -> None:
        """Tell the authors; outside the transaction that the failure has undone."""
        Report.objects.broken(self.version, self.failure)


class Answer(models.Model):
    """What one learner answered to one version of a question, and how it was judged."""

    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="answers")
    version = models.ForeignKey(QuestionVersion, on_delete=models.PROTECT, related_name="answers")
    slot = models.OneToOneField("Slot", null=True, on_delete=models.SET_NULL, related_name="answer")
    token = models.UUIDField()  # one per rendered form: a second press is the same answer
    try_number = models.PositiveIntegerField()
    response = models.JSONField()
    verdict = models.CharField(max_length=6, choices=VERDICTS)
    score = models.DecimalField(max_digits=6, decimal_places=4)
    sure = models.PositiveSmallIntegerField(null=True, choices=SURE)
    asking_key = models.CharField(max_length=150, blank=True)  # what the options were shuffled by
    created = models.DateTimeField(default=timezone.now)

    objects = AnswerQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["learner", "token"], name="one_answer_of_a_form"),
            models.UniqueConstraint(fields=["learner", "version", "try_number"], name="one_answer_of_a_try"),
        ]
        indexes: ClassVar = [models.Index(fields=["learner", "-created"])]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.version}"

    @property
    def asking(self) -> Asking:
        """As the question was put: its options stand in the same order when the answer is seen again."""
        return Asking(self.asking_key, self.try_number)

    @property
    def is_assigned(self) -> bool:
        """Tell whether it was given in an assignment, where a teacher marks explanations."""
        return self.slot is not None and self.slot.attempt.quiz.mode == "assigned"

    @property
    def mark_given(self) -> "Mark | None":
        return getattr(self, "given_mark", None)

    @property
    def waits(self) -> bool:
        """Tell whether it waits for a teacher's mark; until then its verdict is a guess that counts nothing."""
        return self.version.kind == "explain" and self.is_assigned and not self.mark_given

    def mark(self, data: QueryDict) -> None:
        """Take the learner's own marks of an explanation; in an assignment they stand beside the teacher's."""
        with self._marking():
            mark = explain.mark_beside if self.is_assigned else explain.mark
            self.response = mark(self.version, self.response, data)

    def take_mark(self, teacher: User, data: QueryDict, note: str) -> None:
        """Take a teacher's marks of an explanation, which decide; the learner's own stay beside them."""
        with self._marking():
            self.response = explain.mark_by_another(self.version, self.response, data)
            Mark.objects.update_or_create(answer=self, defaults={"by": teacher, "note": note})

    @contextmanager
    def _marking(self) -> Iterator[None]:
        """Hold the answer while its marks change, then judge it anew: two who mark it take turns."""
        with transaction.atomic():
            self.refresh_from_db(fields=["response"], from_queryset=Answer.objects.select_for_update())
            yield
            grade = explain.grade(self.version, self.response)
            self.verdict, self.score = grade.verdict, _stored(grade.score)
            self.save(update_fields=["response", "verdict", "score"])
            ReviewCard.objects.schedule(self.learner, self.version.question_id)


class Mark(models.Model):
    """That somebody else has marked an explanation; the points they ticked are in its response, and decide."""

    LONGEST = 1000  # letters

    answer = models.OneToOneField(Answer, on_delete=models.CASCADE, related_name="given_mark")
    by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="marks")
    note = models.TextField(max_length=LONGEST, blank=True)
    created = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"mark of {self.answer}"


def _stored(score: Fraction) -> Decimal:
    return Decimal(score.numerator) / score.denominator


@dataclass(frozen=True)
class Rule:
    """How the questions of a quiz are picked, and how it is taken."""

    mode: str
    level: str = ""
    topic: str = ""  # its slug
    n_questions: int = 10
    minutes: int | None = None
    source: UUID | None = None  # the attempt whose wrong answers are asked again

    @property
    def key(self) -> str:
        parts = (self.mode, self.level, self.topic, self.n_questions, self.minutes or "", self.source or "")
        return "/".join(map(str, parts))


class QuizManager(models.Manager["Quiz"]):
    def of(self, rule: Rule) -> "Quiz":
        """Return the one quiz of a rule."""
        topic = Topic.objects.filter(slug=rule.topic).first() if rule.topic else None
        values = {
            "mode": rule.mode,
            "level": rule.level,
            "topic": topic,
            "n_questions": rule.n_questions,
            "minutes": rule.minutes,
            "source_id": rule.source,
            "feedback": "end" if rule.mode == "mock" else "each",
        }
        quiz, _ = self.select_related("topic").get_or_create(key=rule.key, defaults=values)
        return quiz


class Quiz(models.Model):
    """What an attempt asks: how its questions are picked, and under which rules it is taken."""

    key = models.CharField(max_length=200, unique=True)  # of its rule: the same choice is the same quiz
    mode = models.CharField(max_length=8, choices=MODES)
    level = models.CharField(max_length=20, choices=LEVELS, blank=True)
    topic = models.ForeignKey(Topic, null=True, on_delete=models.PROTECT, related_name="+")
    n_questions = models.PositiveSmallIntegerField()
    minutes = models.PositiveSmallIntegerField(null=True)
    source = models.ForeignKey("Attempt", null=True, on_delete=models.CASCADE, related_name="again")
    title = models.CharField(max_length=80, blank=True)  # of an assignment
    is_selected = models.BooleanField(default=False)  # it asks its selection in order; else what its rule finds
    selection = models.ManyToManyField(Question, through="QuizQuestion", related_name="+")
    attempts_allowed = models.PositiveSmallIntegerField(null=True)  # None: as many as one likes
    feedback = models.CharField(max_length=5, choices=FEEDBACK, default="each")
    shows_from = models.DateTimeField(null=True)  # if the feedback waits until it is due

    objects = QuizManager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~models.Q(feedback="due") | models.Q(shows_from__isnull=False),
                name="late_feedback_has_a_time",
            )
        ]

    def __str__(self) -> str:
        if self.title:
            return self.title
        parts = [self.get_mode_display()]
        parts += [self.get_level_display()] if self.level else []
        parts += [self.topic.name] if self.topic else []
        return ", ".join(parts)

    @property
    def judges_at_once(self) -> bool:
        """Tell whether each answer has its verdict at once; a mock interview has them all at its end."""
        return self.feedback == "each"

    @property
    def shows_now(self) -> bool:
        """Tell whether the verdicts of an attempt that has ended may be seen now."""
        if self.feedback == "due":
            assert self.shows_from
            return self.shows_from <= timezone.now()
        return self.feedback != "never"

    @property
    def asks_how_sure(self) -> bool:
        return self.mode in {"mock", "review"}

    def select(self, questions: Sequence[Question]) -> None:
        """Ask these questions, in this order."""
        with transaction.atomic():
            QuizQuestion.objects.filter(quiz=self).delete()
            QuizQuestion.objects.bulk_create(
                QuizQuestion(quiz=self, question=question, position=at)
                for at, question in enumerate(questions, start=1)
            )
            self.n_questions = len(questions)
            self.save(update_fields=["n_questions"])


class QuizQuestion(models.Model):
    """A question that was selected for a quiz, and its place there."""

    quiz = models.ForeignKey(Quiz, on_delete=models.CASCADE, related_name="places")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()  # from 1

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["quiz", "position"], name="one_question_of_a_place"),
            models.UniqueConstraint(fields=["quiz", "question"], name="a_question_once_in_a_quiz"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.question}"


class Closed(Exception):
    """An attempt that has ended takes no more answers."""


class Stale(Exception):
    """A form was rendered before something newer was kept; what it holds must not overwrite that."""


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def by(self, learner: User | AnonymousUser) -> Self:
        return self.filter(learner=learner) if learner.is_authenticated else self.none()

    def open(self) -> Self:
        return self.filter(finished=None)

    def running(self) -> Self:
        """Open attempts whose time is not up."""
        return self.open().exclude(deadline__lt=timezone.now())

    def with_quiz(self) -> Self:
        return self.select_related("quiz__topic", "learner")

    def with_scores(self) -> Self:
        """Attempts at assignments: how many questions, how many answers wait for a mark, the score without them."""
        of_others = ~models.Q(slots__version__kind="explain")
        is_marked = models.Q(slots__answer__given_mark__isnull=False)
        has_answer = models.Q(slots__answer__isnull=False)
        return self.annotate(
            n_slots=models.Count("slots"),
            n_waiting=models.Count("slots", filter=has_answer & ~of_others & ~is_marked),
            score=models.Sum("slots__answer__score", filter=of_others | is_marked, default=Decimal()),
        )


class Attempt(models.Model):
    """One learner taking one quiz. There is one open attempt of a quiz at a time."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="attempts")
    quiz = models.ForeignKey(Quiz, on_delete=models.RESTRICT, related_name="attempts")
    started = models.DateTimeField(default=timezone.now)
    deadline = models.DateTimeField(null=True)  # by the server's clock alone
    finished = models.DateTimeField(null=True)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-started"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["learner", "quiz"], condition=models.Q(finished=None), name="one_open_attempt_of_a_quiz"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["learner", "-started"])]

    def __str__(self) -> str:
        return f"{self.quiz} of {self.learner}"

    def get_absolute_url(self) -> str:
        return reverse("quizzes:attempt", args=[self.id])

    @property
    def is_shown(self) -> bool:
        """Tell whether its learner may see verdicts, keys and reasons now."""
        return self.quiz.judges_at_once or (self.finished is not None and self.quiz.shows_now)

    @property
    def n_done(self) -> int:
        return len(self.in_order) - len(self.undone)

    @property
    def seconds_left(self) -> int | None:
        """Seconds until its deadline; None where time does not count."""
        if not self.deadline or self.finished:
            return None
        return max(0, int((self.deadline - timezone.now()).total_seconds()))

    @property
    def is_over(self) -> bool:
        """Tell whether its time is up by the server's clock."""
        return self.deadline is not None and timezone.now() > self.deadline + LATE

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the attempt while something is kept under it: saving, answering and finishing take turns.

        Raises
        ------
        Closed
            If it has ended meanwhile.
        """
        with transaction.atomic():
            held = Attempt.objects.select_for_update().get(pk=self.pk)
            self.finished = held.finished
            if self.finished:
                raise Closed
            yield

    @cached_property
    def in_order(self) -> list["Slot"]:
        """Its slots in order, each with its version and answer."""
        found = self.slots.select_related("version__question__topic", "version__lab", "answer__given_mark")
        slots = list(found.prefetch_related("version__options").order_by("position"))
        for slot in slots:
            slot.attempt = self
        return slots

    @property
    def undone(self) -> list["Slot"]:
        """The slots that have nothing yet."""
        return [slot for slot in self.in_order if not slot.is_done]

    def next_after(self, position: int) -> "Slot | None":
        """Return the next slot that has nothing yet: behind this place, or else before it."""
        behind_first = sorted(self.undone, key=lambda slot: (slot.position < position, slot.position))
        return next((slot for slot in behind_first if slot.position != position), None)

    def finish(self) -> None:
        """End it; what was typed and not sent is judged as it stands. Ending it twice changes nothing."""
        try:
            with self.writing():
                self.__dict__.pop("in_order", None)  # what is kept now, not what was when the page was read
                for slot in self.in_order:
                    slot.judge_draft()
                self.close()
        except Closed:
            return

    def close(self) -> None:
        """Write down when it ended; its time does not go on after the deadline."""
        now = timezone.now()
        self.finished = min(now, self.deadline or now)
        self.save(update_fields=["finished"])

    def settle(self) -> None:
        """Finish it if its time is up: whoever looks at it next sees its end."""
        if not self.finished and self.is_over:
            self.finish()

    def learn(self) -> None:
        """Bring the cards of its questions up to date, once verdicts that were held back may be seen."""
        asked = [slot.version.question_id for slot in self.in_order]
        known = ReviewCard.objects.filter(learner=self.learner_id, question__in=asked)
        reviewed = dict(known.values_list("question", "last_review"))
        for slot in self.in_order:
            answer, question_id = slot.found_answer, slot.version.question_id
            if answer and not answer.waits and (question_id not in reviewed or reviewed[question_id] < answer.created):
                ReviewCard.objects.schedule(self.learner, question_id)


class Slot(models.Model):
    """A place in an attempt: the version that is asked there, why, and what has been typed."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="slots")
    position = models.PositiveSmallIntegerField()  # from 1
    version = models.ForeignKey(QuestionVersion, on_delete=models.PROTECT, related_name="+")
    why = models.CharField(max_length=120, blank=True)  # it was picked
    draft = models.JSONField(default=dict)  # the form's fields as typed, each with its values
    sure = models.PositiveSmallIntegerField(null=True, choices=SURE)
    token = models.UUIDField(default=uuid4)  # of the newest form; each kept change makes the next one

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["attempt", "position"], name="one_slot_of_a_place"),
            models.UniqueConstraint(fields=["attempt", "version"], name="a_question_once_in_an_attempt"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("quizzes:slot", args=[self.attempt_id, self.position])

    @property
    def asking(self) -> Asking:
        return Asking(str(self.attempt_id))

    @property
    def found_answer(self) -> Answer | None:
        return getattr(self, "answer", None)

    @property
    def is_done(self) -> bool:
        return bool(self.found_answer) or self.has_draft

    @property
    def typed(self) -> QueryDict:
        """What has been typed so far, as a form would send it."""
        typed = QueryDict(mutable=True)
        for name, values in self.draft.items():
            typed.setlist(name, values)
        return typed

    @property
    def has_draft(self) -> bool:
        return any(value.strip() for values in self.draft.values() for value in values)

    def holds(self, data: QueryDict) -> bool:
        """Tell whether a form says just what is kept."""
        return fields_of(data) == self.draft and _sure_in(data) == self.sure

    def keep(self, data: QueryDict, token: UUID) -> None:
        """Keep what has been typed, unless something newer is kept or the question is answered.

        Raises
        ------
        Stale, Closed
        """
        with self.attempt.writing():
            self._check(token)
            self._keep(data)

    def take(self, data: QueryDict, token: UUID) -> Answer:
        """Judge what was sent and keep it as the one answer of this slot; the same form again is the same answer.

        Raises
        ------
        NotAnswered, Stale, Closed
        """
        with self.attempt.writing():
            self._check(token)
            self.sure = _sure_in(data)
            answer = self._judge(data)
            self.draft = fields_of(data)
            self.save(update_fields=["draft", "sure"])
            if not self.attempt.slots.filter(answer=None).exists():
                self.attempt.close()
        return answer

    def judge_draft(self) -> None:
        """Judge what is typed, if it can be read as an answer. The attempt is held by the caller."""
        if self.found_answer or not self.has_draft:
            return
        try:
            with transaction.atomic():
                self._judge(self.typed)
        except Ungraded as failed:
            failed.report()
        except NotAnswered:
            return

    def _judge(self, data: QueryDict) -> Answer:
        kind = kind_named(self.version.kind)
        response = kind.read(self.version, data, self.attempt.learner, self.asking)
        return Answer.objects.record(self.attempt.learner, self.version, response, self.token, self.asking, slot=self)

    def _check(self, token: UUID) -> None:
        """Compare the form's token with the newest one, as it is now in the database."""
        self.refresh_from_db(fields=["draft", "sure", "token"])
        if self.token != token or Answer.objects.filter(slot=self).exists():
            raise Stale

    def _keep(self, data: QueryDict) -> None:
        self.draft, self.sure, self.token = fields_of(data), _sure_in(data), uuid4()
        self.save(update_fields=["draft", "sure", "token"])


FORM_FIELDS = {"csrfmiddlewaretoken", "token", "version", "do", "sure"}  # of the form itself, not of the answer
LONGEST_DRAFT = 20_000  # letters


def fields_of(data: QueryDict) -> dict[str, list[str]]:
    """Return what a form says, each field with its values.

    Raises
    ------
    NotAnswered
        If it is longer than any answer.
    """
    typed = {name: [str(v).replace("\x00", "") for v in data.getlist(name)] for name in data if name not in FORM_FIELDS}
    size = sum(len(name) + sum(map(len, values)) for name, values in typed.items())
    if size > LONGEST_DRAFT:
        raise NotAnswered(f"An answer of at most {LONGEST_DRAFT:,} letters can be kept, this one has {size:,}.")
    return typed


def _sure_in(data: QueryDict) -> int | None:
    typed = data.get("sure", "")
    return int(typed) if typed in {"1", "2", "3"} else None


class ReviewCardQuerySet(models.QuerySet["ReviewCard"]):
    def by(self, learner: User | AnonymousUser) -> Self:
        return self.filter(learner=learner) if learner.is_authenticated else self.none()

    def asked(self) -> Self:
        """Cards whose question can still be asked in a quiz."""
        published = self.filter(question__status="published", question__current__isnull=False)
        return published.exclude(question__current__kind="lab")

    def due(self, now: datetime | None = None) -> Self:
        return self.asked().filter(due__lte=now or timezone.now())

    def schedule(self, learner: User, question_id: int) -> None:
        """Bring a card up to date with all answers of its learner to its question, but those still held back."""
        answers = Answer.objects.filter(learner=learner, version__question_id=question_id).shown().judged()
        history = list(answers.order_by("created", "pk").values_list("created", "verdict", "sure"))
        if history:
            self.update_or_create(learner=learner, question_id=question_id, defaults=review.scheduled(history))


class ReviewCard(models.Model):
    """How well a learner knows a question, and when it is due again."""

    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="cards")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="cards")
    due = models.DateTimeField()
    last_review = models.DateTimeField()
    stability = models.FloatField()  # days until the chance to recall it falls to 90 %
    difficulty = models.FloatField()  # 1 to 10
    state = models.PositiveSmallIntegerField()
    step = models.PositiveSmallIntegerField(null=True)
    n_reviews = models.PositiveIntegerField()
    n_missed = models.PositiveIntegerField()  # of them, not right
    last_verdict = models.CharField(max_length=6, choices=VERDICTS)
    last_sure = models.PositiveSmallIntegerField(null=True, choices=SURE)

    objects = ReviewCardQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["learner", "question"], name="one_card_of_a_question")]
        indexes: ClassVar = [models.Index(fields=["learner", "due"])]

    def __str__(self) -> str:
        return f"{self.question} of {self.learner}, due {self.due:%Y-%m-%d}"

    def recall(self, now: datetime) -> float:
        """Return the chance that its learner recalls it now."""
        return review.recall(self.last_review, self.stability, now)


class SavedQuestion(models.Model):
    """A question that a learner keeps for later."""

    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["learner", "question"], name="saved_once")]

    def __str__(self) -> str:
        return f"{self.question}, saved by {self.learner}"
