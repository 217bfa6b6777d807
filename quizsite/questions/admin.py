"""Writing questions in the admin. A version is written once, so saving an edit makes the next one."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Avg, Count, F, Q, QuerySet, TextField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from quizsite.htmx import number_in
from quizsite.labs.admin import run_named
from quizsite.labs.text_fields import area
from quizsite.questions.authoring import OF_THE_QUESTION, VersionForm, begun_with, in_words, written
from quizsite.questions.differences import differences
from quizsite.questions.models import Question, QuestionVersion, Report, Topic
from quizsite.questions.validation import LEVELS, QuestionSpec, lacks, read_question

Retag = Callable[[list[str], str], list[str]]  # from the facts and the one that is named to other facts
MOST_AT_ONCE = 500  # questions that an address can name
N_ENOUGH = 20  # first answers, before a facility says anything


class FactFilter(admin.SimpleListFilter):
    title = "fact"
    parameter_name = "fact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        known = Question.objects.filter(current__isnull=False).values_list("current__facts", flat=True)
        facts = {fact for facts in known for fact in facts}
        return [(fact, fact) for fact in sorted(facts, key=lambda fact: (fact[0], int(fact[1:])))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[QuestionVersion]) -> QuerySet[QuestionVersion]:
        return queryset.filter(facts__icontains=f'"{self.value()}"') if self.value() else queryset


class FacilityFilter(admin.SimpleListFilter):
    """By the mean score of first answers to the version as it is."""

    title = "facility"
    parameter_name = "facility"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("hard", "under 30%"),
            ("middling", "30 to 90%"),
            ("easy", "over 90%"),
            ("few", f"too few to say: under {N_ENOUGH}"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[QuestionVersion]) -> QuerySet[QuestionVersion]:
        if not self.value():
            return queryset
        first = Q(answers__try_number=1)
        counted = queryset.annotate(n_first=Count("answers", filter=first), mean=Avg("answers__score", filter=first))
        if self.value() == "few":
            return counted.filter(n_first__lt=N_ENOUGH)
        spans = {"hard": Q(mean__lt=0.3), "middling": Q(mean__gte=0.3, mean__lte=0.9), "easy": Q(mean__gt=0.9)}
        return counted.filter(spans[self.value() or ""], n_first__gte=N_ENOUGH)


class ReportsFilter(admin.SimpleListFilter):
    title = "reports"
    parameter_name = "reports"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "some are open")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[QuestionVersion]) -> QuerySet[QuestionVersion]:
        reported = Report.objects.filter(state="open").values("version__question")
        return queryset.filter(question__in=reported) if self.value() == "open" else queryset


class BulkForm(ActionForm):
    """What the chosen action is to set, for all questions that are ticked."""

    to_level = forms.ChoiceField(choices=[("", "level …"), *LEVELS], required=False, label="Level")
    to_topic = forms.ModelChoiceField(Topic.objects.all(), required=False, label="Topic", empty_label="topic …")
    fact = forms.CharField(required=False, label="Fact", max_length=4, widget=forms.TextInput(attrs={"size": 4}))


@admin.register(QuestionVersion)
class QuestionAdmin(admin.ModelAdmin[QuestionVersion]):
    """The questions, each by its current version."""

    form = VersionForm
    action_form = BulkForm
    change_form_template = "authoring/question.html"
    change_list_template = "authoring/questions.html"
    formfield_overrides = {TextField: {"widget": area(5)}}
    list_display = ["title", "topic", "level", "status", "kind", "number", "n_reports"]
    list_filter = [
        "question__status",
        "question__level",
        "question__topic",
        "kind",
        FacilityFilter,
        ReportsFilter,
        FactFilter,
    ]
    search_fields = ["title", "text", "question__slug"]
    list_select_related = ["question__topic"]
    list_per_page = 50
    show_full_result_count = False
    ordering = ["question__topic__position", "question__slug"]
    actions = ["publish", "draft", "archive", "set_level", "move", "add_fact", "remove_fact", "download"]
    fieldsets = [
        (None, {"fields": [("slug", "topic"), ("level", "status", "kind"), "title", "text"]}),
        ("Options", {"fields": ["options"], "classes": ["kind", "single_choice", "multiple_choice"]}),
        (
            "Number",
            {
                "fields": [("formula", "unit"), ("tolerance", "decimals"), "parameters", "traps"],
                "classes": ["kind", "numeric"],
            },
        ),
        ("Parts in order", {"fields": ["items"], "classes": ["kind", "ordering"]}),
        ("Accepted answers", {"fields": ["accepted", "ignore_case", "near"], "classes": ["kind", "short_text"]}),
        ("Rubric", {"fields": ["rubric"], "classes": ["kind", "explain"]}),
        (
            "Prediction",
            {"fields": ["model", "prompt", "settings", ("step", "n_options")], "classes": ["kind", "predict"]},
        ),
        ("Covers", {"fields": [("facts", "lab")]}),
        ("After the answer", {"fields": ["answer", "listens_for", "warning", "follow_ups", "explanation"]}),
    ]

    class Media:
        js = (forms.Script("authoring.js", defer=True),)

    @admin.display(ordering="question__topic__position")
    def topic(self, version: QuestionVersion) -> str:
        return version.question.topic.name

    @admin.display(ordering="question__level")
    def level(self, version: QuestionVersion) -> str:
        return version.question.get_level_display()

    @admin.display(ordering="question__status")
    def status(self, version: QuestionVersion) -> str:
        return version.question.get_status_display()

    @admin.display(ordering="open_reports", description="reports")
    def n_reports(self, version: Any) -> str:
        return str(version.open_reports) if version.open_reports else ""

    @admin.action(description="Publish")
    def publish(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        """Publish those that lack nothing; say of the others what they lack."""
        ready = []
        for version in versions.prefetch_related("options"):
            missing = lacks(QuestionSpec.model_validate(version.data))
            if missing:
                others = f", and {len(missing) - 1} more" if missing[1:] else ""
                text = f"“{version.title}” stays as it is. {in_words(*missing[0])}{others}."
                self.message_user(request, text, messages.WARNING)
            else:
                ready.append(version.pk)
        self._update(request, versions.model.objects.filter(pk__in=ready), "now published", status="published")

    @admin.action(description="Make a draft")
    def draft(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._update(request, versions, "now a draft", status="draft")

    @admin.action(description="Archive")
    def archive(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._update(request, versions, "now archived", status="archived")

    @admin.action(description="Set the level")
    def set_level(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        level = request.POST.get("to_level", "")
        if level not in dict(LEVELS):
            self.message_user(request, "Choose the level beside the action. Nothing was changed.", messages.WARNING)
            return
        self._update(request, versions, f"now {dict(LEVELS)[level]}", level=level)

    @admin.action(description="Move to the topic")
    def move(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        topic = Topic.objects.filter(pk=number_in(request.POST.get("to_topic"))).first()
        if not topic:
            self.message_user(request, "Choose the topic beside the action. Nothing was changed.", messages.WARNING)
            return
        self._update(request, versions, f"now in {topic}", topic=topic)

    @admin.action(description="Add the fact")
    def add_fact(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._retag(request, versions, lambda facts, fact: [*facts, fact] if fact not in facts else facts)

    @admin.action(description="Remove the fact")
    def remove_fact(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> None:
        self._retag(request, versions, lambda facts, fact: [known for known in facts if known != fact])

    @admin.action(description="Download as YAML", permissions=["view"])
    def download(self, request: HttpRequest, versions: QuerySet[QuestionVersion]) -> HttpResponse:
        ids = ",".join(str(pk) for pk in versions.values_list("pk", flat=True)[:MOST_AT_ONCE])
        return redirect(f"{reverse('content:download', args=['yaml'])}?ids={ids}")

    def _update(self, request: HttpRequest, versions: QuerySet[QuestionVersion], what: str, **values: Any) -> None:
        n_changed = Question.objects.filter(current__in=versions.values("pk")).update(**values)
        self.message_user(request, f"{n_changed} {what}.")

    def _retag(self, request: HttpRequest, versions: QuerySet[QuestionVersion], change: Retag) -> None:
        """Change the facts of each: what a question covers belongs to its version, so this makes the next one."""
        fact, n_changed = request.POST.get("fact", "").strip().upper(), 0
        for version in versions.select_related("question", "lab").prefetch_related("options"):
            data = version.data
            facts = change(data["facts"], fact)
            found = read_question(data | {"facts": facts, "status": version.question.status})
            if isinstance(found, list):
                text = f"“{version.title}” stays as it is. {in_words(*found[0])}"
                self.message_user(request, text, messages.WARNING)
            elif version.question.revise(found):
                n_changed += 1
        self.message_user(request, f"{n_changed} changed.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuestionVersion]:
        """All versions when one is opened, the current ones in the list."""
        versions = super().get_queryset(request).select_related("question")
        is_list = bool(request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist"))
        if not is_list:
            return versions
        is_open = Q(question__versions__reports__state="open")
        counted = Count("question__versions__reports", filter=is_open, distinct=True)
        return versions.filter(question__current=F("pk")).annotate(open_reports=counted)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # archiving is how a question goes

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Begin with what the address says, with a run of one's own, or with a copy of a question."""
        if run := run_named(request):
            return begun_with(run)
        copied = self.get_object(request, request.GET.get("copy", "0")) if "copy" in request.GET else None
        if not copied:
            return dict(super().get_changeform_initial_data(request))
        question = copied.question
        fields = {name: getattr(copied, name) for name in ("kind", "title", "text", "lab", "answer", "warning")}
        fields |= {"explanation": copied.explanation, "topic": question.topic, "level": question.level}
        return fields | written(copied) | {"slug": f"{question.slug[:75]}-copy"}

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the versions of a question, and what changed between any two."""
        version = self.get_object(request, object_id)
        if not version or not self.has_view_permission(request, version):
            raise PermissionDenied
        versions = list(version.question.versions.select_related("lab").prefetch_related("options"))
        by_number = {found.number: found for found in versions}
        after = by_number.get(number_in(request.GET.get("to")), versions[0])
        before = by_number.get(number_in(request.GET.get("from")), by_number.get(after.number - 1, after))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Versions of “{version.title}”",
            "version": version,
            "versions": versions,
            "before": before,
            "after": after,
            "changes": differences(before.data, after.data),
        }
        return TemplateResponse(request, "authoring/versions.html", context)

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
        shown = {
            "show_save": True,
            "show_save_and_continue": True,
            "show_save_and_add_another": False,
            "opened": opened,
        }
        return super().changeform_view(request, object_id, form_url, shown | (extra_context or {}))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        base: Any = super().get_form(request, obj, change, **kwargs)

        class Form(base):  # type: ignore[misc]
            opened = request.opened  # type: ignore[attr-defined]
            question = request.opened.question if request.opened else None  # type: ignore[attr-defined]

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
        for text in form.lacks if form.spec.status == "draft" else []:
            self.message_user(request, f"Before it is published: {text}", messages.WARNING)
        for text in form.warnings:
            self.message_user(request, text, messages.WARNING)

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
