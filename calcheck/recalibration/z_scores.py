"""Errors relative to the predicted uncertainties, by family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.intervals import Intervals
from calcheck.distributions.quantiles import Quantiles
from calcheck.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

ROUNDING = 1e-9  # Relative difference of errors that differ by rounding only
MIN_DRAWS = 4  # Draws from which the mean squared z-score of a perfect ensemble is finite


def z_scores(rows: Predictions) -> Values:
    """Return (y_i - center_i) / spread_i, (n,): in units of the scales of location-scale families, else of std.

    Raises
    ------
    DataError
        A spread is 0, the distributions have several targets, or no spread.
    """
    predictive, y = rows.distributions(), rows.targets()
    require_single_target(predictive, y)
    spread = predictive.spread()
    if not (spread > 0).all():
        row = int(rows.row_numbers()[np.argmin(spread > 0)])
        msg = f"the standard deviation of row {row:,} is 0, so its error cannot be scaled. Remove such rows (--filter)"
        raise DataError(msg)
    return np.asarray((y.reshape(len(y)) - center(predictive)) / spread)


def center(predictive: Predictive) -> Values:
    """Return the centers about which distributions are scaled, (n,)."""
    return predictive.loc if isinstance(predictive, LocationScale) else predictive.mean()


def perfect_mean_square(predictive: Predictive) -> Values | float:
    """Return the expected squared :func:`z_scores` of a perfect model, (n,) or a scalar.

    For m draws it is (1 + 1 / m) (m - 1) / (m - 3) if targets and draws are normal.

    Raises
    ------
    DataError
        It is infinite.
    """
    draws = predictive.n_draws
    if draws is not None:
        if draws < MIN_DRAWS:
            msg = f"{draws} draws per row are too few to scale them: at least {MIN_DRAWS} are needed"
            raise DataError(msg)
        return (1 + 1 / draws) * (draws - 1) / (draws - 3)
    if isinstance(predictive, LocationScale):
        return (predictive.std() / predictive.scale) ** 2
    return 1.0


def require_single_target(predictive: Predictive, y: Values) -> None:
    """Raise unless there is one target per row.

    Raises
    ------
    DataError
        There are several target columns, or repeated targets.
    """
    if predictive.targets > 1 or y.size != len(y):
        msg = "recalibration needs one target per row"
        raise DataError(msg)


def require_different_errors(rows: Predictions) -> None:
    """Raise if continuous distributions have equal errors, or equal z-scores, in all rows.

    Raises
    ------
    DataError
        They are equal, so that a correction would leave no uncertainty.
    """
    predictive, y = rows.distributions(), rows.targets()
    by_limits = isinstance(predictive.load(), (Quantiles, Intervals))
    if by_limits or predictive.is_discrete or predictive.targets > 1 or y.size != len(y):
        return
    errors = y.reshape(len(y)) - center(predictive)
    scale = predictive.spread() if isinstance(predictive, LocationScale) else 1.0
    for name, values in (("errors", errors), ("errors relative to the uncertainties", errors / scale)):
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            msg = f"the {name} are all equal, to {values[0]:.4g}: they do not show how large uncertainties should be"
            raise DataError(msg)
