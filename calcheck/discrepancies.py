"""Kernel discrepancies of arrays: MMD, conditional and joint forms, FID."""

from typing import get_args

from calcheck.errors import DataError, OptionError
from calcheck.execution.backend import namespace
from calcheck.kernels import Estimator
from calcheck.kernels.kernel_functions import Rbf
from calcheck.mmd.frechet import frechet, moments
from calcheck.mmd.quadratic_forms import of_different, pair_sum, row_products
from calcheck.typing import Array

AXES = 3  # axes of targets and draws: rows, repeats or draws, columns


def columns_of(name: str, values: Array) -> Array:
    """Return (n,) or (n, d) values as (n, d)."""
    if values.ndim not in (1, 2):
        raise DataError(f"{name} has shape {tuple(values.shape)}. Expected (n,) or (n, d), one row per observation")
    return _floating(name, values)[:, None] if values.ndim == 1 else _floating(name, values)


def rows_of(y: Array, draws: Array) -> tuple[Array, Array]:
    """Return targets (n,), (n, t) or (n, r, t) as (n, r, t), and draws (n, l) or (n, l, t) as (n, l, t)."""
    shapes = f"y has shape {tuple(y.shape)} and draws have shape {tuple(draws.shape)}"
    if draws.ndim == AXES - 1:
        draws = draws[:, :, None]
    if y.ndim < AXES:
        y = columns_of("y", y)[:, None, :]
    if y.ndim != AXES or draws.ndim != AXES or len(y) != len(draws) or y.shape[2] != draws.shape[2]:
        msg = f"{shapes}. Expected targets (n,), (n, t) or (n, r, t), and draws (n, l) or (n, l, t) for the same n rows"
        raise DataError(msg)
    return _floating("y", y), _floating("draws", draws)


def _floating(name: str, values: Array) -> Array:
    """Return the values; raise unless they are floating point, as kernels and gradients require."""
    if not namespace(values).isdtype(values.dtype, "real floating"):
        raise DataError(f"{name} has dtype {values.dtype}. Pass a floating-point array")
    return values


def inputs_of(x: Array, n: int) -> Array:
    """Return inputs as (n, d)."""
    x = columns_of("x", x)
    if len(x) != n:
        raise DataError(f"x has {len(x):,} rows and y has {n:,}. Pass one input per row")
    return x


def require_same_columns(**arrays: Array) -> None:
    """Raise DataError unless all (n, d) arrays have as many columns as the first."""
    (first, one), *others = arrays.items()
    for name, other in others:
        if other.shape[1] != one.shape[1]:
            msg = f"{name} has {other.shape[1]} columns, {first} has {one.shape[1]}. Column counts must match"
            raise DataError(msg)


def require_known(statistic: str) -> None:
    """Raise OptionError unless the statistic exists."""
    if statistic not in get_args(Estimator):
        raise OptionError(f"unknown statistic {statistic!r}. Choose one of {', '.join(get_args(Estimator))}")


def require_two(count: int, what: str, statistic: str) -> None:
    """Raise DataError unless there are at least two items to form pairs from."""
    if count < 2:  # noqa: PLR2004
        msg = f"statistic {statistic!r} needs at least 2 {what}, got {count}. Pass more, or use statistic 'v'"
        raise DataError(msg)


def ammd(
    y: Array, draws: Array, *, gamma_y: float = 0.5, statistic: Estimator = "unbiased", constant: bool = False
) -> Array:
    """Return AMMD^2, the mean over rows of :func:`ammd_terms`, which documents the arguments.

    AMMD^2 is twice a kernel score: its expectation is minimal for the true distribution. Without the constant, that
    minimum is negative.

    Examples
    --------
    >>> import numpy as np
    >>> float(ammd(np.zeros(3), np.zeros((3, 2)))), float(ammd(np.zeros(3), np.full((3, 2), 99.0)))
    (-1.0, 1.0)
    """
    return namespace(draws).mean(ammd_terms(y, draws, gamma_y=gamma_y, statistic=statistic, constant=constant))


def ammd_terms(
    y: Array, draws: Array, *, gamma_y: float = 0.5, statistic: Estimator = "unbiased", constant: bool = False
) -> Array:
    """Return the contribution of each row to AMMD^2.

    Parameters
    ----------
    y : (n,), (n, t) or (n, r, t)
        Targets.
    draws : (n, l) or (n, l, t)
        Draws from the model.
    gamma_y : float
        Scale of the kernel on targets.
    statistic : str
        ``"unbiased"`` (``"paper"`` is the same): -2 a_i . b_i + (l^2 |b_i|^2 - l) / (l (l - 1)), l >= 2;
        ``"v"``: -2 a_i . b_i + |b_i|^2.
    constant : bool
        Whether to add the term that depends on the data only: (r^2 |a_i|^2 - r) / (r (r - 1)), r >= 2, so that 0
        means equal distributions. For ``"v"`` the term is |a_i|^2, and the sum is |delta_i|^2.

    Returns
    -------
    (n,)

    Raises
    ------
    DataError
        Shapes do not match, or there are too few draws or targets per row for the statistic.
    OptionError
        The statistic is unknown.
    """
    require_known(statistic)
    y, draws = rows_of(y, draws)
    terms = _own_products(draws, gamma_y, statistic, "draws per row") - 2 * row_products(y, draws, gamma_y)
    return terms + _own_products(y, gamma_y, statistic, "targets per row") if constant else terms


def jmmd(
    x: Array, y: Array, draws: Array, *, gamma_x: float = 0.5, gamma_y: float = 0.5, statistic: Estimator = "unbiased"
) -> Array:
    """Return JMMD^2, the squared distance between the mean embeddings of (x, y) and (x, y').

    Parameters
    ----------
    x : (n, d)
        Inputs that the draws are conditioned on; K_ij = exp(-gamma_x |x_i - x_j|^2).
    y : (n,), (n, t) or (n, r, t)
        Targets.
    draws : (n, l) or (n, l, t)
        Draws from the model.
    gamma_x, gamma_y : float
        Scales of the kernels on inputs and targets.
    statistic : str
        ``"unbiased"``: sum over i != j of K_ij delta_i . delta_j / (n (n - 1)), n >= 2; 0 on average for equal
        distributions. ``"v"``: the sum over all pairs, divided by n^2; never negative. ``"paper"``:
        -2 sum_ij K_ij a_i . b_j / n^2 plus the mean of K k over pairs of distinct draws among all n l draws. It omits
        the term that depends on the data only, and it is biased because targets and draws share their inputs.

    Returns
    -------
    () array

    Raises
    ------
    DataError
        Shapes do not match, or there are too few rows or draws for the statistic.
    OptionError
        The statistic is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.zeros((3, 1))
    >>> float(jmmd(x, np.zeros(3), np.zeros((3, 2)))), float(jmmd(x, np.zeros(3), np.full((3, 2), 99.0)))
    (0.0, 2.0)
    """
    require_known(statistic)
    y, draws = rows_of(y, draws)
    x, n, size = inputs_of(x, len(y)), len(y), draws.shape[1]

    def kernel(rows: slice) -> Array:
        return Rbf(gamma_x).gram(x[rows], x)

    if statistic == "paper":
        m = n * size
        require_two(m, "draws", statistic)
        shares = (0, -2 / n**2, size**2 / (m * (m - 1)))
        return pair_sum(kernel, y, draws, gamma_y, shares) - 1 / (m - 1)  # m self-pairs, 1 each
    total = pair_sum(kernel, y, draws, gamma_y)
    if statistic == "v":
        return total / n**2
    require_two(n, "rows", statistic)
    same = ammd_terms(y, draws, gamma_y=gamma_y, statistic="v", constant=True)  # K_ii |delta_i|^2
    return (total - namespace(same).sum(same)) / (n * (n - 1))


def cmmd(
    x: Array, y: Array, draws: Array, *, gamma_x: float = 0.5, gamma_y: float = 0.5, lambda_: float = 0.1
) -> Array:
    """Return CMMD^2 = tr B^T K B, the squared distance between the conditional embedding operators.

    B = (K + n lambda I)^-1 delta, where row i of delta is delta_i and K_ij = exp(-gamma_x |x_i - x_j|^2).

    Parameters
    ----------
    x : (n, d)
        Inputs that the draws are conditioned on.
    y : (n,), (n, t) or (n, r, t)
        Targets.
    draws : (n, l) or (n, l, t)
        Draws from the model.
    gamma_x, gamma_y : float
        Scales of the kernels on inputs and targets.
    lambda_ : float
        Regularizer, > 0.

    Returns
    -------
    () array

    Raises
    ------
    DataError
        Shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> float(cmmd(np.zeros((1, 1)), np.zeros(1), np.full((1, 1), 99.0), lambda_=1.0))  # B = delta / 2, |delta|^2 = 2
    0.5
    """
    y, draws = rows_of(y, draws)
    x = inputs_of(x, len(y))
    gram = Rbf(gamma_x).gram(x, x)
    inverse = namespace(gram).linalg.inv(_regularized(gram, lambda_))
    weights = inverse @ gram @ inverse
    return pair_sum(weights.__getitem__, y, draws, gamma_y)


def mcmd(  # noqa: PLR0913 -- two samples and the evaluation points
    x: Array,
    y: Array,
    x_model: Array,
    y_model: Array,
    at: Array,
    *,
    gamma_x: float,
    gamma_y: float,
    lambda_: float = 0.1,
    squared: bool = False,
) -> Array:
    """Return MCMD, the distance between the conditional embeddings of two samples, at each of m points.

    MCMD^2(x) = |sum_i a_i(x) psi(y_i) - sum_j a'_j(x) psi(y'_j)|^2, with a(x) = (K + n lambda I)^-1 k(x) and
    a'(x) = (K' + n' lambda I)^-1 k'(x).

    Parameters
    ----------
    x, y : (n, d), (n,) or (n, t)
        Inputs and targets of the first sample, the data.
    x_model, y_model : (n', d), (n',) or (n', t)
        Inputs and targets of the second sample, the model. Its inputs may differ.
    at : (m, d)
        Evaluation points.
    gamma_x, gamma_y : float
        Scales of the kernels on inputs and targets.
    lambda_ : float
        Regularizer of both embeddings, > 0.
    squared : bool
        Whether to return MCMD^2. Its gradient is finite everywhere; that of MCMD is not finite where MCMD is 0.

    Returns
    -------
    (m,)

    Raises
    ------
    DataError
        Shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.zeros((1, 1)), np.zeros(1)  # a(0) = 1 / 2, and |psi(0) - psi(99)|^2 = 2
    >>> mcmd(x, y, x, y + 99, x, gamma_x=1.0, gamma_y=1.0, lambda_=1.0, squared=True)
    array([0.5])
    """
    y, y_model, at = columns_of("y", y), columns_of("y_model", y_model), columns_of("at", at)
    x, x_model = inputs_of(x, len(y)), inputs_of(x_model, len(y_model))
    require_same_columns(x=x, x_model=x_model, at=at)
    require_same_columns(y=y, y_model=y_model)
    xp = namespace(y)
    weights = xp.concat(
        [_smoothing(x, at, gamma_x, lambda_), -_smoothing(x_model, at, gamma_x, lambda_)]
    )  # (n + n', m)
    targets = xp.concat([y, y_model])
    squares = xp.sum(weights * (Rbf(gamma_y).gram(targets, targets) @ weights), axis=0)
    return squares if squared else xp.sqrt(xp.clip(squares, 0.0, None))  # rounding may give negative values


def fid(x: Array, y: Array, draws: Array) -> Array:
    """Return the Fréchet distance between the Gaussians with the moments of (x, y) and of (x, y').

    The value is |m - m'|^2 + tr (C + C' - 2 (C^(1/2) C' C^(1/2))^(1/2)). Each row has weight 1 / n, divided equally
    among its targets or draws. Covariances carry the factor n / (n - 1). They may be singular, but then there is no
    gradient.

    Parameters
    ----------
    x : (n, d)
        Inputs that the draws are conditioned on.
    y : (n,), (n, t) or (n, r, t)
        Targets.
    draws : (n, l) or (n, l, t)
        Draws from the model.

    Returns
    -------
    () array

    Raises
    ------
    DataError
        Shapes do not match, or there is only one row.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.zeros((2, 1)), np.array([0.0, 2.0])  # means 1 and 5, variances 2 and 8: 4^2 + 2 + 8 - 2 * 4
    >>> round(float(fid(x, y, np.array([[3.0], [7.0]]))), 12)
    18.0
    """
    y, draws = rows_of(y, draws)
    x = inputs_of(x, len(y))
    return frechet(moments(x, y), moments(x, draws))


def standardized(values: Array, by: Array) -> Array:
    """Return values standardized by the column means and standard deviations (n - 1) of a reference array.

    Parameters
    ----------
    values : (..., t)
        Values to scale; the last axis is columns. With (n,) references, all axes are rows or draws of one target.
    by : (n,), (n, t) or (n, r, t)
        Reference array, usually the targets of the data. A constant column is divided by 1.

    Examples
    --------
    >>> import numpy as np
    >>> y, draws = np.array([1.0, 3.0]), np.array([[2.0, 2.0], [4.0, 0.0]])
    >>> standardized(draws, by=y).round(3)
    array([[ 0.   ,  0.   ],
           [ 1.414, -1.414]])
    """
    xp = namespace(by)
    by = by if by.ndim == 1 else by.reshape(-1, by.shape[-1])
    varies = xp.any(by != by[0], axis=0)
    spread = xp.std(by, axis=0, correction=1)
    return (values - xp.mean(by, axis=0)) / xp.where(varies, spread, xp.ones_like(spread))


def _own_products(points: Array, gamma: float, statistic: Estimator, what: str) -> Array:
    """Return |b_i|^2, or the mean over pairs of distinct points of each row, (n,)."""
    squares = row_products(points, points, gamma)
    if statistic == "v":
        return squares
    size = points.shape[1]
    require_two(size, what, statistic)
    return of_different(squares, size)


def _regularized(gram: Array, lambda_: float) -> Array:
    """Return K + n lambda I."""
    n = len(gram)
    return gram + n * lambda_ * namespace(gram).eye(n, dtype=gram.dtype, device=gram.device)


def _smoothing(x: Array, at: Array, gamma: float, lambda_: float) -> Array:
    """Return (K + n lambda I)^-1 k(x) at each of m points, (n, m)."""
    kernel = Rbf(gamma)
    return namespace(x).linalg.solve(_regularized(kernel.gram(x, x), lambda_), kernel.gram(x, at))
