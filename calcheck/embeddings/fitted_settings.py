"""Data-dependent settings of the kernel metrics; this module does not import NumPy, so that listing metrics is fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling

MIN_NEIGHBORS = 1.0  # Below this sum of kernel values with all other rows, the kernel is too narrow


@dataclass(frozen=True, eq=False)
class KernelSettings:
    """Settings that depend on the data.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    kernel : Kernel
        k_X on normalized inputs.
    features : OutputFeatures
        psi with k_Y(u, v) = psi(u) . psi(v).
    predictive : Predictive
        Distributions that the features represent.
    details : dict
        The same settings as reported in JSON.
    """

    scaling: Scaling
    kernel: Kernel
    features: OutputFeatures
    predictive: Predictive
    details: dict[str, Any]
