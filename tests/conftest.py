"""Fixtures that all tests share: the content in the database, learners and instructors."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from generation import list_models
from quizsite.accounts.models import User
from quizsite.labs.models import Lab
from quizsite.questions.models import Question
from tests.chromium import find_chromium

GOLDEN = Path(__file__).parent / "golden"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine cannot run, and say so in one line for each thing that it lacks."""
    for marker, is_there, thing in (
        ("browser", bool(find_chromium()), "Chromium"),
        ("real_model", "smollm2" in list_models(), "model smollm2 (make model)"),
    ):
        left_out = [] if is_there else [item for item in items if item.get_closest_marker(marker)]
        if left_out and os.environ.get("NEXT_TOKEN_ALL_TESTS") == "1":
            raise pytest.UsageError(f"every test must run, but {len(left_out)} need the {thing}, which is not here")
        if left_out:
            items[:] = [item for item in items if item not in left_out]
            config.hook.pytest_deselected(items=left_out)
            print(f"\nNOT RUN: {len(left_out)} tests need the {thing}, which is not here")


@pytest.fixture(scope="session")
def golden_sky() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((GOLDEN / "sky.json").read_text())
    return data


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        call_command("load_content", stdout=StringIO())


@pytest.fixture(autouse=True)
def no_tries() -> None:
    """Forget the wrong passwords of the test before."""
    cache.clear()


@pytest.fixture
def learner(db: None) -> User:
    return User.objects.create_user("ada", password="a long password")


@pytest.fixture
def signed_in(client: Client, learner: User) -> Client:
    client.force_login(learner)
    client.get("/account/")  # the first page of a day saves the session; those after it are what tests look at
    return client


@pytest.fixture
def instructor(db: None) -> User:
    call_command("make_instructor", "grace", stdout=StringIO())
    return User.objects.get(username="grace")


@pytest.fixture
def author(client: Client, instructor: User) -> Client:
    client.force_login(instructor)
    return client


@pytest.fixture
def loop_lab(db: None) -> Lab:
    return Lab.objects.get(slug="sky-loop")


@pytest.fixture
def chatbot(db: None) -> Question:
    return Question.objects.get(slug="chatbot-repeats-one-sentence")


@pytest.fixture
def chatbot_elsewhere(transactional_db: None) -> Question:
    """The question in a database that parallel connections see; its rows go with the test."""
    call_command("load_content", stdout=StringIO())
    return Question.objects.get(slug="chatbot-repeats-one-sentence")
