"""Validation of the arrays passed to the discrepancy functions, for any array library."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from calcheck.errors import DataError, OptionError
from calcheck.execution.backend import namespace
from calcheck.kernels.kernel_options import Estimator

if TYPE_CHECKING:
    from calcheck.execution.backend import Array

AXES = 3  # axes of targets and draws: rows, repeats or draws, columns


def columns_of(name: str, values: Array) -> Array:
    """Return (n,) or (n, d) values as (n, d).

    Raises
    ------
    DataError
        The array has another shape, or its dtype is not floating point.
    """
    if values.ndim not in (1, 2):
        msg = f"{name} has shape {tuple(values.shape)}. Expected (n,) or (n, d), one row per observation"
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
        A shape is invalid, the shapes do not match, or a dtype is not floating point.
    """
    shapes = f"y has shape {tuple(y.shape)} and draws have shape {tuple(draws.shape)}"
    if draws.ndim == AXES - 1:
        draws = draws[:, :, None]
    if y.ndim < AXES:
        y = columns_of("y", y)[:, None, :]
    if y.ndim != AXES or draws.ndim != AXES or len(y) != len(draws) or y.shape[2] != draws.shape[2]:
        msg = f"{shapes}. Expected targets (n,), (n, t) or (n, r, t), and draws (n, l) or (n, l, t) for the same n rows"
        raise DataError(msg)
    return _floating("y", y), _floating("draws", draws)


def _floating(name: str, values: Array) -> Array:
    """Return the values; raise unless they are floating point, as kernels and gradients require."""
    if not namespace(values).isdtype(values.dtype, "real floating"):
        msg = f"{name} has dtype {values.dtype}. Pass a floating-point array"
        raise DataError(msg)
    return values


def inputs_of(x: Array, n: int) -> Array:
    """Return inputs as (n, d).

    Raises
    ------
    DataError
        The number of inputs is not n.
    """
    x = columns_of("x", x)
    if len(x) != n:
        msg = f"x has {len(x):,} rows and y has {n:,}. Pass one input per row"
        raise DataError(msg)
    return x


def require_same_columns(**arrays: Array) -> None:
    """Raise unless all (n, d) arrays have as many columns as the first.

    Raises
    ------
    DataError
        An array has a different number of columns.
    """
    (first, one), *others = arrays.items()
    for name, other in others:
        if other.shape[1] != one.shape[1]:
            msg = f"{name} has {other.shape[1]} columns, {first} has {one.shape[1]}. Column counts must match"
            raise DataError(msg)


def require_known(statistic: str) -> None:
    """Raise OptionError unless the statistic exists."""
    if statistic not in get_args(Estimator):
        msg = f"unknown statistic {statistic!r}. Choose one of {', '.join(get_args(Estimator))}"
        raise OptionError(msg)


def require_two(count: int, what: str, statistic: str) -> None:
    """Raise DataError unless there are at least two items to form pairs from."""
    if count < 2:  # noqa: PLR2004
        msg = f"statistic {statistic!r} needs at least 2 {what}, got {count}. Pass more, or use statistic 'v'"
        raise DataError(msg)
