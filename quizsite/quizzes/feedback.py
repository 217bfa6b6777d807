"""What a learner sees of a question once the answer is in; before that, none of it leaves the server."""

from typing import Any

from quizsite.questions.kinds import kind_named
from quizsite.questions.kinds.kind import Asking
from quizsite.questions.models import Question, QuestionVersion
from quizsite.quizzes.models import Answer


def feedback(version: QuestionVersion, answer: Answer, asking: Asking) -> dict[str, Any]:
    """Return the reasons for `includes/feedback.html`: those of the kind, and what an interviewer asks next."""
    shown = kind_named(version.kind).show(version, answer.response, asking)
    is_assigned = version.kind == "explain" and answer.is_assigned
    given = {"is_assigned": True, "mark": answer.mark_given, "waits": answer.waits} if is_assigned else {}
    return {"answer": answer, **shown, **given, "follow_ups": _follow_ups(version)}


def _follow_ups(version: QuestionVersion) -> list[dict[str, Any]]:
    """Return the follow-ups, each with the question that answers it where there is one."""
    slugs = [follow_up["question"] for follow_up in version.follow_ups if follow_up["question"]]
    known = {found.slug: found for found in Question.objects.published().filter(slug__in=slugs)}
    return [{"text": f["text"], "question": known.get(f["question"])} for f in version.follow_ups]
