"""Passwords and addresses: changed where there is one, reset by e-mail, and each change says that it holds."""

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.quizzes.privacy import make_anonymous
from tests.quizsite.test_accounts import PASSWORD, practise, sign_in
from tests.quizsite.test_attempts import CHOICE

pytestmark = pytest.mark.django_db

ANOTHER = "quite another password"


@pytest.fixture
def grace(client: Client) -> User:
    """An account that is signed in to, in the browser `client`."""
    grace = User.objects.create_user("grace", "grace@example.org", PASSWORD)
    sign_in(client)
    return grace


def change(client: Client, old: str = PASSWORD) -> Any:
    form = {"old_password": old, "new_password1": ANOTHER, "new_password2": ANOTHER}
    return client.post(reverse("accounts:password"), form, follow=True)


def ask_for_link(client: Client, address: str) -> Any:
    return client.post(reverse("accounts:reset"), {"email": address}, follow=True)


def link() -> str:
    found = re.search(r"http://testserver(\S+)", str(mail.outbox[-1].body))
    assert found
    return found[1]


class TestChangingThePassword:
    def test_the_new_one_holds_and_other_browsers_are_signed_out(self, client: Client, grace: User):
        phone = Client()
        sign_in(phone)

        page = change(client)

        assert "The new password holds" in page.content.decode()
        assert phone.get(reverse("quizzes:account")).status_code == 302
        assert sign_in(Client()).status_code == 422
        assert sign_in(Client(), password=ANOTHER).status_code == 302

    def test_without_the_old_one_it_stays(self, client: Client, grace: User):
        page = change(client, old="wrong")

        assert "The new password holds" not in page.content.decode()
        assert sign_in(Client()).status_code == 302

    def test_who_has_none_is_led_to_sign_in(self, client: Client):
        url = reverse("accounts:password")
        wanted = f"{reverse('quizzes:sign-in')}?next={url}"
        assert client.get(url).headers["Location"] == wanted

        practise(client, CHOICE)

        assert client.get(url).headers["Location"] == wanted


class TestTheAddress:
    def test_another_one_is_kept_and_the_page_says_so(self, client: Client, grace: User):
        page = client.post(reverse("quizzes:account"), {"email": "hopper@example.org"}, follow=True)

        assert "The address is kept" in page.content.decode()
        grace.refresh_from_db()
        assert grace.email == "hopper@example.org"

    def test_what_is_no_address_is_refused_and_the_old_one_stays(self, client: Client, grace: User):
        response = client.post(reverse("quizzes:account"), {"email": "not an address"})

        assert response.status_code == 422
        grace.refresh_from_db()
        assert grace.email == "grace@example.org"

    def test_a_link_that_was_sent_to_the_old_address_leads_nowhere(self, client: Client, grace: User):
        ask_for_link(Client(), grace.email)

        client.post(reverse("quizzes:account"), {"email": "hopper@example.org"})

        assert "has been used" in Client().get(link(), follow=True).content.decode()


class TestAForgottenPassword:
    def test_the_mail_names_the_account_and_its_link_leads_to_a_page_that_says_it_holds(self, grace: User):
        browser = Client()
        ask_for_link(browser, "grace@example.org")
        form = browser.get(link(), follow=True).request["PATH_INFO"]

        page = browser.post(form, {"new_password1": ANOTHER, "new_password2": ANOTHER}, follow=True)

        (message,) = mail.outbox
        assert (message.subject, message.to) == ("A new password for Next Token", ["grace@example.org"])
        assert "Hello grace" in message.body
        assert "The new password holds" in page.content.decode()
        assert sign_in(browser, password=ANOTHER).status_code == 302

    def test_a_new_password_signs_all_browsers_out(self, client: Client, grace: User):
        browser = Client()
        ask_for_link(browser, grace.email)
        form = browser.get(link(), follow=True).request["PATH_INFO"]

        browser.post(form, {"new_password1": ANOTHER, "new_password2": ANOTHER})

        assert client.get(reverse("quizzes:account")).status_code == 302

    def test_known_and_unknown_addresses_get_the_same_page(self, grace: User):
        known, unknown = (ask_for_link(Client(), address) for address in (grace.email, "nobody@example.org"))

        assert known.content == unknown.content
        assert known.redirect_chain == unknown.redirect_chain

    def test_guests_and_deleted_accounts_get_no_mail(self, client: Client, grace: User):
        practise(Client(), CHOICE)
        User.objects.filter(is_guest=True).update(email="guest@example.org")
        make_anonymous(grace)
        User.objects.filter(pk=grace.pk).update(email="grace@example.org")

        for address in ("guest@example.org", "grace@example.org"):
            ask_for_link(Client(), address)

        assert mail.outbox == []
