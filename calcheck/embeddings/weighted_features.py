"""Features of a weighted sum of RBF kernels on targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.rescaled_features import DataSet, SharedFeatures
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.output_features import FeatureError, OutputFeatures

Rescale = Callable[[Values], Values]


@dataclass(frozen=True, eq=False)
class WeightedFeatures:
    """Features psi with psi(u) . psi(v) = sum_p w_p k_p(u, v): those of each kernel, times the root of its weight."""

    gamma: Values  # (t,), gamma of the first kernel
    parts: Sequence[tuple[float, OutputFeatures]]  # The weight and the features of each kernel; the weights sum to 1

    @property
    def rank(self) -> int:
        """Number of features r."""
        return sum(features.rank for _, features in self.parts)

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], WeightedError]:
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""
        trials = list(models)
        roots = [np.sqrt(weight) for weight, _ in self.parts]
        found = [features.embed(points, trials) for _, features in self.parts]
        observed = np.concatenate([root * each[0] for root, each in zip(roots, found, strict=True)], axis=1)
        of_parts = zip(*(each[1] for each in found), strict=True)
        predicted = (np.concatenate([r * one for r, one in zip(roots, each, strict=True)], axis=1) for each in of_parts)
        return observed, predicted, WeightedError(self, [each[2] for each in found])

    def mean_norms(self, points: Values) -> float:  # noqa: ARG002 - equal for all points
        """Return the mean of k(u, u) over points: 1."""
        return 1.0


@dataclass(frozen=True, eq=False)
class WeightedError:
    """Largest residuals of weighted features: at most the largest of the parts, whose weights sum to 1."""

    features: WeightedFeatures
    parts: Sequence[FeatureError]  # The residuals of each part

    @property
    def points(self) -> float:
        """Largest residual of a target or a draw."""
        return max(part.points for part in self.parts)

    @property
    def rows(self) -> float:
        """Largest residual of a predictive distribution."""
        return max(part.rows for part in self.parts)

    @property
    def quadrature(self) -> float:
        """Maximum quadrature error of the mean embeddings."""
        return max(part.quadrature for part in self.parts)


class SharedWeighted:
    """Weighted features of the targets and distributions of many data sets."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        # The weight of each kernel, and the function that returns its gamma for that of a data set
        parts: Sequence[tuple[float, Rescale]],
        shared: Callable[[DataSet], SharedFeatures],  # Returns the shared features of the data in one kernel
    ) -> None:
        self._parts = [(np.sqrt(weight), of, shared(_with_gamma(data, of))) for weight, of in parts]

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, as :meth:`calcheck.embeddings.rescaled_features.SharedFeatures.rescaled`."""
        found = [shared.rescaled(_with_gamma(each, of)) for _, of, shared in self._parts]
        observed = np.concatenate([part[0] for part in found], axis=1)
        model = [np.concatenate(parts, axis=1) for parts in zip(*(part[1] for part in found), strict=True)]
        return observed, model, self._blocks([part[2] for part in found]), self._blocks([part[3] for part in found])

    def _blocks(self, matrices: list[Values]) -> Values:
        """Return a block diagonal matrix of the matrices of the parts, times the roots of their weights."""
        from scipy.linalg import block_diag

        roots = [root for root, _, _ in self._parts]
        return np.asarray(block_diag(*(root * matrix for root, matrix in zip(roots, matrices, strict=True))))


def _with_gamma(data: DataSet, of: Rescale) -> DataSet:
    """Return the data set with another gamma of the kernel on targets."""
    return DataSet(data.y, of(np.asarray(data.gamma)), data.model)
