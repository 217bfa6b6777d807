"""The ASGI application: static files in front, the site behind."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quizsite.settings")
site = get_asgi_application()

from django.conf import settings  # noqa: E402  (settings are ready only now)
from servestatic import ServeStaticASGI  # noqa: E402


def _is_hashed(path: str, url: str) -> bool:
    """Tell the names that carry a digest of their content (site.0123456789ab.css): cached for ever."""
    parts = url.rsplit("/", 1)[-1].split(".")
    return len(parts) > 2 and len(parts[-2]) == 12


application = ServeStaticASGI(
    site, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL, immutable_file_test=_is_hashed
)
