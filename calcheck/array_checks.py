"""What discrepancies are given, of any array library: checked, and brought to one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from calcheck.errors import DataError, OptionError
from calcheck.execution.backend import namespace
from calcheck.kernels.kernel_options import Estimator

if TYPE_CHECKING:
    from calcheck.execution.backend import Array

AXES = 3  # of targets and draws: rows, those of a row, columns


def columns_of(name: str, values: Array) -> Array:
    """Return (n,) or (n, d) values as (n, d).

    Raises
    ------
    DataError
        They have another shape, or are no floating-point numbers.
    """
    if values.ndim not in (1, 2):
        msg = f"{name} has shape {tuple(values.shape)}. Give (n,) or (n, d): one row of numbers each"
        raise DataError(msg)
    return _floating(name, values)[:, None] if values.ndim == 1 else _floating(name, values)


def rows_of(y: Array, draws: Array) -> tuple[Array, Array]:
    """Return targets as (n, r, t) and draws as (n, l, t).

    Parameters
    ----------
    y : (n,), (n, t) or (n, r, t)
        Targets.
    draws : (n, l) or (n, l, t)
        Draws.

    Raises
    ------
    DataError
        They have other shapes, do not fit each other, or are no floating-point numbers.
    """
    shapes = f"y has shape {tuple(y.shape)}, and draws have {tuple(draws.shape)}"
    if draws.ndim == AXES - 1:
        draws = draws[:, :, None]
    if y.ndim < AXES:
        y = columns_of("y", y)[:, None, :]
    if y.ndim != AXES or draws.ndim != AXES or len(y) != len(draws) or y.shape[2] != draws.shape[2]:
        msg = f"{shapes}. Give (n,), (n, t) or (n, r, t) targets, and (n, l) or (n, l, t) draws of the same n rows"
        raise DataError(msg)
    return _floating("y", y), _floating("draws", draws)


def _floating(name: str, values: Array) -> Array:
    """Return the values, which must be floating-point numbers: integers have no kernel and no gradient."""
    if not namespace(values).isdtype(values.dtype, "real floating"):
        msg = f"{name} has numbers of type {values.dtype}. Give floating-point numbers"
        raise DataError(msg)
    return values


def inputs_of(x: Array, n: int) -> Array:
    """Return inputs as (n, d).

    Raises
    ------
    DataError
        There are not n of them.
    """
    x = columns_of("x", x)
    if len(x) != n:
        msg = f"there are {len(x):,} inputs and targets for {n:,}. Give an input a row"
        raise DataError(msg)
    return x


def require_same_columns(**arrays: Array) -> None:
    """Raise unless (n, d) arrays have the same columns as the first.

    Raises
    ------
    DataError
        One has more, or fewer.
    """
    (first, one), *others = arrays.items()
    for name, other in others:
        if other.shape[1] != one.shape[1]:
            msg = f"{name} has {other.shape[1]} columns, {first} {one.shape[1]}. Give the same"
            raise DataError(msg)


def require_known(estimator: str) -> None:
    """Raise unless there is such an estimator."""
    if estimator not in get_args(Estimator):
        msg = f"estimator {estimator!r} is none of {', '.join(get_args(Estimator))}"
        raise OptionError(msg)


def require_two(count: int, what: str, estimator: str) -> None:
    """Raise unless there are two of what the estimator takes pairs of."""
    if count < 2:  # noqa: PLR2004
        msg = f"estimator {estimator!r} needs at least 2 {what}, got {count}. Give more, or take 'v'"
        raise DataError(msg)
