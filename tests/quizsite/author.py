"""What an author's browser sends."""

from typing import Any

from quizsite.questions.authoring import VersionForm
from quizsite.questions.models import Question
from quizsite.questions.rows import RowsField


def form_of(question: Question, **changes: Any) -> dict[str, Any]:
    """Return what a browser would send from the question's form."""
    version = question.current
    assert version
    form = VersionForm(instance=version)
    data = {name: form[name].value() for name in form.fields if not isinstance(form.fields[name], RowsField)}
    data |= {"slug": question.slug, "topic": question.topic_id, "level": question.level, "status": question.status}
    for name, field in form.fields.items():
        if isinstance(field, RowsField):
            rows = form.initial.get(name) or []
            data |= {f"{name}-TOTAL_FORMS": len(rows) + 2, f"{name}-INITIAL_FORMS": len(rows)}
            data |= {f"{name}-{at}-{part}": value for at, row in enumerate(rows) for part, value in row.items()}
    return {name: value for name, value in (data | changes).items() if value is not None and value is not False}
