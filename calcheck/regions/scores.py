"""Scores of rows that show bias and dispersion: the first two components of the PIT."""

from __future__ import annotations

from math import asin, pi, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.pit import pit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

BIAS, DISPERSION = 0, 1
SCORES = ("bias", "dispersion")


def component_scores(rows: Predictions) -> Values:
    """Return the first two components of the PIT of each row, (n, 2).

    The first is positive if targets are above the predictions, the second if distributions are too narrow. For a
    perfect model both have mean 0, and variance 1 for continuous distributions. Where a distribution jumps, they are
    means over the jump, which keep the mean of 0.

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit".
    """
    low, high = pit(rows)
    both = low + high
    bias = sqrt(3) * (both - 1)
    dispersion = sqrt(5) * (2 * (both**2 - low * high) - 3 * both + 1)
    return np.stack([bias, dispersion], axis=1)


def normal_dispersion(factor: float) -> float:
    """Return the mean dispersion score of normal distributions whose deviations are too small by a factor."""
    squared = factor**2
    return sqrt(5) * (3 / pi * asin(squared / (1 + squared)) - 1 / 2)


def factor_of_dispersion(score: float) -> float | None:
    """Return the factor by which the deviations of normal distributions are too small; None above all factors."""
    angle = pi / 3 * (score / sqrt(5) + 1 / 2)
    if angle >= pi / 2:
        return None
    squared = sin(angle)
    return sqrt(squared / (1 - squared))
