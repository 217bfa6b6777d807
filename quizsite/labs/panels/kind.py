"""What a panel is: its own inputs, what it does beside the run that is shown, and what its template is given.

A panel is one module and one template in this folder, and a line in `__init__.py`. It knows nothing of the
database: the same functions run on the site, in the validator and in tests.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from django import forms

from generation import Generation, Inspection, Step
from quizsite.labs.clauses import Inputs, Outcome, Setup


class Timing(NamedTuple):
    """A run measured pass by pass, computed anew for it."""

    generation: Generation
    seconds: tuple[float, ...]  # of each forward pass, without the waiting for other learners' turns


class Instruments(Protocol):
    """What a panel may ask of the engine after its run; each call waits for its result."""

    def record(self, setup: Setup) -> Generation:
        """Run a setup, or return its recording where there is one."""

    def time(self, setup: Setup) -> Timing:
        """Run a setup anew and measure each pass; no recording is used or kept."""

    def inspect(self, model: str, token_ids: Sequence[int]) -> Inspection:
        """Return attention and logits at each position."""

    def fingerprint(self, model: str) -> str:
        """Return a digest over all weights, read now."""


class Other(NamedTuple):
    """A run that the panel has asked for beside the one that is shown, as far as it has come."""

    setup: Setup
    steps: Sequence[Step]
    generation: Generation | None


@dataclass(frozen=True)
class Shown:
    """A run as far as it has come, for the panel's view."""

    setup: Setup
    steps: Sequence[Step]
    generation: Generation | None  # once it has ended by itself
    finish_reason: str  # empty while it goes on
    inputs: Inputs
    outcome: Outcome  # empty until all is done
    others: Sequence[Other] = ()
    chosen: int = 0  # the step that was opened; 0 for none

    @property
    def is_open(self) -> bool:
        return not self.finish_reason


def as_it_is(setup: Setup, inputs: Inputs) -> Setup:
    """Run what the form says."""
    return setup


def nothing_more(setup: Setup, inputs: Inputs, generation: Generation | None, ask: Instruments) -> Outcome:
    """Do nothing after the run."""
    return {}


class PanelInputs(forms.Form):
    """What a panel asks beside prompt and settings; a panel's own form adds its fields.

    A field's label, help text and `initial` are shown; a number field with `min_value` and `max_value` gets a
    slider. The names must not be those of settings, nor `model`, `prompt`, `pace` or `prediction`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for asked in self.fields.values():
            if not isinstance(asked.widget, forms.CheckboxInput):
                asked.widget.attrs.setdefault("class", "input")


class Edit(NamedTuple):
    """A button that changes what is typed in the form and runs nothing."""

    name: str
    label: str
    change: Callable[[dict[str, Any]], dict[str, Any]]  # the posted values → other ones


@dataclass(frozen=True)
class Kind:
    """A panel.

    Attributes
    ----------
    name : str
        As labs and addresses name it; its template is `panels/<name>.html`, with a partial `body`: first what takes
        the whole width (class `wide`), then one element that stands beside the goals.
    title, about : str
        What it shows, in three or four words, and in a sentence.
    view : function
        Lays a run out for the template, as `view`.
    inputs : type of form
        What it asks beside prompt and settings. What the form cleans must fit into JSON.
    asked : function
        The run that inputs and settings ask for. `ValueError` refuses them in words.
    after : function
        What it does and measures once that run has ended; the value is kept with the run, and goals may judge it.
    settings : tuple of str, optional
        The settings that it offers; all of them where nothing is said.
    generates : bool
        Whether there is a run at all; without one, `after` gets None in its place.
    asks_prompt, asks_model : bool
        Whether the learner gives them.
    appends : bool
        Whether the template has partials `appended` for one new token, `snapshot` for all of them, and `list` for
        what comes at the end, each part swapped by its id; else the whole body is sent with each token.
    step_part : str
        The part of a template that `?step=` on a run's page swaps; its element has the id `step`.
    edits : sequence of Edit
    next_inputs : function, optional
        The inputs that the form offers once a run has ended, where all of them may be changed; as they were, else.
    fresh_words : str
        The button that leads back to the start, in the open laboratory.
    picture : function, optional
        Lays a run out as a picture for slides, the template `panels/<name>.svg`.
    """

    name: str
    title: str
    about: str
    view: Callable[[Shown], object]
    inputs: type[PanelInputs] = PanelInputs
    asked: Callable[[Setup, Inputs], Setup] = as_it_is
    after: Callable[[Setup, Inputs, Generation | None, Instruments], Outcome] = nothing_more
    settings: tuple[str, ...] | None = None
    generates: bool = True
    asks_prompt: bool = True
    asks_model: bool = True
    appends: bool = False
    step_part: str = "panels/trace.html#step"
    edits: tuple[Edit, ...] = ()
    next_inputs: Callable[[Shown], Inputs] | None = None
    fresh_words: str = "Back to the start"
    picture: Callable[[Shown], object] | None = None
    open_start: Mapping[str, Any] = field(default_factory=dict)  # settings and inputs of the open lab

    @property
    def template(self) -> str:
        return f"panels/{self.name}.html"

    @property
    def has_picture(self) -> bool:
        return self.picture is not None

    @property
    def has_more(self) -> bool:
        """Tell whether something is left to do when the run has ended."""
        return self.after is not nothing_more
