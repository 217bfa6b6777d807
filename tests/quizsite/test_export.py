"""The file with all that the site holds about a learner: what it says of a run, and what it costs."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs.models import Lab, Run
from quizsite.quizzes.models import ReviewCard
from tests.quizsite.test_accounts import practise
from tests.quizsite.test_attempts import CHOICE, EXPLAIN

pytestmark = pytest.mark.django_db


def exported(client: Client) -> Any:
    return json.loads(client.get(reverse("quizzes:export")).content)


def test_a_run_has_the_tokens_that_were_taken_by_hand_its_verdicts_and_what_it_solved(
    signed_in: Client, learner: User, loop_lab: Lab
):
    signed_in.post(loop_lab.get_absolute_url(), {"do": "run", "temperature": "0"})
    run = Run.objects.by(learner).get()
    signed_in.post(reverse("labs:take", args=[run.pk]), {"step": "2", "token_id": "3", "back": "/lab/"})

    data = exported(signed_in)

    first, second = data["runs"]
    assert first["verdicts"] == run.verdicts
    assert (first["forced"], second["forced"]) == ({}, {"2": 3})
    assert [(row["goal"], row["run"]) for row in data["labs"]] == [(loop_lab.spec.goals[0].kind, str(run.pk))]


def test_a_card_has_what_its_next_date_rests_on(signed_in: Client, learner: User):
    practise(signed_in, CHOICE)
    card = ReviewCard.objects.get(learner=learner)

    (row,) = exported(signed_in)["review"]

    assert row["last_verdict"] == "wrong"
    assert (row["state"], row["step"], row["n_missed"]) == (card.state, card.step, 1)


def test_it_asks_the_database_equally_often_however_much_there_is(signed_in: Client):
    def n_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            exported(signed_in)
        return len(queries)

    signed_in.get("/")
    exported(signed_in)
    practise(signed_in, CHOICE)
    before = n_queries()

    for _ in range(3):
        practise(signed_in, EXPLAIN, text="this is what I wrote about it")
        signed_in.post("/lab/sky-loop/", {"do": "run", "temperature": "0"})

    assert n_queries() == before
