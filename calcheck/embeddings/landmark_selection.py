"""Conditional mean embeddings on centres: how many it takes, which, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.leverage import leverage_sample, weighted_leverage_sample
from calcheck.embeddings.nystroem_ridge import EVALUATED_TOGETHER, Landmarks, NystroemNorms, NystroemRidge
from calcheck.embeddings.nystroem_sums import RegressionTargets, RowNorms, RowProducts, principal_directions
from calcheck.embeddings.output_features import FeatureError
from calcheck.embeddings.reach import kish
from calcheck.execution.bottom_k import sample_rows
from calcheck.execution.context import GIB, RandomStream
from calcheck.execution.reduce import reduce_batches
from calcheck.predictions import InMemory, Predictions, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.execution.context import Run
    from calcheck.kernels.kernel_options import LandmarkSampling

    Inputs = NDArray[np.floating[Any]]
    Values = NDArray[np.float64]

EVALUATED_ROWS = 1 << 15  # at most, over which means are taken: their standard error is a fraction of a per cent
CHECKED_ROWS = 1 << 10  # on which the error is measured
ALL_CHECKED = 1 << 12  # rows up to which all are: then the mean is exact
TRIED_ROWS = 1 << 13  # on which the number of centres is tried before all rows are read
FEWEST_CENTRES = 1 << 8
REPLICATES = 199  # of the targets, where all rows are evaluated and compared with them
REPLICATES_OF_MANY = 39  # enough for a test at 5 %
EXACT_PASSES = 12  # products with the kernel matrix that conjugate gradients take, about
OF_A_VALUE = 100  # products that a kernel value costs besides those of its inputs
EXACT_COLUMNS = 6  # arrays like the outputs that they hold
SQUARES = 8  # arrays of as many rows and columns as there are centres, held to factorize their system
MOST_EXACT_WORK = 2e13  # 40,000 rows of 512 numbers: a minute or two
NARROW = 0.1  # of the reference's width: an error that moves no verdict


@dataclass(frozen=True)
class LandmarkOptions:
    """How many centres, and which.

    Parameters
    ----------
    count : int or None
        M; None for as many as it takes.
    by : str
        ``"uniform"`` or ``"leverage"``.
    tolerance : float
        Share of the mean that its error may be.
    max_work : float
        Products of two numbers that one pass over the rows may take.
    """

    count: int | None
    by: LandmarkSampling
    tolerance: float
    max_work: float

    @classmethod
    def from_metric(cls, chosen: Any) -> LandmarkOptions:
        """Take them from the fields of a metric."""
        return cls(chosen.landmarks, chosen.landmark_sampling, chosen.tolerance, chosen.max_flops)

    def met_by(self, measured: NystroemNorms) -> bool:
        """Tell whether the error of the mean is below the tolerance, or too small to move a verdict."""
        error, value = measured.errors[0], measured.means[0]
        others = measured.means[1:]
        width = np.quantile(others, 0.95) - others.mean() if len(others) else 0.0
        return bool(error <= self.tolerance * abs(value) or error <= NARROW * width)


@dataclass(frozen=True, eq=False)
class NystroemEmbedding:
    """Regressions on centres of the rows of a source.

    Parameters
    ----------
    settings : KernelSettings
        Kernels, normalization, features of targets.
    source : Source
        The rows.
    options : LandmarkOptions
        How many centres, and which.
    run : Run
        Device, precision, seed, progress, and how many replicates.
    reason : str
        Why centres are taken.
    """

    settings: KernelSettings
    source: Source
    options: LandmarkOptions
    run: Run
    reason: str
    factorized: dict[float, NystroemFit] = field(default_factory=dict)

    def from_fit(self, settings: KernelSettings, source: Source) -> NystroemEmbedding:
        """Return the same for other targets, or another model, at the same inputs."""
        return self if settings is self.settings else replace(self, settings=settings, source=source, factorized={})

    def fitted(self, lambda_: float) -> NystroemFit:
        """Compare the data's embedding with the model's, and those of replicates; once for each lambda."""
        if lambda_ not in self.factorized:
            self.factorized[lambda_] = self._embedded(lambda_)
        return self.factorized[lambda_]

    def _embedded(self, lambda_: float) -> NystroemFit:
        rows = self.source.predictions()
        places = sample_rows(rows, EVALUATED_ROWS, self.run)
        sample = rows.take(places)
        features = self.settings.features
        tried = sample.take(slice(TRIED_ROWS))
        directions = principal_directions(features, tried.targets(), tried.distributions().load())
        outputs = RegressionTargets(features, *directions, self.replicates, self.run.quiet())
        x = self._scaled(sample)
        for count, last in self._counts(tried, replace(outputs, replicates=0), lambda_, len(rows)):
            landmarks = self._landmarks(x, count, n_validation(len(rows), count), lambda_, len(rows))
            measured = self._measured(self.rows(), landmarks, outputs, lambda_)
            if last or self.options.met_by(measured):
                break
        return NystroemFit(self, measured, landmarks, places, outputs.groups, self._bounds(tried))

    def _scaled(self, rows: Predictions) -> NDArray[np.floating[Any]]:
        return self.settings.scaling.rounded(rows.inputs(), precision=self.run.precision)

    def _bounds(self, tried: Predictions) -> FeatureError:
        """Measure what the features of targets leave out of some rows."""
        features = self.settings.features
        bounds = FeatureError(features, features.of_points(tried.targets().reshape(len(tried), -1)))
        bounds.embed(tried.distributions().load())
        return bounds

    @property
    def replicates(self) -> int:
        """How many replicates of the targets there are, R."""
        if self.run.replicates is not None:
            return self.run.replicates
        return REPLICATES if len(self.source.predictions()) <= EVALUATED_ROWS else REPLICATES_OF_MANY

    def rows(self) -> Source:
        """Return the rows with their inputs: those in memory, or the file."""
        rows = self.source.predictions()
        return InMemory(rows) if isinstance(rows.x, np.ndarray) else self.source

    def selected(self, lambda_: float, n: int) -> tuple[tuple[Values, int], Inputs, Inputs]:
        """Choose directions of outputs, centres, and inputs to be checked, where the source is a sample of n rows.

        Centres are as many as it takes on the sample.

        Raises
        ------
        DataError
            The features cannot represent targets or predictions.
        """
        rows = self.source.predictions()
        tried = rows.take(slice(TRIED_ROWS))
        self._bounds(tried)
        features, x = self.settings.features, self._scaled(rows)
        directions = principal_directions(features, tried.targets(), tried.distributions().load())
        count = self.options.count
        if count is None:
            outputs = RegressionTargets(features, *directions, 0, self.run.quiet())
            count = self._enough(tried, outputs, lambda_, min(len(x), self._affordable(x.shape[1], n)))
        return directions, self._centres(x, count, lambda_), self._checked(x, n_validation(n, count))

    def _landmarks(self, x: Inputs, count: int, checked: int, lambda_: float, n: int) -> Landmarks:
        """Choose centres and checked inputs among those (E, d) that are evaluated, a uniform sample of n rows."""
        centres = self._centres(x, count, lambda_)
        chosen, weights = weighted_leverage_sample(self.settings.kernel, x, centres, checked, lambda_, self.run)
        return Landmarks(centres, x, x[chosen], weights * (n / len(x)), n)

    def _checked(self, x: NDArray[np.floating[Any]], size: int) -> NDArray[np.floating[Any]]:
        """Choose some of the evaluated inputs, a uniform sample."""
        return x[np.sort(self.run.rng(RandomStream.RESIDUAL).permutation(len(x))[:size])]

    def _centres(self, x: NDArray[np.floating[Any]], count: int, lambda_: float) -> NDArray[np.floating[Any]]:
        if self.options.by == "leverage":
            return leverage_sample(self.settings.kernel, x, count, lambda_, self.run)
        return x[:count]

    def _measured(
        self, source: Source, landmarks: Landmarks, outputs: RegressionTargets, lambda_: float
    ) -> NystroemNorms:
        settings, count = self.settings, len(landmarks.landmarks)
        work = RowProducts(
            settings.kernel, settings.scaling, landmarks.landmarks, landmarks.validation, outputs, self.run.quiet()
        )
        sums = reduce_batches(source, work, self.run, stage=f"{count:,} centres", rows=landmarks.rows)
        return NystroemRidge(sums, settings.kernel, landmarks, self.run).norms(lambda_, outputs.groups)

    def _counts(
        self, tried: Predictions, outputs: RegressionTargets, lambda_: float, n: int
    ) -> Iterator[tuple[int, bool]]:
        """Yield numbers of centres to try on all rows, and whether each is the last."""
        most = min(n, EVALUATED_ROWS)
        if self.options.count is not None:
            yield min(self.options.count, most), True
            return
        affordable = self._affordable(tried.inputs().shape[1], n)
        count = min(FEWEST_CENTRES, most)
        if n > 2 * TRIED_ROWS:
            count = self._enough(tried, outputs, lambda_, min(most, affordable))
        while True:
            last = count >= most or 2 * count > affordable
            yield count, last
            count = min(most, 2 * count)

    def _enough(self, tried: Predictions, outputs: RegressionTargets, lambda_: float, most: int) -> int:
        """Return how many centres it takes on a sample of the rows."""
        x = self._scaled(tried)
        count = FEWEST_CENTRES
        while 2 * count <= min(most, len(x)):
            landmarks = self._landmarks(x, count, max(CHECKED_ROWS, count), lambda_, len(x))
            if self.options.met_by(self._measured(InMemory(tried), landmarks, outputs, lambda_)):
                break
            count *= 2
        return min(count, most)

    def _affordable(self, d: int, n: int) -> int:
        """Return how many centres the work limit and the memory allow."""
        columns, limit = self.settings.features.rank * (1 + self.replicates), self.options.max_work
        count = FEWEST_CENTRES
        while flops(n, d, 2 * count, columns) <= limit and SQUARES * 8 * (2 * count) ** 2 <= self.run.memory:
            count *= 2
        return count


@dataclass(frozen=True, eq=False)
class NystroemFit:
    """What was found of the data, and of replicates.

    Parameters
    ----------
    by : NystroemEmbedding
        What found it.
    measured : NystroemNorms
        Mean norms with errors, the data first.
    landmarks : Landmarks
        The inputs that stand for all.
    places : (E,) intp
        Which rows are evaluated.
    groups : (int, int)
        Outputs of the data, and of each replicate.
    bounds : FeatureError
        What the features of targets leave out.
    """

    by: NystroemEmbedding
    measured: NystroemNorms
    landmarks: Landmarks
    places: NDArray[np.intp]
    groups: tuple[int, int]
    bounds: FeatureError

    @property
    def values(self) -> Values:
        """The norms at the evaluated rows, (E, 1 + R); in the order of rows, where that is all of them."""
        found = self.measured.values
        return found[np.argsort(self.places)] if self._all_evaluated else found

    @property
    def _all_evaluated(self) -> bool:
        return len(self.places) == self.landmarks.rows

    def at_all_rows(self) -> Values:
        """Return the norm at every row, (n,)."""
        if self._all_evaluated:
            return self.values[:, 0]
        return self._norms(self.measured.coefficients[:, : self.groups[0]])

    def effective_neighbors(self) -> Values:
        """Return how many rows with equal weights would average away as much noise as the regression's do, (n,).

        (sum_i a_i(x))^2 / sum_i a_i(x)^2 of a(x) = Z H H^T k(centres, x), with Z^T 1 as the evaluated rows tell it.
        """
        root, rows = self.measured.root, self.landmarks.rows
        sums = self._norms(root @ (root.T @ self._summed())[:, None])
        return kish(sums, self._norms(root * np.sqrt(self.measured.shares)) ** 2, rows)

    def _summed(self) -> Values:
        """Return the kernel values of each centre, added up over all rows as the evaluated ones tell them, (M,)."""
        x, centres = self.landmarks.evaluated, self.landmarks.landmarks
        starts = range(0, len(x), EVALUATED_TOGETHER)
        kernel = self.by.settings.kernel
        parts = [kernel.gram(x[start : start + EVALUATED_TOGETHER], centres).sum(axis=0) for start in starts]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64) * (self.landmarks.rows / len(x)))

    def _norms(self, coefficients: Values) -> Values:
        """Return the norm of k(x, centres) @ coefficients at every row, (n,)."""
        settings, run = self.by.settings, self.by.run
        work = RowNorms(settings.kernel, settings.scaling, self.landmarks.landmarks, coefficients, run.quiet())
        return reduce_batches(self.by.rows(), work, run, stage="every row", rows=self.landmarks.rows).norms

    def at_inputs(self) -> Values | None:
        """Return the norms of data and replicates at every row, (1 + R, n), where all of them are evaluated."""
        return self.values.T if self._all_evaluated and self.by.replicates >= REPLICATES else None


def n_validation(n: int, centres: int) -> int:
    """Return how many of n rows are checked: all, where they are few, and as many as centres, where these are many."""
    return n if n <= ALL_CHECKED else max(CHECKED_ROWS, centres)


def flops(n: int, d: int, centres: int, columns: int) -> float:
    """Count the products of two numbers of a pass over n rows with so many outputs."""
    return float(n) * ((centres + n_validation(n, centres)) * (d + centres + columns))


def as_precise(rows: Predictions, run: Run) -> Run:
    """Return a run that computes kernel values as precisely as inputs are known: in float32, where they are that."""
    return replace(run, precision="float32") if getattr(rows.x, "dtype", None) == np.float32 else run


def approximation_reason(n: int, d: int, outputs: int, run: Run) -> str:
    """Say why rows are too many for an exact solver; nothing if they are not.

    It depends on numbers and options only: the same file takes the same way on every machine.
    """
    products = EXACT_PASSES * float(n) ** 2 * (d + OF_A_VALUE)
    needed = n * (d + EXACT_COLUMNS * outputs) * (4 if run.precision == "float32" else 8)
    if products > MOST_EXACT_WORK:
        return (
            f"exact conjugate gradients would take {products:.1e} products of two numbers, {MOST_EXACT_WORK:g} at most"
        )
    if needed > run.memory:
        return (
            f"exact conjugate gradients would take {needed / GIB:.1f} GiB, and --memory allows {run.memory / GIB:.1f}"
        )
    return ""
