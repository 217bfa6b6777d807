"""Pages and answers of the site with the bank as it is, and with 10,000 questions and 1,000,000 answers."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from tests.bench.timing import alternate

N_QUESTIONS = 10_000
N_LEARNERS = 500
N_ANSWERED = 400  # questions of each learner
N_TRIES = 5  # of each question: 1,000,000 answers in all
BATCH = 20_000

QUESTION = "/questions/chatbot-repeats-one-sentence/"
PATHS = (
    "/",
    "/questions/",
    "/questions/?page=7",
    "/questions/?level=advanced&mine=wrong",
    "/questions/?q=temperature+copy",
    QUESTION,
    "/lab/sky-loop/",
    "/quiz/",
    "/mock/",
    "/review/",
    "/progress/",
)


def bench_pages() -> None:
    """Print server time, weight and number of queries of each page, small and large, in one run."""
    with TemporaryDirectory() as var:
        os.environ |= {
            "NEXT_TOKEN_VAR": var,
            "NEXT_TOKEN_HOSTS": "testserver 127.0.0.1",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        }
        import django  # noqa: PLC0415  (the settings are read on import)

        django.setup()
        from django.test.utils import setup_databases, teardown_databases  # noqa: PLC0415

        old = setup_databases(verbosity=0, interactive=False)
        _measure()
        teardown_databases(old, verbosity=0)


def _measure() -> None:
    from django.core.management import call_command  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from quizsite.accounts.models import User  # noqa: PLC0415

    call_command("load_content", stdout=StringIO())
    learner = User.objects.create_user("learner-0")
    client = Client()
    client.force_login(learner)
    jobs: dict[str, Callable[[], Any]] = {path: lambda path=path: client.get(path) for path in PATHS}  # type: ignore[misc]
    jobs["POST an answer: graded, with feedback"] = _answering(client)
    for job in jobs.values():
        job()
    small = alternate(*jobs.values())
    few = [_queries(job) for job in jobs.values()]
    began = time.perf_counter()
    n_answers = _grow(learner)
    print(f"built {N_QUESTIONS:,} questions and {n_answers:,} answers in {time.perf_counter() - began:.0f} s")
    large = alternate(*jobs.values())
    print("server time in ms, queries and kB, with the bank as it is, and with all of these:")
    for (name, job), ms, more_ms, queries in zip(jobs.items(), small, large, few, strict=True):
        size = len(job().content) / 1000
        print(f"  {name:<42} {ms:>6.1f} {more_ms:>6.1f} ms  {queries:>2} {_queries(job):>2} queries  {size:>5.0f} kB")


def _answering(client: Any) -> Callable[[], Any]:
    from quizsite.questions.models import Question  # noqa: PLC0415

    version = Question.objects.with_current().get(slug=QUESTION.split("/")[2]).current
    assert version
    option = version.options.get(is_key=True).public_id
    data = {"version": version.pk, "option": option}
    headers = {"HX-Request": "true"}
    return lambda: client.post(QUESTION, data | {"token": uuid4()}, headers=headers)


def _queries(job: Callable[[], Any]) -> int:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    with CaptureQueriesContext(connection) as queries:
        job()
    return len(queries)


def _grow(learner: Any) -> int:
    """Fill the database: questions in all levels and topics, each with four options, and learners' answers to them."""
    from django.db import connection  # noqa: PLC0415

    from quizsite.accounts.models import User  # noqa: PLC0415
    from quizsite.questions.models import Option, Question, QuestionVersion, Topic  # noqa: PLC0415
    from quizsite.questions.search import index_all  # noqa: PLC0415
    from quizsite.questions.validation import LEVELS  # noqa: PLC0415
    from quizsite.quizzes.models import Answer, ReviewCard  # noqa: PLC0415

    topics = list(Topic.objects.all())
    copies = [
        Question(slug=f"copy-{n}", topic=topics[n % len(topics)], level=LEVELS[n % 5][0], status="published")
        for n in range(N_QUESTIONS)
    ]
    Question.objects.bulk_create(copies, BATCH)
    text = "A copy: at which temperature does the model of {} repeat itself, and why not at another one? " * 3
    versions = [
        QuestionVersion(
            question=copy,
            number=1,
            kind="single_choice",
            title=f"Copy {n}: temperature and repetition",
            text=text.replace("{}", str(n)),
            answer=text.replace("{}", str(n)),
            digest="x",
        )
        for n, copy in enumerate(copies)
    ]
    QuestionVersion.objects.bulk_create(versions, BATCH)
    for copy, version in zip(copies, versions, strict=True):
        copy.current = version
    Question.objects.bulk_update(copies, ["current"], batch_size=400)
    options = (
        Option(version=version, text=f"Option {at}", why=f"Because of {at}", is_key=at == 2, position=at)
        for version in versions
        for at in range(4)
    )
    _create(Option, options)
    index_all()
    learners = [User(username=f"learner-{n}", is_guest=True) for n in range(1, N_LEARNERS)]
    everybody = [learner, *User.objects.bulk_create(learners)]
    from django.utils import timezone  # noqa: PLC0415

    now = timezone.now()

    def answers() -> Iterator[Any]:
        for number, one in enumerate(everybody):
            for at in range(N_ANSWERED):
                for try_number in range(1, N_TRIES + 1):
                    right = (number + at + try_number) % 3 > 0
                    yield Answer(
                        learner=one,
                        version=versions[(number * 17 + at * 23) % N_QUESTIONS],
                        token=uuid4(),
                        try_number=try_number,
                        response={"option": "x"},
                        verdict="right" if right else "wrong",
                        score=int(right),
                        sure=1 + at % 3,
                        created=now - timedelta(hours=(at * N_TRIES + try_number) % 2000),
                    )

    def cards() -> Iterator[Any]:
        for number, one in enumerate(everybody):
            for at in range(N_ANSWERED):
                yield ReviewCard(
                    learner=one,
                    question=copies[(number * 17 + at * 23) % N_QUESTIONS],
                    due=now + timedelta(hours=at - 200),
                    last_review=now - timedelta(hours=at),
                    stability=5,
                    difficulty=5,
                    state=2,
                    n_reviews=N_TRIES,
                    n_missed=2,
                    last_verdict="right" if (number + at + N_TRIES) % 3 > 0 else "wrong",
                )

    _create(Answer, answers())
    _create(ReviewCard, cards())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Answer.objects.count()


def _create(model: Any, rows: Iterator[Any]) -> None:
    while batch := list(islice(rows, BATCH)):
        model.objects.bulk_create(batch)
