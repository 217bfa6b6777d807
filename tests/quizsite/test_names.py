"""Names of accounts: one person's whatever its capitals, and written at the sign-in as at the sign-up."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User

pytestmark = pytest.mark.django_db

PASSWORD = "a rather long password"


def sign_up(name: str) -> int:
    form = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
    return Client().post(reverse("quizzes:sign-up"), form).status_code


def sign_in(name: str) -> int:
    return Client().post(reverse("quizzes:sign-in"), {"username": name, "password": PASSWORD}).status_code


@pytest.mark.parametrize(("first", "second"), [("émile", "ÉMILE"), ("Ωmega", "ωMEGA"), ("a.b+c", "A.B+C")])
def test_capitals_of_any_script_make_no_other_name(first: str, second: str):
    assert sign_up(first) == 302

    assert sign_up(second) == 422


def test_a_point_stands_for_itself_alone():
    sign_up("axb")

    assert sign_up("a.b") == 302


@pytest.mark.parametrize("name", ["ｇｒａｃｅ", "ﬁsher", "e\u0301mile"])
def test_a_name_in_other_code_points_opens_its_account(name: str):
    assert sign_up(name) == 302

    assert sign_in(name) == 302


def test_the_sites_own_names_are_refused_in_wide_letters_too():
    assert sign_up("ｇｕｅｓｔ-1") == 422


def test_a_wrong_password_is_said_in_a_sentence_that_names_neither():
    User.objects.create_user("grace", password=PASSWORD)

    for name in ("grace", "nobody"):
        response = Client().post(reverse("quizzes:sign-in"), {"username": name, "password": "wrong"})

        assert "This name and this password do not belong together" in response.content.decode()


def test_a_field_is_described_by_its_hint_and_by_what_is_wrong_with_it(client: Client):
    form = {"username": "guest-1", "email": "x", "password1": "1", "password2": "2"}

    html = client.post(reverse("quizzes:sign-up"), form).content.decode()

    described = [name for names in re.findall(r'aria-describedby="([^"]*)"', html) for name in names.split()]
    assert "id_username_error" in described
    assert [name for name in described if html.count(f'id="{name}"') != 1] == []
