"""Significance at every input: where a conditional metric is larger than a perfect model's would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.results import NullDistribution

    Values = NDArray[np.float64]

IN_THE_TAIL = 10  # replicates at or above a value, from which on they tell its p-value themselves
QUANTILES = {"reference_q05": 0.05, "reference_q50": 0.5, "reference_q95": 0.95}
EQUAL = 1e-12  # of the squared mean: a variance below it is rounding
APPROXIMATE = f"approximate where fewer than {IN_THE_TAIL} replicates reach the value"


def test_inputs(simulated: NullDistribution, fdr: float) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    r"""Compare each input with replicates, and flag inputs so that at most a share ``fdr`` of the flags is wrong.

    The p-value is (1 + #{T* >= T}) / (R + 1), where at least ten of R replicates reach T. It cannot be below
    1 / (R + 1), which would let no input be flagged unless many are: farther out it is approximated by the tail of a
    gamma distribution with the mean and the variance of the squared distances, which are weighted sums of squares.

    Parameters
    ----------
    simulated : NullDistribution
        With values at m inputs, of the data and of R replicates.
    fdr : float
        The false discovery rate (Benjamini, Hochberg 1995).

    Returns
    -------
    columns : dict
        Of each input, (m,): mean and quantiles of the replicates, ``p_value``, ``p_approximate`` and ``significant``.
    details : dict
        How many inputs are flagged.
    """
    if simulated.at_inputs is None:
        return {}, {}
    own, replicates = simulated.at_inputs[0], simulated.at_inputs[1:]
    total, reached = len(replicates), np.sum(~(replicates < own), axis=0)  # one without a value is farther out
    replicates = replicates[np.isfinite(replicates).all(axis=1)]
    if not len(replicates) or not np.isfinite(own).all():
        return {}, {}
    tail = np.minimum(_gamma_tail(simulated, own, replicates), (IN_THE_TAIL + 1) / (total + 1))
    approximate = (reached < IN_THE_TAIL) & np.isfinite(tail)
    p = np.where(approximate, tail, (reached + 1) / (total + 1))
    flagged = benjamini_hochberg(p, fdr)
    columns = {
        "reference_mean": replicates.mean(axis=0),
        **dict(zip(QUANTILES, np.quantile(replicates, list(QUANTILES.values()), axis=0), strict=True)),
        "p_value": p,
        "p_approximate": approximate,
        "significant": flagged,
    }
    told = {"count": int(flagged.sum()), "of": len(own), "fdr": fdr, "p_value_method": APPROXIMATE}
    return columns, {"rejected": told}


def _gamma_tail(simulated: NullDistribution, own: Values, replicates: Values) -> Values:
    """Return the chance of more than the value, (m,), by a gamma distribution of its square; NaN without spread."""
    from scipy.special import gammaincc

    if simulated.floor is None:
        squares, value = replicates**2, own**2
    else:
        squares, value = replicates - simulated.floor, np.maximum(own - simulated.floor, 0)
    mean, variance = squares.mean(axis=0), squares.var(axis=0, ddof=1)
    variance = np.where(variance > EQUAL * mean**2, variance, np.nan)
    return np.asarray(gammaincc(mean**2 / variance, value * mean / variance))


def benjamini_hochberg(p: Values, fdr: float) -> NDArray[np.bool_]:
    """Return which of m hypotheses are rejected by the step-up procedure of Benjamini and Hochberg (1995), (m,)."""
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= fdr * np.arange(1, len(p) + 1) / len(p))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(len(p), bool)
