"""Writing questions in the admin. A version is written once, so saving an edit makes the next one."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import F, QuerySet, TextField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from quizsite.questions.models import Option, Question, QuestionVersion, Report, Topic
from quizsite.questions.validation import LEVELS, STATUSES, QuestionSpec, read_question

OF_THE_QUESTION = ("slug", "topic", "level", "status")  # not of a version


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 80})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = value if isinstance(value, list) else (value or "").splitlines()
        return [line.strip() for line in lines if line.strip()]


class FollowUpsField(LinesField):
    """Follow-ups, one a line: the text, then ` -> ` and the slug of the question that answers it."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return "\n".join(f"{f['text'].strip()}{' -> ' + f['question'] if f['question'] else ''}" for f in value)

    def to_python(self, value: Any) -> Any:
        found = []
        for line in super().to_python(value):
            text, _, slug = line.partition("->")
            found.append({"text": text.strip(), "question": slug.strip() or None})
        return found


class VersionForm(forms.ModelForm[QuestionVersion]):
    """A version, and the question's own fields above it."""

    slug = forms.SlugField(max_length=80)
    topic = forms.ModelChoiceField(Topic.objects.all())
    level = forms.ChoiceField(choices=LEVELS)
    status = forms.ChoiceField(choices=STATUSES, initial="draft")
    facts = LinesField(help_text="One to three ids, one a line.", widget=forms.Textarea(attrs={"rows": 3, "cols": 8}))
    listens_for = LinesField(help_text="Two or three signs of understanding, one a line.")
    follow_ups = FollowUpsField(
        help_text="Two or three, one a line. ` -> slug` at the end links the question that answers it."
    )

    class Meta:
        model = QuestionVersion
        fields = (
            "kind",
            "title",
            "text",
            "facts",
            "lab",
            "answer",
            "listens_for",
            "warning",
            "follow_ups",
            "explanation",
            "details",
        )

    question: Question | None = None  # whose next version this is; set by the admin
    opened: QuestionVersion | None = None  # the version that was on the screen
    spec: QuestionSpec | None = None  # what the validator made of form and options together

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.question:
            for name in OF_THE_QUESTION:
                self.initial[name] = getattr(self.question, name)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        current = self.question.current if self.question else None
        if current and self.opened and current.pk != self.opened.pk:
            raise ValidationError(
                f"Version {current.number} was saved since you opened version {self.opened.number}. "
                "Nothing is overwritten: copy what you typed into the question as it is now."
            )
        return cleaned

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        taken = Question.objects.filter(slug=slug)
        if (taken.exclude(pk=self.question.pk) if self.question else taken).exists():
            raise ValidationError(f"slug {slug!r} is taken by another question")
        return slug


class OptionFormSet(forms.BaseInlineFormSet[Option, QuestionVersion, forms.ModelForm[Option]]):
    """The options, and with them the whole question, given to the one validator."""

    version_form: VersionForm

    def clean(self) -> None:
        super().clean()
        form = self.version_form
        if form.errors or any(self.errors):
            return
        rows = [row.cleaned_data for row in self.forms if row.cleaned_data and not row.cleaned_data.get("DELETE")]
        rows.sort(key=lambda row: row["position"])
        data = {name: form.cleaned_data[name] for name in QuestionSpec.model_fields if name in form.cleaned_data}
        data |= form.cleaned_data["details"] or {}
        data["lab"] = data["lab"].slug if data["lab"] else None
        data["options"] = [
            {"text": row["text"], "why": row["why"], "right": row["is_key"], "pinned": row["pinned"]} for row in rows
        ]
        found = read_question(data)
        if isinstance(found, list):
            raise ValidationError([f"{'.'.join(map(str, path))}: {message}" for path, message in found])
        form.spec = found


class OptionInline(admin.TabularInline[Option, QuestionVersion]):
    model = Option
    formset = OptionFormSet
    fields = ["position", "text", "is_key", "why", "pinned"]
    formfield_overrides = {TextField: {"widget": forms.Textarea(attrs={"rows": 4, "cols": 36})}}
    extra = 4
    max_num = 6

    def get_extra(self, request: HttpRequest, obj: QuestionVersion | None = None, **kwargs: Any) -> int:
        return 0 if obj else self.extra

    def get_formset(self, request: HttpRequest, obj: QuestionVersion | None = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.version_form = request.version_form  # type: ignore[attr-defined]
        return formset


@admin.register(QuestionVersion)
class QuestionAdmin(admin.ModelAdmin[QuestionVersion]):
    """The questions, each by its current version."""

    form = VersionForm
    inlines = [OptionInline]
    formfield_overrides = {TextField: {"widget": forms.Textarea(attrs={"rows": 5, "cols": 90})}}
    list_display = ["title", "slug", "topic", "level", "status", "kind", "number"]
    list_filter = ["question__status", "question__level", "question__topic", "kind"]
    search_fields = ["title", "text", "question__slug"]
    list_select_related = ["question__topic"]
    ordering = ["question__topic__position", "question__slug"]
    actions = ["publish", "archive"]
    fieldsets = [
        (None, {"fields": ["slug", ("topic", "level", "status"), "kind", "title", "text"]}),
        ("Covers", {"fields": ["facts", "lab"]}),
        ("After the answer", {"fields": ["answer", "listens_for", "warning", "follow_ups", "explanation"]}),
        ("What the kind needs beside options", {"fields": ["details"]}),
    ]

    @admin.display(ordering="question__slug")
    def slug(self, version: QuestionVersion) -> str:
        return version.question.slug

    @admin.display(ordering="question__topic__position")
    def topic(self, version: QuestionVersion) -> str:
        return version.question.topic.name

    @admin.display(ordering="question__level")
    def level(self, version: QuestionVersion) -> str:
        return version.question.get_level_display()

    @admin.display(ordering="question__status")
    def status(self, version: QuestionVersion) -> str:
        return version.question.get_status_display()

    @admin.action(description="Publish the selected questions")
    def publish(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._set_status(request, versions, "published")

    @admin.action(description="Archive the selected questions")
    def archive(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._set_status(request, versions, "archived")

    def _set_status(self, request: HttpRequest, versions: QuerySet[QuestionVersion], status: str) -> None:
        n_changed = Question.objects.filter(current__in=versions).update(status=status)
        self.message_user(request, f"{n_changed} now {status}.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuestionVersion]:
        """All versions when one is opened, the current ones in the list."""
        versions = super().get_queryset(request).select_related("question")
        is_list = bool(request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist"))
        return versions.filter(question__current=F("pk")) if is_list else versions

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # archiving is how a question goes

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Save an edit as Django's "save as new" would: the version that was opened stays as it is."""
        opened = self.get_object(request, object_id) if object_id else None
        request.opened = opened  # type: ignore[attr-defined]
        if request.method == "POST" and opened:
            posted = request.POST.copy()
            posted["_saveasnew"] = "1"
            request.POST = posted  # type: ignore[assignment]
        shown = {"show_save": True, "show_save_and_continue": True, "show_save_and_add_another": False}
        return super().changeform_view(request, object_id, form_url, shown | (extra_context or {}))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        base: Any = super().get_form(request, obj, change, **kwargs)

        class Form(base):  # type: ignore[misc]
            opened = request.opened  # type: ignore[attr-defined]
            question = request.opened.question if request.opened else None  # type: ignore[attr-defined]

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                request.version_form = self  # type: ignore[attr-defined]  # the options are judged with it

        return Form

    def save_model(self, request: HttpRequest, obj: QuestionVersion, form: Any, change: bool) -> None:
        """Keep the question and, if its content has changed, a new version with its options."""
        question = form.question or Question()
        for name in OF_THE_QUESTION:
            setattr(question, name, form.cleaned_data[name])
        question.save()
        version = question.revise(form.spec)
        request.made_version = version is not None  # type: ignore[attr-defined]
        version = version or question.current
        assert version
        obj.pk, obj.question, obj.number = version.pk, question, version.number

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the options were kept with their version."""

    def response_add(
        self, request: HttpRequest, obj: QuestionVersion, post_url_continue: str | None = None
    ) -> HttpResponse:
        made = request.made_version  # type: ignore[attr-defined]
        self.message_user(
            request,
            f"“{obj.title}” is saved as version {obj.number}." if made else f"“{obj.title}”: the text is as it was.",
        )
        if "_continue" in request.POST:
            return redirect("admin:questions_questionversion_change", obj.pk)
        return redirect("admin:questions_questionversion_changelist")

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        return [{"added": {"name": "version", "object": str(form.instance.number)}}]


@admin.register(Topic)
class TopicAdmin(admin.ModelAdmin[Topic]):
    list_display = ["name", "slug", "position"]


class ReportForm(forms.ModelForm[Report]):
    """The state of a report; the same thing is open once."""

    def clean_state(self) -> str:
        state: str = self.cleaned_data["state"]
        report = self.instance
        same = Report.objects.filter(version=report.version, learner=report.learner, reason=report.reason, state="open")
        if state == "open" and "state" in self.changed_data and same.exists():
            raise ValidationError("Its learner has said the same again since, and that report is open.")
        return state


@admin.register(Report)
class ReportAdmin(admin.ModelAdmin[Report]):
    """The queue of what learners, and the site itself, say is wrong; an author settles each by its state."""

    form = ReportForm
    list_display = ["version", "reason", "text", "state", "created"]
    list_filter = ["state", "reason"]
    list_select_related = ["version"]
    search_fields = ["text", "version__title", "version__question__slug"]
    fields = ["state", "reason", "text", "question", "learner", "created"]
    readonly_fields = ["reason", "text", "question", "learner", "created"]

    @admin.display
    def question(self, report: Report) -> str:
        version = report.version
        edit = reverse("admin:questions_questionversion_change", args=[version.pk])
        page = version.question.get_absolute_url()
        html = '<a href="{}">{}, version {}</a> · <a href="{}">as learners see it</a>'
        return format_html(html, edit, version.title, version.number, page)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
