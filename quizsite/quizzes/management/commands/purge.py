"""`manage.py purge`: guests whom nobody can reach any more, sessions that have run out, recordings without a run."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from quizsite.labs.models import Recording
from quizsite.quizzes.privacy import delete_unused, purge_guests


class Command(BaseCommand):
    help = "Delete what nobody can reach any more. Run it daily."

    def handle(self, *args: Any, **options: Any) -> None:
        n_idle, n_anonymous = purge_guests(timezone.now())
        n_recordings = delete_unused(Recording.objects.all())
        call_command("clearsessions")
        self.stdout.write(
            f"guests deleted: {n_idle}, made anonymous: {n_anonymous}; recordings deleted: {n_recordings}"
        )
