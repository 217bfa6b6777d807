"""How often a name may be tried with a wrong password: counted by the name, since a class shares one address."""

from datetime import timedelta
from hashlib import sha256
from math import ceil

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.utils import timezone

MOST = 10
WAIT = timedelta(minutes=15)


class TooMany(ValidationError):
    """A name was tried with too many wrong passwords."""


def begin(name: str, what: str = "wrong passwords for this name") -> None:
    """Count a try before its password or code is looked at, so that many at one moment are counted as well.

    Raises
    ------
    TooMany
        If the name has to wait, whatever the password.
    """
    key, seconds, ends = _key(name), WAIT.total_seconds(), timezone.now() + WAIT
    if cache.add(key, 0, seconds):
        cache.set(f"{key}-ends", ends, seconds)
    try:
        n_tries = cache.incr(key)
    except ValueError:  # it has expired this very moment
        return
    if n_tries > MOST:
        minutes = ceil((cache.get(f"{key}-ends", ends) - timezone.now()) / timedelta(minutes=1))
        raise TooMany(f"{MOST} {what}. Wait {minutes} minute{'' if minutes == 1 else 's'}.")


def forget(name: str) -> None:
    cache.delete(_key(name))


def _key(name: str) -> str:
    return f"tries-{sha256(name.lower().encode(errors='replace')).hexdigest()}"
