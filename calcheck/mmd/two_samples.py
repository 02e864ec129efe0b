"""Two samples of inputs and targets: their conditional mean embeddings, each a regression on inputs of its own."""

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
    """Regressions on the inputs of two samples.

    Parameters
    ----------
    kernel : Kernel
        k_X on normalized inputs.
    inputs : sequence of (n, d)
        Normalized inputs of the first sample and of the second.
    solver : str
        As :class:`calcheck.embeddings.ridge.KernelRidge` takes it.
    run : Run
        Device, precision, progress; memory, half of it for each.
    """

    def __init__(self, kernel: Kernel, inputs: Sequence[Values], solver: Solver, run: Run) -> None:
        half = replace(run, memory=run.memory // 2)
        self.kernel = kernel
        self.ridges = [KernelRidge(kernel, x, half, solver=solver) for x in inputs]

    def distances(
        self, outputs: Sequence[Values], lambdas: tuple[float, float], points: Values
    ) -> tuple[Distances, tuple[Dof, Dof]]:
        """Compare the embeddings.

        Parameters
        ----------
        outputs : sequence of (n, r)
            psi of the targets of each.
        lambdas : (float, float)
            Regularizers.
        points : (m, d)
            Normalized inputs at which they are compared.

        Returns
        -------
        Distances
            As of data and model; the first sample stands for the data.
        (Dof, Dof)
            Of both embeddings.
        """
        regressions = [
            ridge.solve(psi, penalty) for ridge, psi, penalty in zip(self.ridges, outputs, lambdas, strict=True)
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
        """Return how many other rows of its own sample a row sees: k(x, x') added up over them, in the mean over rows.

        Of the sample that sees fewer; None for kernels that are no functions of differences, which reach everywhere.
        """
        if isinstance(self.kernel, Polynomial):
            return None
        seen = [neighbors(self.kernel, ridge.backend.to_numpy(ridge.x)) for ridge in self.ridges]
        return min(seen)
