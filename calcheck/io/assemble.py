"""Conversion of columns to arrays by role, and of arrays to distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions import Gaussian, Independent, Quantiles, Samples
from calcheck.distributions.gaussian import AssumedGaussian
from calcheck.distributions.student_t import StudentT
from calcheck.errors import DataError, ValuesError
from calcheck.io.arrow_arrays import inner_length, is_narrow, is_vector, to_floats, to_matrix
from calcheck.io.columns.roles import (
    GaussianRole,
    ParametersRole,
    QuantilesRole,
    ResidualRole,
    Roles,
    SamplesRole,
    columns_of,
)
from calcheck.validation import require, require_finite, require_positive

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.io.columns.roles import Shape

    Arrays = dict[str, NDArray[Any]]

DF = 6.0  # Degrees of freedom of Student-t errors: typical tails of machine-learning errors [ZMS]
REMEDY = "Pass --min-std X to raise them to X."


def columns_read(roles: Roles, also: Iterable[str] = ()) -> list[str]:
    """Return the columns that a scan needs, without duplicates.

    Parameters
    ----------
    roles : Roles
        The roles of the columns.
    also : iterable of str
        Further columns, without a role.
    """
    wanted = [*roles.target, *roles.x, *columns_of(roles.predictive)]
    wanted += [roles.id] if roles.id else []
    wanted += also
    return list(dict.fromkeys(wanted))


def arrays_of(table: pa.Table, roles: Roles) -> Arrays:
    """Return the array of each role: (n,), or (n, t) for several targets; x is (n, d).

    Raises
    ------
    DataError
        A column does not hold numbers, or its rows differ in length.
    """
    arrays: Arrays = {}
    if roles.target:
        arrays["y"] = _columns(table, roles.target)
    match roles.predictive:
        case GaussianRole(mean=mean, spread=spread, kind=kind):
            arrays |= {"mean": _columns(table, mean), kind: _columns(table, spread)}
        case ResidualRole(spread=spread, kind=kind):
            arrays[kind] = to_floats(table[spread], spread)
        case ParametersRole(convention, columns, error):
            reader = _matrix if convention.grouped else _columns
            arrays |= {name: reader(table, group) for name, group in columns.items()}
            if error and convention.location:
                arrays[convention.location] = np.zeros(len(table))
        case QuantilesRole(columns, _):
            arrays["quantiles"] = _matrix(table, columns)
        case SamplesRole(groups):
            arrays["samples"] = _draws([_samples(table, group) for group in groups])
        case None:
            pass
    if roles.x:
        arrays["x"] = _matrix(table, roles.x)
    return arrays


def predictive_of(roles: Roles, arrays: Arrays, min_std: float | None) -> tuple[Predictive | None, int]:
    """Return the distributions and the number of standard deviations that ``min_std`` raised.

    Raises
    ------
    ValuesError
        A parameter is outside its domain.
    """
    match roles.predictive:
        case GaussianRole(kind=kind, shape=shape):
            std, raised = _deviations(arrays[kind], kind, min_std)
            return _of_moments(arrays["mean"], std, shape or "normal"), raised
        case ResidualRole(kind=kind, shape=shape):
            std, raised = _deviations(arrays[kind], kind, min_std)
            return _of_moments(np.zeros_like(std), std, shape), raised
        case ParametersRole(convention, columns, _):
            for name in columns:
                require_finite(name, arrays[name])
            return convention(**{name: arrays[name] for name in convention.parameters if name in arrays}), 0
        case QuantilesRole(_, levels):
            return Quantiles(np.array(levels), np.asarray(arrays["quantiles"], dtype=np.float64)), 0
        case SamplesRole():
            return Samples(np.asarray(arrays["samples"], dtype=np.float64)), 0
        case None:
            return None, 0


def _deviations(spread: NDArray[np.float64], kind: str, min_std: float | None) -> tuple[NDArray[np.float64], int]:
    """Convert spreads to standard deviations, at least ``min_std``; return the number that was raised too."""
    if kind == "std" and min_std is None:
        return spread, 0  # checked by the distribution
    if kind == "var" and min_std is None:
        require_positive(kind, spread, REMEDY)
    else:
        require_finite(kind, spread)
    if kind == "std":
        std = spread
    elif kind == "var":
        std = np.sqrt(np.maximum(spread, 0))
    else:
        with np.errstate(over="ignore"):
            std = np.exp(spread if kind == "log_std" else spread / 2)
        require(kind, np.isfinite(std), "must be logarithms of finite floats", "Does the column hold logarithms?")
    if min_std is None:
        return std, 0
    return np.maximum(std, min_std), int((std < min_std).sum())


def _of_moments(mean: NDArray[np.float64], std: NDArray[np.float64], shape: Shape | None) -> Predictive:
    """Return distributions from means and standard deviations, (n,), or (n, t) for several targets.

    The shape is normal or Student-t with 6 degrees of freedom. Without a shape, a normal one is assumed.
    """
    if mean.shape != std.shape:
        msg = f"means and standard deviations differ in shape: {mean.shape} and {std.shape}"
        raise DataError(msg)
    try:
        if mean.ndim == 1:
            return _shaped(mean, std, shape)
        return Independent(tuple(_shaped(mean[:, t], std[:, t], shape) for t in range(mean.shape[1])))
    except ValuesError as error:
        if error.name == "std" and not error.remedy:
            raise ValuesError(error.name, error.rule, error.rows, error.total, REMEDY) from error
        raise


def _shaped(mean: NDArray[np.float64], std: NDArray[np.float64], shape: Shape | None) -> Predictive:
    normal = AssumedGaussian(mean, std) if shape is None else Gaussian(mean, std)  # validates both
    if shape != "t6":
        return normal
    return StudentT(loc=mean, scale=std * np.sqrt(1 - 2 / DF), df=np.full(len(std), DF))


def _draws(targets: list[NDArray[np.floating[Any]]]) -> NDArray[np.floating[Any]]:
    """Stack the draws of the targets: (n, m), or (n, m, t) for several targets."""
    counts = [values.shape[1] for values in targets]
    if len(set(counts)) > 1:
        msg = f"targets have different numbers of samples: {', '.join(map(str, counts))}"
        raise DataError(msg)
    return targets[0] if len(targets) == 1 else np.stack(targets, axis=2)


def _samples(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.floating[Any]]:
    """Return draws (n, m); lists of vectors as (n, m, t)."""
    draws = _matrix(table, names)
    inner = inner_length(table[names[0]]) if len(names) == 1 else 1
    return draws if inner == 1 else draws.reshape(len(draws), -1, inner)


def _columns(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return one column of numbers as (n,); several columns, or one of vectors, as (n, t)."""
    if len(names) == 1 and is_vector(table.schema.field(names[0]).type):
        values = np.asarray(to_matrix(table[names[0]], names[0]), dtype=np.float64)
        return values if values.shape[1] > 1 else values[:, 0]
    if len(names) == 1:
        return to_floats(table[names[0]], names[0])
    return np.stack([to_floats(table[name], name) for name in names], axis=1)


def _matrix(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.floating[Any]]:
    """Return one column of vectors, or several of numbers, as (n, d); float32 if all are stored in single precision."""
    if len(names) == 1:
        return to_matrix(table[names[0]], names[0])
    narrow = all(is_narrow(table.schema.field(name).type) for name in names)
    matrix = np.empty((len(table), len(names)), dtype=np.float32 if narrow else np.float64)
    for place, name in enumerate(names):
        matrix[:, place] = to_floats(table[name], name)
    return matrix
