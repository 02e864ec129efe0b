"""The two variables of a map: inputs, principal components of an embedding, or what the predictions state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError, listed_columns
from calcheck.slices.grid import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

MAX_ROWS = 20_000  # Number of rows from which principal components are computed


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
    """Return the first two inputs, the first two principal components of an embedding, or mean and uncertainty.

    Parameters
    ----------
    rows : Predictions
        n rows.
    names : sequence of str
        Names of the inputs, one per feature, if they are columns of numbers; else ignored.
    """
    mean, width = _stated(rows)
    if rows.x is None:
        return mean, width
    inputs = rows.inputs().astype(np.float64, copy=False)
    if rows.has_embedding and inputs.shape[1] > 2:  # noqa: PLR2004 - of a map
        first, second = principal_components(inputs).T
        return Variable("first principal component", first), Variable("second principal component", second)
    called = names if len(names) == inputs.shape[1] else [f"input {place + 1}" for place in range(inputs.shape[1])]
    if inputs.shape[1] == 1:
        return Variable(called[0], inputs[:, 0]), width
    return Variable(called[0], inputs[:, 0]), Variable(called[1], inputs[:, 1])


def _stated(rows: Predictions) -> tuple[Variable, Variable]:
    """Return the predicted mean and standard deviation; of intervals, their middle and width."""
    predictive = rows.distributions()
    if predictive.interval_levels is None:
        return Variable("predicted mean", predictive.mean()), Variable("predicted std", predictive.std())
    low, high = predictive.central_interval(float(predictive.interval_levels[0]))
    return Variable("middle of the interval", (low + high) / 2), Variable("width of the interval", high - low)


def principal_components(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first two principal components of inputs, (n, 2), from at most 20,000 rows.

    Parameters
    ----------
    inputs : (n, d)
        Inputs, d >= 2. The signs are such that the largest loading of each component is positive.
    """
    sample = inputs[:: max(1, len(inputs) // MAX_ROWS)]
    center = sample.mean(axis=0)
    _, directions = np.linalg.eigh(np.cov(sample - center, rowvar=False))
    loadings = directions[:, [-1, -2]]
    largest = np.abs(loadings).argmax(axis=0)
    return np.asarray((inputs - center) @ (loadings * np.sign(loadings[largest, [0, 1]])))
