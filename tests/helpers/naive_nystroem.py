"""Nyström ridge regression by its formulas: explicit inverses, every Gram matrix, no features, float64.

The regression is linear in its outputs R = phi(y) - E phi(Y'), which have no coordinates: each step is a matrix that
acts on R, and norms come from inner products of R. Nothing here is imported from calcheck.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class NystroemEmbedding:
    """Weights of R, each (rows, n), and the products of R with itself, (n, n)."""

    fitted: np.ndarray  # F_M = fitted R at all rows
    missed: np.ndarray  # g = missed R at all rows
    products: np.ndarray

    def norms(self, weights):
        return np.sqrt(np.maximum(np.einsum("in,nm,im->i", weights, self.products, weights, optimize=True), 0))


def differences_gaussian(y, mean, std, gamma_y):
    """<R_i, R_j> for R_i = phi(y_i) - E phi(Y'_i), Y'_i normal: (n, n)."""
    v = 1 + 2 * gamma_y * std**2
    cross = np.exp(-gamma_y * (y[:, None] - mean) ** 2 / v) / np.sqrt(v)
    w = 1 + 2 * gamma_y * (std[:, None] ** 2 + std**2)
    model = np.exp(-gamma_y * (mean[:, None] - mean) ** 2 / w) / np.sqrt(w)
    return np.exp(-gamma_y * (y[:, None] - y) ** 2) - cross - cross.T + model


def nystroem_embedding(k_x, x, landmarks, ridge, products):
    """F_M = Z (Z^T Z + n lambda K_MM)^-1 Z^T R, and g = K (R - F_M) / (n lambda) - F_M."""
    n = len(x)
    gram, near, own = k_x(x, x), k_x(x, landmarks), k_x(landmarks, landmarks)
    fitted = near @ np.linalg.inv(near.T @ near + n * ridge * own) @ near.T
    return NystroemEmbedding(fitted, gram @ (np.eye(n) - fitted) / (n * ridge) - fitted, products)


def left_over(gram, values, shifts):
    """Return the residuals of values at S inputs after regression on each other, and the diagonal of the smoother."""
    smooth = gram @ np.linalg.inv(gram + np.diag(shifts))
    return values - smooth @ values, np.diag(smooth)


def corrections(found, k_x, x, checked, ridge, weights, power):
    """Return |F| - |F_M| at weighted validation rows, by residuals divided by (1 - h)^power."""
    left, own = left_over(k_x(x[checked], x[checked]), found.missed[checked], len(x) * ridge / weights)
    exact = found.fitted[checked] + left / ((1 - own) ** power)[:, None]
    return found.norms(exact) - found.norms(found.fitted[checked])


def error_of_mean(values, weights, n):
    """Return Hajek's standard error of sum w v / n, for v of S rows sampled with probabilities 1 / w."""
    missed = np.array([1 - min(1, 1 / w) for w in weights])
    totals = values * weights
    center = np.sum(missed * totals) / np.sum(missed)
    size = len(values)
    return np.sqrt(size / (size - 1) * np.sum(missed * (totals - center) ** 2)) / n
