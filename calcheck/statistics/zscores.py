"""Errors, spreads and z-scores of rows, and the columns that are computed from targets or errors."""

import math
import re
from collections.abc import Mapping

import numpy as np

from calcheck.core.cache import cached
from calcheck.core.validation import LARGEST, LEAST, UNIT, require, require_moderate
from calcheck.distributions import Predictive
from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError, ExtremeValuesError, Message
from calcheck.predictions import Predictions
from calcheck.typing import AnyArray, Values

MEAN_FROM = 3  # Squared z-scores from at most this many draws have no mean
NUMBERS = "iuf"  # Kinds of data types
# Words in names of columns computed from targets; residential and terrain are none
OF_TARGETS = re.compile(r"(?i)(?<![a-z])(err(or)?s?|resid(ual)?s?|crps|nll|z[^a-z]?scores?)(?![a-z])|^pit$")
COPY, COPY_OF_TARGETS = 0.9, 0.99999  # Rank correlations with errors, and with targets, of what is computed from them
ROUNDING = 1e-9  # Relative difference of errors that differ by rounding only
RELATED, ENOUGH = 0.5, 10_000  # Rank correlation of a column named for errors; number of rows that tell
FARTHEST = 1e50  # Maximum z-score in size: sixth powers, of which intervals need sums, do not overflow


def targets(rows: Predictions) -> Values:
    """Return the targets, (n,), unit of y."""
    y = rows.targets()
    if y.size != len(rows):
        raise DataError(_several(y.size // len(rows)))
    return y.reshape(len(rows))


def _several(count: int) -> str:
    return f"one target per row is needed, and there are {count}: pass --only TARGET"


@cached
def means(predictive: Predictive) -> Values:
    """Return the predicted means, (n,), unit of y."""
    return predictive.mean()


@cached
def medians(predictive: Predictive) -> Values:
    """Return the predicted medians, (n,), unit of y."""
    return predictive.median()


@cached
def errors(rows: Predictions) -> Values:
    """Return y - mean, (n,), unit of y."""
    error = targets(rows) - means(rows.distributions())
    require_moderate("y - mean", error)
    return error


@cached
def uncertainties(rows: Predictions) -> Values:
    """Return the std that errors are compared with, (n,); where draws are equal, that of draws and target."""
    predictive = rows.distributions()
    std = spreads(predictive)
    if std.all() or predictive.n_draws is None:
        return std
    return np.where(std > 0, std, np.abs(errors(rows)) / np.sqrt(predictive.n_draws + 1))


@cached
def spreads(predictive: Predictive) -> Values:
    """Return the predicted standard deviations, (n,), unit of y; 0 only where all draws of a row are equal."""
    if predictive.targets > 1:
        raise DataError(_several(predictive.targets))
    std = predictive.std()
    equal = std == 0 if predictive.n_draws is not None else False
    require("std", (std > 0) | equal, "must be positive", "A z-score needs a positive standard deviation.")
    square = ((std >= LEAST) & (std <= LARGEST)) | equal
    require("std", square, f"must lie between {LEAST:.0e} and {LARGEST:.0e} to be squared", UNIT, ExtremeValuesError)
    return std


def equal_draws_warning(rows: Predictions) -> tuple[Message, ...]:
    """Return the warning about rows whose draws are all equal."""
    predictive = rows.distributions()
    if not isinstance(predictive, Samples) or predictive.targets > 1 or not (equal := predictive.are_equal()).any():
        return ()
    differ, z = np.count_nonzero(errors(rows)[equal]), np.sqrt(predictive.n_draws + 1)
    text = (
        f"all draws are equal in {equal.sum():,} of {len(rows):,} rows. In {differ:,} of these, the target differs: its"
        f" standard deviation is that of draws and target together, and its z-score ±{z:.3g}; in the others, z is 0"
    )
    return (Message("equal-draws", text),)


@cached
def z_scores(rows: Predictions) -> Values:
    """Return (y - mean) / std, (n,), dimensionless; 0 where neither the draws nor the target differ."""
    error, std = errors(rows), uncertainties(rows)
    z: Values = np.divide(error, std, out=np.zeros_like(error), where=std > 0)
    rule = f"must be at most {FARTHEST:.0e} in size to be averaged"
    require("(y - mean) / std", np.abs(z) <= FARTHEST, rule, UNIT, ExtremeValuesError)
    return z


def standardized_errors(rows: Predictions) -> Values:
    """Return errors with mean 0 for a right model, (n,), in standard deviations of draws and target together."""
    m = rows.distributions().n_draws
    if m is None:
        return z_scores(rows)
    error = errors(rows)
    squares = spreads(rows.distributions()) ** 2 * (m - 1) + error**2 * m / (m + 1)
    found = np.divide(error, np.sqrt(squares / m), out=np.zeros_like(error), where=squares > 0)
    return np.asarray(found / _shift_of_draws(m))


def _shift_of_draws(m: int) -> float:
    """Return the mean error in standard deviations of m normal draws and target, per small shift of the target.

    It is (1 - 1/m) E[sqrt(m) / chi_m]: the squared error is on average 1/m of the sum of squares, whatever that is.
    """
    return (1 - 1 / m) * math.sqrt(m / 2) * math.exp(math.lgamma((m - 1) / 2) - math.lgamma(m / 2))


def reference_rce(rows: Predictions) -> float:
    """Return the relative calibration error of a perfect model: 0, or 1 - sqrt(1 + 1/m) with m draws per row."""
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


def skewness(values: Values) -> float:
    r"""Return the robust skewness of Groeneveld and Meeden (1984), in [-1, 1]; 0 if all values are equal.

    .. math:: \beta_{GM} = \frac{\bar x - \tilde x}{\mathrm{mean} |x - \tilde x|}

    with the mean :math:`\bar x` and the median :math:`\tilde x`.
    """
    away = values - median(values)
    mean = float(away.mean())
    width = float(np.abs(away, out=away).mean())
    return mean / width if width > 0 else 0.0


def median(values: Values) -> float:
    """Return the median of finite values; three times faster than :func:`numpy.median`, which selects four elements."""
    half = len(values) // 2
    parted = np.partition(values, half)
    return float(parted[half] if len(values) % 2 else (parted[:half].max() + parted[half]) / 2)


@cached
def central_interval(predictive: Predictive, level: float) -> tuple[Values, Values]:
    """Return the limits of the central interval of each distribution at a level, (n,) each, unit of y."""
    return predictive.central_interval(level)


@cached
def interval_widths(predictive: Predictive, level: float) -> Values:
    """Return the widths of the intervals at a level, (n,), unit of y."""

    def width(part: Predictive, _: slice) -> Values:
        return part.interval_width(level)

    return predictive.map_batches(width)


@cached
def covered(rows: Predictions, level: float, *, strictly: bool = False) -> Values:
    """Return whether each target is inside its interval at a level, (n,), 0 or 1; strictly, limits do not count."""
    y, below = targets(rows), np.less if strictly else np.less_equal

    def inside(part: Predictive, rows: slice) -> Values:
        low, high = central_interval(part, level)
        return np.asarray(below(low, y[rows]) & below(y[rows], high), dtype=np.float64)

    return rows.distributions().map_batches(inside)


@cached
def centers(predictive: Predictive, level: float) -> Values:
    """Return the medians, or the middles of intervals if these are all that is predicted, (n,), unit of y."""
    if predictive.interval_levels is None:
        return medians(predictive)
    low, high = central_interval(predictive, level)
    with np.errstate(invalid="ignore"):
        return (low + high) / 2


@cached
def interval_mass(predictive: Predictive, level: float) -> Values:
    """Return the predicted probability of the central interval of each row, (n,)."""
    return predictive.central_mass(level)


def heavy_tails(columns: dict[str, tuple[Values, float]]) -> tuple[dict[str, float], tuple[Message, ...]]:
    """Return the skewness of columns, with warnings about heavy tails."""
    found = {name: skewness(values) for name, (values, _) in columns.items()}
    text = (
        "heavy tail: the skewness of {} is above {}, so few rows dominate the value, and its interval may be too narrow"
    )
    heavy = [(name, threshold) for name, (_, threshold) in columns.items() if found[name] > threshold]
    return found, tuple(Message("heavy-tail", text.format(*each)) for each in heavy)


def without_targets(columns: Mapping[str, AnyArray], y: Values, centers: Values) -> list[str]:
    """Return the names of columns that are not computed from targets (n,) or (n, t), whose predictions are given."""
    of_each = [*zip(y.reshape(len(y), -1).T, (y - centers).reshape(len(y), -1).T, strict=True)]
    return [name for name, raw in columns.items() if not any(is_of_targets(name, raw, *own) for own in of_each)]


def is_of_targets(name: str, raw: AnyArray, y: Values, errors: Values) -> bool:
    """Return whether a column seems computed from targets: by its name, or as it orders rows as they or errors do."""
    if OF_TARGETS.search(name) or raw.dtype.kind not in NUMBERS:
        return OF_TARGETS.search(name) is not None
    tried = [(y, COPY_OF_TARGETS)]
    tried += [(errors, COPY), (np.abs(errors), COPY)] if len(np.unique(raw)) > 2 else []  # noqa: PLR2004 - training rows
    return any(abs(_correlation(ranks(raw), ranks(each))) >= least for each, least in tried)


def columns_of_targets(columns: Mapping[str, AnyArray], rows: Predictions) -> list[str]:
    """Return the names of columns that order rows as targets, errors, z-scores or the sizes of these do.

    Columns with a word for errors or scores in their names only need to be related to them.
    """
    try:
        signed = [targets(rows), errors(rows), standardized_errors(rows)]
    except DataError:  # Distributions without moments
        signed = [targets(rows)]
    some = slice(None, None, max(1, len(rows) // ENOUGH))
    tried = [ranks(each[some]) for each in (*signed, *map(np.abs, signed[1:]))]
    found = []
    for name, values in columns.items():
        if values.dtype.kind in NUMBERS:
            own, least = ranks(values[some]), RELATED if OF_TARGETS.search(name) else COPY_OF_TARGETS
            found += [name] if any(abs(_correlation(own, each)) >= least for each in tried) else []
    return found


def _correlation(first: Values, second: Values) -> float:
    spread = float(first.std() * second.std())
    return float(np.mean((first - first.mean()) * (second - second.mean()))) / spread if spread > 0 else 0.0


def ranks(values: AnyArray) -> Values:
    """Return ranks from 1 on, (n,); equal values have their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def require_different_errors(rows: Predictions) -> None:
    """Raise if continuous distributions have equal errors, or equal z-scores, in all rows."""
    predictive, y = rows.distributions(), rows.targets()
    by_limits = predictive.quantile_levels is not None or predictive.interval_levels is not None
    if by_limits or predictive.is_discrete or predictive.targets > 1 or y.size != len(y):
        return
    away = y.reshape(len(y)) - (predictive.loc if isinstance(predictive, LocationScale) else predictive.mean())
    scale = predictive.spread() if isinstance(predictive, LocationScale) else 1.0
    for name, values in (("errors", away), ("errors relative to the uncertainties", away / scale)):
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            msg = f"the {name} are all equal, to {values[0]:.4g}: they do not show how large uncertainties should be"
            raise DataError(msg)
