"""Files that authors have uploaded and not yet taken."""

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone

KEPT = timedelta(days=1)


class UploadQuerySet(models.QuerySet["Upload"]):
    def old(self) -> Self:
        return self.filter(created__lt=timezone.now() - KEPT)


class Upload(models.Model):
    """A file between its dry run and its taking; its owner alone takes it."""

    LARGEST = 5_000_000  # bytes

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    format = models.CharField(max_length=10)
    content = models.BinaryField()
    topic = models.ForeignKey("questions.Topic", on_delete=models.CASCADE, related_name="+")  # where none is named
    created = models.DateTimeField(default=timezone.now)

    objects = UploadQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name
