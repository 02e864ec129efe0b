"""The mistakes a user can make; everything else is a bug and keeps its traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHOWN = 3  # how many offending rows a message names
SHOWN_NAMES = 12  # how many names a message lists


def named_some(names: Iterable[object], *, most: int = SHOWN_NAMES, between: str = ", ") -> str:
    """List names, not more than a line of them.

    Examples
    --------
    >>> named_some(["y", "mean"]), named_some(range(2000), most=2)
    ("'y', 'mean'", '0, 1, … 2,000 in all')
    """
    every = list(names)
    told = between.join(map(repr, every[:most]))
    return f"{told}{between.rstrip()} … {len(every):,} in all" if len(every) > most else told


class CalcheckError(Exception):
    """A problem that the user can solve; the message is one line and says how.

    Attributes
    ----------
    exit_code : int
        What the command line exits with.
    """

    exit_code = 2


class DataError(CalcheckError):
    """The data are missing, malformed, or not what the work at hand needs."""


class FileError(DataError):
    """A file cannot be read, or not as what it is needed for; the message names the file."""


class OptionError(CalcheckError):
    """An option has a value that it cannot have, or options contradict each other."""


class NumericalError(CalcheckError):
    """The numbers are too ill-conditioned for the precision or the solver asked for."""


class ValuesError(DataError):
    """Some values of one named array break its rule.

    Readers catch it to say which column and which rows of which file the values came from.

    Parameters
    ----------
    name : str
        The array, by its role: ``"y"``, ``"std"``, ``"rate"`` …
    rule : str
        The rule, starting with a verb: ``"must be positive"``.
    rows : sequence of int
        The offending rows, counted from 0.
    total : int
        How many rows there are.
    remedy : str
        What to do about it; may be empty.
    """

    def __init__(self, name: str, rule: str, rows: Sequence[int], total: int, remedy: str = "") -> None:
        self.name, self.rule, self.rows, self.total, self.remedy = name, rule, rows, total, remedy
        super().__init__(self.message(name))

    def __reduce__(self) -> tuple[type[ValuesError], tuple[str, str, list[int], int, str]]:
        """Say what is sent to another process."""
        return type(self), (self.name, self.rule, list(self.rows), self.total, self.remedy)

    def message(self, name: str, places: Sequence[int] | None = None) -> str:
        """Say it with another name for the array, and with the places of its rows in their file."""
        shown = [int(row if places is None else places[row]) for row in self.rows[:SHOWN]]
        more = ", …" if len(self.rows) > SHOWN else ""
        where = f"row{'s' if len(self.rows) > 1 else ''} {', '.join(map(str, shown))}{more}, counted from 0"
        told = f"{name} {self.rule}, but {len(self.rows):,} of {self.total:,} rows are not ({where})"
        return f"{told}. {self.remedy}" if self.remedy else told
