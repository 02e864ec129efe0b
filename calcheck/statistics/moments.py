"""Targets, predicted means and medians, errors, standard deviations and z-scores of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, ExtremeValuesError
from calcheck.messages import Message
from calcheck.statistics.cache import cached
from calcheck.validation import LARGEST, LEAST, UNIT, require, require_moderate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

MEAN_FROM = 3  # Squared z-scores from at most this many draws have no mean
FARTHEST = 1e50  # Maximum z-score in size: sixth powers, of which intervals need sums, do not overflow


def targets(rows: Predictions) -> NDArray[np.float64]:
    """Return the targets, (n,), unit of y.

    Raises
    ------
    DataError
        There are no targets, or several per row.
    """
    y = rows.targets()
    if y.size != len(rows):
        raise DataError(_several(y.size // len(rows)))
    return y.reshape(len(rows))


def _several(count: int) -> str:
    return f"one target per row is needed, and there are {count}"


@cached
def means(predictive: Predictive) -> NDArray[np.float64]:
    """Return the predicted means, (n,), unit of y."""
    return predictive.mean()


@cached
def medians(predictive: Predictive) -> NDArray[np.float64]:
    """Return the predicted medians, (n,), unit of y."""
    return predictive.median()


@cached
def errors(rows: Predictions) -> NDArray[np.float64]:
    """Return y - mean, (n,), unit of y."""
    error = targets(rows) - means(rows.distributions())
    require_moderate("y - mean", error)
    return error


def uncertainties(rows: Predictions) -> NDArray[np.float64]:
    """Return the predicted standard deviations, (n,), unit of y.

    Raises
    ------
    DataError
        There are several targets per row.
    ValuesError
        A standard deviation is 0: all draws of the row are equal.
    """
    return spreads(rows.distributions())


@cached
def spreads(predictive: Predictive) -> NDArray[np.float64]:
    """Return the standard deviations, (n,); raises the same errors as :func:`uncertainties`."""
    if predictive.targets > 1:
        raise DataError(_several(predictive.targets))
    std = predictive.std()
    require("std", std > 0, "must be positive", "A z-score needs a positive standard deviation.")
    square = (std >= LEAST) & (std <= LARGEST)
    require("std", square, f"must lie between {LEAST:.0e} and {LARGEST:.0e} to be squared", UNIT, ExtremeValuesError)
    return std


@cached
def z_scores(rows: Predictions) -> NDArray[np.float64]:
    """Return (y - mean) / std, (n,), dimensionless."""
    z = errors(rows) / uncertainties(rows)
    rule = f"must be at most {FARTHEST:.0e} in size to be averaged"
    require("(y - mean) / std", np.abs(z) <= FARTHEST, rule, UNIT, ExtremeValuesError)
    return z


def reference_rce(rows: Predictions) -> float:
    """Return the relative calibration error of a perfect model: 0, or 1 - sqrt(1 + 1/m) with m draws per row.

    The error y - mean of m draws has (1 + 1/m) times the variance of the distribution. The sample variance of the
    draws (divisor m - 1) is an unbiased estimate of the variance of the distribution.
    """
    draws = rows.distributions().n_draws
    return 0.0 if draws is None else 1 - float(np.sqrt(1 + 1 / draws))


def missing_moments_reason(rows: Predictions) -> str:
    """Return why means and standard deviations are not exactly those of the model, or ""."""
    caution = rows.distributions().caveat
    return "means and standard deviations are interpolated, not the model's" if caution else ""


def missing_reference_reason(rows: Predictions) -> str:
    """Return why the mean squared z-score of a perfect model is not known to be 1, or ""."""
    if moments := missing_moments_reason(rows):
        return moments
    draws = rows.distributions().n_draws
    if draws is None:
        return ""
    score = f"{(1 + 1 / draws) * (draws - 1) / (draws - 3):.3g} on average" if draws > MEAN_FROM else "without a mean"
    return f"z-scores from {draws} draws per row are too large: ZMS is {score} for a perfect normal ensemble"


def skewness(values: NDArray[np.float64]) -> float:
    r"""Return the robust skewness of Groeneveld and Meeden (1984), in [-1, 1]; 0 if all values are equal.

    .. math:: \beta_{GM} = \frac{\bar x - \tilde x}{\mathrm{mean} |x - \tilde x|}

    with the mean :math:`\bar x` and the median :math:`\tilde x`.
    """
    away = values - median(values)
    mean = float(away.mean())
    width = float(np.abs(away, out=away).mean())
    return mean / width if width > 0 else 0.0


def median(values: NDArray[np.float64]) -> float:
    """Return the median of finite values; three times faster than :func:`numpy.median`, which selects four elements."""
    half = len(values) // 2
    parted = np.partition(values, half)
    return float(parted[half] if len(values) % 2 else (parted[:half].max() + parted[half]) / 2)


@cached
def central_interval(predictive: Predictive, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the limits of the central interval of each distribution at a level, (n,) each, unit of y."""
    return predictive.central_interval(level)


@cached
def interval_widths(predictive: Predictive, level: float) -> NDArray[np.float64]:
    """Return the widths of the intervals at a level, (n,), unit of y."""

    def width(part: Predictive, _: slice) -> NDArray[np.float64]:
        return part.interval_width(level)

    return predictive.map_batches(width)


@cached
def covered(rows: Predictions, level: float, *, strictly: bool = False) -> NDArray[np.float64]:
    """Return whether each target is inside its interval at a level, (n,), 0 or 1; strictly, limits do not count."""
    y, below = targets(rows), np.less if strictly else np.less_equal

    def inside(part: Predictive, rows: slice) -> NDArray[np.float64]:
        low, high = central_interval(part, level)
        return np.asarray(below(low, y[rows]) & below(y[rows], high), dtype=np.float64)

    return rows.distributions().map_batches(inside)


def interval_mass(rows: Predictions, level: float) -> NDArray[np.float64]:
    """Return the predicted probability of the central interval of each row, (n,)."""
    return _interval_mass(rows.distributions(), level)


@cached
def _interval_mass(predictive: Predictive, level: float) -> NDArray[np.float64]:
    return predictive.central_mass(level)


def heavy_tails(
    columns: dict[str, tuple[NDArray[np.float64], float]],
) -> tuple[dict[str, float], tuple[Message, ...]]:
    """Return the skewness of columns, with warnings about heavy tails.

    Parameters
    ----------
    columns : dict
        Values (n,), and the skewness above which the tail is heavy, by name. The thresholds are from Pernot's later
        code, not from the paper.

    Returns
    -------
    skewness : dict
        Skewness by column.
    warnings : tuple of Message
        One for each column with a heavy tail.
    """
    found = {name: skewness(values) for name, (values, _) in columns.items()}
    warnings = tuple(
        Message(
            "heavy-tail",
            f"heavy tail: the skewness of {name} is above {threshold}, so few rows dominate the value,"
            " and its interval may be too narrow",
        )
        for name, (_, threshold) in columns.items()
        if found[name] > threshold
    )
    return found, warnings
