"""Who is here: a session lives on from the last day it was used, and a guest may go while a request is under way."""

from django.contrib.auth import SESSION_KEY
from django.http import HttpResponse
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from quizsite.accounts.models import User
from quizsite.accounts.views import csrf_failure
from quizsite.htmx import HtmxRequest

DAY = "visited"  # in the session


class Visits(MiddlewareMixin):
    """Saves the session of a learner once a day: a session that nothing is written to ends, however much it is used."""

    def process_response(self, request: HtmxRequest, response: HttpResponse) -> HttpResponse:
        now = timezone.now()
        day, session = f"{now:%Y-%m-%d}", request.session
        if session.accessed and SESSION_KEY in session and session.get(DAY) != day:
            session[DAY] = day
            User.objects.filter(pk=session[SESSION_KEY], is_guest=True).update(last_login=now)
        return response

    def process_exception(self, request: HtmxRequest, exception: Exception) -> HttpResponse | None:
        """Answer what a guest sent from one tab while they signed in from another: it is to be sent again."""
        if request.user.is_authenticated and not User.objects.filter(pk=request.user.pk).exists():
            return csrf_failure(request)
        return None
