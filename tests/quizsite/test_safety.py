"""What holds on every page: the security headers, and 404 in the site's own words."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from quizsite.accounts.models import User
from quizsite.labs.models import Lab
from quizsite.questions.models import Question

pytestmark = pytest.mark.django_db


def pages() -> list[str]:
    return [
        reverse("quizzes:front"),
        reverse("quizzes:questions"),
        reverse("labs:open"),
        *[lab.get_absolute_url() for lab in Lab.objects.all()],
        *[question.get_absolute_url() for question in Question.objects.all()],
        reverse("admin:index"),
        reverse("admin:questions_questionversion_changelist"),
        reverse("admin:questions_questionversion_add"),
        reverse("admin:labs_lab_changelist"),
        reverse("admin:labs_run_changelist"),
        "/nothing/here/",
    ]


def test_every_page_has_a_strict_policy_and_no_inline_style_or_script(client: Client, instructor: User):
    client.force_login(instructor)

    for url in pages():
        response = client.get(url)
        html = response.content.decode()
        policy = response.headers["Content-Security-Policy"]
        assert response.status_code in (200, 404), url
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert " style=" not in html, url
        assert "<style" not in html, url
        assert "onclick" not in html, url
        assert response.headers["X-Frame-Options"] == "DENY"


def test_a_page_that_is_not_there_says_so(client: Client):
    response = client.get("/questions/nothing/")

    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_no_page_offers_what_does_not_exist(client: Client):
    """Follow every link of every page."""
    seen: set[str] = set()
    for url in [url for url in pages() if not url.startswith("/admin")]:
        html = client.get(url).content.decode()
        seen |= {link.split("#")[0] for link in re.findall(r'(?:href|action|hx-get|hx-post)="(/[^"]*)"', html)}

    for link in seen:
        if not link.startswith("/static/"):
            assert client.get(link, follow=True).status_code in (200, 405), link
