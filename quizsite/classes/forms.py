"""What teachers fill in: a class, an assignment, extra time, a mark."""

from typing import Any
from zoneinfo import available_timezones

from django import forms

from quizsite.classes.models import COUNTS, Assignment, Class, ExtraTime
from quizsite.classes.times import MomentField
from quizsite.questions.models import Topic
from quizsite.questions.validation import LEVELS
from quizsite.quizzes import picking
from quizsite.quizzes.models import FEEDBACK, Quiz

INPUT = {"class": "input"}
EARLIEST, LATEST = 2000, 2200  # years


class ClassForm(forms.ModelForm[Class]):
    """A class's name, and the zone in which its times are meant."""

    class Meta:
        model = Class
        fields = ("name", "time_zone")

    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs=INPUT))
    time_zone = forms.ChoiceField(
        choices=lambda: [(zone, zone.replace("_", " ")) for zone in sorted(available_timezones())],
        widget=forms.Select(attrs=INPUT),
        help_text="Opening and due times are typed in it. Learners elsewhere see their own as well.",
    )


class AssignmentForm(forms.Form):
    """When a quiz is open, how it is taken, and what it asks."""

    title = forms.CharField(max_length=80, widget=forms.TextInput(attrs=INPUT))
    opens = MomentField()
    due = MomentField()
    minutes = forms.IntegerField(
        label="Minutes for a try",
        required=False,
        min_value=1,
        max_value=600,
        widget=forms.NumberInput(attrs=INPUT),
        help_text="Empty: until it is due.",
    )
    attempts_allowed = forms.IntegerField(
        label="Tries",
        required=False,
        min_value=1,
        max_value=50,
        initial=1,
        widget=forms.NumberInput(attrs=INPUT),
        help_text="Empty: as many as one likes.",
    )
    counts = forms.ChoiceField(label="What counts", choices=COUNTS, widget=forms.Select(attrs=INPUT))
    feedback = forms.ChoiceField(
        label="Verdicts, keys and reasons are shown",
        choices=FEEDBACK,
        initial="due",
        widget=forms.Select(attrs=INPUT),
        help_text="Before the last one is due, a shown key can be passed on.",
    )
    is_selected = forms.TypedChoiceField(
        label="What it asks",
        choices=[("yes", "Questions that I choose next"), ("no", "What a rule finds, drawn anew for each try")],
        coerce=lambda value: value == "yes",
        widget=forms.Select(attrs=INPUT),
    )
    level = forms.ChoiceField(
        label="Rule: level", choices=[("", "All"), *LEVELS], required=False, widget=forms.Select(attrs=INPUT)
    )
    topic = forms.ModelChoiceField(
        Topic.objects.all(),
        label="Rule: topic",
        required=False,
        empty_label="All",
        to_field_name="slug",
        widget=forms.Select(attrs=INPUT),
    )
    n_questions = forms.IntegerField(
        label="Rule: questions",
        min_value=1,
        max_value=picking.MOST_ASKED,
        required=False,
        initial=10,
        widget=forms.NumberInput(attrs=INPUT),
    )

    def __init__(self, *args: Any, assignment: Assignment | None = None, **kwargs: Any) -> None:
        if assignment:
            quiz = assignment.quiz
            kwargs["initial"] = {
                **{name: getattr(assignment, name) for name in Assignment.WHEN},
                **{name: getattr(quiz, name) for name in Assignment.HOW + Assignment.WHAT},
                "topic": quiz.topic and quiz.topic.slug,
                "is_selected": "yes" if quiz.is_selected else "no",
                "n_questions": quiz.n_questions or 10,
            }
        super().__init__(*args, **kwargs)
        if assignment and assignment.has_begun:
            for name in Assignment.WHAT:
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        opens, due = data.get("opens"), data.get("due")
        for name, moment in (("opens", opens), ("due", due)):
            if moment and not EARLIEST < moment.year < LATEST:
                self.add_error(name, f"The year must lie between {EARLIEST} and {LATEST}, got {moment.year}.")
        if opens and due and opens >= due:
            self.add_error("due", "It must be due after it opens.")
        if data.get("is_selected") is False:
            self._check_rule(data)
        data["n_questions"] = data.get("n_questions") or 0
        return data

    def _check_rule(self, data: dict[str, Any]) -> None:
        wanted = data.get("n_questions")
        if "n_questions" in self.errors:
            return
        if not wanted:
            self.add_error("n_questions", "Say how many questions the rule draws.")
            return
        n_fitting = picking.askable(Quiz(level=data.get("level") or "", topic=data.get("topic"))).count()
        if n_fitting < wanted:
            self.add_error("n_questions", f"{n_fitting} fit this level and topic, {wanted} are wanted.")


class ExtraForm(forms.Form):
    """More time for one learner; 0 takes it back."""

    minutes = forms.IntegerField(min_value=0, max_value=ExtraTime.MOST)


def first_problem(form: forms.Form) -> str:
    """Return what is wrong with a form of one line."""
    return next((str(problem) for problems in form.errors.values() for problem in problems), "")
