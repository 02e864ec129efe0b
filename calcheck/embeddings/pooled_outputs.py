"""Features of the targets of two samples in any kernel, and in a kernel whose scale depends on the first sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from calcheck.distributions import Samples
from calcheck.embeddings.exact_features import FeatureBounds
from calcheck.embeddings.rescaled_features import DataSet, SharedFeatures
from calcheck.execution.run import RandomStream, Run
from calcheck.linalg.gram import PivotedCholesky
from calcheck.typing import Indices, Mask, Values

if TYPE_CHECKING:
    from calcheck.kernels.functions import Kernel

Embedded = tuple[Values, Values | None, Values | None]

TOLERANCE = 1e-13  # Maximum residual of a squared norm, relative to it
MAX_FEATURES = 4096  # Maximum rank; a Laplace kernel needs one feature for each different target


class Outputs(Protocol):
    """Features of the targets of both samples."""

    def of_division(self, first: Indices) -> Embedded | None:
        """Return features for a division of the rows; None if the kernel is undefined for it, (n + m, r).

        Shapes: first (n,).
        """
        ...


@dataclass(frozen=True, eq=False)
class PooledOutputs:
    """Features of all targets in one kernel."""

    values: Values  # (n, r), psi of each row
    bounds: FeatureBounds  # Largest residual of a squared norm, relative to it

    @classmethod
    def from_kernel(cls, kernel: Kernel, targets: Values) -> PooledOutputs:
        """Return features of targets (n, t) by pivoted Cholesky of their Gram matrix."""
        points, label = np.unique(targets, axis=0, return_inverse=True)
        diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
        found = PivotedCholesky(
            diagonal, lambda pivot: kernel.gram(points, points[pivot : pivot + 1])[:, 0], min(len(points), MAX_FEATURES)
        )
        found.represent(len(points), TOLERANCE * diagonal)
        residual = float((found.residuals / np.maximum(diagonal, np.finfo(float).tiny)).max())
        values = found.factor.T[label.ravel()]
        return cls(values, FeatureBounds(values.shape[1], max(residual, TOLERANCE)))

    def of_division(self, first: Indices) -> Embedded:  # noqa: ARG002 - one kernel for all divisions
        return self.values, None, None


class RescaledOutputs:
    """Features in an RBF kernel whose scale is that of the first sample."""

    def __init__(
        self,
        y: Values,  # (n, t), targets of both samples
        labels: Mask,  # (n,), whether a row is from the first sample of the data
        # Returns gamma, (t,), for the targets of the first sample, or None
        bandwidths: Callable[[Values], Values | None],
        run: Run,  # Seed
    ) -> None:
        self._y, self._bandwidths = y, bandwidths
        data = DataSet(y, bandwidths(y[labels]), [])
        self._shared = SharedFeatures(data, Samples(y[:, None]), lambda: run.rng(RandomStream.FEATURES))

    def of_division(self, first: Indices) -> Embedded | None:
        each = DataSet(self._y, self._bandwidths(self._y[first]), [])
        if each.gamma is None:
            return None
        observed, _, rescaled, fixed = self._shared.rescaled(each)
        return observed, rescaled, fixed
