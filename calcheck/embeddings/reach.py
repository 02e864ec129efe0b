"""Smoothing distance and effective number of neighbors of a conditional mean embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.smoother import CholeskySmoother, NystroemSmoother
from calcheck.execution.context import RandomStream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling

    Values = NDArray[np.float64]

FEW_ROWS = 800  # Maximum rows for computing the reach; more rows are sampled
SHARE = 0.9  # Share of the squared weights within the reach
ROUNDING = 1e-14  # Minimum lambda relative to the kernel values, so that the matrix is positive definite


def reach(kernel: Kernel, x: NDArray[np.floating[Any]], scaling: Scaling, lambda_: float) -> dict[str, Any]:
    """Return the distance within which an embedding smooths over inputs.

    On average over the inputs x, rows within this distance have 90 % of the squared weights a_i(x)^2, where
    a(x) = (K + n_lambda I)^-1 k(x). They cause 90 % of the noise of the embedding.

    Parameters
    ----------
    kernel : Kernel
        Kernel k on normalized inputs.
    x : (n, d)
        Normalized inputs: all of them, or a uniform sample of a few hundred.
    scaling : Scaling
        Normalization of the inputs.
    lambda_ : float
        Regularizer lambda.

    Returns
    -------
    dict
        ``distance``: Euclidean distance of normalized inputs, or in the unit of the input for a single column.
        ``unit``: unit of the distance. ``share_of_rows``: mean share of the rows within this distance of an input.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.spatial.distance import cdist

    n, x = len(x), x.astype(np.float64)
    gram = kernel.gram(x, x)
    n_lambda = n * max(lambda_, ROUNDING * float(np.diag(gram).max()))
    weights = np.abs(cho_solve(cho_factor(gram + n_lambda * np.eye(n)), gram))
    weights /= weights.max(axis=0)  # avoid underflow of the squares
    shares = (weights**2 / np.sum(weights**2, axis=0)).ravel()
    distances = cdist(x, x).ravel()
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


def effective_neighbors(ridge: KernelRidge, lambda_: float, points: Values | None) -> Values:
    """Return the effective number of neighbors (Kish 1965): rows with equal weights and the same noise, (m,).

    It is (sum_i a_i(x))^2 / sum_i a_i(x)^2, between 0 and n, where a(x) = (K + n_lambda I)^-1 k(x). It is exact if
    K + n_lambda I is factorized, for at most 2,048 rows. Otherwise the squared weights are those of a low-rank
    approximation, and the difference is estimated with random signs.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on n inputs.
    lambda_ : float
        Regularizer lambda.
    points : (m, d), optional
        Normalized evaluation inputs x; default: the n fitted inputs.
    """
    n, limits = ridge.n, ridge.run.limits
    ones, signs = np.ones((n, 1)), ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (n, limits.reach_signs))
    if ridge.solver == "cholesky" and n <= limits.cholesky_rows:
        exact = CholeskySmoother(ridge, lambda_, points)
        return kish(exact.smooth(ones)[:, 0], exact.smooth_squared(ones)[:, 0], n)
    outputs = np.concatenate([ones, signs], axis=1)
    coefficients = ridge.solve(outputs, lambda_, measure_dof=False).coefficients
    if points is None:
        smoothed = ridge.fitted(outputs, coefficients, lambda_)
    else:
        smoothed = np.concatenate(list(ridge.predict(points, coefficients)))
    near = NystroemSmoother(ridge, lambda_, points, min(limits.reach_rank, n))
    missed = np.mean(smoothed[:, 1:] ** 2 - near.smooth(signs) ** 2, axis=1)
    return kish(smoothed[:, 0], near.squared_weights() + missed, n)


def kish(sums: Values, squares: Values, n: int) -> Values:
    """Return the squared sums of n weights divided by the sums of squared weights, (m,); 0 if all weights are 0."""
    lower_bound = sums**2 / n  # lower bound of the sum of squares (Cauchy-Schwarz), for rounding and estimation errors
    return np.divide(sums**2, np.maximum(squares, lower_bound), out=np.zeros(len(sums)), where=lower_bound > 0)
