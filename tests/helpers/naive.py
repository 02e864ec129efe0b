"""The conditional metrics as the papers write them: explicit inverses, every Gram matrix, float64.

Slow on purpose, and independent of calcheck: nothing here is imported from it.
"""

import numpy as np
from scipy.spatial.distance import cdist


def input_kernel(name, gamma, degree=3, coef0=1.0):
    """k_X as a function of two sets of inputs, (p, d) and (q, d)."""
    return {
        "rbf": lambda a, b: np.exp(-gamma * cdist(a, b, "sqeuclidean")),
        "laplace": lambda a, b: np.exp(-gamma * cdist(a, b, "cityblock")),
        "polynomial": lambda a, b: (gamma * a @ b.T + coef0) ** degree,
    }[name]


def target_kernel(gamma, name="rbf", **shape):
    """k_Y as a function of two sets of targets, (p, t) and (q, t); gamma (t,) or a number."""

    def kernel(a, b):
        weights = np.broadcast_to(gamma, a.shape[1]) ** (1.0 if name == "laplace" else 0.5)
        return input_kernel(name, 1.0, **shape)(a * weights, b * weights)

    return kernel


def weights(k_x, x, at, ridge):
    """a(x) = (K_X + n lambda I)^-1 k_X(x) for every x of at: (n, m)."""
    inverse = np.linalg.inv(k_x(x, x) + len(x) * ridge * np.eye(len(x)))
    return inverse @ k_x(x, at)


def form(a, matrix, b):
    """a_m^T M b_m for every column m."""
    return np.sum(a * (matrix @ b), axis=0)


def cce_squared(x, y, draws, *, k_x, gamma_y, ridge=0.1, ridge_model=None, at=None, k_y=None):
    """MCMD^2 at each point of at between (x, y) and the model's draws (n, l, t) at the same inputs.

    The model's sample is x repeated l times, m = n l rows, regularized by m lambda'.
    """
    n, size, t = draws.shape
    at = x if at is None else at
    k_y = k_y or target_kernel(gamma_y)
    model_x, model_y = np.repeat(x, size, axis=0), draws.reshape(n * size, t)
    a = weights(k_x, x, at, ridge)
    b = weights(k_x, model_x, at, ridge if ridge_model is None else ridge_model)
    return form(a, k_y(y, y), a) - 2 * form(a, k_y(y, model_y), b) + form(b, k_y(model_y, model_y), b)


def cce_squared_gaussian(
    x,
    y,
    mean,
    std,
    *,
    k_x,
    gamma_y,
    ridge=0.1,
    ridge_model=None,
    at=None,
):
    """The same for infinitely many draws from N(mean, std^2): y (n,), closed-form kernel means.

    E k(y, Y_j) = v_j^(-1/2) exp(-gamma (y - mean_j)^2 / v_j) with v_j = 1 + 2 gamma std_j^2, and
    E k(Y_i, Y_j) = w_ij^(-1/2) exp(-gamma (mean_i - mean_j)^2 / w_ij) with w_ij = 1 + 2 gamma (std_i^2 + std_j^2).
    """
    at = x if at is None else at
    a = weights(k_x, x, at, ridge)
    b = weights(k_x, x, at, ridge if ridge_model is None else ridge_model)
    v = 1 + 2 * gamma_y * std**2
    cross = np.exp(-gamma_y * (y[:, None] - mean) ** 2 / v) / np.sqrt(v)
    w = 1 + 2 * gamma_y * (std[:, None] ** 2 + std**2)
    model = np.exp(-gamma_y * (mean[:, None] - mean) ** 2 / w) / np.sqrt(w)
    data = np.exp(-gamma_y * (y[:, None] - y) ** 2)
    return form(a, data, a) - 2 * form(a, cross, b) + form(b, model, b)


def quantile_ece(pit, levels=99):
    """Mean |p_j - share of PIT values at or below p_j| over p_j = j / (levels + 1)."""
    p = np.arange(1, levels + 1) / (levels + 1)
    return np.mean(np.abs((pit[:, None] <= p).mean(axis=0) - p))
