"""The form that a question is written in: one for all kinds, read by the one validator."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from quizsite.labs import engine
from quizsite.labs.models import Run
from quizsite.labs.next_tokens import changed_settings, is_here, known_models, likely_tokens
from quizsite.labs.panels import cost
from quizsite.labs.text_fields import LinesField, YamlField, area
from quizsite.questions.checklist import warnings
from quizsite.questions.models import Question, QuestionVersion, Topic
from quizsite.questions.rows import RowsField
from quizsite.questions.validation import LEVELS, STATUSES, PredictSpec, QuestionSpec, lacks, read_question

OF_THE_QUESTION = ("slug", "topic", "level", "status")  # not of a version
DIGITS = 4  # of a probability that is kept


class FollowUpsField(LinesField):
    """Follow-ups, one a line: the text, then ` -> ` and the slug of the question that answers it."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return super().prepare_value([f["text"] + (f" -> {f['question']}" if f["question"] else "") for f in value])

    def to_python(self, value: Any) -> Any:
        parts = [line.partition("->") for line in super().to_python(value)]
        return [{"text": text.strip(), "question": slug.strip() or None} for text, _, slug in parts]


class OptionRow(forms.Form):
    text = forms.CharField(required=False, widget=area(3))
    why = forms.CharField(required=False, label="Why it is right or wrong", widget=area(3))
    right = forms.BooleanField(required=False)
    pinned = forms.BooleanField(required=False, label="Keeps its place")
    mistake = forms.CharField(required=False, max_length=3, label="Mistake that it stands for, such as E4")


class ParameterRow(forms.Form):
    name = forms.CharField(required=False, max_length=16)
    lowest = forms.IntegerField(required=False, label="From")
    highest = forms.IntegerField(required=False, label="To")
    step = forms.IntegerField(required=False)


class TrapRow(forms.Form):
    formula = forms.CharField(required=False)
    why = forms.CharField(required=False, label="How one gets there", widget=area(2))
    mistake = forms.CharField(required=False, max_length=3, label="Mistake that it stands for, such as E4")


class NearRow(forms.Form):
    text = forms.CharField(required=False)
    why = forms.CharField(required=False, label="Why not", widget=area(2))


class PointRow(forms.Form):
    point = forms.CharField(required=False, widget=area(2))
    words = forms.CharField(required=False, label="Words that suggest it, with commas between")


class VersionForm(forms.ModelForm[QuestionVersion]):
    """A version of a question, with the question's own fields above it and those of each kind below."""

    slug = forms.SlugField(max_length=80, help_text="The address under /questions/. Small letters, digits, hyphens.")
    topic = forms.ModelChoiceField(Topic.objects.all())
    level = forms.ChoiceField(choices=LEVELS)
    status = forms.ChoiceField(choices=STATUSES, initial="draft", help_text="A draft may lack what learners need.")
    facts = LinesField(required=False, help_text="One to three ids, one a line.", widget=area(3))
    listens_for = LinesField(required=False, help_text="Two or three signs of understanding, one a line.")
    follow_ups = FollowUpsField(
        required=False,
        help_text="Two or three, one a line. An arrow and a slug at its end, -> such-as-this, link the question.",
    )

    options = RowsField(OptionRow, "option", help_text="Three to six.")
    formula = forms.CharField(required=False, max_length=300, help_text="Of the parameters, such as N * (P + 1).")
    unit = forms.CharField(required=False, max_length=60)
    tolerance = forms.FloatField(required=False, help_text="A share of the key: 0.01 is one in a hundred. 0 is exact.")
    decimals = forms.IntegerField(required=False, help_text="Of the key as it is shown.")
    parameters = RowsField(
        ParameterRow, "parameter", help_text="Each try draws them anew. The text names each in braces: {N}."
    )
    traps = RowsField(TrapRow, "trap", help_text="Numbers that typical mistakes give.")
    items = LinesField(required=False, widget=area(6), help_text="Three to seven parts in the right order, one a line.")
    accepted = LinesField(required=False, help_text="Answers that are right, one a line.")
    ignore_case = forms.BooleanField(required=False, initial=True, label="Capital and small letters are the same")
    near = RowsField(NearRow, "near miss", help_text="Plausible wrong answers, each with its reason.")
    rubric = RowsField(PointRow, "point", help_text="Four to seven.")
    model = forms.ChoiceField(required=False)
    prompt = forms.CharField(required=False, strip=False, max_length=1000, widget=area(2))
    settings = YamlField(dict, help_text="As in temperature: 0.7, one a line; those left out are neutral.")
    step = forms.IntegerField(required=False, help_text="Which new token is asked for, from 1.")
    n_options = forms.IntegerField(required=False, label="Tokens to choose from", help_text="Three to five.")

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
        )

    question: Question | None = None  # whose next version this is; set by the admin
    opened: QuestionVersion | None = None  # the version that was on the screen
    spec: QuestionSpec | None = None  # what the validator made of the form

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["model"].choices = [(name, name) for name in known_models()]  # type: ignore[attr-defined]
        if self.question:
            for name in OF_THE_QUESTION:
                self.initial[name] = getattr(self.question, name)
        if self.instance.pk:
            self.initial.update(written(self.instance))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        current = self.question.current if self.question else None
        if current and self.opened and current.pk != self.opened.pk:
            raise ValidationError(
                f"Version {current.number} was saved since you opened version {self.opened.number}. "
                "Nothing is overwritten: copy what you typed into the question as it is now."
            )
        if not self.errors:
            self._validate(cleaned)
        return cleaned

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        taken = Question.objects.filter(slug=slug)
        if (taken.exclude(pk=self.question.pk) if self.question else taken).exists():
            raise ValidationError(f"slug {slug!r} is taken by another question")
        return slug

    @property
    def lacks(self) -> list[str]:
        """What is missing before it may be published."""
        return [in_words(path, message) for path, message in lacks(self.spec)] if self.spec else []

    @property
    def warnings(self) -> list[str]:
        return warnings(self.spec) if self.spec else []

    def _validate(self, cleaned: dict[str, Any]) -> None:
        """Give all fields together to the validator; what it says stands at the field that it is about."""
        found = read_question(self._data(cleaned))
        if not isinstance(found, list):
            self.spec = found
            return
        for path, message in found:
            name = next((str(part) for part in reversed(path) if part in self.fields), None)
            self.add_error(name, in_words(path, message))

    def _data(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        names = ("title", "level", "kind", "status", "facts", "text", "answer", "listens_for", "warning", "follow_ups")
        data = {name: cleaned[name] for name in (*names, "explanation")}
        return data | {"lab": cleaned["lab"].slug if cleaned["lab"] else None} | self._of_the_kind(cleaned)

    def _of_the_kind(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        kind = cleaned["kind"]
        if kind in {"single_choice", "multiple_choice"}:
            return {"options": [_without_blank(row) for row in cleaned["options"]]}
        if kind == "ordering":
            return {"items": cleaned["items"]}
        if kind == "short_text":
            return {name: cleaned[name] for name in ("accepted", "ignore_case", "near")}
        if kind == "explain":
            return {"rubric": [row | {"words": _words(row["words"])} for row in cleaned["rubric"]]}
        if kind == "numeric":
            return {"numeric": _numeric(cleaned)}
        return {"predict": self._predict(cleaned)} if kind == "predict" else {}

    def _predict(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """Return what is asked, with the tokens that the engine finds there."""
        asked = {name: cleaned[name] for name in ("model", "prompt", "settings", "step", "n_options")}
        asked = {name: value for name, value in asked.items() if value not in (None, "")}
        try:
            return asked | {"found": found_by_engine(PredictSpec.model_validate(asked))}
        except ValueError as error:
            if self.data.get("status") != "draft":
                self.add_error("prompt", f"the engine finds no key: {error}")
            return asked


def found_by_engine(spec: PredictSpec) -> list[dict[str, Any]]:
    """Run a prediction up to its step and return the likeliest tokens there, the one that is taken first.

    Raises
    ------
    ValueError
        Where there is none to be found: a model that is not here, a bad setting, a run that ends before.
    """
    if not is_here(spec.model):
        raise ValueError(f"model {spec.model!r} is not here")
    asked = (spec.model, spec.prompt, spec.settings, spec.step, spec.n_options)
    tokens = likely_tokens(*asked, run=engine.run_shared)
    return [{"token": token, "probability": round(probability, DIGITS)} for token, probability in tokens]


def written(version: QuestionVersion) -> dict[str, Any]:
    """Return what stands in the form's own fields for a version."""
    data = version.data
    rubric = [point | {"words": ", ".join(point["words"])} for point in data.get("rubric", [])]
    shown: dict[str, Any] = {name: data[name] for name in ("items", "accepted", "ignore_case", "near") if name in data}
    shown |= {"facts": version.facts, "listens_for": version.listens_for, "follow_ups": version.follow_ups}
    shown |= {"rubric": rubric, "options": data.get("options", [])}
    shown |= data.get("predict") or {}
    numeric = dict(data.get("numeric") or {})
    parameters = numeric.pop("parameters", {})
    numeric["parameters"] = [
        {"name": name, "lowest": row["from"], "highest": row["to"], "step": row["step"]}
        for name, row in parameters.items()
    ]
    return shown | numeric


def begun_with(run: Run) -> dict[str, Any]:
    """Return what a question begins with that is made of a run: its bill, or the token that comes next in it."""
    if run.panel == "cost":
        return {"kind": "numeric"} | cost.question(run.inputs)
    setup = run.recording.setup
    asked = {"model": setup.model, "prompt": setup.prompt, "settings": changed_settings(setup.params)}
    return {"kind": "predict", **asked, "step": 1, "n_options": 4, "lab": run.lab_id}


def in_words(path: tuple[str | int, ...], message: str) -> str:
    """Return a problem with its place, rows counted from 1 as people do."""
    where = ", ".join(f"row {part + 1}" if isinstance(part, int) else part.replace("_", " ") for part in path)
    return f"{where}: {message}" if where else message


def _without_blank(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the mistake that nobody has named."""
    return {name: value for name, value in row.items() if value or name != "mistake"}


def _words(typed: str) -> list[str]:
    return [word.strip() for word in typed.split(",") if word.strip()]


def _numeric(cleaned: dict[str, Any]) -> dict[str, Any]:
    given = {name: cleaned[name] for name in ("formula", "unit", "tolerance", "decimals")}
    given["traps"] = [_without_blank(row) for row in cleaned["traps"]]
    parameters = {
        row["name"]: {"from": row["lowest"], "to": row["highest"], "step": row["step"] or 1}
        for row in cleaned["parameters"]
    }
    return {name: value for name, value in given.items() if value not in (None, "")} | {"parameters": parameters}
