"""The user: a learner or an instructor, a guest or an account."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """Somebody who uses the site. A guest has no password and lives in one browser's session."""

    is_guest = models.BooleanField(default=False)
