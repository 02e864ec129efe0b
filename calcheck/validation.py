"""Rules that arrays of parameters and targets must obey, and messages that say where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, ValuesError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1 << 18  # numbers that are looked at together


def concat_columns(parts: list[NDArray[Any]], name: str) -> NDArray[Any]:
    """Append batches of rows of one array.

    Raises
    ------
    DataError
        Rows of different batches differ in length.
    """
    lengths = {part.shape[1:] for part in parts}
    if len(lengths) > 1:
        msg = f"{name} is ragged: its rows have from {min(lengths)} to {max(lengths)} values"
        raise DataError(msg)
    return np.concatenate(parts)


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
    raise ValuesError(name, rule, np.flatnonzero(bad).tolist(), len(bad), remedy)


def finite_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows of (n, ...) values hold finite numbers only, (n,), without another array of their size."""
    rows = max(1, BLOCK // max(1, values[:1].size))
    whole = np.ones(len(values), dtype=bool)
    for start in range(0, len(values), rows):
        finite = np.isfinite(values[start : start + rows])
        if not finite.all():
            whole[start : start + rows] = finite.reshape(len(finite), -1).all(axis=1)
    return whole


def require_finite(name: str, values: NDArray[np.floating[Any]]) -> None:
    """Raise unless every value is a finite number (:func:`require`)."""
    remedy = "Mend them, or pass --nan-policy omit to leave these rows out."
    require(name, finite_rows(values), "must be finite numbers", remedy)


def require_positive(name: str, values: NDArray[np.float64], remedy: str = "") -> None:
    """Raise unless every value is finite and > 0 (:func:`require`)."""
    require_finite(name, values)
    require(name, values > 0, "must be positive", remedy)


def require_counts(name: str, values: NDArray[np.float64], family: str) -> None:
    """Raise unless every value is a whole number >= 0 (:func:`require`)."""
    good = (values >= 0) & (values == np.floor(values))
    require(name, good, f"must be whole numbers >= 0 for the family {family}")
