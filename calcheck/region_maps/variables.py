"""The two variables of a map: inputs, principal components of an embedding, or what the predictions state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError, listed_columns
from calcheck.lazy_inputs import load
from calcheck.linalg.gram import principal_components
from calcheck.region_maps.grid import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

HALF = 0.5  # Level of intervals of distributions without moments


def named_variables(rows: Predictions, names: Sequence[str]) -> tuple[Variable, Variable]:
    """Return two columns of numbers.

    Raises
    ------
    OptionError
        There are not two names.
    DataError
        A column is absent, or does not hold finite numbers.
    """
    if len(names) != 2 or len(set(names)) < 2:  # noqa: PLR2004 - of a map
        msg = f"--plot-by needs two different columns, got {','.join(names)!r}"
        raise OptionError(msg)
    x, y = (Variable(name, _numbers(rows, name)) for name in names)
    return x, y


def _numbers(rows: Predictions, name: str) -> NDArray[np.float64]:
    if name not in rows.columns:
        msg = f"there is no column {name!r} for the map (--plot-by) {listed_columns(rows.columns, name)}"
        raise DataError(msg)
    values = rows.columns[name]
    if values.dtype.kind not in "iufb" or not np.isfinite(values).all():
        msg = f"column {name!r} must hold finite numbers for the map (--plot-by)"
        raise DataError(msg)
    return values.astype(np.float64)


def default_variables(rows: Predictions, names: Sequence[str]) -> tuple[Variable, Variable]:
    """Return the first two inputs, the first two principal components of an embedding, or what is predicted.

    Parameters
    ----------
    rows : Predictions
        n rows.
    names : sequence of str
        Names of the inputs, one per feature, if they are columns of numbers; else ignored.
    """
    if rows.x is None:
        return _stated(rows)
    x = rows.lazy_inputs()
    if rows.has_embedding and rows.width > 2:  # noqa: PLR2004 - of a map
        scores, shares = principal_components(x, 2)
        first, second = (f"principal component {number}, {share:.0%}" for number, share in enumerate(shares, 1))
        return Variable(first, scores[:, 0]), Variable(second, scores[:, 1])
    called = names if len(names) == rows.width else [f"input {place + 1}" for place in range(rows.width)]
    inputs = load(x).astype(np.float64, copy=False)
    if rows.width == 1:
        return Variable(called[0], inputs[:, 0]), _stated(rows)[1]
    return Variable(called[0], inputs[:, 0]), Variable(called[1], inputs[:, 1])


def _stated(rows: Predictions) -> tuple[Variable, Variable]:
    """Return the predicted mean and standard deviation, or middles and widths of intervals if there are no moments."""
    predictive = rows.distributions()
    if predictive.interval_levels is not None:
        return _interval(predictive, float(predictive.interval_levels[0]))
    try:
        mean, std = predictive.mean(), predictive.std()
    except DataError:  # Of Cauchy distributions
        return _interval(predictive, HALF)
    if not np.isfinite(mean + std).all():
        return _interval(predictive, HALF)
    return Variable("predicted mean", mean), Variable("predicted std", std)


def _interval(predictive: Predictive, level: float) -> tuple[Variable, Variable]:
    low, high = predictive.central_interval(level)
    called = f"of the {100 * level:.4g} % interval"
    return Variable(f"middle {called}", (low + high) / 2), Variable(f"width {called}", high - low)
