"""Classes, who is in them, and what they are assigned."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import uuid4
from zoneinfo import ZoneInfo

from django.contrib.auth.models import AnonymousUser
from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts.models import User
from quizsite.quizzes import picking
from quizsite.quizzes.models import Answer, AnswerQuerySet, Attempt, Quiz

LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # no I, L, O, 0 and 1: they are taken for each other
CODE_LENGTH = 8
ROLES = [("learner", "Learner"), ("teacher", "Teacher")]
STATUSES = [("draft", "Draft"), ("published", "Published")]
COUNTS = [("best", "The best try"), ("first", "The first try")]
MAY_TEACH = "classes.add_class"


class LastTeacher(Exception):
    """A class must keep a teacher."""


class InUse(Exception):
    """Somebody has begun an assignment: what it asks stays as it is."""


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


class ClassQuerySet(models.QuerySet["Class"]):
    def of(self, user: User | AnonymousUser, *roles: str) -> Self:
        if not user.is_authenticated:
            return self.none()
        return self.filter(memberships__user=user, memberships__role__in=roles)

    def with_code(self, typed: str) -> Self:
        """Classes that can be joined with a code, as somebody types it."""
        code = "".join(letter for letter in typed.upper() if letter.isalnum())
        return self.filter(join_code=code[: CODE_LENGTH + 1])

    def open_by(self, teacher: User, name: str, time_zone: str) -> "Class":
        """Make a class and its first teacher."""
        with transaction.atomic():
            klass = self.create(name=name, time_zone=time_zone)
            klass.join(teacher, "teacher")
        return klass


class Class(models.Model):
    """Learners and their teachers."""

    name = models.CharField(max_length=80)
    join_code = models.CharField(max_length=CODE_LENGTH, unique=True, null=True, default=new_code)  # None: closed
    time_zone = models.CharField(max_length=60, default="UTC")
    created = models.DateTimeField(auto_now_add=True)

    objects = ClassQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        verbose_name_plural = "classes"

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("classes:class", args=[self.pk])

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def explanations(self) -> AnswerQuerySet:
        """Return the explanations that its learners have given in its assignments."""
        found = Answer.objects.filter(version__kind="explain", slot__attempt__quiz__assignment__klass=self)
        found = found.filter(learner__in=self.memberships.learners().values("user"))
        return found.select_related("version__question", "slot__attempt__quiz", "given_mark", "learner")

    def join(self, user: User, role: str = "learner") -> "Membership":
        """Take somebody in; who is in stays as they are."""
        with transaction.atomic():
            self.hold()
            known = self.memberships.filter(user=user).first()
            return known or self.memberships.create(user=user, role=role, number=self._free_number())

    def renew_code(self) -> None:
        """Let the old code lead nowhere."""
        self.join_code = new_code()
        self.save(update_fields=["join_code"])

    def close(self) -> None:
        """Let nobody else in."""
        self.join_code = None
        self.save(update_fields=["join_code"])

    def hold(self) -> None:
        """Lock the class: those who join and leave take turns."""
        Class.objects.select_for_update().get(pk=self.pk)

    def _free_number(self) -> int:
        """Draw a number for a learner that says neither their name nor when they came."""
        taken = set(self.memberships.values_list("number", flat=True))
        return secrets.choice([number for number in range(100, 1000 + 10 * len(taken)) if number not in taken])


class MembershipQuerySet(models.QuerySet["Membership"]):
    def learners(self) -> Self:
        return self.filter(role="learner").select_related("user")


class Membership(models.Model):
    """Somebody in a class."""

    klass = models.ForeignKey(Class, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=7, choices=ROLES, default="learner")
    number = models.PositiveIntegerField()  # what stands in place of the name while names are hidden
    joined = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["user__username"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["klass", "user"], name="once_in_a_class"),
            models.UniqueConstraint(fields=["klass", "number"], name="one_learner_of_a_number"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.klass}"

    def name(self, is_hidden: bool) -> str:
        return f"Learner {self.number}" if is_hidden and self.role == "learner" else self.user.username

    def leave(self) -> None:
        """Leave the class; what was done stays the learner's own, and nobody waits for their extra time any more.

        Raises
        ------
        LastTeacher
        """
        with self._keeping_a_teacher():
            given = ExtraTime.objects.filter(assignment__klass=self.klass_id, learner=self.user_id)
            for extra in given.select_related("assignment__quiz"):
                extra.assignment.give_extra(self.user, 0)
            self.delete()

    def become(self, role: str) -> None:
        """Take another role.

        Raises
        ------
        LastTeacher
        """
        with self._keeping_a_teacher():
            self.role = role
            self.save(update_fields=["role"])

    @contextmanager
    def _keeping_a_teacher(self) -> Iterator[None]:
        with transaction.atomic():
            self.klass.hold()
            yield
            if not self.klass.memberships.filter(role="teacher").exists():
                raise LastTeacher


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def published(self) -> Self:
        return self.filter(status="published")

    def with_quiz(self) -> Self:
        return self.select_related("quiz__topic", "klass")

    def make(self, klass: Class, chosen: Mapping[str, Any]) -> "Assignment":
        """Make a draft with these settings (of the form)."""
        with transaction.atomic():
            quiz = Quiz.objects.create(key=f"assigned/{uuid4()}", mode="assigned", n_questions=0)
            assignment = self.create(klass=klass, quiz=quiz, opens=chosen["opens"], due=chosen["due"])
            assignment.change(chosen)
        return assignment

    def settle(self) -> None:
        """End the attempts whose time is up, so that what was typed in them is judged."""
        over = Attempt.objects.open().filter(quiz__assignment__in=self, deadline__lt=timezone.now())
        for attempt in over.with_quiz():
            attempt.settle()


class Assignment(models.Model):
    """A quiz that a class is to take between two moments. What an attempt needs to know of it is in its quiz."""

    WHEN: ClassVar = ("opens", "due", "counts")
    HOW: ClassVar = ("title", "minutes", "attempts_allowed", "feedback")  # of its quiz
    WHAT: ClassVar = ("is_selected", "level", "topic", "n_questions")  # of its quiz; fixed once somebody has begun

    klass = models.ForeignKey(Class, on_delete=models.CASCADE, related_name="assignments")
    quiz = models.OneToOneField(Quiz, on_delete=models.PROTECT, related_name="assignment")
    opens = models.DateTimeField()
    due = models.DateTimeField()
    status = models.CharField(max_length=10, choices=STATUSES, default="draft")
    counts = models.CharField(max_length=5, choices=COUNTS, default="best")

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["due", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(opens__lt=models.F("due")), name="opens_before_it_is_due")
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return f"{reverse('classes:class', args=[self.klass_id])}#assignment-{self.pk}"

    @property
    def title(self) -> str:
        return self.quiz.title

    @property
    def has_begun(self) -> bool:
        return self.quiz.attempts.exists()

    @property
    def n_fitting(self) -> int:
        """How many questions there are to ask: those selected, or those that fit the rule."""
        return self.quiz.n_questions if self.quiz.is_selected else picking.askable(self.quiz).count()

    def change(self, chosen: Mapping[str, Any]) -> None:
        """Take these settings; what it asks stays as it is once somebody has begun."""
        with transaction.atomic():
            of_quiz = self.HOW if self.has_begun else self.HOW + self.WHAT
            for part, names in ((self, self.WHEN), (self.quiz, of_quiz)):
                for name in names:
                    setattr(part, name, chosen.get(name, getattr(part, name)))
            if self.quiz.is_selected:
                self.quiz.n_questions = self.quiz.places.count()
            self.save()
            self._move_times()

    def publish(self) -> None:
        self.status = "published"
        self.save(update_fields=["status"])

    def withdraw(self) -> None:
        """Make it a draft again.

        Raises
        ------
        InUse
        """
        if self.has_begun:
            raise InUse
        self.status = "draft"
        self.save(update_fields=["status"])

    def discard(self) -> None:
        """Delete it, with its quiz.

        Raises
        ------
        InUse
        """
        if self.has_begun:
            raise InUse
        with transaction.atomic():
            self.delete()
            self.quiz.delete()

    def give_extra(self, learner: User, minutes: int) -> None:
        """Give somebody more time, or none any more; who is at it has it at once."""
        with transaction.atomic():
            if minutes:
                self.extra_times.update_or_create(learner=learner, defaults={"minutes": minutes})
            else:
                self.extra_times.filter(learner=learner).delete()
            self._move_times()

    def due_with(self, extra: int) -> datetime:
        """Return when it is due for somebody with extra minutes."""
        return self.due + timedelta(minutes=extra)

    def start(self, learner: User) -> Attempt:
        """Open an attempt for a learner of the class, or return the one that is open.

        Raises
        ------
        picking.NothingToAsk
        """
        now, given = timezone.now(), self.extra_times.filter(learner=learner).first()
        extra = given.minutes if given else 0
        if now < self.opens:
            raise picking.NothingToAsk("It is not open yet.")
        if now >= self.due_with(extra):
            raise picking.NothingToAsk("It was due before now. What was kept in time counts.")
        return picking.open_attempt(learner, self.quiz, self._deadline(now, extra))

    def _deadline(self, started: datetime, extra: int) -> datetime:
        """Return when an attempt ends. Extra minutes lengthen the time for a try and the time until it is due."""
        due = self.due_with(extra)
        return min(due, started + timedelta(minutes=self.quiz.minutes + extra)) if self.quiz.minutes else due

    def _move_times(self) -> None:
        """Let the feedback and the open attempts follow the times that hold now."""
        extra = dict(self.extra_times.values_list("learner", "minutes"))
        waits = self.quiz.feedback == "due"
        self.quiz.shows_from = self.due_with(max(extra.values(), default=0)) if waits else None
        self.quiz.save()
        running = list(self.quiz.attempts.filter(finished=None))
        for attempt in running:
            attempt.deadline = self._deadline(attempt.started, extra.get(attempt.learner_id, 0))
        Attempt.objects.bulk_update(running, ["deadline"])


class ExtraTime(models.Model):
    """More time for one learner."""

    MOST = 60 * 24 * 30  # minutes

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="extra_times")
    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="extra_times")
    minutes = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["assignment", "learner"], name="one_extra_time_of_a_learner")
        ]

    def __str__(self) -> str:
        return f"{self.minutes} more minutes for {self.learner}"
