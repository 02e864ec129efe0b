"""Scores of rows by which the dependence of rows is measured: bias and dispersion of the PIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.moments import central_interval, targets
from calcheck.statistics.pit import mean_component, pit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]


def dependence_scores(rows: Predictions) -> Values:
    """Return the first two components of the PIT, centered, (n, 2); see :func:`.component`.

    For files of intervals, these are the side on which a target misses its widest interval, and whether it does.

    Parameters
    ----------
    rows : Predictions
        Rows with targets and distributions, or intervals.
    """
    predictive = rows.distributions()
    if predictive.interval_levels is None:
        limits = pit(rows) if predictive.targets == 1 else predictive.cdf_limits(rows.targets())
        scores = np.stack([_by_row(mean_component(*limits, degree)) for degree in (1, 2)], axis=1)
    else:
        y, (low, high) = targets(rows), central_interval(predictive, float(predictive.interval_levels.max()))
        above, below = (y > high).astype(np.float64), (y < low).astype(np.float64)
        scores = np.stack([_by_row(above - below), _by_row(above + below)], axis=1)
    return np.asarray(scores - scores.mean(axis=0))


def _by_row(values: Values) -> Values:
    """Return the mean over the targets of each row, (n,)."""
    return np.asarray(values.reshape(len(values), -1).mean(axis=1))
