"""What local errors are estimated from: components of the PIT, and the inputs that they may depend on."""

import numpy as np

from calcheck.dependence.clusters import time_labels
from calcheck.distributions import Predictive
from calcheck.distributions.samples import Samples
from calcheck.embeddings.leave_one_out import LeaveOneOut
from calcheck.errors import DataError
from calcheck.execution.run import Run
from calcheck.kernels import KernelOptions
from calcheck.kernels.bandwidths import all_inputs, conditioning
from calcheck.predictions import Predictions
from calcheck.statistics.binning import CATEGORIES, sort_keys
from calcheck.statistics.pit import mean_component
from calcheck.statistics.zscores import spreads, targets
from calcheck.typing import Values

MOST_CATEGORIES = 300
EQUAL = 1e-9  # Standard deviation of inputs, relative to their size, up to which they are equal


def regression(rows: Predictions, along: str, run: Run) -> LeaveOneOut:
    """Return the kernel regression on the inputs, the predicted standard deviation, the time or a column of rows."""
    if along == "inputs":
        x = all_inputs(rows, run)
        chosen = conditioning(rows, KernelOptions())
        return LeaveOneOut.from_kernel(chosen.kernel, x, chosen.scaling)
    if along == "std":
        return _of_numbers(_log_spreads(rows), "predicted standard deviations")
    if along == "time":
        if run.dependence.time is None:
            msg = "needs the column of times (--time)"
            raise DataError(msg)
        return _of_numbers(time_labels(rows, run.dependence.time).astype(np.float64), "times")
    values = sort_keys(rows, along, "of local errors (--along)")
    if values.dtype.kind not in CATEGORIES:
        return _of_numbers(values.astype(np.float64), f"values of {along!r}")
    names, place = np.unique(values, return_inverse=True)
    if not 1 < len(names) <= min(MOST_CATEGORIES, len(rows) - 1):
        msg = f"column {along!r} has {len(names):,} categories, expected 2 to {MOST_CATEGORIES}, with several rows each"
        raise DataError(msg)
    return LeaveOneOut.from_features((place.reshape(-1, 1) == np.arange(len(names))).astype(np.float64))


def _of_numbers(values: Values, what: str) -> LeaveOneOut:
    """Return the regression on numbers (n,); ``what`` names them in messages."""
    size = np.abs(values).max()
    if not values.std() > EQUAL * size:
        msg = f"all {what} are equal, so errors cannot vary along them"
        raise DataError(msg)
    x = ((values - values.mean()) / values.std())[:, None]
    chosen = conditioning(Predictions(x=x, has_embedding=False), KernelOptions())
    return LeaveOneOut.from_kernel(chosen.kernel, x, chosen.scaling)


def _log_spreads(rows: Predictions) -> Values:
    """Return the logarithms of the predicted standard deviations, (n,); equal draws have the smallest positive one.

    For draws, it is the median absolute deviation of draws and target together, of which the rank of the target is
    independent if the model is right. The spread of the draws alone is not: where it is small by chance, the target is
    more often outside.
    """
    predictive = rows.distributions().load()
    if not isinstance(predictive, Samples):
        found = spreads(predictive)
    else:
        together = np.concatenate([predictive.draws, targets(rows)[:, None]], axis=1)
        found = np.median(np.abs(together - np.median(together, axis=1, keepdims=True)), axis=1)
    if not found.any():
        return np.zeros(len(found))
    return np.asarray(np.log(np.maximum(found, found[found > 0].min())))


def resolution(predictive: Predictive, degree: int) -> float:
    r"""Return how much of the change of a component is seen where the PIT is known up to limits, in (0, 1].

    For m draws, the rank of a target is binomial given its PIT, and the expected components are m / (m + 1) and
    m (m - 1) / (m + 1)^2 times those of the PIT. For quantiles, the component is a step function of the PIT. Its
    derivative by the shift or the log factor of normal errors is the sum of its values times the differences of
    :math:`-\varphi(z)` or :math:`-z \varphi(z)` between levels.
    """
    if predictive.n_draws is not None:
        m = predictive.n_draws
        return m / (m + 1) if degree == 1 else m * (m - 1) / (m + 1) ** 2
    if predictive.quantile_levels is None:
        return 1.0
    from scipy.special import ndtri

    levels = predictive.quantile_levels
    edges = np.concatenate([[0.0], levels, [1.0]])
    z = ndtri(levels)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    changes = -np.diff(np.concatenate([[0.0], density if degree == 1 else z * density, [0.0]]))
    return float(mean_component(edges[:-1], edges[1:], degree) @ changes) / DERIVATIVES[degree]


DERIVATIVES = {1: float(np.sqrt(3 / np.pi)), 2: float(np.sqrt(15) / np.pi)}
"""Derivatives of the expected components of the PIT of a normal prediction, by degree.

By the shift in predicted standard deviations, it is 2 sqrt(3) times the integral of the squared density. By the log
factor of the standard deviation, it is 12 sqrt(5) times that of z Phi(z) phi(z)^2, half the integral of phi^3.
"""


def shifts(means: Values) -> Values:
    r"""Return the shifts of normal targets, in predicted standard deviations, with given expected first components.

    If Z is shifted by :math:`\delta`, the expectation is :math:`\sqrt3 (2 \Phi(\delta / \sqrt2) - 1)`.
    """
    from scipy.special import ndtri

    return np.asarray(np.sqrt(2) * ndtri((_inside(means, -np.sqrt(3), np.sqrt(3)) / np.sqrt(3) + 1) / 2))


def factors(means: Values) -> Values:
    r"""Return the factors of the standard deviation of normal targets with given expected second components.

    If Z is k times as large, the expectation is
    :math:`\sqrt5 (\tfrac6\pi \arctan\sqrt{1 + 2 k^2} - 2)`.
    """
    angle = np.pi / 6 * (_inside(means, -np.sqrt(5) / 2, np.sqrt(5)) / np.sqrt(5) + 2)
    return np.asarray(np.sqrt((np.tan(angle) ** 2 - 1) / 2))


MARGIN = 0.01  # Distance of expected components from their limits, relative to the range


def _inside(means: Values, low: float, high: float) -> Values:
    margin = MARGIN * (high - low)
    return np.clip(means, low + margin, high - margin)
