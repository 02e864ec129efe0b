"""How far a conditional mean embedding mixes inputs, and how many rows it rests on at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.ridge import CHOLESKY_ROWS
from calcheck.embeddings.smoother import CholeskySmoother, NystroemSmoother
from calcheck.execution.context import RandomStream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling

    Values = NDArray[np.float64]

SIGNS = 32  # random, of such an estimate
FEW_ROWS = 800  # that stand for more where the reach is measured
SHARE = 0.9  # of their squares
ROUNDING = 1e-14  # of kernel values, below which a regularizer makes no matrix definite
RANK = 512  # centres of the low-rank form that takes most of the error from an estimate


def reach(kernel: Kernel, x: NDArray[np.floating[Any]], scaling: Scaling, lambda_: float) -> dict[str, Any]:
    """Return the distance within which an embedding mixes inputs.

    Rows within it make 90 % of the noise of what is said at an input: it holds that share of a_i(x)^2,
    a(x) = (K + n lambda I)^-1 k(x), on average over the inputs x.

    Parameters
    ----------
    kernel : Kernel
        k, on normalized inputs.
    x : (n, d)
        Normalized inputs: all of them, or a uniform sample of a few hundred.
    scaling : Scaling
        Their normalization.
    lambda_ : float
        The regularizer.

    Returns
    -------
    dict
        ``distance``: Euclidean, of normalized inputs; of one input column in its own unit. ``unit``: which that is.
        ``share_of_rows``: the share of all rows that lie so near an input, on average.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.spatial.distance import cdist

    n, x = len(x), x.astype(np.float64)
    gram = kernel.gram(x, x)
    shift = n * max(lambda_, ROUNDING * float(np.diag(gram).max()))
    weights = np.abs(cho_solve(cho_factor(gram + shift * np.eye(n)), gram))
    weights /= weights.max(axis=0)  # before small ones are squared
    shares = (weights**2 / np.sum(weights**2, axis=0)).ravel()
    distances = cdist(x, x).ravel()
    order = np.argsort(distances, kind="stable")
    held = np.cumsum(shares[order])
    distance = float(distances[order[np.searchsorted(held, SHARE * held[-1])]])
    near = float(np.mean(distances <= distance))
    if scaling.unit_norm:
        return {"distance": distance, "unit": "of inputs with norm 1", "share_of_rows": near}
    if len(scaling.divisor) == 1:
        return {"distance": distance * float(scaling.divisor[0]), "unit": "of the input", "share_of_rows": near}
    unit = "standard deviations of inputs" if (scaling.divisor != 1).any() else "of the inputs"
    return {"distance": distance, "unit": unit, "share_of_rows": near}


def effective_neighbors(ridge: KernelRidge, lambda_: float, points: Values | None) -> Values:
    """Return how many rows with equal weights would average away as much noise (Kish 1965), (m,).

    (sum_i a_i(x))^2 / sum_i a_i(x)^2 with a(x) = (K + n lambda I)^-1 k(x): between 0 and n. Exact where K + n lambda I
    is factorized, for at most 2,048 rows. Else the squares are those of a low-rank form, and what that misses of them
    is estimated by random signs.

    Parameters
    ----------
    ridge : KernelRidge
        On n inputs.
    lambda_ : float
        The regularizer.
    points : (m, d), optional
        Normalized inputs x; the n inputs themselves if absent.
    """
    n = ridge.n
    ones, signs = np.ones((n, 1)), ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (n, SIGNS))
    if ridge.solver == "cholesky" and n <= CHOLESKY_ROWS:
        exact = CholeskySmoother(ridge, lambda_, points)
        return kish(exact.smooth(ones)[:, 0], exact.smooth_squared(ones)[:, 0], n)
    outputs = np.concatenate([ones, signs], axis=1)
    coefficients = ridge.solve(outputs, lambda_, measure_dof=False).coefficients
    if points is None:
        smoothed = ridge.fitted(outputs, coefficients, lambda_)
    else:
        smoothed = np.concatenate(list(ridge.predict(points, coefficients)))
    near = NystroemSmoother(ridge, lambda_, points, min(RANK, n))
    missed = np.mean(smoothed[:, 1:] ** 2 - near.smooth(signs) ** 2, axis=1)
    return kish(smoothed[:, 0], near.squared_weights() + missed, n)


def kish(sums: Values, squares: Values, n: int) -> Values:
    """Return sums of n weights, squared, over the sums of their squares, (m,): at most n; 0 where no weight is left."""
    least = sums**2 / n  # what rounding, or an estimate, must not fall below
    return np.divide(sums**2, np.maximum(squares, least), out=np.zeros(len(sums)), where=least > 0)
