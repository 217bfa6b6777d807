"""`manage.py make_instructor ada`: an account that may write questions and labs, and open classes."""

import secrets
from argparse import ArgumentParser

from django.contrib.auth.models import Group, Permission
from django.core.management.base import BaseCommand

from quizsite.accounts.models import User

AUTHORS, TEACHERS = "Authors", "Teachers"
TO_TEACH = ["add_class"]
TO_WRITE = [
    *(
        f"{verb}_{model}"
        for verb in ("add", "change", "view")
        for model in ("questionversion", "option", "topic", "lab")
    ),
    "view_run",
    "view_report",
    "change_report",
]
ROLES = {"author": [AUTHORS], "teacher": [TEACHERS], "both": [AUTHORS, TEACHERS]}


class Command(BaseCommand):
    help = "Make an instructor's account, or give an existing one its role and a new password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--role", choices=ROLES, default="both", help="An author writes, a teacher keeps classes.")

    def handle(self, *args: object, **options: str) -> None:
        groups = {name: _group(name, rights) for name, rights in ((AUTHORS, TO_WRITE), (TEACHERS, TO_TEACH))}
        wanted = ROLES[options["role"]]
        user, created = User.objects.get_or_create(username=options["username"])
        password = secrets.token_urlsafe(12)
        user.is_staff = AUTHORS in wanted  # they work in the admin, teachers on the pages of their classes
        user.set_password(password)
        user.save()
        user.groups.remove(*groups.values())
        user.groups.add(*[groups[name] for name in wanted])
        self.stdout.write(f"{'made' if created else 'new password for'} {user.username}: {password}")
        self.stdout.write(f"sign in at {'/admin/' if user.is_staff else '/account/sign-in/'} and change the password")


def _group(name: str, rights: list[str]) -> Group:
    group, _ = Group.objects.get_or_create(name=name)
    group.permissions.set(Permission.objects.filter(codename__in=rights))
    return group
