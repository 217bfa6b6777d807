"""The grade book: what counts, what is late, sums; for a spreadsheet, and without names for a projector."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.classes.models import Class
from quizsite.classes.spreadsheets import csv_of
from quizsite.quizzes.models import Answer
from tests.quizsite.test_assignments import OTHER, hand_in
from tests.quizsite.test_attempts import CHOICE, EXPLAIN
from tests.quizsite.test_classes import assign, enrol, make_teacher, signed_in_as

pytestmark = pytest.mark.django_db


@pytest.fixture
def teacher(db: None) -> User:
    return make_teacher("grace")


@pytest.fixture
def klass(teacher: User) -> Class:
    return Class.objects.open_by(teacher, "Tuesday group", "UTC")


@pytest.fixture
def client(teacher: User) -> Client:
    return signed_in_as(teacher)


def table(client: Client, klass: Class) -> dict[str, list[str]]:
    """Return the CSV as a spreadsheet reads it: the first cell of each row, and those behind it."""
    text = client.get(reverse("classes:grades-csv", args=[klass.pk])).content.decode("utf-8-sig")
    return {name: cells for name, *cells in csv.reader(StringIO(text))}


def test_the_best_try_counts_or_the_first_as_the_assignment_says(klass: Class, client: Client):
    ada = enrol(klass, "ada")[0]
    for counts in ("best", "first"):
        found = assign(klass, CHOICE, OTHER, title=counts, counts=counts, attempts_allowed=3)
        for right in ((True, False), (True, True), (False, False)):
            hand_in(found.start(ada), *right)

    assert table(client, klass)["ada"] == ["2", "2", "handed in", "1", "2", "handed in", "3", "4"]
    html = client.get(reverse("classes:grades", args=[klass.pk])).content.decode()
    assert "the best try of 3" in html
    assert "the first try of 3" in html


def test_it_says_how_far_each_learner_is_and_sums_what_was_handed_in_or_missed(klass: Class, client: Client):
    ada, linus, _ = enrol(klass, "ada", "linus", "margaret")
    found = assign(klass, CHOICE, EXPLAIN)
    found.give_extra(linus, 60)
    hand_in(found.start(ada), True, True)
    found.start(linus)
    later = assign(klass, CHOICE, title="Week 2", opens=found.due, due=found.due + timedelta(days=9))

    before = table(client, klass)
    with time_machine.travel(later.opens + timedelta(minutes=30), tick=False):
        after = table(client, klass)
        Answer.objects.waiting().get().take_mark(User.objects.get(username="grace"), QueryDict("point=0&point=1"), "")
        marked = table(client, klass)

    nothing_yet = ["", "", "not open yet"]
    assert before["ada"] == ["1", "2", "handed in, 1 to mark", *nothing_yet, "1", "2"]
    assert before["linus"] == ["", "", "working on it", *nothing_yet, "0", "0"]
    assert before["margaret"] == ["", "", "not started", *nothing_yet, "0", "0"]
    assert after["linus"][2] == "working on it"  # in extra time
    assert after["margaret"] == ["", "", "late, nothing handed in", "", "", "not started", "0", "2"]
    n_points = len(Answer.objects.get(version__kind="explain").version.details["rubric"])
    assert marked["ada"][:3] == [f"{1 + 2 / n_points:.3g}", "2", "handed in"]


class TestSpreadsheets:
    def test_no_cell_is_a_formula_and_a_number_stays_one(self):
        cells = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-cmd|' /C calc'!A0", "plain, “text”"]

        (read,) = csv.reader(StringIO(csv_of([[*cells, -1.5, "-1.5", "−1.5", 2]]).removeprefix("\ufeff"), newline=""))

        assert read == [*[f"'{cell}" for cell in cells[:-1]], "plain, “text”", "-1.5", "-1.5", "−1.5", "2"]

    def test_a_name_and_a_title_that_begin_like_a_formula_do_not_run(self, klass: Class, client: Client):
        enrol(klass, "@SUM(1+1)*cmd|' /C calc'!A0", "-ada", "=ada")
        assign(klass, CHOICE, title='=HYPERLINK("https://example.org")')

        text = client.get(reverse("classes:grades-csv", args=[klass.pk])).content.decode("utf-8-sig")

        cells = [cell for row in csv.reader(StringIO(text)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert "'-ada" in cells


def test_while_names_are_hidden_no_page_of_the_class_nor_its_file_has_one(klass: Class, client: Client):
    learners = enrol(klass, "zoe-of-tuesday", "adam-of-tuesday", "mia-of-tuesday")
    found = assign(klass, EXPLAIN)
    for learner in learners:
        found.give_extra(learner, 5)
        hand_in(found.start(learner), True)
    names = ["class", "grades", "grades-csv", "marking", "roster"]
    urls = [reverse(f"classes:{name}", args=[klass.pk]) for name in names]
    urls += [reverse("classes:assignment", args=[klass.pk, found.pk])]
    urls += [reverse("classes:mark", args=[klass.pk, answer.pk]) for answer in Answer.objects.all()]
    assert "zoe-of-tuesday" in client.get(urls[1]).content.decode()

    back = client.post(reverse("classes:names", args=[klass.pk]), {"hide": "yes", "next": urls[1]})

    assert back.headers["Location"] == urls[1]
    assert not [url for url in urls if "-of-tuesday" in client.get(url).content.decode()]
    numbers = list(klass.memberships.learners().order_by("number").values_list("number", flat=True))
    shown = [f"Learner {number}" for number in numbers]
    assert list(table(client, klass))[1:] == shown  # in the order of numbers that were drawn by lot
    klass.join(User.objects.create_user("newcomer"))
    assert set(shown) < set(table(client, klass))  # who comes later moves nobody
    elsewhere = client.post(reverse("classes:names", args=[klass.pk]), {"hide": "no", "next": "//example.org/"})
    assert elsewhere.headers["Location"] == klass.get_absolute_url()
    assert "zoe-of-tuesday" in table(client, klass)
