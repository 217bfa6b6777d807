"""A chart: a table of numbers that the page draws as lines, and that can be read as a table everywhere."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """A line of a chart; None where it has no point."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Chart:
    """Lines over one axis, for `{% include "includes/chart.html" with chart=... %}`.

    Attributes
    ----------
    name : str
        Unique in the page; the table's id.
    title : str
        What it says, in a sentence: the heading above it.
    x_name, y_name : str
        Names of the axes, with their units.
    x : sequence of number
    series : sequence of Series
        As long as `x`, each; three at most can be told apart without colour.
    digits : int
        Decimals of the numbers in the table.
    """

    name: str
    title: str
    x_name: str
    y_name: str
    x: Sequence[float]
    series: Sequence[Series]
    digits: int = 2

    @property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The table: each x with the value of each line, as text."""
        return [(f"{x:g}", [self._written(line.values[i]) for line in self.series]) for i, x in enumerate(self.x)]

    def _written(self, value: float | None) -> str:
        return "" if value is None else f"{value:.{self.digits}f}"
