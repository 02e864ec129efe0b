"""Distances of embeddings, of data and of replicates: reach of kernels, influences of rows, and details in reports."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from calcheck.core import la
from calcheck.embeddings import ridge as kernel_ridge
from calcheck.embeddings.laplace import SharedLaplace
from calcheck.embeddings.permutations import MIN_ROWS_PER_LANDMARK, RESIDUAL_TOLERANCE, low_rank_kernel
from calcheck.embeddings.target_kernels import DataSet, FeatureBounds, SharedOutputs, feature_details, residual_warnings
from calcheck.errors import Message
from calcheck.execution.run import RandomStream, Run, one_blas_thread
from calcheck.kernels.bandwidths import Scaling
from calcheck.kernels.kernel_functions import Kernel
from calcheck.linalg.gram import psd_root, truncated_eigenbasis
from calcheck.typing import Floats, Values

MAX_COLUMNS = 256  # Maximum right-hand sides per solve
SIGNS = 128  # Random sign vectors for the noise estimate: relative error about 0.1 per input, much less in the mean
FEW_ROWS = 800  # Maximum rows for computing the reach; more rows are sampled
SHARE = 0.9  # Share of the squared weights within the reach
ROUNDING = 1e-14  # Minimum lambda relative to the kernel values, so that the matrix is positive definite
MIN_DOF = 2.0  # Below this dof, the input kernel hardly distinguishes inputs
MAX_ROUNDING_ERROR = {"float64": 1e-7, "float32": 1e-4}  # Relative rounding error without a warning
LEAST_RESIDUAL = 1e-14  # Minimum reported residual: smaller values are rounding errors and differ between processors
BLOCK_VALUES = 1 << 20  # Values smoothed at a time: 8 MiB
FEW_COLUMNS = 32  # Columns of a data set up to which it costs more to find its principal directions than to smooth all
COPIES = 8  # Arrays of the size of a whole smoother matrix in memory


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between two embeddings."""

    values: Values  # (trials, m), |U_{Y|X}(x) - U_{Y'|X'}(x)| at m inputs, per trial
    dof: kernel_ridge.Dof  # Effective degrees of freedom of the data's embedding
    iterations: int  # Total number of products with the Gram matrix
    residual: float  # Largest relative residual of the regressions
    sizes: Values  # (n,), |psi(y_i) - E psi(Y'_i)|^2, averaged over trials
    # Root mean square of the regression outputs over rows: a residual changes a value by about residual * rms
    rms: float
    preconditioner: int  # Largest rank of a preconditioner; 0 if none was used


def distances(
    ridge: kernel_ridge.KernelRidge,
    observed: Values,  # (n, r)
    predicted: Iterable[Values],  # (n, r) each
    *,
    lambda_: float,
    lambda_model: float,
    points: Values | None,  # (m, d)
) -> Distances:
    """Return the distances between the embeddings of data and model by trial; one regression if lambdas are equal."""
    done: list[kernel_ridge.Regression] = []
    values, apart_by = [], []
    sizes: list[float] = []

    def regressed(outputs: Values, lambda_: float, trials: int = 1) -> Iterator[Values]:
        """Yield blocks (b, c) of the regression of outputs (n, c) at the points."""
        regression = ridge.solve(outputs, lambda_, measure_dof=not done, subtracted=apart)
        done.append(regression)
        sizes.append(float(np.sqrt(np.sum(outputs**2) / (len(outputs) * trials))))
        if points is None:
            return iter([ridge.fitted(outputs, regression.coefficients, lambda_)])
        return ridge.predict(points, regression.coefficients)

    apart = lambda_ != lambda_model
    base = np.concatenate(list(regressed(observed, lambda_))) if apart else None  # (m, r)
    trials_left, size = iter(predicted), max(1, MAX_COLUMNS // observed.shape[1])
    while group := list(islice(trials_left, size)):
        outputs = np.concatenate(group if apart else [observed - trial for trial in group], axis=1)
        blocks, start = [], 0
        for block in regressed(outputs, lambda_model, len(group)):
            trials = block.reshape(len(block), len(group), -1)  # (b, trials, r)
            if base is not None:
                trials = base[start : start + len(block), None] - trials
            blocks.append(np.linalg.norm(trials, axis=2).T)
            start += len(block)
        values.append(np.concatenate(blocks, axis=1))
        apart_by += [np.sum((observed - trial) ** 2, axis=1) for trial in group]
    first = done[0]
    return Distances(
        np.concatenate(values),
        first.dof,
        sum(regression.iterations for regression in done),
        max(regression.residual for regression in done),
        np.mean(apart_by, axis=0),
        max(sizes),
        max(regression.preconditioner for regression in done),
    )


def noise(
    ridge: kernel_ridge.KernelRidge, sizes: Values, lambda_: float, points: Values | None
) -> tuple[Values, float]:
    """Return the noise of squared distances, sum_i a_i(x)^2 s_i, and its standard error: exact, or by random signs."""
    if ridge.solver == "cholesky":
        return kernel_ridge.CholeskySmoother(ridge, lambda_, points).smooth_squared(sizes[:, None])[:, 0], 0.0
    signs = ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (len(sizes), SIGNS))
    squares = ridge.smoothed(signs * np.sqrt(sizes)[:, None], lambda_, points) ** 2
    return squares.mean(axis=1), float(squares.mean(axis=0).std(ddof=1) / np.sqrt(SIGNS))


def difference_influences(
    ridge: kernel_ridge.KernelRidge,
    observed: Values,  # (n, r)
    models: Sequence[tuple[Values, Values]],  # ((n, r), (n, r)) each
    lambdas: tuple[float, float],
    *,
    unbiased: bool,
) -> Values:
    """Return the influence of each row on the difference "second minus first" of mean squared distances, (n,).

    Let A and A' be the smoothers of the data and of the models, d the difference of the models' embeddings (first minus
    second), and b their mean. The difference is the inner product of A' d and 2 (A psi - A' b), divided by n. It is
    linear in the rows of d and in the rows of (psi, b), so each row has two contributions.
    """
    means = [mean for pair in models for mean in pair]
    one = lambdas[0] == lambdas[1]
    embeddings = np.concatenate([observed - mean for mean in means] if one else [observed, *means])
    _, directions = truncated_eigenbasis(embeddings.T @ embeddings)
    observed, means = observed @ directions, [mean @ directions for mean in means]
    model = kernel_ridge.smoother(ridge, lambdas[1], None, lambda: observed - means[0])
    data = model if one else kernel_ridge.smoother(ridge, lambdas[0], None, lambda: observed)
    own = model.smooth_squared(np.ones((ridge.n, 1))) if unbiased else np.zeros((ridge.n, 1))
    found = np.zeros(ridge.n)
    for first, second in zip(means[::2], means[1::2], strict=True):
        apart, middle = first - second, (first + second) / 2
        moved, away = model.smooth(apart), data.smooth(observed) - model.smooth(middle)
        as_difference = apart * model.smooth(away)
        as_others = observed * data.smooth(moved) - middle * model.smooth(moved)
        found += np.sum(as_difference + as_others - 2 * own * apart * (observed - middle), axis=1)
    return 2 / (ridge.n * len(models)) * found


def reach(kernel: Kernel, x: Floats, scaling: Scaling, lambda_: float) -> dict[str, Any]:
    """Return the distance within which rows have 90 % of the squared weights a_i(x)^2, and thus of the noise."""
    n, x = len(x), x.astype(np.float64)
    gram = kernel.gram(x, x)
    n_lambda = n * max(lambda_, ROUNDING * float(np.diag(gram).max()))
    weights = np.abs(la.cho_solve(la.cho_factor(gram + n_lambda * np.eye(n)), gram))
    weights /= weights.max(axis=0)  # avoid underflow of the squares
    shares = (weights**2 / np.sum(weights**2, axis=0)).ravel()
    distances = _distances(x).ravel()
    order = np.argsort(distances)  # the order of ties does not matter
    cumulative = np.cumsum(shares[order])
    distance = float(distances[order[np.searchsorted(cumulative, SHARE * cumulative[-1])]])
    near = float(np.mean(distances <= distance))
    if scaling.unit_norm:
        return {"distance": distance, "unit": "of inputs with norm 1", "share_of_rows": near}
    if len(scaling.divisor) == 1:
        return {"distance": distance * float(scaling.divisor[0]), "unit": "of the input", "share_of_rows": near}
    unit = "standard deviations of inputs" if (scaling.divisor != 1).any() else "of the inputs"
    return {"distance": distance, "unit": unit, "share_of_rows": near}


def _distances(x: Floats) -> Values:
    """Return the Euclidean distances of all pairs of inputs (n, d), (n, n)."""
    if x.shape[1] <= FEW_COLUMNS:
        return np.asarray(np.sqrt(sum(np.subtract.outer(column, column) ** 2 for column in x.T)))
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(x, x))


def effective_neighbors(ridge: kernel_ridge.KernelRidge, lambda_: float, points: Values | None) -> Values:
    """Return the effective number of neighbors (Kish 1965), (sum_i a_i(x))^2 / sum_i a_i(x)^2, (m,), between 0 and n.

    It is exact with a Cholesky factor. Otherwise the squared weights are those of a low-rank approximation, and the
    difference is estimated with random signs.
    """
    n, limits = ridge.n, ridge.run.limits
    ones, signs = np.ones((n, 1)), ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (n, limits.reach_signs))
    if ridge.solver == "cholesky" and n <= limits.cholesky_rows:
        exact = kernel_ridge.CholeskySmoother(ridge, lambda_, points)
        return kish(exact.smooth(ones)[:, 0], exact.smooth_squared(ones)[:, 0], n)
    smoothed = ridge.smoothed(np.concatenate([ones, signs], axis=1), lambda_, points)
    near = kernel_ridge.NystroemSmoother(ridge, lambda_, points, min(limits.reach_rank, n))
    missed = np.mean(smoothed[:, 1:] ** 2 - near.smooth(signs) ** 2, axis=1)
    return kish(smoothed[:, 0], near.squared_weights() + missed, n)


def kish(sums: Values, squares: Values, n: int) -> Values:
    """Return the squared sums of n weights divided by the sums of squared weights, (m,); 0 if all weights are 0."""
    lower_bound = sums**2 / n  # lower bound of the sum of squares (Cauchy-Schwarz), for rounding and estimation errors
    return np.divide(sums**2, np.maximum(squares, lower_bound), out=np.zeros(len(sums)), where=lower_bound > 0)


def quantiles(values: Values) -> dict[str, float]:
    """Return quantiles of the values over inputs."""
    levels = {"min": 0.0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "max": 1.0}
    return dict(zip(levels, np.quantile(values, list(levels.values())).tolist(), strict=True))


def trial_statistics(means: Values) -> dict[str, Any]:
    """Return the standard deviation and the values of the mean distance over trials; empty for one trial."""
    if len(means) == 1:
        return {}
    deviation = float(means.std(ddof=1))
    return {"trials": {"std": deviation, "values": means.tolist()}, "deviation": deviation}


def solver_details(
    found: Distances, bounds: FeatureBounds, ridge: kernel_ridge.KernelRidge, run: Run
) -> dict[str, Any]:
    """Return dof, output features and solver."""
    return {
        "dof": found.dof.value,
        "dof_error": found.dof.error,
        **feature_details(bounds),
        "solver": {
            "name": ridge.solver,
            "reason": ridge.reason,
            "cached": ridge.is_cached,
            "iterations": found.iterations,
            **({"preconditioner": {"name": "nystroem", "rank": found.preconditioner}} if found.preconditioner else {}),
            "residual": max(found.residual, LEAST_RESIDUAL),
            "precision": run.precision,
            "device": run.device or "numpy",
        },
    }


def few_dof(dof: float) -> list[Message]:
    """Return a warning if the input kernel hardly distinguishes inputs."""
    message = (
        f"dof {dof:.2g}: the kernel hardly distinguishes inputs, so this is close to a marginal test."
        " Try --normalize l2 or standardize, --gamma-x median, or a smaller --lambda"
    )
    return [Message("low-dof", message)] if dof < MIN_DOF else []


def kernel_warnings(dof: float, bounds: FeatureBounds, found: Distances, precision: str) -> tuple[Message, ...]:
    """Return the warnings for a value computed with an exact solver."""
    warnings = [*few_dof(dof), *residual_warnings(bounds)]
    moved = found.residual * found.rms / max(float(found.values.mean()), np.finfo(float).tiny)
    if moved > MAX_ROUNDING_ERROR[precision] and found.values.any():
        text = (
            f"rounding in {precision} may change the value by {moved:.1e} (relative)."
            " Pass --precision float64, or a larger --lambda"
        )
        warnings.append(Message("rounding", text))
    return tuple(warnings)


@dataclass(frozen=True, eq=False)
class ReplicateNorms:
    """Distances of the data and of replicates of the targets, the data first."""

    # (1 + R,), mean over inputs of |U_{Y|X}(x) - U_{Y'|X}(x)|, or of its unbiased square, with the kernel on targets of
    # each replicate; NaN if it has none
    values: Values
    at_inputs: Values  # (1 + R, m), the same at each of m inputs, with the kernel on targets of the data
    floor: Values | None  # (m,), approximate lower bound of the unbiased square: minus the mean noise
    details: dict[str, Any]  # Method of the smoother, and columns per replicate


def embed_replicates(
    ridge: kernel_ridge.KernelRidge,
    data: DataSet,
    replicates: Iterator[DataSet],
    count: int,
    *,
    share: Callable[[bool], SharedOutputs],
    lambdas: tuple[float, float],
    points: Values | None,  # (m, d)
    unbiased: bool,
) -> ReplicateNorms:
    """Return the distances between the embeddings of data and model, for the data and for replicates of it.

    For the mean, the kernel on targets is rescaled for each replicate, so that the p-value is exact; at single inputs,
    it is that of the data, so that a model that is wrong at other inputs does not change the null distribution.
    """
    inputs = ridge.n if points is None else len(points)
    ridge.run.require_room(8 * count * inputs, f"--replicates {count - 1:,} at {inputs:,} inputs")
    work = _Work(ridge, share, lambdas, points, np.full(count, np.nan), np.full((count, inputs), np.nan), unbiased)
    queue: list[_Columns] = []
    queued = 0
    for number, each in enumerate(chain([data], replicates)):
        if each.gamma is not None:
            with one_blas_thread():  # many small products
                if not work.sum(number, each):
                    queue.append(work.columns(number, each, reduce=not unbiased))
                    queued += queue[-1].values.size
        if queued >= BLOCK_VALUES:
            work.smooth(queue)
            queue, queued = [], 0
        ridge.run.progress("replicates", (number + 1) / count)
    work.smooth(queue)
    floor = work.without_noise() if unbiased else None
    return ReplicateNorms(work.means, work.at_inputs, floor, work.details())


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of one data set that are smoothed."""

    number: int  # Number of the data set
    # (n, trials, q), psi(y) - E psi(Y'), in q principal directions. If the two are smoothed separately: psi(y) followed
    # by E psi(Y'), (n, 1 + trials, q).
    values: Values
    # (q, q), (q, q), |f root| is the norm of f with the kernel on targets of the data set, and of the data; None if
    # both are |f|
    roots: tuple[Values, Values] | None
    sizes: tuple[float, float]  # Mean squares over rows and trials with both kernels

    def squares(self, values: Values) -> list[Values]:
        """Return the squared norms of values (m, trials, q) in both kernels, (m, trials) each."""
        flat = values.reshape(-1, values.shape[2])
        if self.roots is None:
            return [np.einsum("ij,ij->i", flat, flat).reshape(values.shape[:2])] * 2
        both = flat @ np.hstack(self.roots).astype(flat.dtype)
        parts = np.split(both, [self.roots[0].shape[1]], axis=1)  # the roots of few rows have different ranks
        return [np.einsum("ij,ij->i", part, part).reshape(values.shape[:2]) for part in parts]


@dataclass(eq=False)
class _Work:
    """Smoothed columns of all data sets, and the distances that follow from them."""

    ridge: kernel_ridge.KernelRidge
    share: Callable[[bool], SharedOutputs]
    lambdas: tuple[float, float]
    points: Values | None
    means: Values  # (count,), mean of each data set with its own kernel
    at_inputs: Values  # (count, m), values at m inputs with the kernel of the data
    unbiased: bool

    def __post_init__(self) -> None:
        self._regularizers = list(dict.fromkeys(self.lambdas))
        self._features = self.share(not self._separate)
        self._smoothers: list[kernel_ridge.Smoother] = []
        self._known_matrices: list[kernel_ridge.SmootherMatrix] | None = None
        self._noise: dict[int, Values] = {}
        self._widest = 0

    def details(self) -> dict[str, Any]:
        """Return the number of columns and the method of the smoother."""
        return {"columns": self._widest, **self._smoothers[0].details}

    def columns(self, number: int, each: DataSet, *, reduce: bool) -> _Columns:
        """Return the columns of a data set in principal directions of both kernels, or smoothed norms only."""
        observed, model, of_replicate, of_data = self._features.rescaled(each)
        parts = [observed, *model] if self._separate else [observed - mean for mean in model]
        features = np.stack(parts, axis=1)
        if of_replicate is None or of_data is None:
            values = self._in_range(features) if reduce else features
            self._widest = max(self._widest, values.shape[2])
            size = float(np.mean(np.sum(features**2, axis=2)))
            return _Columns(number, values, None, (size, size))
        flat, norms = features.reshape(-1, features.shape[2]), (of_replicate, of_data)
        if flat.shape[1] <= FEW_COLUMNS:
            self._widest = max(self._widest, flat.shape[1])
            products = flat.T @ flat / len(flat)
            first, second = (float(np.vdot(norm, products @ norm)) for norm in norms)
            return _Columns(number, features, norms, (first, second))
        few = flat if len(flat) < flat.shape[1] else psd_root(flat.T @ flat).T  # few.T @ few = flat.T @ flat
        by_kernel = [few @ norm for norm in norms]
        sizes, turns = truncated_eigenbasis(np.asarray(sum(each @ each.T for each in by_kernel)))
        turns = turns / np.sqrt(sizes)
        own, fixed = directions = [each.T @ turns for each in by_kernel]
        self._widest = max(self._widest, len(sizes))
        values = features @ np.asarray(sum(norm @ each for norm, each in zip(norms, directions, strict=True)))
        first, second = (float(np.sum(each**2)) / (features.shape[0] * features.shape[1]) for each in by_kernel)
        return _Columns(number, values, (psd_root(own.T @ own), psd_root(fixed.T @ fixed)), (first, second))

    def sum(self, number: int, each: DataSet) -> bool:
        """Store the distances of a data set, if its features allow sums in linear time; return whether they do."""
        if not (isinstance(self._features, SharedLaplace) and self._features.sums_in_linear_time):
            return False
        matrices = self._matrices(each)
        if not matrices:
            return False
        squares = self._features.smoothed_squares(each, matrices[0], matrices[-1])
        values = squares if self.unbiased else np.sqrt(squares)
        self.means[number] = values.mean()
        self.at_inputs[number] = values.mean(axis=1)
        if self.unbiased:
            noise = self._features.row_squares(each).mean(axis=1)
            self._noise[number] = np.stack([noise, noise], axis=1)
        return True

    def _matrices(self, data: DataSet) -> list[kernel_ridge.SmootherMatrix]:
        """Return the smoother matrix of each regularizer, of low rank if K is; none if they do not fit in memory."""
        if self._known_matrices is None:
            n, basis = self.ridge.n, self._range
            inputs = n if self.points is None else len(self.points)
            if basis is None and COPIES * 8 * inputs * n > self.ridge.run.memory:
                self._known_matrices = []
                return []
            self._start(lambda: self.columns(0, data, reduce=False).values.reshape(n, -1))
            smoothed = [each.smooth(np.eye(n) if basis is None else basis) for each in self._smoothers]
            self._known_matrices = [
                kernel_ridge.SmootherMatrix(each)
                if basis is None
                else kernel_ridge.SmootherMatrix(np.ascontiguousarray(basis.T), each)
                for each in smoothed
            ]
            self._widest = n if basis is None else basis.shape[1]
        return self._known_matrices

    def _start(self, typical: Callable[[], Values]) -> None:
        """Choose the smoothers, given typical outputs (n, c)."""
        self._smoothers = [
            kernel_ridge.smoother(self.ridge, lambda_, self.points, typical, rough=not self._separate)
            for lambda_ in self._regularizers
        ]

    def _in_range(self, features: Values) -> Values:
        """Return fewer columns, in the range of K, with the smoothed norms of features (n, trials, q)."""
        n, trials, columns = features.shape
        if columns <= trials * n // MIN_ROWS_PER_LANDMARK or self._range is None:
            return features
        inside = (self._range.T @ features.reshape(n, -1)).reshape(-1, columns)  # (r trials, q)
        few = np.asarray(np.linalg.qr(inside.T, mode="r")).T
        return np.asarray((self._range @ few.reshape(self._range.shape[1], -1)).reshape(n, trials, -1))

    @cached_property
    def _range(self) -> Values | None:
        """An orthonormal basis of the range of K, (n, r); None if its rank is not low."""
        x = np.asarray(self.ridge.backend.to_numpy(self.ridge.x), dtype=np.float64)
        found = low_rank_kernel(self.ridge.kernel, x, x[:1], len(x) // MIN_ROWS_PER_LANDMARK or 1)
        return np.linalg.qr(found.rows)[0] if found.missed <= RESIDUAL_TOLERANCE else None

    @property
    def _separate(self) -> bool:
        return len(self._regularizers) > 1

    def smooth(self, queue: list[_Columns]) -> None:
        """Smooth the queued columns; store the distances, or their squares and the input of the noise term."""
        if not queue:
            return
        if not self._smoothers:
            self._start(lambda: queue[0].values.reshape(self.ridge.n, -1))
        ends = np.cumsum([columns.values[0].size for columns in queue])[:-1]
        for columns, smoothed in zip(queue, np.split(self._smoothed(queue), ends, axis=1), strict=True):
            parts = smoothed.reshape(len(smoothed), *columns.values.shape[1:])
            differences = parts[:, :1] - parts[:, 1:] if self._separate else parts
            squares = columns.squares(differences)
            if not self.unbiased:  # the noise that a low rank misses is spread evenly over inputs
                missed = self._smoothers[0].missed_noise
                squares = [np.sqrt(each + missed * size) for each, size in zip(squares, columns.sizes, strict=True)]
            own, fixed = squares
            self.means[columns.number] = own.mean()
            self.at_inputs[columns.number] = fixed.mean(axis=1)
            if self.unbiased:
                noise = [each.mean(axis=1) for each in columns.squares(columns.values)]
                self._noise[columns.number] = np.stack(noise, axis=1)

    def without_noise(self) -> Values:
        """Subtract the noise term from the squares; return minus its mean, (m,)."""
        numbers = list(self._noise)
        noise = self._smoothers[0].smooth_squared(np.concatenate(list(self._noise.values()), axis=1))
        own, fixed = noise[:, ::2], noise[:, 1::2]
        self.means[numbers] -= own.mean(axis=0)
        self.at_inputs[numbers] -= fixed.T
        return np.asarray(-fixed.mean(axis=1))

    def _smoothed(self, queue: list[_Columns]) -> Values:
        """Smooth all columns; observed and predicted columns have their own regularizers if these differ."""
        wide = np.concatenate([columns.values.reshape(self.ridge.n, -1) for columns in queue], axis=1)
        if not self._separate:
            return self._smoothers[0].smooth(wide)
        observed = np.concatenate([np.arange(columns.values[0].size) < columns.values.shape[2] for columns in queue])
        smoothed = np.empty((len(wide) if self.points is None else len(self.points), wide.shape[1]))
        for each, columns in zip(self._smoothers, (observed, ~observed), strict=True):
            smoothed[:, columns] = each.smooth(wide[:, columns])
        return smoothed
