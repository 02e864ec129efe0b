"""The metrics of joint samples as the papers write them: pooled samples, every Gram matrix, explicit inverses, float64.

A case is n inputs x (n, d), each with r targets y (n, r, t) and l draws of the model (n, l, t). Slow on purpose, and
independent of calcheck: nothing here is imported from it.
"""

import numpy as np
from scipy.spatial.distance import pdist

from tests.helpers.naive import input_kernel, target_kernel


def standardized(values, by=None):
    """Values (..., c) less the mean of each column of ``by``, over its standard deviation (n - 1) unless that is 0."""
    columns = (values if by is None else by).reshape(-1, values.shape[-1])
    varies = (columns != columns[0]).any(axis=0)
    deviation = np.where(varies, columns.std(axis=0, ddof=1), 1.0)
    return (values - columns.mean(axis=0)) / deviation


def kernel_on(x, name="rbf", gamma=0.5):
    """k_X by its name and scale: a number, 1/d, or 1 over the median distance (squared for rbf) of pairs of inputs."""
    if gamma == "1/d":
        gamma = 1 / x.shape[1]
    elif gamma == "median":
        gamma = 1 / np.median(pdist(x, {"rbf": "sqeuclidean", "laplace": "cityblock"}[name]))
    return input_kernel(name, gamma)


def pooled(x, values):
    """All pairs of an input and one of its values (n, s, t): (n s, d), (n s, t), and which input each is of, (n s,)."""
    n, size, t = values.shape
    return np.repeat(x, size, axis=0), values.reshape(n * size, t), np.repeat(np.arange(n), size)


def ammd(y, draws, *, gamma_y=0.5, statistic="unbiased", constant=False, k_y=None):
    """Mean over inputs of -2/(l r) sum k(y, y') + 1/(l (l - 1)) sum over different draws k(y', y'').

    The constant is 1/(r (r - 1)) sum over different targets k(y, y''). V: over all pairs, l^2 and r^2.
    """
    k_y = k_y or target_kernel(gamma_y)

    def within(values):
        size = len(values)
        gram = k_y(values, values)
        if statistic == "v":
            return gram.sum() / size**2
        return sum(gram[i, j] for i in range(size) for j in range(size) if i != j) / (size * (size - 1))

    return np.mean(
        [
            -2 * k_y(own, model).sum() / (len(own) * len(model)) + within(model) + (within(own) if constant else 0)
            for own, model in zip(y, draws, strict=True)
        ]
    )


def jmmd(x, y, draws, *, k_x=None, gamma_y=0.5, statistic="unbiased", k_y=None):
    """Squared MMD of the pooled pairs (x, y) and (x, y') under k_X k_Y.

    ``v``: all pairs of pairs in all three terms; ``unbiased``: those of different inputs; ``paper``: all pairs of data
    and model, those of the model that are not the same draw, and no term of the data.
    """
    k_x, k_y = k_x or kernel_on(x), k_y or target_kernel(gamma_y)
    data, model = pooled(x, y), pooled(x, draws)

    def mean(a, b, kept):
        kept = np.ones((len(a[0]), len(b[0])), dtype=bool) if kept is None else kept
        return (k_x(a[0], b[0]) * k_y(a[1], b[1]))[kept].mean()

    if statistic == "paper":
        return -2 * mean(data, model, None) + mean(model, model, ~np.eye(len(model[0]), dtype=bool))

    def term(a, b):
        return mean(a, b, None if statistic == "v" else a[2][:, None] != b[2])

    return term(data, data) - 2 * term(data, model) + term(model, model)


def cmmd(x, y, draws, *, k_x=None, gamma_y=0.5, ridge=0.1, k_y=None):
    """Squared Hilbert-Schmidt distance of the regularized conditional embedding operators of the two pooled samples.

    With m pairs each is sum_ij W_ij k(x_i, .) phi(y_j), W = (K + m lambda I)^-1: the data's from n r pairs, the model's
    from n l.
    """
    k_x, k_y = k_x or kernel_on(x), k_y or target_kernel(gamma_y)

    def weighted(sample):
        return np.linalg.inv(k_x(sample[0], sample[0]) + len(sample[0]) * ridge * np.eye(len(sample[0])))

    def inner(a, b):
        return np.trace(weighted(a) @ k_x(a[0], b[0]) @ weighted(b) @ k_y(b[1], a[1]))

    data, model = pooled(x, y), pooled(x, draws)
    return inner(data, data) - 2 * inner(data, model) + inner(model, model)


def gaussian_embeddings(y, mean, std, gamma_y=0.5):
    """Inner products of the rows' embeddings, (n, n) each: data and data, data and model, model and model.

    The data's embedding is the mean over targets y (n, r, t), the model's that of N(mean, diag std^2), (n, t) each:
    E k(y, Y) = prod over columns of v^(-1/2) exp(-gamma (y - mean)^2 / v), v = 1 + 2 gamma var.
    """

    def product(a, b, var):
        spread = 1 + 2 * gamma_y * var
        return np.prod(np.exp(-gamma_y * (a - b) ** 2 / spread) / np.sqrt(spread), axis=-1)

    rows, zero = y[:, :, None, None], np.zeros(y.shape[-1])
    return (
        product(rows, y, zero).mean(axis=(1, 3)),
        product(y[:, :, None], mean, std**2).mean(axis=1),
        product(mean[:, None], mean, std[:, None] ** 2 + std**2),
    )


def weighted_embeddings(y, points, mass, gamma_y=0.5, k_y=None):
    """The same for discrete models with masses (n, s) on points (n, s), or on shared points (s,); y (n, r, 1)."""
    k_y = k_y or target_kernel(gamma_y)
    n, size = mass.shape
    points = np.broadcast_to(points, mass.shape).reshape(-1, 1)
    flat = k_y(y.reshape(-1, 1), points) * mass.ravel()
    both = k_y(points, points) * mass.ravel() * mass.reshape(-1, 1)
    own = k_y(y.reshape(-1, 1), y.reshape(-1, 1))
    r = y.shape[1]
    return (
        own.reshape(n, r, n, r).mean(axis=(1, 3)),
        flat.reshape(n, r, n, size).mean(axis=1).sum(axis=-1),
        both.reshape(n, size, n, size).sum(axis=(1, 3)),
    )


def ammd_of(embeddings, targets=1, *, statistic="unbiased", constant=False):
    """AMMD of infinitely many draws, from the products of embeddings; the constant from the targets per input."""
    data, cross, model = (np.diagonal(each) for each in embeddings)
    own = data if statistic == "v" or not constant else (targets**2 * data - targets) / (targets * (targets - 1))
    return np.mean(-2 * cross + model + (own if constant else 0))


def jmmd_of(k, embeddings, *, statistic="unbiased"):
    """JMMD of infinitely many draws, K (n, n)."""
    data, cross, model = embeddings
    n = len(k)
    if statistic == "paper":
        return (k * (model - 2 * cross)).sum() / n**2
    kept = np.ones((n, n)) if statistic == "v" else 1 - np.eye(n)
    return (kept * k * (data - cross - cross.T + model)).sum() / kept.sum()


def cmmd_of(k, embeddings, *, ridge=0.1):
    """CMMD of infinitely many draws, K (n, n): the trace of W K W times the differences' inner products."""
    data, cross, model = embeddings
    w = np.linalg.inv(k + len(k) * ridge * np.eye(len(k)))
    return np.trace(w @ k @ w @ (data - cross - cross.T + model))


def joint(x, values):
    """The pairs (x, value) of values (n, s, t), (n s, d + t)."""
    return np.hstack(pooled(x, values)[:2])


def fid(x, y, draws):
    """Squared distance of means, and trace of S + S' - 2 (S S')^(1/2), S of covariances over n - 1.

    With centered pairs Z of equal weights, S = Z^T Z: the trace of the root is the sum of the singular values of
    Z Z'^T, without a product or a root of covariances. Not a formula that suffers where these are singular.
    """
    n = len(x)
    data, model = joint(x, y), joint(x, draws)
    centered, other = (
        (each - each.mean(axis=0)) * np.sqrt(n / (n - 1) / len(each))  # every input weighs 1/n
        for each in (data, model)
    )
    shift = data.mean(axis=0) - model.mean(axis=0)
    root = np.linalg.svd(centered @ other.T, compute_uv=False).sum()
    return shift @ shift + (centered**2).sum() + (other**2).sum() - 2 * root


def fid_in_digits(moments, digits=50):
    """The same from means and covariances (two pairs), by eigenvalues of S S' in the given number of digits."""
    import mpmath

    with mpmath.workdps(digits):
        (m, s), (m_model, s_model) = ((mpmath.matrix(a), mpmath.matrix(b)) for a, b in moments)
        roots = mpmath.eig(s * s_model, left=False, right=False)
        trace = sum(s[i, i] + s_model[i, i] for i in range(s.rows))
        shift = sum((m[i] - m_model[i]) ** 2 for i in range(len(m)))
        return float(shift + trace - 2 * sum(mpmath.sqrt(max(mpmath.re(root), 0)) for root in roots))


def moments_in_digits(pairs, n, digits=50):
    """Mean and covariance of equally weighted pairs (m, c), times n / (n - 1), in the given number of digits."""
    import mpmath

    with mpmath.workdps(digits):
        rows = [[mpmath.mpf(float(value)) for value in row] for row in pairs]
        size, columns = len(rows), range(len(rows[0]))
        mean = [sum(row[c] for row in rows) / size for c in columns]
        weight = mpmath.mpf(n) / (n - 1) / size
        return mean, [
            [sum((row[a] - mean[a]) * (row[b] - mean[b]) for row in rows) * weight for b in columns] for a in columns
        ]
