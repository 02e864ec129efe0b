"""Targets, predictions, errors and uncertainties, by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.statistics.cache import cached
from calcheck.validation import require, require_finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

MEAN_FROM = 3  # draws, up to which squared z-scores have no mean
LEAST, LARGEST = 1e-150, 1e150  # numbers whose squares neither vanish nor overflow


def targets(rows: Predictions) -> NDArray[np.float64]:
    """Return the targets, (n,), unit of y.

    Raises
    ------
    DataError
        There are none.
    """
    return rows.targets().reshape(len(rows))


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
    require_finite("y - mean", error)
    return error


def uncertainties(rows: Predictions) -> NDArray[np.float64]:
    """Return the predicted standard deviations, (n,), unit of y.

    Raises
    ------
    ValuesError
        Some are 0: all draws of the row are equal.
    """
    return spreads(rows.distributions())


@cached
def spreads(predictive: Predictive) -> NDArray[np.float64]:
    """Return the standard deviations, (n,); raise as :func:`uncertainties` does."""
    std = predictive.std()
    require("std", std > 0, "must be positive", "A distribution without spread has no z-score.")
    square = (std > LEAST) & (std < LARGEST)
    require("std", square, f"must lie between {LEAST:.0e} and {LARGEST:.0e} to be squared", "Give y another unit.")
    return std


@cached
def z_scores(rows: Predictions) -> NDArray[np.float64]:
    """Return (y - mean) / std, (n,), dimensionless."""
    return errors(rows) / uncertainties(rows)


def reference_rce(rows: Predictions) -> float:
    """Return the relative calibration error of a perfect model: 0, or 1 - sqrt(1 + 1/m) for m draws a row.

    The mean of m draws misses y by a variance of (1 + 1/m) times that of the distribution, which is what the draws'
    variance (m - 1) is on average.
    """
    draws = rows.distributions().n_draws
    return 0.0 if draws is None else 1 - float(np.sqrt(1 + 1 / draws))


def why_no_moments(rows: Predictions) -> str:
    """Say why means and standard deviations are not those of the model; nothing if they are."""
    caution = rows.distributions().caveat
    return "means and standard deviations are interpolated, not the model's" if caution else ""


def why_no_reference_zms(rows: Predictions) -> str:
    """Say why a perfect model's mean squared z-score is not known to be 1; nothing if it is."""
    if moments := why_no_moments(rows):
        return moments
    draws = rows.distributions().n_draws
    if draws is None:
        return ""
    score = f"{(1 + 1 / draws) * (draws - 1) / (draws - 3):.3g} on average" if draws > MEAN_FROM else "without a mean"
    return f"z-scores by the spread of {draws} draws are too large: ZMS is {score} for a perfect normal ensemble"


def skewness(values: NDArray[np.float64]) -> float:
    r"""Return how far a distribution leans to large values, robustly, in [-1, 1].

    .. math:: \beta_{GM} = \frac{\bar x - \tilde x}{\mathrm{mean} |x - \tilde x|}

    with the mean and the median (Groeneveld and Meeden 1984); 0 where all values are equal.
    """
    away = values - median(values)
    mean = float(away.mean())
    width = float(np.abs(away, out=away).mean())
    return mean / width if width > 0 else 0.0


def median(values: NDArray[np.float64]) -> float:
    """Return the median of values that are finite: three times faster than numpy's, which puts four in their place."""
    half = len(values) // 2
    parted = np.partition(values, half)
    return float(parted[half] if len(values) % 2 else (parted[:half].max() + parted[half]) / 2)


@cached
def central_interval(predictive: Predictive, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the quantiles between which the middle ``level`` of each distribution lies, (n,) each, unit of y."""
    return predictive.central_interval(level)


def interval_mass(rows: Predictions, level: float) -> NDArray[np.float64]:
    """Return how likely a target is to fall inside its central interval if the model is right, (n,)."""
    return _interval_mass(rows.distributions(), level)


@cached
def _interval_mass(predictive: Predictive, level: float) -> NDArray[np.float64]:
    return predictive.central_mass(level)


def heavy_tails(columns: dict[str, tuple[NDArray[np.float64], float]]) -> dict[str, Any]:
    """Say how heavy the tails of columns are, and warn where the mean and its interval rest on few rows.

    Parameters
    ----------
    columns : dict
        Values (n,), and the skewness above which they are heavy, by name. The thresholds are those of the later code of
        Pernot, not of the paper.

    Returns
    -------
    dict
        ``details`` and ``warnings`` of :class:`calcheck.metrics.base.RowResults`.
    """
    found = {name: skewness(values) for name, (values, _) in columns.items()}
    warnings = tuple(
        f"heavy tail: the skewness of {name} is above {threshold}, so few rows decide the value,"
        " and its interval may be too narrow"
        for name, (_, threshold) in columns.items()
        if found[name] > threshold
    )
    return {"details": {"skewness": found}, "warnings": warnings}
