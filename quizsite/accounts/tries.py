"""How often a name may be tried with a wrong password: counted by the name, since a class shares one address."""

from hashlib import sha256

from django.core.cache import cache
from django.core.exceptions import ValidationError

MOST = 10
WAIT = 15  # minutes


class TooMany(ValidationError):
    """A name was tried with too many wrong passwords."""


def check(name: str) -> None:
    """Refuse a name that has to wait, whatever its password.

    Raises
    ------
    TooMany
    """
    if cache.get(_key(name), 0) >= MOST:
        raise TooMany(f"{MOST} wrong passwords for this name. Wait {WAIT} minutes, or reset the password.")


def failed(name: str) -> None:
    """Count a wrong password."""
    cache.add(_key(name), 0, WAIT * 60)
    try:
        cache.incr(_key(name))
    except ValueError:  # it has expired this very moment
        cache.set(_key(name), 1, WAIT * 60)


def forget(name: str) -> None:
    cache.delete(_key(name))


def _key(name: str) -> str:
    return f"tries-{sha256(name.lower().encode(errors='replace')).hexdigest()}"
