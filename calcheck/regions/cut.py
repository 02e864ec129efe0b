"""How a column is cut into groups, as in `age:5`, `age:30/50/70` or `date:month`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Container

PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h"}
"""Periods by name, with their names in pandas."""
MOST_BINS = 1_000


@dataclass(frozen=True)
class Cut:
    """How a column is cut into groups.

    Parameters
    ----------
    column : str
        Name of the column; ``"mean"`` and ``"std"`` for the predicted ones.
    bins : int, optional
        Number of quantile bins.
    edges : tuple of str
        Edges of bins, which belong to the bins below them.
    period : str
        Name of a period in pandas, such as ``"M"``; empty if there is none.
    text : str
        The text that states the cut.
    """

    column: str
    bins: int | None = None
    edges: tuple[str, ...] = ()
    period: str = ""
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Return the cut that a text states: a column, and how it is cut after the last colon.

        The name of a column that contains a colon is followed by another one: ``a:b:``.

        Raises
        ------
        OptionError
            The column has no name.
        """
        column, colon, how = text.rpartition(":")
        column, how = (column, how.strip()) if colon else (text, "")
        if not column.strip():
            msg = f"--by must be COLUMN, or COLUMN:HOW such as age:5, age:30/50/70 or date:month, got {text!r}"
            raise OptionError(msg)
        if how.isdecimal():
            return cls(column, bins=int(how), text=text)
        if "/" in how:
            return cls(column, edges=tuple(edge.strip() for edge in how.split("/") if edge.strip()), text=text)
        return cls(column, period=PERIODS.get(how, how), text=text)

    def resolve(self, columns: Container[str]) -> Cut:
        """Return the cut of a column of a table: the whole text, if it is the name of a column.

        Raises
        ------
        OptionError
            There are too few bins, or too many.
        """
        if self.text in columns:
            return Cut(self.text, text=self.text)
        if self.bins is not None and not 1 < self.bins <= MOST_BINS:
            msg = (
                f"--by {self.text}: the number of bins must be between 2 and {MOST_BINS:,}."
                f" A single edge is {self.bins}/"
            )
            raise OptionError(msg)
        return self
