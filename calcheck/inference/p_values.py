"""p-values of replicates, of tests at each input, and adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calcheck.report import TIED, Alternative, rejects
from calcheck.typing import AnyArray, Mask, Values

ATOM, ATOM_REPLICATES = 0.75, 1_500  # Share of a p-value that makes an atom, and replicates that show it
ERRORS = 3.0  # A verdict is open if p is within this many standard errors of the threshold


def p_value(values: Values, own: float, alternative: Alternative) -> float:
    """Return the Monte Carlo p-value, in (0, 1]: the probability that a perfect model has a value at least as extreme.

    It is (1 + #{T* >= T}) / (R + 1) for a one-sided test, and twice the smaller tail for a two-sided test. It is exact,
    and conservative under ties. An undefined replicate counts as more extreme.

    Shapes: values (R,).
    """
    slack = TIED * abs(own) if np.isfinite(own) else 0.0
    above = (1 + np.sum(~(values < own - slack))) / (len(values) + 1)
    below = (1 + np.sum(~(values > own + slack))) / (len(values) + 1)
    return float(min(1.0, {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]))


def has_p_value(own: float) -> bool:
    """Return whether a value has a p-value: a finite one, and inf, the strongest evidence; not -inf and NaN."""
    return bool(own > -np.inf)


def p_value_error(p: float, replicates: int, alternative: Alternative) -> float:
    """Return the Monte Carlo standard error of a p-value: the binomial one, of each tail for two-sided tests."""
    sides = 2 if alternative == "two-sided" else 1
    return float(sides * np.sqrt(p / sides * (1 - p / sides) / replicates))


def is_open(p: float, error: float, confidence: float) -> bool:
    """Return whether more replicates may change the verdict: p is within three standard errors of 1 - confidence."""
    return abs(p - (1 - confidence)) < ERRORS * error


def is_at_atom(values: Values, own: float, alternative: Alternative) -> bool:
    """Return whether most of a p-value is the probability of the value itself, which more replicates do not change.

    The arguments are those of :func:`p_value`.
    """
    if len(values) < ATOM_REPLICATES:
        return False
    slack = TIED * abs(own)
    above, below = np.sum(~(values < own - slack)), np.sum(~(values > own + slack))
    tied = np.sum(np.abs(values - own) <= slack)
    return bool(tied >= ATOM * {"greater": above, "less": below, "two-sided": min(above, below)}[alternative])


def cannot_reject(replicates: int, alternative: Alternative, confidence: float) -> bool:
    """Return whether the smallest possible p-value of ``replicates`` replicates is above 1 - confidence."""
    return not rejects((2 if alternative == "two-sided" else 1) / (replicates + 1), confidence)


MIN_TAIL_REPLICATES = 10  # Minimum replicates at or above a value for an empirical p-value
QUANTILES = {"reference_q05": 0.05, "reference_q50": 0.5, "reference_q95": 0.95}
EQUAL = 1e-12  # Tolerance relative to the squared mean: a smaller variance is rounding error
APPROXIMATE = f"approximate where fewer than {MIN_TAIL_REPLICATES} replicates reach the value"


def pointwise_p_values(
    at_inputs: Values | None, floor: Values | None, fdr: float
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Test the neighborhood of each input against the null distribution, with control of the false discovery rate.

    The p-value is (1 + #{T* >= T}) / (R + 1) if at least ten of R replicates reach T. It cannot be below 1 / (R + 1),
    so that few significant inputs among many could not be rejected. Larger values T therefore have an approximate
    p-value: the tail of a gamma distribution with the mean and the variance of the squared distances, which are
    weighted sums of squares.
    """
    if at_inputs is None:
        return {}, {}
    observed, replicates = at_inputs[0], at_inputs[1:]
    total, reached = len(replicates), np.sum(~(replicates < observed), axis=0)  # NaN counts as more extreme
    replicates = replicates[np.isfinite(replicates).all(axis=1)]
    if not len(replicates) or not np.isfinite(observed).all():
        return {}, {}
    tail = np.minimum(_gamma_tail(floor, observed, replicates), (MIN_TAIL_REPLICATES + 1) / (total + 1))
    approximate = (reached < MIN_TAIL_REPLICATES) & np.isfinite(tail)
    p = np.where(approximate, tail, (reached + 1) / (total + 1))
    flagged = benjamini_hochberg(p, fdr)
    columns = {
        "reference_mean": replicates.mean(axis=0),
        **dict(zip(QUANTILES, np.quantile(replicates, list(QUANTILES.values()), axis=0), strict=True)),
        "p_value": p,
        "p_approximate": approximate,
        "significant": flagged,
    }
    details = {"count": int(flagged.sum()), "inputs": len(observed), "fdr": fdr, "p_value_method": APPROXIMATE}
    return columns, {"rejected": details}


def _gamma_tail(floor: Values | None, observed: Values, replicates: Values) -> Values:
    """Return the upper tail probability of each value, (m,), by a gamma fit to squares; NaN if replicates are equal."""
    from scipy.special import gammaincc

    if floor is None:
        squares, value = replicates**2, observed**2
    else:
        squares, value = replicates - floor, np.maximum(observed - floor, 0)
    mean, variance = squares.mean(axis=0), squares.var(axis=0, ddof=1)
    variance = np.where(variance > EQUAL * mean**2, variance, np.nan)
    return np.asarray(gammaincc(mean**2 / variance, value * mean / variance))


def benjamini_hochberg(p: Values, fdr: float) -> Mask:
    """Return which hypotheses, (m,), are rejected by the step-up procedure of Benjamini and Hochberg (1995)."""
    ordered = np.sort(p)  # false_discovery_control decides the same, but scipy.stats loads in 0.4 s
    passed = np.flatnonzero(ordered <= fdr * np.arange(1, len(p) + 1) / len(p))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(len(p), bool)


LEVEL = 0.05  # Probability beyond the limits of a statistic


def relative_to_limits(statistics: Values, alternatives: Sequence[Alternative]) -> Values:
    """Return the distances from the medians, relative to those of the limits of the null distributions, (k, N).

    A value of 1 is at the limit at which the statistic alone is significant at 5 %; values of 0 and below are no
    evidence, as are constant statistics. Medians and limits are those of all columns, so these remain exchangeable. The
    limits of a two-sided test differ, which allows for skewed statistics. A statistic of inf stays inf if large values
    are evidence. Undefined statistics are NaN.

    Shapes: statistics (k, N).

    Source: Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes": the
    directional quantile test.
    """
    values = np.where(np.isfinite(statistics), statistics, np.nan)
    away = values - np.nanmedian(values, axis=1, keepdims=True)
    relative = np.array([_beyond(line, side) for line, side in zip(away, alternatives, strict=True)])
    largest = np.isposinf(statistics) & (np.array(alternatives) != "less")[:, None]
    return np.where(largest, np.inf, relative)


def _beyond(line: Values, alternative: Alternative) -> Values:
    """Return distances from 0, (N,), in units of the limit on their side; negative on the side that is no evidence."""
    tail = LEVEL / (2 if alternative == "two-sided" else 1)
    above, below = (side / _limit(side, tail) for side in (line, -line))
    sides = {"greater": above, "less": below, "two-sided": np.maximum(above, below)}
    return np.asarray(sides[alternative])


def _limit(line: Values, tail: float) -> float:
    """Return the quantile that leaves a tail above; the maximum if that is 0, and infinity if no value is above 0."""
    limits = (float(np.nanquantile(line, 1 - tail)), float(np.nanmax(line)))
    return next((limit for limit in limits if limit > 0), np.inf)


def step_down_p_values(extremes: Values) -> Values:
    """Return the adjusted p-value of each statistic of the first column, (k,).

    Under any combination of right and wrong statistics, the probability that a right one has an adjusted p-value of at
    most alpha is at most alpha: each is compared with the maximum over the statistics that are no more extreme.

    Shapes: extremes (k, N).

    Source: Westfall, Young (1993), "Resampling-based multiple testing", algorithm 2.8.
    """
    order = np.argsort(extremes[:, 0], kind="stable")
    largest = np.maximum.accumulate(extremes[order], axis=0)
    own = extremes[order, 0]
    reached = np.sum(largest >= own[:, None] * (1 - TIED * np.sign(own[:, None])), axis=1) / extremes.shape[1]
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate(reached[::-1])[::-1]
    return p_values
