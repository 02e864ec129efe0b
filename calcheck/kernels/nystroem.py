"""A low-rank form of a kernel on inputs: K ~ Z Z^T with as many columns as there are centres (Nystroem)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.execution.backend import Array, Backend
    from calcheck.kernels.kernels import Kernel

JITTER = 1e-12  # of the centres' kernel values, so that their factor exists


class Nystroem:
    """Features of inputs, z(x) = L^-1 k(c, x) with L L^T = K_cc at M centres c: z(x) . z(x') is nearly k(x, x').

    Parameters
    ----------
    kernel : Kernel
        k.
    centres : (M, d)
        Inputs, on the backend's device.
    array : Backend
        The library that computes.
    """

    def __init__(self, kernel: Kernel, centres: Array, array: Backend) -> None:
        xp = array.xp
        own = kernel.gram(centres, centres)
        diagonal = xp.arange(len(centres), device=array.device)
        own[diagonal, diagonal] += JITTER * float(xp.max(own))
        self._kernel, self.centres = kernel, centres
        self._factor = xp.linalg.inv(xp.linalg.cholesky(own)).T  # L^-T

    @property
    def rank(self) -> int:
        """Number of features M."""
        return len(self.centres)

    def __call__(self, x: Array) -> Array:
        """Return z of (p, d) inputs, (p, M)."""
        return self._kernel.gram(x, self.centres) @ self._factor
