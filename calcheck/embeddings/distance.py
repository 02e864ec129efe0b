"""The distance between two conditional mean embeddings, at every input."""

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

MOST_COLUMNS = 256  # right-hand sides solved together
SIGNS = 128  # random directions that estimate noise: to a tenth at each input, and far better in the mean


@dataclass(frozen=True, eq=False)
class Distances:
    """How far two embeddings are apart.

    Parameters
    ----------
    values : (trials, m)
        |U_{Y|X}(x) - U_{Y'|X'}(x)| at m inputs, once a trial.
    dof : Dof
        Of the data's embedding.
    iterations : int
        Products with the Gram matrix in all.
    residual : float
        The worst of the regressions.
    sizes : (n,)
        |psi(y_i) - E psi(Y'_i)|^2, the mean over trials.
    rms : float
        Root mean square of what was regressed, over rows: a residual moves a value by about residual * size.
    preconditioner : int
        Features of the preconditioner, the most of any regression; 0 if there was none.
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
    """Compare the data's embedding with the model's, in one or several trials.

    With lambda = lambda' the two regressions are one, of psi(y) - E psi(Y'). At the fitted inputs themselves its value
    is psi(y) - E psi(Y') - n lambda B, without a product.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on the n inputs.
    observed : (n, r)
        psi of the targets.
    predicted : iterable of (n, r)
        E psi of the predictive distributions, once a trial.
    lambda_, lambda_model : float
        Regularizers of the two embeddings.
    points : (m, d), optional
        Normalized inputs at which they are compared; the fitted ones if absent.
    """
    done: list[Regression] = []
    values, sizes, apart_by = [], [], []

    def regressed(outputs: NDArray[np.float64], penalty: float, trials: int = 1) -> Iterator[NDArray[np.float64]]:
        """Yield the regression of outputs (n, c) at the points, (b, c), block by block."""
        regression = ridge.solve(outputs, penalty, measure_dof=not done)
        done.append(regression)
        sizes.append(float(np.sqrt(np.sum(outputs**2) / (len(outputs) * trials))))
        if points is None:
            return iter([ridge.fitted(outputs, regression.coefficients, penalty)])
        return ridge.predict(points, regression.coefficients)

    apart = lambda_ != lambda_model
    base = np.concatenate(list(regressed(observed, lambda_))) if apart else None  # (m, r)
    for group in _groups(predicted, max(1, MOST_COLUMNS // observed.shape[1])):
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
    ridge: KernelRidge, sizes: NDArray[np.float64], penalty: float, points: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], float]:
    r"""Return what the rows' own noise adds to squared distances, sum_i a_i(x)^2 s_i, and its standard error.

    Exact where K + n lambda I is factorized. Else the mean over random signs e of (sum_i a_i(x) e_i sqrt(s_i))^2.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on the n inputs.
    sizes : (n,)
        s_i = |psi(y_i) - E psi(Y'_i)|^2.
    penalty : float
        lambda.
    points : (m, d), optional
        Normalized inputs at which it is wanted; the fitted ones if absent.

    Returns
    -------
    (m,)
        The noise.
    float
        The standard error of its mean; 0 where it is exact.
    """
    if ridge.solver == "cholesky":
        return CholeskySmoother(ridge, penalty, points).smooth_squared(sizes[:, None])[:, 0], 0.0
    signs = ridge.run.rng(RandomStream.NOISE).choice([-1.0, 1.0], (len(sizes), SIGNS))
    outputs = signs * np.sqrt(sizes)[:, None]
    coefficients = ridge.solve(outputs, penalty, measure_dof=False).coefficients
    if points is None:
        squares = ridge.fitted(outputs, coefficients, penalty) ** 2
    else:
        squares = np.concatenate([block**2 for block in ridge.predict(points, coefficients)])
    return squares.mean(axis=1), float(squares.mean(axis=0).std(ddof=1) / np.sqrt(SIGNS))


def _groups(items: Iterable[NDArray[np.float64]], size: int) -> Iterator[list[NDArray[np.float64]]]:
    """Yield so many items at a time."""
    group: list[NDArray[np.float64]] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
