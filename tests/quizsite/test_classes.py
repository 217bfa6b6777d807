"""Classes: who may see and do what in them, how one joins, who keeps them, and what a hostile name does there."""

from datetime import timedelta
from io import StringIO
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from quizsite.accounts import tries
from quizsite.accounts.models import User
from quizsite.classes.models import Assignment, Class, LastTeacher, Membership
from quizsite.classes.urls import urlpatterns
from quizsite.questions.models import Question
from quizsite.quizzes.models import Answer
from tests.quizsite.test_attempts import CHOICE, EXPLAIN, NUMBER, send
from tests.quizsite.test_no_500 import HOSTILE as HOSTILE_VALUES

pytestmark = pytest.mark.django_db

HOSTILE = '<img src=x onerror="alert(1)">=1+1'
SETTINGS: dict[str, Any] = {"title": "Week 1", "minutes": None, "attempts_allowed": 1, "counts": "best"}


def make_teacher(name: str) -> User:
    call_command("make_instructor", name, "--role", "teacher", stdout=StringIO())
    return User.objects.get(username=name)


def signed_in_as(user: User) -> Client:
    client = Client()
    client.force_login(user)
    client.get("/account/")  # which saves the session of the day
    return client


def assign(klass: Class, *slugs: str, feedback: str = "due", **changed: Any) -> Assignment:
    """Give a class an assignment that asks these questions and has opened an hour ago."""
    now = timezone.now()
    when = {"opens": now - timedelta(hours=1), "due": now + timedelta(days=1)}
    chosen = {**SETTINGS, **when, "feedback": feedback, "is_selected": True, "level": "", "topic": None, **changed}
    found = Assignment.objects.make(klass, chosen)
    by_slug = {question.slug: question for question in Question.objects.filter(slug__in=slugs)}
    found.quiz.select([by_slug[slug] for slug in slugs])
    found.publish()
    return found


def enrol(klass: Class, *names: str) -> list[User]:
    users = [User.objects.create_user(name) for name in names]
    for user in users:
        klass.join(user)
    return users


@pytest.fixture(autouse=True)
def no_tries() -> None:
    cache.clear()


@pytest.fixture
def teacher(db: None) -> User:
    return make_teacher("grace")


@pytest.fixture
def klass(teacher: User) -> Class:
    return Class.objects.open_by(teacher, "Tuesday group", "Europe/Berlin")


class Place(NamedTuple):
    """An address of classes, for whom it is, and with which methods."""

    name: str
    args: tuple[int | str, ...]
    whose: str  # everybody, learner, member, teacher, or anybody who may open a class
    methods: str


@pytest.fixture
def places(klass: Class) -> list[Place]:
    ada = enrol(klass, "ada")[0]
    found = assign(klass, EXPLAIN, feedback="end", attempts_allowed=5)
    attempt = found.start(ada)
    client = signed_in_as(ada)
    send(client, attempt, text="the prompt is read once and each token after that costs a step")
    attempt.finish()
    answer, member = Answer.objects.get(), Membership.objects.get(user=ada)
    one, of = (klass.pk,), (klass.pk, found.pk)
    return [
        Place("classes", (), "user", "GET"),
        Place("join", (), "user", "POST"),
        Place("new-class", (), "opener", "GET POST"),
        Place("class", one, "member", "GET"),
        Place("edit-class", one, "teacher", "GET POST"),
        Place("code", one, "teacher", "POST"),
        Place("names", one, "teacher", "POST"),
        Place("roster", one, "teacher", "GET"),
        Place("member", (klass.pk, member.pk), "teacher", "POST"),
        Place("fitting", one, "teacher", "GET"),
        Place("new-assignment", one, "teacher", "GET POST"),
        Place("assignment", of, "teacher", "GET"),
        Place("edit-assignment", of, "teacher", "GET POST"),
        Place("questions", of, "teacher", "GET POST"),
        Place("state", of, "teacher", "POST"),
        Place("extra", of, "teacher", "POST"),
        Place("marking", one, "teacher", "GET"),
        Place("mark", (klass.pk, answer.pk), "teacher", "GET POST"),
        Place("grades", one, "teacher", "GET"),
        Place("grades-csv", one, "teacher", "GET"),
        Place("start", of, "learner", "POST"),
        Place("leave", one, "member", "POST"),
        Place("join-link", (), "everybody", "GET POST"),  # last: whoever posts it is in
    ]


WHO = [
    "visitor",
    "stranger",
    "learner",
    "author",
    "teacher of another class",
    "teacher who learns here",
    "teacher without the right",
    "teacher",
]


@pytest.mark.parametrize("who", WHO)
def test_each_page_and_each_post_is_for_those_whose_class_it_is(who: str, places: list[Place], klass: Class):
    call_command("make_instructor", "author", "--role", "author", stdout=StringIO())
    Class.objects.open_by(make_teacher("other"), "Another class", "UTC")
    klass.join(User.objects.create_user("was-teacher"), "teacher")
    klass.join(make_teacher("learning"))
    users = ["stranger", "ada", "author", "other", "learning", "was-teacher", "grace"]
    names = dict(zip(WHO[1:], users, strict=True))
    User.objects.create_user("stranger")
    client = Client() if who == "visitor" else signed_in_as(User.objects.get(username=names[who]))
    is_for = {
        "user": WHO[1:],
        "everybody": WHO,
        "opener": ["teacher of another class", "teacher who learns here", "teacher"],
        "member": ["learner", "teacher who learns here", "teacher without the right", "teacher"],
        "learner": ["learner", "teacher who learns here"],
        "teacher": ["teacher"],
    }
    assert {place.name for place in places} == {pattern.name for pattern in urlpatterns}  # none is forgotten

    for place in places:
        args = [Class.objects.get(pk=klass.pk).join_code] if place.name == "join-link" else place.args
        url = reverse(f"classes:{place.name}", args=args)
        for method in ("GET", "HEAD", "POST"):
            before = everything(klass)
            response = client.generic(method, url)
            is_offered = method.replace("HEAD", "GET") in place.methods
            if who in is_for[place.whose] and is_offered:
                assert response.status_code in {200, 302, 422}, (who, method, url)
                assert "/sign-in/" not in response.headers.get("Location", "")
            elif who == "visitor" and is_offered:
                assert response.headers["Location"].startswith("/account/sign-in/"), url
            else:
                assert response.status_code in {404, 405, 302 if who == "visitor" else 404}, (who, method, url)
                assert everything(klass) == before, (who, method, url)


def everything(klass: Class) -> list[Any]:
    """Return what a class holds: nobody without a right to it changes any of it."""
    return [
        Class.objects.filter(pk=klass.pk).values().first(),
        list(klass.memberships.order_by("pk").values()),
        list(klass.assignments.order_by("pk").values()),
        list(Answer.objects.values_list("given_mark", "score")),
    ]


def test_ids_of_another_class_lead_nowhere_below_the_address_of_ones_own(places: list[Place], klass: Class):
    other = make_teacher("other")
    mine, client = Class.objects.open_by(other, "Another class", "UTC"), signed_in_as(other)
    before = everything(klass)
    member = Membership.objects.get(user__username="ada").pk

    for place in places:
        if len(place.args) == 2:
            url = reverse(f"classes:{place.name}", args=[mine.pk, place.args[1]])
            codes = {client.generic(method, url).status_code for method in ("GET", "HEAD", "POST")}
            assert codes <= {404, 405}, url
    own = assign(mine, CHOICE)
    url = reverse("classes:extra", args=[mine.pk, own.pk])
    assert client.post(url, {"member": member, "minutes": "5"}).status_code == 422
    assert everything(klass) == before


class TestJoining:
    def test_a_link_lets_an_account_in_once(self, klass: Class, signed_in: Client, learner: User):
        url = reverse("classes:join-link", args=[klass.join_code])
        assert "Classes</a>" not in signed_in.get("/questions/").content.decode()
        assert "Join this class" in signed_in.get(url).content.decode()

        for _ in range(2):
            assert signed_in.post(url).headers["Location"] == klass.get_absolute_url()

        assert klass.memberships.get(user=learner).role == "learner"
        assert "Classes</a>" in signed_in.get("/questions/").content.decode()

    def test_a_code_is_taken_as_it_is_read_out(self, klass: Class, signed_in: Client):
        typed = f" {klass.join_code[:4].lower()}-{klass.join_code[4:]} " if klass.join_code else ""

        response = signed_in.post(reverse("classes:join"), {"code": typed})

        assert response.headers["Location"] == reverse("classes:join-link", args=[klass.join_code])

    def test_a_visitor_and_a_guest_sign_up_first_and_are_told_nothing_of_the_class(self, klass: Class, client: Client):
        url = reverse("classes:join-link", args=[klass.join_code])
        pages = [client.get(url).content.decode(), client.post(url).content.decode()]
        client.post(reverse("quizzes:save", args=[CHOICE]), {"saved": "true"})  # a guest from now on
        pages += [client.get(url).content.decode(), client.post(url).content.decode()]

        assert all(klass.name not in page and f"/account/sign-up/?next={url}" in page for page in pages)
        assert klass.memberships.count() == 1
        new = {"username": "linus", "password1": "a long password", "password2": "a long password", "next": url}
        assert client.post(reverse("quizzes:sign-up"), new).headers["Location"] == url

    def test_codes_are_not_to_be_guessed(self, klass: Class, signed_in: Client):
        wrong = reverse("classes:join-link", args=["ABCDEFGH"])
        codes = [signed_in.get(wrong).status_code for _ in range(tries.MOST + 1)]
        right = signed_in.post(reverse("classes:join-link", args=[klass.join_code]))

        assert codes == [404] * tries.MOST + [429]
        assert right.status_code == 429
        assert "Wait 15 minutes" in signed_in.post(reverse("classes:join"), {"code": klass.join_code}).content.decode()

    def test_an_old_code_and_that_of_a_closed_class_lead_nowhere(self, klass: Class, signed_in: Client, teacher: User):
        mine = signed_in_as(teacher)
        for do in ("renew", "close"):
            old = reverse("classes:join-link", args=[Class.objects.get().join_code])
            mine.post(reverse("classes:code", args=[klass.pk]), {"do": do})

            assert signed_in.post(old).status_code == 404
        assert klass.memberships.count() == 1


class TestTheRoster:
    def test_the_last_teacher_neither_leaves_nor_is_removed_nor_made_a_learner(self, klass: Class, teacher: User):
        client, mine = signed_in_as(teacher), klass.memberships.get()
        url = reverse("classes:member", args=[klass.pk, mine.pk])

        codes = [client.post(url, {"do": do}).status_code for do in ("remove", "learner")]
        codes.append(client.post(reverse("classes:leave", args=[klass.pk])).status_code)

        assert codes == [422] * 3
        assert klass.memberships.get().role == "teacher"
        klass.join(make_teacher("other"), "teacher")
        mine.leave()
        with pytest.raises(LastTeacher):
            klass.memberships.get().leave()

    def test_only_who_may_open_a_class_is_made_a_teacher(self, klass: Class, teacher: User):
        client = signed_in_as(teacher)
        klass.join(make_teacher("other"))
        enrol(klass, "ada")
        for member in klass.memberships.learners():
            client.post(reverse("classes:member", args=[klass.pk, member.pk]), {"do": "teacher"})

        assert [m.user.username for m in klass.memberships.filter(role="teacher")] == ["grace", "other"]

    def test_who_is_removed_keeps_what_they_did_and_sees_the_class_no_more(self, klass: Class, teacher: User):
        ada = enrol(klass, "ada")[0]
        attempt, client = assign(klass, CHOICE, feedback="each").start(ada), signed_in_as(ada)

        member = klass.memberships.get(user=ada)
        signed_in_as(teacher).post(reverse("classes:member", args=[klass.pk, member.pk]), {"do": "remove"})

        assert client.get(klass.get_absolute_url()).status_code == 404
        assert client.get(attempt.in_order[0].get_absolute_url()).status_code == 200
        assert "ada" not in signed_in_as(teacher).get(reverse("classes:grades", args=[klass.pk])).content.decode()


def test_a_hostile_name_title_and_answer_are_text_on_every_page(klass: Class, teacher: User):
    mallory = enrol(klass, HOSTILE)[0]
    Class.objects.update(name=HOSTILE)
    found = assign(klass, EXPLAIN, title=HOSTILE, attempts_allowed=2)
    found.give_extra(mallory, 5)
    for _ in range(2):
        attempt = found.start(mallory)
        send(signed_in_as(mallory), attempt, text=f"{HOSTILE} and some more words to explain")
        attempt.finish()
    answer, client, of = Answer.objects.all()[0], signed_in_as(teacher), [klass.pk, found.pk]
    answer.take_mark(teacher, QueryDict(), HOSTILE)

    pages = [reverse(f"classes:{name}", args=[klass.pk]) for name in ("class", "roster", "marking", "grades")]
    pages += [reverse(f"classes:{name}", args=of) for name in ("assignment", "edit-assignment", "questions")]
    pages += [reverse("classes:mark", args=[klass.pk, answer.pk]), reverse("classes:classes")]

    for page in pages:
        html = client.get(page).content.decode()
        assert "<img src=x" not in html, page
        assert "&lt;img src=x" in html, page


def test_no_field_of_a_teachers_form_is_an_error_whatever_stands_in_it(places: list[Place], teacher: User):
    client = signed_in_as(teacher)
    form = {"title": "Week 1", "opens": "2026-03-27T08:00", "due": "2026-03-29T23:59", "counts": "best"}
    form |= {"feedback": "due", "is_selected": "no", "level": "", "topic": "", "n_questions": "3"}
    form |= {"attempts_allowed": "1", "minutes": "20"}
    forms = {
        "new-class": {"name": "A class", "time_zone": "UTC"},
        "new-assignment": form,
        "questions": {"question": "1", "up": "1", "remove": "1"},
        "extra": {"member": str(Membership.objects.get(user__username="ada").pk), "minutes": "5"},
        "mark": {"point": "1", "note": ""},
        "join": {"code": "ABCDEFGH"},
        "names": {"hide": "yes", "next": "/"},
    }

    for place in places:
        url = reverse(f"classes:{place.name}", args=place.args) if place.name in forms else ""
        for name in forms.get(place.name, []):
            for value in HOSTILE_VALUES.values():
                sent = {key: text.encode() for key, text in forms[place.name].items()} | {name: value}
                response = client.post(url, urlencode(sent), "application/x-www-form-urlencoded")
                assert response.status_code in {200, 302, 422}, (url, name, value[:20])


@pytest.mark.parametrize("name", ["class", "roster", "grades", "grades-csv", "marking", "assignment"])
def test_the_number_of_queries_of_a_page_does_not_grow_with_the_class(name: str, klass: Class, teacher: User):
    client = signed_in_as(teacher)
    found = [assign(klass, EXPLAIN, NUMBER, feedback="end", title=f"Week {week}") for week in (1, 2)]
    args = [klass.pk, found[0].pk] if name == "assignment" else [klass.pk]
    counted = []
    for n_more in (3, 57):
        for learner in enrol(klass, *[f"learner-{n_more}-{number}" for number in range(n_more)]):
            attempt = found[0].start(learner)
            slot = attempt.in_order[0]
            slot.draft = {"text": ["the prompt is read once and then each token costs"]}
            slot.save()
            attempt.finish()
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(f"classes:{name}", args=args)).status_code == 200
        counted.append(len(queries))

    assert counted[0] == counted[1] < 20


def test_a_role_gives_the_rights_of_its_group_alone():
    rights = {}
    for role in ("author", "teacher", "both"):
        call_command("make_instructor", "grace", "--role", role, stdout=StringIO())
        user = User.objects.get()
        rights[role] = (
            user.is_staff,
            user.has_perm("questions.add_questionversion"),
            user.has_perm("classes.add_class"),
        )

    assert rights == {"author": (True, True, False), "teacher": (False, False, True), "both": (True, True, True)}
