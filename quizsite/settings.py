"""Django's settings. What differs between places is read from the environment; README lists it."""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

import dj_database_url
import django_stubs_ext
from csp.constants import NONE, SELF

django_stubs_ext.monkeypatch()  # makes ModelAdmin[Lab] and the like mean what the type checker reads

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("NEXT_TOKEN_VAR", BASE_DIR / "var"))  # database and collected files
VAR_DIR.mkdir(parents=True, exist_ok=True)


def _words(name: str, default: str = "") -> list[str]:
    return os.environ.get(name, default).replace(",", " ").split()


# Without a key in the environment each process makes its own: safe, but sessions end with it.
SECRET_KEY = os.environ.get("NEXT_TOKEN_SECRET_KEY") or secrets.token_urlsafe(50)
DEBUG = os.environ.get("NEXT_TOKEN_DEBUG") == "1"
ALLOWED_HOSTS = _words("NEXT_TOKEN_HOSTS", "localhost 127.0.0.1 [::1]")
CSRF_TRUSTED_ORIGINS = _words("NEXT_TOKEN_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "quizsite.accounts",
    "quizsite.labs",
    "quizsite.questions",
    "quizsite.quizzes",
    "quizsite.classes",
    "quizsite.content",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "quizsite.middleware.StorableText",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "quizsite.accounts.visits.Visits",
    "quizsite.accounts.time_zones.time_zone_middleware",
]

ROOT_URLCONF = "quizsite.urls"
ASGI_APPLICATION = "quizsite.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates", BASE_DIR / "quizsite" / "labs"],  # panels keep their templates beside them
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"markdown": "quizsite.markdown"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "quizsite.classes.header.in_classes",
            ],
        },
    }
]


def _database(url: str) -> dict[str, Any]:
    """Return PostgreSQL at this address, or without one SQLite in a file."""
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": VAR_DIR / "next-token.sqlite3",
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",  # two writers wait for each other; neither fails half-way
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    try:
        database = dj_database_url.parse(url, conn_health_checks=True)
    except ValueError:
        database = {}
    if database.get("ENGINE") != "django.db.backends.postgresql" or not database["NAME"]:
        sys.exit("DATABASE_URL must be postgres://user:password@host:port/name, or be left out for SQLite")
    # A request has a thread of its own, so a connection kept by a thread would never be used again; a pool hands
    # them on, and holds a crowd to the number that the server allows.
    database["OPTIONS"] = {**database.get("OPTIONS", {}), "pool": {"min_size": 2, "max_size": 16, "timeout": 10}}
    return {**database}


DATABASES = {"default": _database(os.environ.get("DATABASE_URL", ""))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Counts wrong passwords; roomy, so that a flood of made-up names does not push out the name that waits.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 100_000}}}

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "quizzes:sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Mail for forgotten passwords: printed, unless a server for it is named.
EMAIL_HOST = os.environ.get("NEXT_TOKEN_EMAIL_HOST", "")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend"
EMAIL_PORT = int(os.environ.get("NEXT_TOKEN_EMAIL_PORT", "587"))
EMAIL_HOST_USER = os.environ.get("NEXT_TOKEN_EMAIL_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("NEXT_TOKEN_EMAIL_PASSWORD", "")
EMAIL_USE_TLS = os.environ.get("NEXT_TOKEN_EMAIL_TLS", "1") == "1"
EMAIL_TIMEOUT = 10  # seconds: who asks for a mail waits for its server
DEFAULT_FROM_EMAIL = os.environ.get("NEXT_TOKEN_EMAIL_FROM", "next-token@localhost")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 90  # a guest's work is found again for 90 days
CSRF_FAILURE_VIEW = "quizsite.accounts.views.csrf_failure"

if os.environ.get("NEXT_TOKEN_HTTPS") == "1":  # behind a proxy that ends TLS and sets X-Forwarded-Proto
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"django": {"handlers": [], "propagate": True}, "django.request": {"level": "ERROR"}},
}

PERSONAL_DATA = ["quizsite.classes.privacy"]  # modules with export(learner) and forget(learner), for the account page
REVIEW_FUZZ = True  # spreads due dates by chance, so that what was learnt together does not all come due together
RUNS_PER_MINUTE = 60  # of one learner
KV_CACHE_MB = int(os.environ.get("NEXT_TOKEN_KV_CACHE_MB", "1024"))  # of all runs together
