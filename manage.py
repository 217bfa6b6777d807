"""Django's command line: `python manage.py <command>`."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError
from psycopg_pool import PoolTimeout

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quizsite.settings")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if not isinstance(error.__cause__, PoolTimeout):
            raise
        sys.exit("The server of DATABASE_URL cannot be reached; the reason is above")
