"""Monte Carlo p-values, their own error, and whether it leaves a verdict open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.results import Alternative

TIED = 1e-12  # of their size, within which values differ by rounding only
ERRORS = 3.0  # standard errors of p within which its verdict may be chance


def p_value(values: NDArray[np.float64], own: float, sided: Alternative, tied: float = TIED) -> float:
    """Return the Monte Carlo p-value: how likely a perfect model scores as far out, in (0, 1].

    (1 + #{T* >= T}) / (R + 1) for one side, twice the smaller of the two for both. Exact, and conservative where values
    tie; a replicate without a value counts as farther out.

    Parameters
    ----------
    values : (R,)
        T*, of replicates.
    own : float
        T, of the data.
    sided : str
        What counts as evidence: ``"upper"``, ``"lower"`` or ``"both"``.
    tied : float
        Share of T within which values count as equal.
    """
    slack = tied * abs(own)
    above = (1 + np.sum(~(values < own - slack))) / (len(values) + 1)
    below = (1 + np.sum(~(values > own + slack))) / (len(values) + 1)
    return float(min(1.0, {"upper": above, "lower": below, "both": 2 * min(above, below)}[sided]))


def p_value_error(p: float, replicates: int, sided: Alternative) -> float:
    """Return the Monte Carlo standard error of a p-value: that of a binomial share, twice where both sides count.

    Parameters
    ----------
    p : float
        In (0, 1].
    replicates : int
        From how many it was counted, R.
    sided : str
        What counts as evidence.
    """
    sides = 2 if sided == "both" else 1
    return float(sides * np.sqrt(p / sides * (1 - p / sides) / replicates))


def is_open(p: float, error: float, confidence: float) -> bool:
    """Tell whether more replicates may turn the verdict: p lies within three standard errors of 1 - confidence."""
    return abs(p - (1 - confidence)) < ERRORS * error


def rejects(p: float, confidence: float) -> bool:
    """Tell whether a p-value is at most 1 - confidence, to rounding."""
    return p <= (1 - confidence) * (1 + TIED)


def cannot_reject(replicates: int, sided: Alternative, confidence: float) -> bool:
    """Tell whether even the smallest p-value of so many replicates would not reject."""
    return not rejects((2 if sided == "both" else 1) / (replicates + 1), confidence)
