"""Conditional mean embeddings of two samples, each a kernel ridge regression on its own inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.distance import Distances
from calcheck.embeddings.ridge import KernelRidge
from calcheck.kernels.functions import Polynomial
from calcheck.kernels.scaling import neighbors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import Dof
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Solver

    Values = NDArray[np.float64]


class TwoSamples:
    """Kernel ridge regressions on the inputs of two samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel k_X on normalized inputs.
    inputs : sequence of (n, d)
        Normalized inputs of the first and the second sample.
    solver : str
        As in :class:`calcheck.embeddings.ridge.KernelRidge`.
    run : Run
        Device, precision, progress, and memory budget; each sample gets half of the memory.
    """

    def __init__(self, kernel: Kernel, inputs: Sequence[Values], solver: Solver, run: Run) -> None:
        half = replace(run, memory=run.memory // 2)
        self.kernel = kernel
        self.ridges = [KernelRidge(kernel, x, half, solver=solver) for x in inputs]

    def distances(
        self, outputs: Sequence[Values], lambdas: tuple[float, float], points: Values
    ) -> tuple[Distances, tuple[Dof, Dof]]:
        """Return the distances between the two embeddings.

        Parameters
        ----------
        outputs : sequence of (n, r)
            psi of the targets of each sample.
        lambdas : (float, float)
            Regularizer of each sample.
        points : (m, d)
            Normalized inputs at which the embeddings are compared.

        Returns
        -------
        Distances
            The distances; the first sample takes the role of the data.
        (Dof, Dof)
            Effective degrees of freedom of both embeddings.
        """
        regressions = [
            ridge.solve(psi, lambda_) for ridge, psi, lambda_ in zip(self.ridges, outputs, lambdas, strict=True)
        ]
        first, second = (
            np.concatenate(list(ridge.predict(points, regression.coefficients)))
            for ridge, regression in zip(self.ridges, regressions, strict=True)
        )
        own, other = regressions
        found = Distances(
            np.linalg.norm(first - second, axis=1)[None],
            own.dof,
            own.iterations + other.iterations,
            max(own.residual, other.residual),
            np.empty(0),
            max(float(np.sqrt(np.mean(np.sum(psi**2, axis=1)))) for psi in outputs),
            max(own.preconditioner, other.preconditioner),
        )
        return found, (own.dof, other.dof)

    def neighbors(self) -> float | None:
        """Return the mean number of effective neighbors per row: the sum of k(x, x') over the other rows of its sample.

        The value is the smaller one of the two samples; None for polynomial kernels, which are not local.
        """
        if isinstance(self.kernel, Polynomial):
            return None
        seen = [neighbors(self.kernel, ridge.backend.to_numpy(ridge.x)) for ridge in self.ridges]
        return min(seen)
