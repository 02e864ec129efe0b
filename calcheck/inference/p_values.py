"""Monte Carlo p-values and their standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.report import Alternative

TIED = 1e-12  # Relative tolerance for ties: smaller differences are rounding errors
ATOM, ATOM_REPLICATES = 0.75, 1_500  # Share of a p-value that makes an atom, and replicates that show it
ERRORS = 3.0  # A verdict is open if p is within this many standard errors of the threshold


def p_value(values: NDArray[np.float64], own: float, alternative: Alternative) -> float:
    """Return the Monte Carlo p-value, in (0, 1]: the probability that a perfect model has a value at least as extreme.

    It is (1 + #{T* >= T}) / (R + 1) for a one-sided test, and twice the smaller tail for a two-sided test. It is exact,
    and conservative under ties. An undefined replicate counts as more extreme.

    Parameters
    ----------
    values : (R,)
        The values T* of the replicates.
    own : float
        The value T of the data.
    alternative : str
        The tail that is evidence against the model: ``"greater"``, ``"less"`` or ``"two-sided"``.
    """
    slack = TIED * abs(own) if np.isfinite(own) else 0.0
    above = (1 + np.sum(~(values < own - slack))) / (len(values) + 1)
    below = (1 + np.sum(~(values > own + slack))) / (len(values) + 1)
    return float(min(1.0, {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]))


def has_p_value(own: float) -> bool:
    """Return whether a value has a p-value: a finite one, and inf, the strongest evidence; not -inf and NaN."""
    return bool(own > -np.inf)


def p_value_error(p: float, replicates: int, alternative: Alternative) -> float:
    """Return the Monte Carlo standard error of a p-value: the binomial one, of each tail for two-sided tests.

    Parameters
    ----------
    p : float
        The p-value, in (0, 1].
    replicates : int
        The number of replicates, R.
    alternative : str
        The tail that is evidence against the model.
    """
    sides = 2 if alternative == "two-sided" else 1
    return float(sides * np.sqrt(p / sides * (1 - p / sides) / replicates))


def is_open(p: float, error: float, confidence: float) -> bool:
    """Return whether more replicates may change the verdict: p is within three standard errors of 1 - confidence."""
    return abs(p - (1 - confidence)) < ERRORS * error


def is_at_atom(values: NDArray[np.float64], own: float, alternative: Alternative) -> bool:
    """Return whether most of a p-value is the probability of the value itself, which more replicates do not change.

    The arguments are those of :func:`p_value`.
    """
    if len(values) < ATOM_REPLICATES:
        return False
    slack = TIED * abs(own)
    above, below = np.sum(~(values < own - slack)), np.sum(~(values > own + slack))
    tied = np.sum(np.abs(values - own) <= slack)
    return bool(tied >= ATOM * {"greater": above, "less": below, "two-sided": min(above, below)}[alternative])


def rejects(p: float, confidence: float) -> bool:
    """Return whether a p-value is at most 1 - confidence, up to rounding."""
    return p <= (1 - confidence) * (1 + TIED)


def cannot_reject(replicates: int, alternative: Alternative, confidence: float) -> bool:
    """Return whether the smallest possible p-value of ``replicates`` replicates is above 1 - confidence."""
    return not rejects((2 if alternative == "two-sided" else 1) / (replicates + 1), confidence)
