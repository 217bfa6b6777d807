"""`manage.py make_instructor ada`: an account that may write questions and labs."""

import secrets
from argparse import ArgumentParser

from django.contrib.auth.models import Group, Permission
from django.core.management.base import BaseCommand

from quizsite.accounts.models import User

GROUP = "Authors"
PERMISSIONS = [
    *(
        f"{verb}_{model}"
        for verb in ("add", "change", "view")
        for model in ("questionversion", "option", "topic", "lab")
    ),
    "view_run",
    "view_report",
    "change_report",
]


class Command(BaseCommand):
    help = "Make an instructor's account, or give an existing one a new password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: object, **options: str) -> None:
        group, _ = Group.objects.get_or_create(name=GROUP)
        group.permissions.set(Permission.objects.filter(codename__in=PERMISSIONS))

        user, created = User.objects.get_or_create(username=options["username"])
        password = secrets.token_urlsafe(12)
        user.is_staff = True
        user.set_password(password)
        user.save()
        user.groups.add(group)
        self.stdout.write(f"{'made' if created else 'new password for'} {user.username}: {password}")
        self.stdout.write("sign in at /admin/ and change the password there")
