"""Data-dependent settings of the kernel metrics; this module does not import NumPy, so that listing metrics is fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.errors import Message

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.target_kernels import TargetFeatures
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.input_kernel import Scaling

MIN_NEIGHBORS = 1.0  # Below this sum of kernel values with all other rows, the kernel is too narrow


def narrow_kernel_warnings(neighbors: float | None, unit: str, remedy: str) -> tuple[Message, ...]:
    """Return a warning if the input kernel is too narrow to relate different inputs; None if it is not local."""
    if neighbors is None or neighbors >= MIN_NEIGHBORS:
        return ()
    text = (
        f"the input kernel is too narrow: {neighbors:.2g} effective neighbors per {unit}, expected at least"
        f" {MIN_NEIGHBORS:g}. Pass --gamma-x {remedy}"
    )
    return (Message("narrow-kernel", text),)


@dataclass(frozen=True, eq=False)
class KernelSettings:
    """Settings that depend on the data."""

    scaling: Scaling  # Normalization of the inputs
    kernel: Kernel  # k_X on normalized inputs
    features: TargetFeatures  # psi with k_Y(u, v) = psi(u) . psi(v)
    predictive: Predictive  # Distributions that the features represent
    details: dict[str, Any]  # The same settings as reported in JSON
