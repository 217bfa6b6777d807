"""Full-text search over the bank: in what a question asks, and in the reasons of those that are unlocked.

PostgreSQL and SQLite each have an index of their own for it, made by a migration over the same table.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

if TYPE_CHECKING:
    from quizsite.questions.models import QuestionVersion

WORD = re.compile(r"[^\W_]+")
MOST_WORDS = 8
SHORTEST_BEGINNING = 3  # letters; of the last word of a search
TOO_COMMON = frozenset(  # PostgreSQL leaves these out of its English index; left out here, both find the same
    WORD.findall(
        """
        a about above after again against all am an and any are as at be because been before being below between both
        but by can did do does doing don down during each few for from further had has have having he her here hers
        herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off on
        once only or other our ours ourselves out over own s same she should so some such t than that the their theirs
        them themselves then there these they this those through to too under until up very was we were what when where
        which while who whom why will with you your yours yourself yourselves
        """
    )
)
ASKING = {  # ids of the questions that ask with these words
    "postgresql": "SELECT question_id FROM questions_searchtext WHERE asked_vector @@ to_tsquery('english', %s)",
    "sqlite": "SELECT rowid FROM questions_search WHERE questions_search MATCH %s",
}
EXPLAINING = {  # ids of those among some that explain with them
    # OFFSET 0: else the planner reads the long vectors of all questions, though a learner has answered a few
    "postgresql": "SELECT question_id FROM (SELECT question_id, reasons_vector FROM questions_searchtext"
    " WHERE question_id IN ({ids}) OFFSET 0) AS few WHERE reasons_vector @@ to_tsquery('english', %s)",
    # +rowid: else it looks for the words again for each question
    "sqlite": "SELECT rowid FROM questions_search WHERE +rowid IN ({ids}) AND questions_search MATCH %s",
}


def words_in(typed: str) -> list[str]:
    """Return the words of a search, at most eight."""
    return _telling_words(typed)[:MOST_WORDS]


def _telling_words(text: str) -> list[str]:
    """Return the words that tell texts apart; signs between them and accents mean nothing."""
    bare = "".join(letter for letter in normalize("NFKD", text.casefold()) if not combining(letter))
    return [word for word in WORD.findall(bare) if word not in TOO_COMMON]


def matching(words: list[str], unlocked: QuerySet[Any]) -> Q:
    """Return the condition that a question asks with all these words, or that it is unlocked and explains with them.

    Parameters
    ----------
    words : list of str
        At least one; the last may be the beginning of a word, of three letters or more.
    unlocked : QuerySet
        Ids of the questions whose reasons the learner has seen.
    """
    asking = RawSQL(ASKING[connection.vendor], [_query("asked", words)])  # noqa: S611  (the words are a parameter)
    try:
        ids, params = unlocked.query.sql_with_params()
    except EmptyResultSet:  # nothing is unlocked
        return Q(pk__in=asking)
    sql = EXPLAINING[connection.vendor].format(ids=ids)
    explaining = RawSQL(sql, [*params, _query("reasons", words)])  # noqa: S611
    return Q(pk__in=asking) | Q(pk__in=explaining)


def _query(column: str, words: list[str]) -> str:
    """Write the search in the language of the database; words hold letters and digits alone."""
    begins = len(words[-1]) >= SHORTEST_BEGINNING
    if connection.vendor == "postgresql":
        return " & ".join(f"'{word}'" for word in words) + (":*" if begins else "")
    quoted = " AND ".join(f'"{word}"' for word in words)
    return f"{column} : ({quoted}{'*' if begins else ''})"


def texts_of(version: "QuestionVersion", options: Iterable[Any]) -> Mapping[str, str]:
    """Return what can be searched of a version: what it asks, and what it explains after the answer.

    The texts are cut into words here, as a search is: PostgreSQL would take `prefill/decode` for a file.
    """
    options = list(options)
    asked = [version.title, version.text, *(option.text for option in options)]
    reasons = [version.answer, version.explanation, version.warning, *version.listens_for]
    reasons += [option.why for option in options]
    reasons += [follow_up["text"] for follow_up in version.follow_ups]
    return {"asked": _searchable(asked), "reasons": _searchable(reasons)}


def _searchable(texts: Iterable[str]) -> str:
    return " ".join(_telling_words("\n".join(texts)))


def index_all() -> None:
    """Write the texts of all current versions anew."""
    from quizsite.questions.models import Question, SearchText  # noqa: PLC0415  (models use this module)

    questions = Question.objects.filter(current__isnull=False).select_related("current")
    rows = [
        SearchText(question=question, **texts_of(question.current, question.current.options.all()))
        for question in questions.prefetch_related("current__options")
        if question.current
    ]
    SearchText.objects.all().delete()
    SearchText.objects.bulk_create(rows, batch_size=500)
