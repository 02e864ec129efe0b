"""What local errors are estimated from: components of the PIT, and the inputs that they may depend on."""

from dataclasses import dataclass, replace

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.dependence.clusters import Clusters, find_clusters, time_labels
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples
from calcheck.embeddings.leave_one_out import LeaveOneOut
from calcheck.errors import DataError
from calcheck.execution.run import RandomStream, Run, replicate_seed
from calcheck.kernels import KernelOptions
from calcheck.kernels.bandwidths import all_inputs, conditioning
from calcheck.predictions import Predictions, row_keys, row_sample
from calcheck.statistics.binning import CATEGORIES, sort_keys
from calcheck.statistics.pit import mean_component
from calcheck.statistics.zscores import spreads, targets
from calcheck.typing import AnyArray, Indices, Values

MOST_CATEGORIES = 300
EQUAL = 1e-9  # Standard deviation of inputs, relative to their size, up to which they are equal
MOST_ROWS = 10_000  # Maximum rows for the value; standard errors of a sample of that size are about 0.01
MOST_FOLDS = 20  # Maximum folds of clusters
FLIPS = 199  # Number of sets of random signs
MARGIN = 0.01  # Distance of expected components from their limits, relative to the range


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """A kernel regression of outputs along the inputs of some rows."""

    regression: LeaveOneOut
    places: Indices | None = None  # The places of the rows; None for all
    clusters: Clusters | None = None  # Their clusters; None if rows are independent

    def take(self, rows: Predictions) -> Predictions:
        """Return the rows of the regression."""
        return rows if self.places is None else rows.take(self.places)

    def standard_error(self, influences: Values) -> float:
        """Return the standard error of the mean of influences (n,)."""
        if self.clusters is None:
            return float(influences.std() / np.sqrt(len(influences)))
        sums = self.clusters.sums(influences - influences.mean())
        return float(np.sqrt(np.sum(sums**2) * self.clusters.variance_factor) / len(influences))

    def critical_value(self, confidence: float) -> float:
        """Return the number of standard errors to a one-sided limit: of the normal distribution, or of Student's t."""
        if self.clusters is None:
            return float(sc.ndtri(confidence))
        return float(sc.stdtrit(self.clusters.degrees_of_freedom, confidence))

    def null_bounds(self, outputs: Values, rows: Predictions, run: Run) -> Values:
        """Return the bounds of centered outputs (n,) with random signs, as if their expectations were all 0, (FLIPS,).

        Source: Cameron, Gelbach, Miller (2008), Review of Economics and Statistics 90, 414-427: wild cluster bootstrap.
        """
        if self.clusters is None:
            keys = row_keys(self.take(rows), replicate_seed(run))
            above = RowRandom(keys).random((len(outputs), FLIPS)) < 1 / 2
            inflation = 1.0
        else:
            above = (run.rng(RandomStream.MULTIPLIERS).random((len(self.clusters), FLIPS)) < 1 / 2)[self.clusters.label]
            inflation = self.clusters.inflation
        flipped = np.where(above, outputs[:, None], -outputs[:, None])
        bounds = self.regression.covariances(flipped - flipped.mean(axis=0)).bounds
        return np.asarray(bounds * np.sqrt(inflation))


@cached
def local_regression(rows: Predictions, along: str, run: Run) -> LocalRegression:
    """Return the regression along something, on all rows or on a sample of many; folds consist of whole clusters."""
    chosen = row_sample(rows, MOST_ROWS, replicate_seed(run)) if len(rows) > MOST_ROWS else None
    rows = rows if chosen is None else rows.take(chosen)
    clusters, fit = find_clusters(rows, run.dependence), regression(rows, along, run)
    if clusters is None:
        return LocalRegression(fit, chosen)
    return LocalRegression(replace(fit, folds=cluster_folds(clusters)), chosen, clusters)


def cluster_folds(clusters: Clusters) -> tuple[Indices, ...]:
    """Return the rows of folds that consist of whole clusters."""
    fold = clusters.label * min(MOST_FOLDS, len(clusters)) // len(clusters)
    return tuple(np.flatnonzero(fold == number) for number in range(fold.max() + 1))


def positions(rows: Predictions, along: str, run: Run) -> AnyArray:
    """Return what local errors of rows may vary along: numbers (n,), categories (n,), or several inputs (n, d)."""
    if along == "inputs":
        x = all_inputs(rows, run)
        return x if rows.width > 1 else x[:, 0].astype(np.float64)
    if along == "std":
        return _log_spreads(rows)
    if along == "time":
        if run.dependence.time is None:
            raise DataError("needs the column of times (--time)")
        labels = time_labels(rows, run.dependence.time)
        return np.asarray(labels / max(1, labels.max()))
    values = sort_keys(rows, along, "for local errors (--along)")
    return values if values.dtype.kind in CATEGORIES else values.astype(np.float64)


def regression(rows: Predictions, along: str, run: Run) -> LeaveOneOut:
    """Return the regression along the positions of rows: on the kernel of cce, on ranks, or on categories."""
    values = positions(rows, along, run)
    if values.ndim > 1:
        chosen = conditioning(rows, KernelOptions())
        return LeaveOneOut.from_kernel(chosen.kernel, values, chosen.scaling)
    if values.dtype.kind not in CATEGORIES:
        if not values.std() > EQUAL * np.abs(values).max():
            what = {"std": "predicted standard deviations", "time": "times", "inputs": "inputs"}
            msg = f"all {what.get(along, f'values of {along!r}')} are equal, so errors cannot vary along them"
            raise DataError(msg)
        return LeaveOneOut.from_ranks(values)
    names, most = np.unique(values), min(MOST_CATEGORIES, len(rows) - 1)
    if not 1 < len(names) <= most:
        raise DataError(f"column {along!r} must have 2 to {most} different categories (--along), got {len(names):,}")
    return LeaveOneOut.from_features(lambda labels: (labels[:, None] == names).astype(np.float64), values)


def _log_spreads(rows: Predictions) -> Values:
    """Return the logarithms of the predicted standard deviations, (n,); equal draws have the smallest positive one.

    For draws, it is the median absolute deviation of draws and target together, of which the rank of the target is
    independent if the model is right. Where the spread of the draws alone is small, targets are more often outside.
    """
    predictive = rows.distributions().load()
    levels = predictive.quantile_levels
    if levels is not None:
        low, high = (predictive.quantile(float(level)) for level in (levels[0], levels[-1]))
        found = high - low
    elif not isinstance(predictive, Samples):
        found = spreads(predictive)
    else:
        together = np.concatenate([predictive.draws, targets(rows)[:, None]], axis=1)
        found = np.median(np.abs(together - np.median(together, axis=1, keepdims=True)), axis=1)
    if not found.any():
        return np.zeros(len(found))
    return np.asarray(np.log(np.maximum(found, found[found > 0].min())))


def resolution(predictive: Predictive, degree: int) -> float:
    """Return how much of the change of a component is seen where the PIT is known up to limits, in (0, 1].

    For m draws, the expected components are m / (m + 1) and m (m - 1) / (m + 1)^2 times those of the PIT. For
    quantiles, the derivative by the shift or log factor of normal errors sums values times differences of -phi(z) or -z
    phi(z).
    """
    if predictive.n_draws is not None:
        m = predictive.n_draws
        return m / (m + 1) if degree == 1 else m * (m - 1) / (m + 1) ** 2
    if predictive.quantile_levels is None:
        return 1.0
    levels = predictive.quantile_levels
    edges = np.concatenate([[0.0], levels, [1.0]])
    z = sc.ndtri(levels)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    changes = -np.diff(np.concatenate([[0.0], density if degree == 1 else z * density, [0.0]]))
    return float(mean_component(edges[:-1], edges[1:], degree) @ changes) / DERIVATIVES[degree]


DERIVATIVES = {1: float(np.sqrt(3 / np.pi)), 2: float(np.sqrt(15) / np.pi)}
"""Derivatives of the expected components of the PIT of a normal prediction, by degree.

By the shift in predicted standard deviations, it is 2 sqrt(3) times the integral of the squared density. By the log
factor of the standard deviation, it is 12 sqrt(5) times that of z Phi(z) phi(z)^2, half the integral of phi^3.
"""


def shifts(means: Values) -> Values:
    """Return the shifts of normal targets, in std, with given first components sqrt3 (2 Phi(d / sqrt2) - 1)."""
    return np.asarray(np.sqrt(2) * sc.ndtri((_inside(means, -np.sqrt(3), np.sqrt(3)) / np.sqrt(3) + 1) / 2))


def factors(means: Values) -> Values:
    """Return the factors k of std of normal targets by second components, sqrt5 (6/pi atan sqrt(1 + 2 k^2) - 2)."""
    angle = np.pi / 6 * (_inside(means, -np.sqrt(5) / 2, np.sqrt(5)) / np.sqrt(5) + 2)
    return np.asarray(np.sqrt((np.tan(angle) ** 2 - 1) / 2))


def _inside(means: Values, low: float, high: float) -> Values:
    margin = MARGIN * (high - low)
    return np.clip(means, low + margin, high - margin)
