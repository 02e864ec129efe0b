"""Regressions of bias and variance on features, with a ridge penalty that cross-validation chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import NumericalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Fit = Callable[[Values, Values, float], Values]
    Loss = Callable[[Values, Values], Values]

RIDGES = (1e-8, 0.3, 3.0, 30.0, 300.0, 3000.0)  # In numbers of rows: the weight of a coefficient of 0
INNER_FOLDS = 5
MAX_STEPS = 100
LARGEST = 8.0  # Maximum |log of a variance factor|
CONVERGED = 1e-12


def gamma_regression(design: Values, squares: Values, ridge: float) -> Values:
    """Return the coefficients of log E z^2 = X b that maximize the likelihood of normal errors, (k,).

    The deviance of the gamma distribution with a log link is that of normal errors with variances exp(X b). Newton
    steps with the expected information, each limited to 1; the first coefficient, of the
    constant, is not penalized.

    Parameters
    ----------
    design : (n, k)
        Features; the first column is constant.
    squares : (n,)
        Squared z-scores.
    ridge : float
        Penalty of the other coefficients, in numbers of rows.

    Raises
    ------
    NumericalError
        The steps do not converge.
    """
    coefficients = np.zeros(design.shape[1])
    coefficients[0] = np.log(squares.mean())
    gram = design.T @ design + _penalty(design, ridge)
    for _ in range(MAX_STEPS):
        log_variance = np.clip(design @ coefficients, -LARGEST, LARGEST)
        working = log_variance + squares * np.exp(-log_variance) - 1
        step = np.clip(np.linalg.solve(gram, design.T @ working) - coefficients, -1, 1)
        coefficients += step
        if np.abs(step).max() < CONVERGED * max(1.0, np.abs(coefficients).max()):
            break
    if not np.isfinite(coefficients).all():
        msg = "the regression of squared errors on the features does not converge. Use fewer features"
        raise NumericalError(msg)
    return coefficients


def gamma_loss(log_variance: Values, squares: Values) -> Values:
    """Return the negative log-likelihoods of normal errors, up to a constant, (n,)."""
    clipped = np.clip(log_variance, -LARGEST, LARGEST)
    return np.asarray((clipped + squares * np.exp(-clipped)) / 2)


def ridge_regression(design: Values, targets: Values, ridge: float) -> Values:
    """Return the least-squares coefficients of targets (n,) on features (n, k) with a penalty, (k,)."""
    return np.asarray(np.linalg.solve(design.T @ design + _penalty(design, ridge), design.T @ targets))


def squared_loss(predicted: Values, targets: Values) -> Values:
    """Return squared errors, (n,)."""
    return np.asarray((predicted - targets) ** 2)


def choose_ridge(design: Values, targets: Values, fold: NDArray[np.intp], fit: Fit, loss: Loss) -> float:
    """Return the penalty with the smallest mean loss of rows that were not fitted.

    Parameters
    ----------
    design : (n, k)
        Features; the first column is constant.
    targets : (n,)
        What is regressed.
    fold : (n,)
        Fold of each row.
    fit, loss : callable
        The regression, and the loss of its predictions.
    """
    if design.shape[1] == 1:
        return RIDGES[0]
    means = []
    for ridge in RIDGES:
        losses = np.empty(len(targets))
        for each in np.unique(fold):
            held = fold == each
            losses[held] = loss(design[held] @ fit(design[~held], targets[~held], ridge), targets[held])
        means.append(losses.mean())
    return RIDGES[int(np.argmin(means))]


def _penalty(design: Values, ridge: float) -> Values:
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    return penalty
