"""The bank as files, for authors: download, upload, and a dry run between upload and taking."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required, permission_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from quizsite.content.formats import bank_csv, gift, moodle_xml, site_yaml
from quizsite.content.models import Upload
from quizsite.content.taking import MOST_ROWS, READERS, examined, take
from quizsite.htmx import HtmxRequest, number_in
from quizsite.questions.models import QuestionVersion, Topic

WRITERS: dict[str, tuple[str, Callable[[Iterable[QuestionVersion]], str | bytes]]] = {
    "yaml": ("application/yaml", site_yaml.write),
    "gift": ("text/plain; charset=utf-8", gift.write),
    "xml": ("application/xml", moodle_xml.write),
    "csv": ("text/csv; charset=utf-8", bank_csv.write),
}
MAY_WRITE = ["questions.add_questionversion", "questions.change_questionversion"]


class UploadForm(forms.Form):
    """A file, what it is, and where its questions go that name no topic."""

    file = forms.FileField(help_text="At most 5 MB.")
    format = forms.ChoiceField(choices=[(name, words) for name, (words, _) in READERS.items()])
    topic = forms.ModelChoiceField(Topic.objects.all(), help_text="For questions that name none.", empty_label=None)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if (file.size or 0) > Upload.LARGEST:
            raise ValidationError(f"A file has at most {Upload.LARGEST:,} bytes, this one has {file.size:,}.")
        return file


@require_http_methods(["GET", "HEAD", "POST"])
@login_required(login_url="admin:login")
@permission_required(MAY_WRITE, raise_exception=True)
def upload(request: HtmxRequest) -> HttpResponse:
    """Take a file in, and lead to its dry run; nothing of it is in the bank yet."""
    form = UploadForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        Upload.objects.old().delete()
        file, topic = form.cleaned_data["file"], form.cleaned_data["topic"]
        name = str(file.name)[:200]
        assert request.user.pk
        kept = Upload.objects.create(
            owner_id=request.user.pk, name=name, format=form.cleaned_data["format"], content=file.read(), topic=topic
        )
        return redirect("content:dry-run", kept.pk)
    status = 422 if form.errors else 200
    return render(request, "authoring/upload.html", _page(request, "Questions from a file", form=form), status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required(login_url="admin:login")
@permission_required(MAY_WRITE, raise_exception=True)
def dry_run(request: HtmxRequest, upload_id: int) -> HttpResponse:
    """Show what taking a file would do; on POST take all of it, or what is good in it, as things are now."""
    kept = get_object_or_404(Upload.objects.filter(owner_id=request.user.pk), pk=upload_id)
    reading = READERS[kept.format][1](bytes(kept.content))
    with transaction.atomic():
        found = examined(reading.rows, kept.topic)
        states = Counter(one.state for one in found)
        is_whole = not states["broken"] and not reading.problems and len(reading.rows) <= MOST_ROWS
        if request.method == "POST" and (is_whole or request.POST.get("take") == "good"):
            n_taken = take(found)
            kept.delete()
            messages.success(request, f"{n_taken} taken from {kept.name}, {states['same']} were as they are.")
            return redirect("admin:questions_questionversion_changelist")
    context = _page(request, f"Dry run of {kept.name}", upload=kept, reading=reading, found=found, states=states)
    context |= {"is_whole": is_whole, "n_left": max(0, len(reading.rows) - MOST_ROWS), "most": MOST_ROWS}
    return render(request, "authoring/dry_run.html", context, status=422 if request.method == "POST" else 200)


@require_safe
@login_required(login_url="admin:login")
@permission_required(["questions.view_questionversion"], raise_exception=True)
def download(request: HtmxRequest, form: str) -> HttpResponse:
    """Send the bank, or the versions that are named, in one of the formats."""
    if form not in WRITERS:
        raise Http404(f"there is no format {form[:20]!r}")
    versions = QuestionVersion.objects.filter(question__current__isnull=False)
    ids = [number_in(part) for part in request.GET.get("ids", "").split(",")[:MOST_ROWS]]
    versions = versions.filter(pk__in=ids) if "ids" in request.GET else versions.filter(pk__in=_current())
    found = versions.select_related("question__topic", "lab").prefetch_related("options")
    content_type, write = WRITERS[form]
    name = f"next-token.{'txt' if form == 'gift' else form}"
    body = write(found.order_by("question__topic__position", "question__slug"))
    return HttpResponse(body, content_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _current() -> Any:
    return QuestionVersion.objects.filter(question__current__isnull=False).values("question__current")


def _page(request: HtmxRequest, title: str, **context: Any) -> dict[str, Any]:
    """Return what a page of the admin needs around its content."""
    return {**admin.site.each_context(request), "title": title, **context}
