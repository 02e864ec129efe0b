"""Inputs made comparable: normalization, and bandwidths that do not depend on units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, OptionError
from calcheck.execution.bottom_k import sample_inputs
from calcheck.lazy_inputs import LazyInputs
from calcheck.validation import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Precision
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Bandwidth, KernelName, Normalization
    from calcheck.lazy_inputs import Inputs

    ColumnIndex = NDArray[np.float64]

BLOCK_VALUES = 1 << 20  # numbers of a block, 8 MiB in float64
LEAST_COLUMNS = 16  # of a block: a cache line of numbers
FEW_ROWS = 2000  # that stand for more where all pairs are looked at: two million of these


@dataclass(frozen=True, eq=False)
class Scaling:
    """A map of inputs, fixed on the rows that a metric is fitted on.

    Parameters
    ----------
    shift : (d,)
        Is subtracted.
    divisor : (d,)
        Divides what is left.
    unit_norm : bool
        True if rows are then divided by their Euclidean norm.
    """

    shift: NDArray[np.float64]
    divisor: NDArray[np.float64]
    unit_norm: bool

    def __call__(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Map (n, d) inputs (:meth:`rounded`)."""
        return np.asarray(self.rounded(x, precision="float64"), dtype=np.float64)

    def rounded(self, x: NDArray[np.floating[Any]], *, precision: Precision) -> NDArray[np.floating[Any]]:
        """Map (n, d) inputs in float64, a block of rows at a time, and round them to a precision.

        Raises
        ------
        DataError
            Columns differ from those of the fit, or a row that should get norm 1 is 0.
        """
        if x.shape[1] != len(self.shift):
            msg = f"the inputs to evaluate at have {x.shape[1]} columns, the fitted {len(self.shift)}. Give the same"
            raise DataError(msg)
        scaled = np.empty(x.shape, dtype=precision)  # the one copy, for inputs may be large
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
        remedy = "All zeros have none. Pass --normalize none or standardize."
        require("x", directed, "must have a direction", remedy)
        return scaled


def _to_unit_norm(block: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Divide rows, in place, by their Euclidean norm, but those without one; say which have one, (b,)."""
    # the largest first, so that squares neither overflow nor vanish
    peak = np.maximum(block.max(axis=1), -block.min(axis=1))
    block /= np.where(peak, peak, 1)[:, None]
    block /= np.where(peak, np.sqrt(np.einsum("ij,ij->i", block, block)), 1)[:, None]
    return np.asarray(peak > 0)


def _blocks(x: NDArray[np.floating[Any]]) -> Iterator[slice]:
    """Yield rows, so many at a time that they are few bytes in float64."""
    size = max(1, BLOCK_VALUES // x.shape[1])
    return (slice(start, start + size) for start in range(0, len(x), size))


def fit_scaling(x: Inputs, normalize: Normalization, kernel: KernelName) -> Scaling:
    """Fix the normalization of inputs.

    Parameters
    ----------
    x : (n, d)
        Inputs.
    normalize : str
        ``"none"``; ``"l2"``: rows to norm 1; ``"standardize"``: columns to mean 0 and standard deviation 1
        (n - 1), constant columns to 0.
    kernel : str
        Kernels of differences do not see a shift: then inputs are centered, which keeps digits.
    """
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
        width = max(LEAST_COLUMNS, BLOCK_VALUES // len(x))
        for columns in (slice(start, start + width) for start in range(0, d, width)):
            shift[columns], divisor[columns] = _standard(x[:, columns], shift[columns])
    return Scaling(shift, divisor, unit_norm=normalize == "l2")


def _streamed(x: LazyInputs) -> tuple[ColumnIndex, ColumnIndex]:
    """Return mean and deviation of columns that are read twice, a block at a time; the deviation of a constant is 1."""
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


def _standard(x: NDArray[np.floating[Any]], mean: ColumnIndex) -> tuple[ColumnIndex, ColumnIndex]:
    """Return what makes columns (n, w) standard: what is subtracted, and what divides then; 1 for a constant."""
    reach = np.abs(x - mean).max(axis=0)
    varies = (x != x[0]).any(axis=0)  # a constant's deviation need not be 0 in floating point
    reach = np.where(varies & (reach > 0), reach, 1.0)
    deviation = ((x - mean) / reach).std(axis=0, ddof=1)
    return np.where(varies, mean, x[0]), np.where(varies, reach * deviation, 1.0)


def bandwidth(
    choice: float | Bandwidth,
    x: Inputs,
    scaling: Scaling,
    kernel: KernelName,
) -> float:
    """Turn a choice of gamma into a number.

    Parameters
    ----------
    choice : float or str
        A number; ``"1/d"``; ``"variance"``: 1 / (2 s^2), s^2 the columns' variances (n - 1) added up (RBF only);
        ``"median"``: 1 / median of |x - x'|^2 (RBF) or of |x - x'|_1 (Laplace) over pairs of rows, or of 2,000 rows
        (:func:`calcheck.embeddings.bottom_k.sample_inputs`) where there are more.
    x : (n, d)
        Inputs.
    scaling : Scaling
        Their normalization.
    kernel : str
        The kernel that gamma is for.

    Returns
    -------
    float
        gamma > 0.

    Raises
    ------
    OptionError
        The choice does not fit the kernel.
    DataError
        The inputs do not vary enough to have the bandwidth.
    """
    if isinstance(choice, (int, float)):
        return float(choice)
    if choice == "1/d":
        return float(1 / x.shape[1])
    if kernel == "polynomial" or (choice == "variance" and kernel == "laplace"):
        msg = f"--gamma-x {choice} does not fit the {kernel} kernel: give a number or another choice"
        raise OptionError(msg)
    if choice == "variance":
        spread = 2 * _variance(x, scaling) if len(x) > 1 else 0.0
    else:
        spread = _median_distance(scaling(sample_inputs(x, FEW_ROWS)), kernel)
    if not spread > 0:
        msg = f"--gamma-x {choice} needs inputs that vary, but by that measure they do not. Give --gamma-x a number"
        raise DataError(msg)
    return 1 / spread


def neighbors(kernel: Kernel, x: NDArray[np.floating[Any]]) -> float:
    """Return the sum of an input's kernel values with all others, on average over (n, d) inputs, or 2,000 of them."""
    n, x = len(x), sample_inputs(x, FEW_ROWS)
    off_diagonal = float(kernel.gram(x, x).sum() - kernel.diagonal(x).sum())
    return max(0.0, off_diagonal) / len(x) * (n - 1) / max(1, len(x) - 1)


def _variance(x: Inputs, scaling: Scaling) -> float:
    """Return the variances (n - 1) of normalized columns, added up; these are centered, so that squares keep digits."""
    if not isinstance(x, LazyInputs):
        return float(scaling(x).var(axis=0, ddof=1).sum())
    total, squares = np.zeros(x.shape[1]), 0.0
    for _, block in x.blocks():
        scaled = scaling(block)
        total += scaled.sum(axis=0)
        squares += float(np.vdot(scaled, scaled))
    return (squares - float(total @ total) / len(x)) / (len(x) - 1)


def _median_distance(x: NDArray[np.floating[Any]], kernel: KernelName) -> float:
    """Return the median distance (squared for RBF) between different rows."""
    from scipy.spatial.distance import pdist

    distances = pdist(x, "sqeuclidean" if kernel == "rbf" else "cityblock")
    median: float = np.median(distances).item() if len(distances) else 0.0
    return median
