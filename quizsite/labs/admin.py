"""Labs in the admin; runs can be looked at, not changed."""

from django.contrib import admin
from django.db.models import JSONField, TextField
from django.forms import ModelForm, Textarea
from django.http import HttpRequest

from quizsite.labs import engine
from quizsite.labs.models import Lab, Run
from quizsite.labs.validation import prove


class LabForm(ModelForm[Lab]):
    """A lab's form: what is well written is run as well, once Django has made the row of it."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if not self.errors and self.instance.is_ready:
            for path, message in prove(self.instance.spec, engine.run_shared):
                self.add_error(None, f"{'.'.join(map(str, path))}: {message}")


@admin.register(Lab)
class LabAdmin(admin.ModelAdmin[Lab]):
    form = LabForm
    list_display = ["title", "slug", "panel", "model", "prompt"]
    formfield_overrides = {
        TextField: {"widget": Textarea(attrs={"rows": 2, "cols": 90})},
        JSONField: {"widget": Textarea(attrs={"rows": 3, "cols": 90})},
    }
    prepopulated_fields = {"slug": ["title"]}

    def has_delete_permission(self, request: HttpRequest, obj: Lab | None = None) -> bool:
        return False  # what learners have shown in it would go with it


@admin.register(Run)
class RunAdmin(admin.ModelAdmin[Run]):
    list_display = ["id", "lab", "recording", "n_steps", "finish_reason", "created"]
    list_filter = ["finish_reason", "lab"]
    list_select_related = ["lab", "recording"]
    date_hierarchy = "created"
    exclude = ["learner"]  # who ran it is not an author's business

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False
