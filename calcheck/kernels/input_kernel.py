"""What conditional metrics condition on, and the scales of their kernels where options leave them open."""

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

    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Bandwidth, KernelName, KernelOptions, Normalization
    from calcheck.kernels.scaling import Scaling
    from calcheck.predictions import Predictions, Source

    Values = NDArray[np.float64]
    Bandwidths = Callable[[Values, Any], Values]


COPIES = 2  # of inputs in float64, for metrics that look at all of them at once


@dataclass(frozen=True, eq=False)
class Conditioning:
    """How inputs are compared.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    kernel : Kernel
        k_X on normalized inputs.
    details : dict
        Both in words and numbers, for the report.
    """

    scaling: Scaling
    kernel: Kernel
    details: dict[str, Any]


def target_matrix(rows: Predictions) -> NDArray[np.float64]:
    """Return the targets, (n, t).

    Raises
    ------
    DataError
        There are none.
    """
    return rows.targets().reshape(len(rows), -1)


def require_inputs(rows: Predictions) -> tuple[NDArray[np.float64], Predictive]:
    """Return targets (n, t) and predictive distributions of rows that have inputs too.

    Raises
    ------
    DataError
        Some are absent.
    """
    rows.lazy_inputs()
    return target_matrix(rows), rows.distributions().load()


def all_inputs(rows: Predictions, run: Run) -> NDArray[np.floating[Any]]:
    """Return the inputs, (n, d), for those who look at all of them at once.

    Raises
    ------
    DataError
        There are none, or they are left in their file and would fill the memory.
    """
    needed = COPIES * len(rows) * rows.width * np.dtype(np.float64).itemsize
    if isinstance(rows.x, LazyInputs) and needed > run.memory:
        msg = (
            f"{len(rows):,} inputs of {rows.width:,} numbers take {needed / GIB:.1f} GiB, and --memory allows"
            f" {run.memory / GIB:.1f} GiB: pass more, or --subsample"
        )
        raise DataError(msg)
    return rows.inputs()


def evaluation_points(at: Source, scaling: Scaling) -> NDArray[np.float64]:
    """Return the normalized inputs of another source, (m, d); a problem with them is told with its name."""
    with at.error_names():
        return scaling(at.predictions().inputs())


def input_kernel(
    rows: Predictions,
    kernel: KernelName | None,
    normalize: Normalization | None,
    gamma: float | Bandwidth | None,
) -> tuple[KernelName, Normalization, float | Bandwidth]:
    """Fill in the choices that were left open: kernel, normalization, gamma."""
    single = rows.width == 1
    kernel = kernel or ("rbf" if single else "polynomial")
    of_several: Normalization = "l2" if rows.has_embedding else "standardize"
    of_one: Normalization = "standardize" if kernel == "polynomial" else "none"  # others are scaled by their gamma
    normalize = normalize or (of_one if single else of_several)
    if gamma is not None:
        return kernel, normalize, gamma
    if kernel == "polynomial":
        return kernel, normalize, 1.0 if normalize == "l2" else "1/d"
    return kernel, normalize, "variance" if single and kernel == "rbf" else "median"


def conditioning(rows: Predictions, chosen: KernelOptions) -> Conditioning:
    """Fix normalization and kernel on the inputs of some rows.

    Parameters
    ----------
    rows : Predictions
        With inputs.
    chosen : KernelOptions
        What the user chose.

    Raises
    ------
    DataError, OptionError
        There are no inputs, or the choices do not fit them.
    """
    name, normalize, gamma_choice = input_kernel(rows, chosen.kernel_x, chosen.normalize, chosen.gamma_x)
    x = rows.lazy_inputs()
    scaling = fit_scaling(x, normalize, name)
    gamma = bandwidth(gamma_choice, x, scaling, name)
    shape = {"degree": chosen.degree, "coef0": chosen.coef0} if name == "polynomial" else {}
    told = {"kernel": name, "gamma": gamma, **shape, "normalize": normalize, "columns": rows.width}
    return Conditioning(scaling, KERNELS[name](gamma=gamma, **shape), told)


def bandwidths_or_none(bandwidths: Bandwidths, y: Values, gamma: Any) -> Values | None:
    """Return the bandwidths for targets (p, t), as a function of these and of gamma; None where they have no scale."""
    try:
        return bandwidths(y, gamma)
    except DataError:
        return None


def target_bandwidths(y: NDArray[np.float64], gamma: float | None) -> NDArray[np.float64]:
    """Return gamma for each target column, (t,): 1 / (2 t s^2), s^2 the column's variance (n - 1), unless it is given.

    Raises
    ------
    DataError
        Targets are constant, or cannot be squared.
    """
    columns = y.shape[1]
    return np.full(columns, gamma) if gamma is not None else target_precisions(y) / (2 * columns)


def target_precisions(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one over the variance (n - 1) of each target column, (t,).

    Raises
    ------
    DataError
        Targets are constant, or cannot be squared.
    """
    constant = (y == y[0]).all(axis=0)
    if constant.any():
        msg = f"the targets are constant ({y[0, np.argmax(constant)]:.6g}): there is nothing to predict"
        raise DataError(msg)
    with np.errstate(over="ignore", under="ignore"):
        found = 1 / y.var(axis=0, ddof=1)
    if not (np.isfinite(found) & (found > 0)).all():
        largest = np.abs(y).max()
        msg = f"the targets (up to {largest:.1e}) are too large or too small to square. Give them another unit"
        raise DataError(msg)
    return np.asarray(found)
