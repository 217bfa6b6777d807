"""Pages about the models: for staff what is here, for everybody what is still missing."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from generation import fetch_state, list_models, missing_models, model_facts
from quizsite.htmx import HtmxRequest
from quizsite.labs import engine


@require_safe
def models_page(request: HtmxRequest) -> HttpResponse:
    """Show staff every model: what it is, where it stands, why it cannot be used if so."""
    if not request.user.is_staff:
        raise Http404("this page is for staff")
    return render(request, "labs/models.html", {"models": model_facts(), "load": engine.load()})


@require_safe
def missing(request: HtmxRequest) -> HttpResponse:
    """Tell the open lab how far the missing models are, and which of those it asks for are here by now."""
    if not request.htmx:
        return redirect("labs:open")
    names = missing_models()
    arrived = [name for name in request.GET.getlist("model") if name in list_models()]
    states = [(name, fetch_state(name)) for name in names]
    return render(request, "labs/missing.html", {"missing_models": names, "states": states, "arrived": arrived})
