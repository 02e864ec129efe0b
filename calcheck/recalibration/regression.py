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
CONVERGED = 1e-16  # Decrement of the loss per row; the next step would be about its square
MAX_HALVINGS = 60
ROUNDING = 1e-14


def gamma_regression(design: Values, squares: Values, ridge: float) -> Values:
    """Return the coefficients of log E z^2 = X b that maximize the likelihood of normal errors, (k,).

    The deviance of the gamma distribution with a log link is that of normal errors with variances exp(X b). It is
    convex: Newton steps, halved where it would rise. The first coefficient, of the constant, is not penalized.

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
    means = np.append(0.0, design[:, 1:].mean(axis=0))
    centered, penalty = design - means, _penalty(design, ridge)
    coefficients = np.zeros(design.shape[1])
    coefficients[0] = np.log(squares.mean())
    for _ in range(MAX_STEPS):
        weights = squares * np.exp(-(centered @ coefficients))
        gradient = centered.T @ (weights - 1) - penalty @ coefficients
        step = np.linalg.solve(centered.T @ (weights[:, None] * centered) + penalty, gradient)
        coefficients = _descend(centered, squares, penalty, coefficients, step)
        if gradient @ step < CONVERGED * len(squares):
            return np.asarray(np.append(coefficients[0] - coefficients @ means, coefficients[1:]))
    msg = "the regression of squared errors on the features does not converge. Use fewer features"
    raise NumericalError(msg)


def _descend(design: Values, squares: Values, penalty: Values, start: Values, step: Values) -> Values:
    """Return the coefficients after a step, halved until the penalized loss does not rise."""

    def loss(coefficients: Values) -> float:
        log_variance = design @ coefficients
        return float(np.sum(log_variance + squares * np.exp(-log_variance)) + coefficients @ penalty @ coefficients / 2)

    before = loss(start)
    for _ in range(MAX_HALVINGS):
        if loss(start + step) <= before + ROUNDING * abs(before):
            return start + step
        step = step / 2
    return start


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
