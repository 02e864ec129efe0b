"""The choices of metrics by kernels that depend on the data; free of numerics, for metrics are listed at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling

FEW_NEIGHBOURS = 1.0  # the sum of a row's kernel values with all others, below which inputs hardly see each other


@dataclass(frozen=True, eq=False)
class KernelSettings:
    """The choices that depend on the data.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    kernel : Kernel
        k_X on normalized inputs.
    features : OutputFeatures
        psi with k_Y(u, v) = psi(u) . psi(v).
    predictive : Predictive
        The distributions that the features represent.
    details : dict
        The choices in words and numbers, for the report.
    """

    scaling: Scaling
    kernel: Kernel
    features: OutputFeatures
    predictive: Predictive
    details: dict[str, Any]
