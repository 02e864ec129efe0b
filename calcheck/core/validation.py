"""Validation of parameter and target arrays, and of column names."""

from collections import Counter

import numpy as np

from calcheck.core.text import count_of
from calcheck.errors import DataError, ExtremeValuesError, ValuesError
from calcheck.typing import AnyArray, Floats, Mask, Values

BLOCK = 1 << 18  # Values checked per block
UNIT = "Correct these values, or change their unit."
LEAST, LARGEST = 1e-75, 1e75  # Range of numbers whose squares and fourth powers neither overflow nor underflow


def concat_columns(parts: list[AnyArray], name: str) -> AnyArray:
    """Return batches of rows concatenated into one array."""
    lengths = {part.shape[1:] for part in parts}
    if len(lengths) > 1:
        raise DataError(f"{name} is ragged: its rows have from {min(lengths)} to {max(lengths)} values")
    return np.concatenate(parts)


def require(name: str, good: Mask, rule: str, remedy: str = "", error: type[ValuesError] = ValuesError) -> None:
    """Raise an error unless every row is valid. Shapes: good (n, ...)."""
    if good.all():
        return
    bad = np.asarray(~good.reshape(len(good), -1).all(axis=1))
    raise error(name, rule, np.flatnonzero(bad).tolist(), len(bad), remedy)


def finite_rows(values: AnyArray, *, block: int = BLOCK) -> Mask:
    """Return which rows of (n, ...) values are entirely finite, (n,); texts and booleans are unless they are None."""
    if values.dtype.kind in "OUb":
        return np.asarray(values != np.array(None), dtype=bool)
    rows = max(1, block // max(1, values[:1].size))
    whole = np.ones(len(values), dtype=bool)
    for start in range(0, len(values), rows):
        finite = np.isfinite(values[start : start + rows])
        if not finite.all():
            whole[start : start + rows] = finite.reshape(len(finite), -1).all(axis=1)
    return whole


def require_finite(name: str, values: Floats) -> None:
    """Raise an error unless every value is a finite number (:func:`require`)."""
    remedy = "Correct these values, or pass --nan-policy omit to drop these rows."
    require(name, finite_rows(values), "must be finite numbers", remedy)


def require_moderate(name: str, values: Floats, *, power: int = 1) -> None:
    """Raise an error unless every value, (n, ...), is finite and at most 1e75 in size (:func:`require`)."""
    largest = LARGEST**power
    if not values.size or (float(values.max()) <= largest and float(values.min()) >= -largest):
        return  # finite, because comparisons with NaN are false
    require_finite(name, values)
    moderate = np.abs(values) <= largest
    require(name, moderate, f"must be at most {largest:.0e} in size to be squared", UNIT, ExtremeValuesError)


def require_positive(name: str, values: Values, remedy: str = "", *, power: int = 1) -> None:
    """Raise an error unless every value is finite and > 0, from 1e-75 to 1e75 (:func:`require_moderate`)."""
    require_moderate(name, values, power=power)
    require(name, values > 0, "must be positive", remedy)
    least = LEAST**power
    require(name, values >= least, f"must be at least {least:.0e} to be squared", UNIT, ExtremeValuesError)


def require_counts(name: str, values: Values, family: str) -> None:
    """Raise an error unless every value is a whole number >= 0 (:func:`require`)."""
    good = (values >= 0) & (values == np.floor(values))
    require(name, good, f"must be whole numbers >= 0 for the family {family}")


def require_different(names: list[str], owner: str, error: type[DataError] = DataError) -> None:
    """Raise if a name occurs twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        found = count_of(len(twice), "duplicate column name")
        msg = f"{owner} has {found}: {', '.join(map(repr, twice[:3]))}. Rename them"
        raise error(msg)
