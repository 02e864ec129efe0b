"""Bandwidths and scales of inputs and targets."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calcheck.core.lazy_inputs import Categories, Inputs, LazyInputs, blocks, load, take
from calcheck.core.validation import require
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import bottom_k, hash_rows, mix, occurrences
from calcheck.errors import DataError, Message, OptionError
from calcheck.execution.run import GIB, Run
from calcheck.kernels import Bandwidth, KernelName, KernelOptions, Normalization
from calcheck.kernels.kernel_functions import KERNELS, Kernel
from calcheck.predictions import Predictions, Source
from calcheck.result_details import InputKernel
from calcheck.typing import Floats, Mask, Precision, Values

OVERFLOW_MESSAGE = "the kernel overflows at some inputs. Pass --normalize l2 or standardize, or a smaller --gamma-x"
Bandwidths = Callable[[Values, Any], Values]
BLOCK_VALUES = 1 << 20  # Values per block: 8 MiB in float64
MIN_BLOCK_COLUMNS = 16  # Minimum columns per block: a cache line
MAX_PAIR_ROWS = 2000  # Maximum rows for statistics over all pairs (two million pairs); more rows are sampled
COPIES = 2  # Number of float64 copies that metrics make when they need all inputs in memory
MIN_NEIGHBORS = 1.0  # Below this sum of kernel values with all other rows, the kernel is too narrow


@dataclass(frozen=True, eq=False)
class Scaling:
    """A transformation of inputs, fitted on the rows of the metric."""

    shift: Values  # (d,), subtracted from each row
    divisor: Values  # (d,), divides the shifted columns
    unit_norm: bool  # Whether rows are then divided by their Euclidean norm

    def __call__(self, x: Floats) -> Values:
        """Transform (n, d) inputs; see :meth:`rounded`."""
        return np.asarray(self.rounded(x, precision="float64"), dtype=np.float64)

    def rounded(self, x: Floats, *, precision: Precision) -> Floats:
        """Transform (n, d) inputs in float64, in blocks of rows, and cast them to the given precision."""
        if x.shape[1] != len(self.shift):
            columns = f"{x.shape[1]} column" + "s" * (x.shape[1] != 1)
            raise DataError(f"the evaluation inputs have {columns}, expected {len(self.shift)} as in the fitted rows")
        scaled = np.empty(x.shape, dtype=precision)  # a single copy: inputs may be large
        directed = np.ones(len(x), dtype=bool)
        for rows in _blocks(x):
            block = np.array(x[rows], dtype=np.float64)
            if self.shift.any():
                block -= self.shift
            if (self.divisor != 1).any():
                block /= self.divisor
            if self.unit_norm:
                directed[rows] = _to_unit_norm(block)
            scaled[rows] = block
        remedy = "Rows of zeros cannot be scaled to norm 1. Pass --normalize none or standardize."
        require("x", directed, "must be nonzero", remedy)
        return scaled


def _to_unit_norm(block: Values) -> Mask:
    """Divide nonzero rows by their Euclidean norm in place; return which rows are nonzero, (b,)."""
    # divide by the largest value first, so that squares neither overflow nor underflow
    peak = np.maximum(block.max(axis=1), -block.min(axis=1))
    block /= np.where(peak, peak, 1)[:, None]
    block /= np.where(peak, np.sqrt(np.einsum("ij,ij->i", block, block)), 1)[:, None]
    return np.asarray(peak > 0)


def _blocks(x: Floats) -> Iterator[slice]:
    """Return slices of rows with about BLOCK_VALUES values each."""
    size = max(1, BLOCK_VALUES // x.shape[1])
    return (slice(start, start + size) for start in range(0, len(x), size))


def fit_scaling(
    x: Inputs, normalize: Normalization, kernel: KernelName, categories: Sequence[Categories] = ()
) -> Scaling:
    """Fit the normalization of inputs. Shapes: x (n, d).

    Standardized columns of the categories of one column have a total variance of 1, and the same unit: the distance of
    two categories does not depend on how many rows they have.
    """
    found = _fit_columns(x, normalize, kernel)
    if normalize == "standardize":
        for each in categories:
            deviations = found.divisor[each.places]
            varies = found.shift[each.places] % 1 > 0  # a category without rows, or with all, has a divisor of 1
            found.divisor[each.places] = np.sqrt(np.sum(deviations[varies] ** 2)) if varies.any() else 1.0
    return found


def _fit_columns(x: Inputs, normalize: Normalization, kernel: KernelName) -> Scaling:
    """Fit the normalization of each column. Shapes: x (n, d)."""
    d = x.shape[1]
    shift, divisor = np.zeros(d), np.ones(d)
    if isinstance(x, LazyInputs):
        if normalize == "standardize" or (kernel != "polynomial" and normalize == "none"):
            mean, deviation = _streamed(x)
            shift, divisor = mean, deviation if normalize == "standardize" else divisor
        return Scaling(shift, divisor, unit_norm=normalize == "l2")
    if normalize == "standardize" or (kernel != "polynomial" and normalize == "none"):
        shift = x.mean(axis=0, dtype=np.float64)
    if normalize == "standardize" and len(x) > 1:
        width = max(MIN_BLOCK_COLUMNS, BLOCK_VALUES // len(x))
        for columns in (slice(start, start + width) for start in range(0, d, width)):
            shift[columns], divisor[columns] = _standard(x[:, columns], shift[columns])
    return Scaling(shift, divisor, unit_norm=normalize == "l2")


def _streamed(x: LazyInputs) -> tuple[Values, Values]:
    """Return mean and standard deviation of columns in two passes over blocks; constant columns get deviation 1."""
    total, low, high = np.zeros(x.shape[1]), np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    for _, block in x.blocks():
        total += block.sum(axis=0, dtype=np.float64)
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
    varies = high > low
    mean = np.where(varies, total / len(x), low)
    reach = np.where(varies, np.maximum(high - mean, mean - low), 1.0)
    squares = np.zeros(x.shape[1])
    for _, block in x.blocks():
        squares += (((block - mean) / reach) ** 2).sum(axis=0)
    return mean, np.where(varies, reach * np.sqrt(squares / (len(x) - 1)), 1.0)


def _standard(x: Floats, mean: Values) -> tuple[Values, Values]:
    """Return the shift and the divisor that standardize columns (n, w); the divisor is 1 for a constant column."""
    reach = np.abs(x - mean).max(axis=0)
    varies = (x != x[0]).any(axis=0)  # the computed deviation of a constant column may differ from 0 by rounding
    reach = np.where(varies & (reach > 0), reach, 1.0)
    deviation = ((x - mean) / reach).std(axis=0, ddof=1)
    return np.where(varies, mean, x[0]), np.where(varies, reach * deviation, 1.0)


def bandwidth(choice: float | Bandwidth, x: Inputs, scaling: Scaling, kernel: KernelName) -> float:
    """Return the value of gamma for an option. Shapes: x (n, d)."""
    if isinstance(choice, (int, float)):
        return float(choice)
    if choice == "1/d":
        return float(1 / x.shape[1])
    if kernel == "polynomial" or (choice == "variance" and kernel == "laplace"):
        raise OptionError(f"--gamma-x {choice} does not fit the {kernel} kernel. Pass a number or another choice")
    if choice == "variance":
        spread = 2 * _variance(x, scaling) if len(x) > 1 else 0.0
    else:
        spread = median_distance(scaling(sample_inputs(x, MAX_PAIR_ROWS)), kernel)
    if not spread > 0:
        name = "variance" if choice == "variance" else "median distance"
        msg = f"--gamma-x {choice} needs inputs that vary, but their {name} is not positive. Pass a number instead"
        raise DataError(msg)
    return 1 / spread


def neighbors(kernel: Kernel, x: Floats) -> float:
    """Return the sum of kernel values of an input with all others, averaged over (n, d) inputs or 2,000 of them."""
    n, x = len(x), sample_inputs(x, MAX_PAIR_ROWS)
    off_diagonal = float(kernel.gram(x, x).sum() - kernel.diagonal(x).sum())
    return max(0.0, off_diagonal) / len(x) * (n - 1) / max(1, len(x) - 1)


def _variance(x: Inputs, scaling: Scaling) -> float:
    """Return the sum of the variances (n - 1) of normalized columns, which are centered for numerical accuracy."""
    if not isinstance(x, LazyInputs):
        return float(scaling(x).var(axis=0, ddof=1).sum())
    total, squares = np.zeros(x.shape[1]), 0.0
    for _, block in x.blocks():
        scaled = scaling(block)
        total += scaled.sum(axis=0)
        squares += float(np.vdot(scaled, scaled))
    return (squares - float(total @ total) / len(x)) / (len(x) - 1)


def median_distance(x: Floats, kernel: KernelName) -> float:
    """Return the median distance (squared Euclidean for RBF, L1 otherwise) over pairs of rows."""
    from scipy.spatial.distance import pdist

    distances = pdist(x, "sqeuclidean" if kernel == "rbf" else "cityblock")
    median: float = np.median(distances).item() if len(distances) else 0.0
    return median


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The normalization and the kernel of the inputs."""

    scaling: Scaling  # Normalization of the inputs
    kernel: Kernel  # k_X on normalized inputs
    details: InputKernel  # The same choices as reported in JSON


def target_matrix(rows: Predictions) -> Values:
    """Return the targets, (n, t)."""
    return rows.targets().reshape(len(rows), -1)


def require_inputs(rows: Predictions) -> tuple[Values, Predictive]:
    """Return targets (n, t) and predictive distributions; check that the rows have inputs."""
    rows.lazy_inputs()
    return target_matrix(rows), rows.distributions().load()


def all_inputs(rows: Predictions, run: Run) -> Floats:
    """Return all inputs in memory, (n, d)."""
    needed = COPIES * len(rows) * rows.width * np.dtype(np.float64).itemsize
    if isinstance(rows.x, LazyInputs) and needed > run.memory:
        raise DataError(
            f"{len(rows):,} inputs with {rows.width:,} columns need {needed / GIB:.1f} GiB, but --memory allows"
            f" {run.memory / GIB:.1f} GiB. Pass a larger --memory, or --subsample"
        )
    return rows.inputs()


def evaluation_points(at: Source, scaling: Scaling) -> Values:
    """Return the normalized inputs of another source, (m, d); errors include the name of the source."""
    with at.error_names():
        return scaling(at.predictions().inputs())


def input_kernel(
    rows: Predictions, kernel: KernelName | None, normalize: Normalization | None, gamma: float | Bandwidth | None
) -> tuple[KernelName, Normalization, float | Bandwidth]:
    """Return kernel, normalization and gamma, with defaults for those that are None."""
    single = rows.width == 1
    kernel = kernel or ("rbf" if single else "polynomial")
    of_several: Normalization = "l2" if rows.has_embedding else "standardize"
    of_one: Normalization = "standardize" if kernel == "polynomial" else "none"  # gamma sets the scale of others
    normalize = normalize or (of_one if single else of_several)
    if gamma is not None:
        return kernel, normalize, gamma
    if kernel == "polynomial":
        return kernel, normalize, 1.0 if normalize == "l2" else "1/d"
    return kernel, normalize, "variance" if single and kernel == "rbf" else "median"


def conditioning(rows: Predictions, chosen: KernelOptions) -> Conditioning:
    """Fit the normalization and the kernel to the inputs of some rows."""
    name, normalize, gamma_choice = input_kernel(rows, chosen.kernel_x, chosen.normalize, chosen.gamma_x)
    x = rows.lazy_inputs()
    scaling = fit_scaling(x, normalize, name, rows.categories)
    gamma = bandwidth(gamma_choice, x, scaling, name)
    shape: InputKernel = {"degree": chosen.degree, "coef0": chosen.coef0} if name == "polynomial" else {}
    details: InputKernel = {"kernel": name, "gamma": gamma, **shape, "normalize": normalize, "columns": rows.width}
    return Conditioning(scaling, KERNELS[name](gamma=gamma, **shape), details)


def bandwidths_or_none(bandwidths: Bandwidths, y: Values, gamma: Any) -> Values | None:
    """Return the bandwidths of targets (p, t) as computed by ``bandwidths``; None if the targets have no scale."""
    try:
        return bandwidths(y, gamma)
    except DataError:
        return None


def target_bandwidths(y: Values, gamma: float | None) -> Values:
    """Return gamma for each target column, (t,): 1 / (2 t s^2) by default, with its variance s^2 (n - 1)."""
    columns = y.shape[1]
    return np.full(columns, gamma) if gamma is not None else target_precisions(y) / (2 * columns)


def laplace_bandwidths(y: Values, gamma: float | None) -> Values:
    """Return gamma of a Laplace kernel for each target column, (t,); the default is 1 / (t s)."""
    columns = y.shape[1]
    return np.full(columns, gamma) if gamma is not None else np.sqrt(target_precisions(y)) / columns


def target_precisions(y: Values) -> Values:
    """Return 1 / variance (n - 1) of each target column, (t,)."""
    constant = (y == y[0]).all(axis=0)
    if constant.any():
        raise DataError(f"the targets are constant ({y[0, np.argmax(constant)]:.6g}): there is nothing to predict")
    with np.errstate(over="ignore", under="ignore"):
        found = 1 / y.var(axis=0, ddof=1)
    if not (np.isfinite(found) & (found > 0)).all():
        largest = np.abs(y).max()
        msg = f"the targets (up to {largest:.1e}) are too large or too small to compute a variance. Change their unit"
        raise DataError(msg)
    return np.asarray(found)


def narrow_kernel_warnings(neighbors: float | None, unit: str, remedy: str) -> tuple[Message, ...]:
    """Return a warning if the input kernel is too narrow to relate different inputs; None if it is not local."""
    if neighbors is None or neighbors >= MIN_NEIGHBORS:
        return ()
    text = (
        f"the input kernel is too narrow: {neighbors:.2g} effective neighbors per {unit}, expected at least"
        f" {MIN_NEIGHBORS:g}. Pass --gamma-x {remedy}"
    )
    return (Message("narrow-kernel", text),)


def sample_inputs(x: Inputs, size: int) -> Floats:
    """Return at most ``size`` of (n, d) inputs, those with the smallest hashes, whatever the seed and row order."""
    if len(x) <= size:
        return load(x)
    hashed = np.concatenate([hash_rows([block], 1) for _, block in blocks(x)])
    return take(x, np.sort(bottom_k(hashed ^ mix(occurrences(hashed)), size)))
