"""Input normalization, input kernel, and default bandwidths of the conditional metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.execution.context import GIB
from calcheck.kernels.functions import KERNELS
from calcheck.kernels.scaling import bandwidth, fit_scaling
from calcheck.lazy_inputs import LazyInputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calcheck.details import InputKernel
    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Bandwidth, KernelName, KernelOptions, Normalization
    from calcheck.kernels.scaling import Scaling
    from calcheck.predictions import Predictions, Source

    Values = NDArray[np.float64]
    Bandwidths = Callable[[Values, Any], Values]


COPIES = 2  # Number of float64 copies that metrics make when they need all inputs in memory


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The normalization and the kernel of the inputs.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    kernel : Kernel
        k_X on normalized inputs.
    details : InputKernel
        The same choices as reported in JSON.
    """

    scaling: Scaling
    kernel: Kernel
    details: InputKernel


def target_matrix(rows: Predictions) -> NDArray[np.float64]:
    """Return the targets, (n, t).

    Raises
    ------
    DataError
        The targets are missing.
    """
    return rows.targets().reshape(len(rows), -1)


def require_inputs(rows: Predictions) -> tuple[NDArray[np.float64], Predictive]:
    """Return targets (n, t) and predictive distributions; check that the rows have inputs.

    Raises
    ------
    DataError
        Inputs, targets or predictions are missing.
    """
    rows.lazy_inputs()
    return target_matrix(rows), rows.distributions().load()


def all_inputs(rows: Predictions, run: Run) -> NDArray[np.floating[Any]]:
    """Return all inputs in memory, (n, d).

    Raises
    ------
    DataError
        The inputs are missing, or are read from disk on demand and exceed the memory limit.
    """
    needed = COPIES * len(rows) * rows.width * np.dtype(np.float64).itemsize
    if isinstance(rows.x, LazyInputs) and needed > run.memory:
        msg = (
            f"{len(rows):,} inputs with {rows.width:,} columns need {needed / GIB:.1f} GiB, but --memory allows"
            f" {run.memory / GIB:.1f} GiB. Pass a larger --memory, or --subsample"
        )
        raise DataError(msg)
    return rows.inputs()


def evaluation_points(at: Source, scaling: Scaling) -> NDArray[np.float64]:
    """Return the normalized inputs of another source, (m, d); errors include the name of the source."""
    with at.error_names():
        return scaling(at.predictions().inputs())


def input_kernel(
    rows: Predictions,
    kernel: KernelName | None,
    normalize: Normalization | None,
    gamma: float | Bandwidth | None,
) -> tuple[KernelName, Normalization, float | Bandwidth]:
    """Return kernel, normalization and gamma, with defaults for those that are None."""
    single = rows.width == 1
    kernel = kernel or ("rbf" if single else "polynomial")
    of_several: Normalization = "l2" if rows.has_embedding else "standardize"
    of_one: Normalization = (
        "standardize" if kernel == "polynomial" else "none"
    )  # gamma sets the scale of the other kernels
    normalize = normalize or (of_one if single else of_several)
    if gamma is not None:
        return kernel, normalize, gamma
    if kernel == "polynomial":
        return kernel, normalize, 1.0 if normalize == "l2" else "1/d"
    return kernel, normalize, "variance" if single and kernel == "rbf" else "median"


def conditioning(rows: Predictions, chosen: KernelOptions) -> Conditioning:
    """Fit the normalization and the kernel to the inputs of some rows.

    Parameters
    ----------
    rows : Predictions
        Rows with inputs.
    chosen : KernelOptions
        The options that the user chose.

    Raises
    ------
    DataError, OptionError
        The inputs are missing, or the options do not fit them.
    """
    name, normalize, gamma_choice = input_kernel(rows, chosen.kernel_x, chosen.normalize, chosen.gamma_x)
    x = rows.lazy_inputs()
    scaling = fit_scaling(x, normalize, name)
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


def target_bandwidths(y: NDArray[np.float64], gamma: float | None) -> NDArray[np.float64]:
    """Return gamma for each target column, (t,).

    The default is 1 / (2 t s^2), where s^2 is the variance (n - 1) of the column.

    Raises
    ------
    DataError
        The targets are constant, or their variance overflows or underflows.
    """
    columns = y.shape[1]
    return np.full(columns, gamma) if gamma is not None else target_precisions(y) / (2 * columns)


def laplace_bandwidths(y: NDArray[np.float64], gamma: float | None) -> NDArray[np.float64]:
    """Return gamma of a Laplace kernel for each target column, (t,); the default is 1 / (t s).

    Raises
    ------
    DataError
        The targets are constant, or their variance overflows or underflows.
    """
    columns = y.shape[1]
    return np.full(columns, gamma) if gamma is not None else np.sqrt(target_precisions(y)) / columns


def target_precisions(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / variance (n - 1) of each target column, (t,).

    Raises
    ------
    DataError
        The targets are constant, or their variance overflows or underflows.
    """
    constant = (y == y[0]).all(axis=0)
    if constant.any():
        msg = f"the targets are constant ({y[0, np.argmax(constant)]:.6g}): there is nothing to predict"
        raise DataError(msg)
    with np.errstate(over="ignore", under="ignore"):
        found = 1 / y.var(axis=0, ddof=1)
    if not (np.isfinite(found) & (found > 0)).all():
        largest = np.abs(y).max()
        msg = f"the targets (up to {largest:.1e}) are too large or too small to compute a variance. Change their unit"
        raise DataError(msg)
    return np.asarray(found)
