"""How a column is cut into groups, as in `age:5`, `age:30/50/70` or `date:month`."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.errors import OptionError

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
    """

    column: str
    bins: int | None = None
    edges: tuple[str, ...] = ()
    period: str = ""

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Return the cut that a text states: a column, and how it is cut after the last colon.

        The name of a column that contains a colon is followed by another one: ``a:b:``.

        Raises
        ------
        OptionError
            The column has no name, or there are no bins, or too many.
        """
        column, colon, how = text.rpartition(":")
        column, how = (column, how.strip()) if colon else (text, "")
        if not column.strip():
            msg = f"--by must be COLUMN, or COLUMN:HOW such as age:5, age:30/50/70 or date:month, got {text!r}"
            raise OptionError(msg)
        if how.isdecimal():
            return cls(column, bins=_require_bins(int(how), text))
        if "/" in how:
            return cls(column, edges=tuple(edge.strip() for edge in how.split("/") if edge.strip()))
        return cls(column, period=PERIODS.get(how, how))


def _require_bins(bins: int, text: str) -> int:
    if not 1 < bins <= MOST_BINS:
        msg = f"--by {text}: the number of bins must be between 2 and {MOST_BINS:,}. A single edge is {bins}/"
        raise OptionError(msg)
    return bins
