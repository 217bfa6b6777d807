"""The site's settings for tests: plain static files, a fast password hash, a database of their own."""

from quizsite.settings import *  # noqa: F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if "sqlite3" in DATABASES["default"]["ENGINE"]:  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": VAR_DIR / "test.sqlite3"}  # noqa: F405  (a file: threads share it as in use)
REVIEW_FUZZ = False
