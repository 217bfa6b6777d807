"""Answers: what a learner said to a version of a question, kept once for each rendered form."""

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import models, transaction
from django.http import QueryDict

from quizsite.accounts.models import User
from quizsite.questions.kinds import explain, kind_named
from quizsite.questions.kinds.kind import NotAnswered, Response
from quizsite.questions.models import Question, QuestionVersion

VERDICTS = [("right", "Right"), ("partly", "Partly right"), ("wrong", "Wrong")]


class AnswerQuerySet(models.QuerySet["Answer"]):
    def by(self, learner: User | AnonymousUser) -> Self:
        return self.filter(learner=learner) if learner.is_authenticated else self.none()

    def to(self, question: Question) -> Self:
        return self.filter(version__question=question)

    def newest_first(self) -> Self:
        return self.select_related("version", "version__lab__first_step").order_by("-created", "-pk")

    def record(self, learner: User, version: QuestionVersion, response: Response, token: UUID) -> "Answer":
        """Grade the response and keep it; the same token again returns the same answer."""
        with transaction.atomic():
            User.objects.select_for_update().get(pk=learner.pk)  # one answer at a time for each learner
            known = self.select_related("version").filter(learner=learner, token=token).first()
            if known and known.version.question_id == version.question_id:
                return known
            if known:
                raise NotAnswered("This form has been used for another question. Choose again.")
            grade = kind_named(version.kind).grade(version, response)
            last = self.filter(learner=learner, version=version).aggregate(last=models.Max("try_number"))["last"]
            return self.create(
                learner=learner,
                version=version,
                token=token,
                try_number=(last or 0) + 1,
                response=response,
                verdict=grade.verdict,
                score=_stored(grade.score),
            )


class Answer(models.Model):
    """What one learner answered to one version of a question, and how it was judged."""

    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="answers")
    version = models.ForeignKey(QuestionVersion, on_delete=models.PROTECT, related_name="answers")
    token = models.UUIDField()  # one per rendered form: a second press is the same answer
    try_number = models.PositiveIntegerField()
    response = models.JSONField()
    verdict = models.CharField(max_length=6, choices=VERDICTS)
    score = models.DecimalField(max_digits=6, decimal_places=4)
    created = models.DateTimeField(auto_now_add=True)

    objects = AnswerQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["learner", "token"], name="one_answer_of_a_form"),
            models.UniqueConstraint(fields=["learner", "version", "try_number"], name="one_answer_of_a_try"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.version}"

    def mark(self, data: QueryDict) -> None:
        """Take the learner's own marks of an explanation."""
        self.response = explain.mark(self.version, self.response, data)
        grade = explain.grade(self.version, self.response)
        self.verdict, self.score = grade.verdict, _stored(grade.score)
        self.save(update_fields=["response", "verdict", "score"])


def _stored(score: Fraction) -> Decimal:
    return Decimal(score.numerator) / score.denominator
