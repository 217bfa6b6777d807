"""Labs and what happens in them: Lab, Recording, Run, LabResult."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from typing import Any, ClassVar, Self
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from generation import (
    RECORD_FORMAT,
    Generation,
    SamplingParams,
    Step,
    generation_from_dict,
    model_digest,
    step_from_dict,
)
from quizsite.accounts.models import User
from quizsite.labs.clauses import Inputs, Setup
from quizsite.labs.panels import KINDS
from quizsite.labs.panels.kind import Kind
from quizsite.labs.validation import TAKEN_SLUGS, LabSpec, read_lab


class NotNow(Exception):
    """A run cannot start at the moment: its learner has started too many, or too many learners wait."""

    def __init__(self, reason: str, retry_after: int) -> None:
        seconds = f"{retry_after} second{'' if retry_after == 1 else 's'}"
        super().__init__(f"{reason}. Wait {seconds} and press Run again; your settings are kept.")
        self.retry_after = retry_after  # seconds


class Lab(models.Model):
    """A phenomenon to be made and cured: a panel, a start, what may be changed, and the goals."""

    slug = models.SlugField(unique=True, max_length=80)
    title = models.CharField(max_length=80)
    panel = models.CharField(max_length=20, default="trace")
    facts = models.JSONField(default=list)
    model = models.CharField(max_length=100)
    prompt = models.TextField(blank=True)
    chat = models.JSONField(default=list, blank=True, help_text="Messages in place of the prompt: role and content.")
    start = models.JSONField(default=dict, blank=True, help_text="Settings at the start; those left out are neutral.")
    inputs = models.JSONField(default=dict, blank=True, help_text="Inputs of the panel at the start.")
    allowed = models.JSONField(blank=True, help_text="Names of the settings and inputs that the learner may change.")
    seeds = models.JSONField(default=list, blank=True, help_text="Five seeds, where sampling is allowed.")
    goals = models.JSONField(help_text="One goal or two: kind, numbers, solution.")
    hints = models.JSONField(default=list, blank=True, help_text="Three hints of growing help, without the numbers.")
    explanation = models.TextField(blank=True, help_text="Markdown, shown once all goals are met.")
    first_step = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="+", help_text="The lab that leads to it."
    )
    loaded_digest = models.CharField(max_length=64, blank=True, editable=False)  # of its file, when last loaded

    class Meta:
        ordering: ClassVar = ["title"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("labs:lab", args=[self.slug])

    def clean(self) -> None:
        if self.slug in TAKEN_SLUGS:
            raise ValidationError({"slug": f"slug must not be {self.slug}: a page has that address"})
        found = read_lab(self.content)  # the admin's form proves it as well
        if isinstance(found, list):
            raise ValidationError([f"{'.'.join(map(str, path))}: {message}" for path, message in found])

    @property
    def is_ready(self) -> bool:
        return self.spec.is_ready

    @property
    def steps(self) -> list["Lab"]:
        """The lab that leads to it and itself; none where it stands alone."""
        return [self.first_step, self] if self.first_step else []

    def step_to_show(self, wanted: str) -> "Lab":
        """Return this lab, or its first step where that is wanted by its slug, or all that can be run here."""
        first = self.first_step
        return first if first and (wanted == first.slug or not self.is_ready) else self

    @property
    def content(self) -> dict[str, Any]:
        """The lab as plain data, as a file holds it."""
        values = {name: getattr(self, name) for name in LabSpec.model_fields}
        return values | {"first_step": self.first_step.slug if self.first_step else ""}

    @cached_property
    def spec(self) -> LabSpec:
        return LabSpec.model_validate(self.content)


class RecordingManager(models.Manager["Recording"]):
    def of(self, setup: Setup, forced: Mapping[int, int] | None = None) -> "Recording":
        """Return the one recording of this model, prompt, settings and seed; it may not be computed yet."""
        values = {"model": setup.model, "prompt": setup.prompt, "chat": setup.chat, "settings": setup.params.as_dict()}
        content = [values, model_digest(setup.model), sorted((forced or {}).items())]
        key = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        recording, _ = self.get_or_create(key=key, defaults=values | {"forced": dict(forced or {})})
        return recording


class Recording(models.Model):
    """What a model does with a prompt under settings and a seed: computed once, shared by all who ask."""

    key = models.CharField(max_length=64, unique=True)
    model = models.CharField(max_length=100)
    prompt = models.TextField()
    chat = models.JSONField(default=list)  # in place of the prompt
    settings = models.JSONField()
    forced = models.JSONField(default=dict)
    packed_steps = models.BinaryField(default=b"")  # as far as anybody has watched; zlib over JSON
    n_steps = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True)  # the Generation without its steps, once it has ended
    format = models.PositiveSmallIntegerField(default=RECORD_FORMAT)  # of the two above

    objects = RecordingManager()

    def __str__(self) -> str:
        return f"{self.model}: {self.prompt[:40]!r}"

    @cached_property
    def setup(self) -> Setup:
        return Setup(self.model, self.prompt, SamplingParams(**self.settings), self.chat)

    @property
    def params(self) -> SamplingParams:
        return self.setup.params

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The steps computed so far, as plain data; none if they were stored in an older format."""
        return json.loads(zlib.decompress(self.packed_steps)) if self.packed_steps and self.is_readable else []

    @property
    def is_readable(self) -> bool:
        return self.format == RECORD_FORMAT

    @property
    def generation(self) -> Generation | None:
        """The finished run, or None while it has not ended."""
        if not self.result or not self.is_readable:
            return None
        return generation_from_dict({**self.result, "steps": self.steps})

    def save_steps(self, steps: list[Step]) -> None:
        """Keep what has been computed of an unfinished run, if it is more than is kept already."""
        is_less = models.Q(result__isnull=True, n_steps__lt=len(steps)) | ~models.Q(format=RECORD_FORMAT)
        data = [asdict(step) for step in steps]
        values = {"packed_steps": _packed(data), "n_steps": len(data), "result": None, "format": RECORD_FORMAT}
        if Recording.objects.filter(is_less, pk=self.pk).update(**values):
            self.steps, self.result, self.format = data, None, RECORD_FORMAT

    def save_generation(self, generation: Generation) -> None:
        """Keep a run that ended by itself."""
        record = asdict(generation)
        self.steps = record.pop("steps")
        self.packed_steps, self.n_steps, self.result = _packed(self.steps), len(self.steps), record
        self.format = RECORD_FORMAT
        self.save(update_fields=["packed_steps", "n_steps", "result", "format"])


def _packed(steps: list[dict[str, Any]]) -> bytes:
    return zlib.compress(json.dumps(steps, separators=(",", ":")).encode())


class RunQuerySet(models.QuerySet["Run"]):
    def by(self, learner: User | AnonymousUser) -> Self:
        return self.filter(learner=learner) if learner.is_authenticated else self.none()

    def visible_to(self, learner: User | AnonymousUser) -> Self:
        """Runs of the learner's own, and those that their owners share."""
        shared = models.Q(shared=True)
        return self.filter(shared | models.Q(learner=learner) if learner.is_authenticated else shared)

    def open(self) -> Self:
        return self.filter(finish_reason="")

    def with_recording(self) -> Self:
        return self.select_related("recording", "lab", "learner")

    def open_by_hand(self, lab: Lab | None, panel: str, recording: Recording) -> "Run | None":
        return self.open().with_recording().filter(lab=lab, panel=panel, recording=recording, pace=None).first()

    def latest_in(self, lab: Lab | None, panel: str) -> "Run | None":
        return self.with_recording().filter(lab=lab, panel=panel).order_by("-created").first()

    def start(
        self, learner: User, lab: Lab | None, panel: str, recording: Recording, inputs: Inputs, pace: int | None
    ) -> "Run":
        """Open a run in place of the learner's open one.

        Raises
        ------
        NotNow
            Over the rate of one learner.
        """
        with transaction.atomic():
            User.objects.select_for_update().get(pk=learner.pk)  # one start at a time for each learner
            since = timezone.now() - timedelta(minutes=1)
            recent = self.filter(learner=learner, created__gt=since).order_by("-created")
            limit = settings.RUNS_PER_MINUTE
            oldest_that_counts = recent.values_list("created", flat=True)[limit - 1 : limit].first()
            if oldest_that_counts:
                raise NotNow(f"{limit} runs in a minute are the most", 1 + (oldest_that_counts - since).seconds)
            self.filter(learner=learner).open().update(finish_reason="cancelled")
            return self.create(learner=learner, lab=lab, panel=panel, recording=recording, inputs=inputs, pace=pace)


class Run(models.Model):
    """A recording as one learner ran it. It is private until its owner shares it."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="runs")
    lab = models.ForeignKey(Lab, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    recording = models.ForeignKey(Recording, on_delete=models.PROTECT, related_name="runs")
    pace = models.PositiveSmallIntegerField(null=True)  # tokens a second; 0 all at once; None by hand
    n_steps = models.PositiveIntegerField(default=0)  # shown to the learner so far
    finish_reason = models.CharField(max_length=12, blank=True)  # empty while it goes on
    failure = models.CharField(max_length=200, blank=True)  # why the model could not go on
    panel = models.CharField(max_length=20, default="trace")
    inputs = models.JSONField(default=dict)  # of the panel
    outcome = models.JSONField(null=True)  # what the panel has measured after the run, once it has
    others = models.ManyToManyField(Recording, related_name="+")  # that the panel has asked for beside it
    verdicts = models.JSONField(default=dict)  # by the kind of the lab's goals, once it has ended
    shared = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["learner", "lab", "-created"])]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["learner"], condition=models.Q(finish_reason=""), name="one_open_run_of_a_learner"
            )
        ]

    def __str__(self) -> str:
        return f"run {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("labs:run", args=[self.id])

    @property
    def is_open(self) -> bool:
        return not self.finish_reason

    @property
    def is_by_hand(self) -> bool:
        return self.pace is None

    @property
    def kind(self) -> Kind:
        return KINDS[self.panel]

    @property
    def ended_by_itself(self) -> bool:
        """Tell whether it came to an end of its own: it does not go on, and nothing broke it off."""
        return self.finish_reason not in {"", "cancelled", "deadline"}

    @property
    def awaits_outcome(self) -> bool:
        """Tell whether its panel has something left to do: only after a run that ended by itself."""
        return self.ended_by_itself and self.kind.has_more and self.outcome is None

    @property
    def awaits_verdict(self) -> bool:
        """Tell whether its panel, or the goals of its lab, have something left to do."""
        return self.awaits_outcome or (self.ended_by_itself and self.lab is not None and not self.verdicts)

    def all_others(self) -> list[Recording]:
        """Return the recordings that the panel has asked for, in the order in which it did."""
        through = Run.others.through
        return [row.recording for row in through.objects.filter(run=self).select_related("recording").order_by("pk")]

    @cached_property
    def steps(self) -> list[Step]:
        """The steps that the learner has seen."""
        return [step_from_dict(step) for step in self.recording.steps[: self.n_steps]]

    def close(self, finish_reason: str, n_steps: int, failure: str = "") -> None:
        """End the run, unless it has ended before."""
        values = {"n_steps": n_steps, "finish_reason": finish_reason, "failure": failure[:200]}
        if Run.objects.open().filter(pk=self.pk).update(**values):
            self.n_steps, self.finish_reason, self.failure = n_steps, finish_reason, failure[:200]
            self.__dict__.pop("steps", None)
        else:
            self.refresh_from_db(fields=list(values))


class LabResult(models.Model):
    """A goal that a learner has met, with the first run that met it."""

    learner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="lab_results")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="results")
    goal = models.CharField(max_length=40)  # its kind
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="results")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["learner", "lab", "goal"], name="one_result_of_a_goal")
        ]

    def __str__(self) -> str:
        return f"{self.goal} in {self.lab}"
