"""Distance between two conditional mean embeddings at every input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.smoother import CholeskySmoother
from calcheck.execution.context import RandomStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import Dof, KernelRidge, Regression

MAX_COLUMNS = 256  # Maximum right-hand sides per solve
SIGNS = 128  # Random sign vectors for the noise estimate: relative error about 0.1 per input, much less in the mean


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances between two embeddings.

    Parameters
    ----------
    values : (trials, m)
        |U_{Y|X}(x) - U_{Y'|X'}(x)| at m inputs, per trial.
    dof : Dof
        Effective degrees of freedom of the data's embedding.
    iterations : int
        Total number of products with the Gram matrix.
    residual : float
        Largest relative residual of the regressions.
    sizes : (n,)
        |psi(y_i) - E psi(Y'_i)|^2, averaged over trials.
    rms : float
        Root mean square of the regression outputs over rows: a residual changes a value by about residual * rms.
    preconditioner : int
        Largest rank of a preconditioner; 0 if none was used.
    """

    values: NDArray[np.float64]
    dof: Dof
    iterations: int
    residual: float
    sizes: NDArray[np.float64]
    rms: float
    preconditioner: int


def distances(
    ridge: KernelRidge,
    observed: NDArray[np.float64],
    predicted: Iterable[NDArray[np.float64]],
    *,
    lambda_: float,
    lambda_model: float,
    points: NDArray[np.float64] | None,
) -> Distances:
    """Return the distances between the embeddings of the data and of the model, in one or several trials.

    With lambda = lambda', a single regression of psi(y) - E psi(Y') is enough. At the fitted inputs, its value is
    psi(y) - E psi(Y') - n_lambda B, which needs no further product with K.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on the n inputs.
    observed : (n, r)
        Features psi of the targets.
    predicted : iterable of (n, r)
        E psi of the predictive distributions, per trial.
    lambda_, lambda_model : float
        Regularizers of the two embeddings.
    points : (m, d), optional
        Normalized evaluation inputs; default: the fitted inputs.
    """
    done: list[Regression] = []
    values, sizes, apart_by = [], [], []

    def regressed(outputs: NDArray[np.float64], lambda_: float, trials: int = 1) -> Iterator[NDArray[np.float64]]:
        """Yield blocks (b, c) of the regression of outputs (n, c) at the points."""
        regression = ridge.solve(outputs, lambda_, measure_dof=not done)
        done.append(regression)
        sizes.append(float(np.sqrt(np.sum(outputs**2) / (len(outputs) * trials))))
        if points is None:
            return iter([ridge.fitted(outputs, regression.coefficients, lambda_)])
        return ridge.predict(points, regression.coefficients)

    apart = lambda_ != lambda_model
    base = np.concatenate(list(regressed(observed, lambda_))) if apart else None  # (m, r)
    for group in _groups(predicted, max(1, MAX_COLUMNS // observed.shape[1])):
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
    ridge: KernelRidge, sizes: NDArray[np.float64], lambda_: float, points: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], float]:
    r"""Return the noise term of squared distances, sum_i a_i(x)^2 s_i, and its standard error.

    Exact if K + n_lambda I is factorized. Otherwise the mean of (sum_i a_i(x) e_i sqrt(s_i))^2 over random signs e.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on the n inputs.
    sizes : (n,)
        s_i = |psi(y_i) - E psi(Y'_i)|^2.
    lambda_ : float
        Regularizer lambda.
    points : (m, d), optional
        Normalized evaluation inputs; default: the fitted inputs.

    Returns
    -------
    (m,)
        Noise term at each input.
    float
        Standard error of its mean; 0 if exact.
    """
    if ridge.solver == "cholesky":
        return CholeskySmoother(ridge, lambda_, points).smooth_squared(sizes[:, None])[:, 0], 0.0
    signs = ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (len(sizes), SIGNS))
    outputs = signs * np.sqrt(sizes)[:, None]
    coefficients = ridge.solve(outputs, lambda_, measure_dof=False).coefficients
    if points is None:
        squares = ridge.fitted(outputs, coefficients, lambda_) ** 2
    else:
        squares = np.concatenate([block**2 for block in ridge.predict(points, coefficients)])
    return squares.mean(axis=1), float(squares.mean(axis=0).std(ddof=1) / np.sqrt(SIGNS))


def _groups(items: Iterable[NDArray[np.float64]], size: int) -> Iterator[list[NDArray[np.float64]]]:
    """Yield groups of ``size`` items; the last group may be smaller."""
    group: list[NDArray[np.float64]] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
