"""Rules that arrays of parameters and targets must obey, and messages that say where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import ValuesError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHOWN = 3  # how many offending rows a message names


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Name the first offending rows: ``"rows 3, 8, 9, …"`` (counted from 0)."""
    rows = np.flatnonzero(bad)
    shown = ", ".join(str(row) for row in rows[:SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > SHOWN else ''}"


def require(name: str, good: NDArray[np.bool_], rule: str, remedy: str = "") -> None:
    """Raise unless every row is good.

    Parameters
    ----------
    name : str
        The array, by its role.
    good : (n, ...) bool
        True where the rule holds; further axes belong to the row.
    rule : str
        The rule, as in ``"must be positive"``.
    remedy : str, optional
        What to do about it.

    Raises
    ------
    ValuesError
        Some rows are not good; the message counts them and names the first.
    """
    if good.all():
        return
    bad = np.asarray(~good.reshape(len(good), -1).all(axis=1))
    what = f"{rule}, but {int(bad.sum()):,} of {len(bad):,} rows are not ({first_rows(bad)})"
    raise ValuesError(name, f"{what}. {remedy}" if remedy else what)


def require_finite(name: str, values: NDArray[np.floating[Any]]) -> None:
    """Raise unless every value is a finite number (:func:`require`)."""
    remedy = "Mend them, or pass --nan-policy omit to leave these rows out."
    require(name, np.isfinite(values), "must be finite numbers", remedy)


def require_positive(name: str, values: NDArray[np.float64], remedy: str = "") -> None:
    """Raise unless every value is finite and > 0 (:func:`require`)."""
    require_finite(name, values)
    require(name, values > 0, "must be positive", remedy)


def require_counts(name: str, values: NDArray[np.float64], family: str) -> None:
    """Raise unless every value is a whole number >= 0 (:func:`require`)."""
    good = (values >= 0) & (values == np.floor(values))
    require(name, good, f"must be whole numbers >= 0 for the family {family}")
