"""Feature-aware kernel on targets: the weighted sum of two RBF kernels."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calcheck.core import la
from calcheck.distributions import Predictive
from calcheck.embeddings.rbf import RbfTargets
from calcheck.embeddings.target_kernels import DataSet, FeatureBounds, SharedOutputs, TargetFeatures
from calcheck.execution.run import Run
from calcheck.typing import Values

Rescale = Callable[[Values], Values]


@dataclass(frozen=True, eq=False)
class WeightedFeatures:
    """Features psi with psi(u) . psi(v) = sum_p w_p k_p(u, v): those of each kernel, times the root of its weight."""

    gamma: Values  # (t,), gamma of the first kernel
    parts: Sequence[tuple[float, TargetFeatures]]  # The weight and the features of each kernel; the weights sum to 1

    @property
    def rank(self) -> int:
        """Number of features r."""
        return sum(features.rank for _, features in self.parts)

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], FeatureBounds]:
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""
        trials = list(models)
        roots = [np.sqrt(weight) for weight, _ in self.parts]
        found = [features.embed(points, trials) for _, features in self.parts]
        observed = np.concatenate([root * each[0] for root, each in zip(roots, found, strict=True)], axis=1)
        bounds = FeatureBounds(self.rank)

        def predicted() -> Iterator[Values]:
            for each in zip(*(part[1] for part in found), strict=True):
                bounds.include(*(part[2] for part in found))
                yield np.concatenate([root * one for root, one in zip(roots, each, strict=True)], axis=1)

        return observed, predicted(), bounds


class SharedWeighted:
    """Weighted features of the targets and distributions of many data sets."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        # The weight of each kernel, and the function that returns its gamma for that of a data set
        parts: Sequence[tuple[float, Rescale]],
        shared: Callable[[DataSet], SharedOutputs],  # Returns the shared features of the data in one kernel
    ) -> None:
        self._parts = [(np.sqrt(weight), of, shared(_with_gamma(data, of))) for weight, of in parts]

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data."""
        found = [shared.rescaled(_with_gamma(each, of)) for _, of, shared in self._parts]
        observed = np.concatenate([part[0] for part in found], axis=1)
        model = [np.concatenate(parts, axis=1) for parts in zip(*(part[1] for part in found), strict=True)]
        own, fixed = (self._blocks([np.asarray(part[place]) for part in found]) for place in (2, 3))
        return observed, model, own, fixed

    def _blocks(self, matrices: list[Values]) -> Values:
        """Return a block diagonal matrix of the matrices of the parts, times the roots of their weights."""
        roots = [root for root, _, _ in self._parts]
        return np.asarray(la.block_diag(*(root * matrix for root, matrix in zip(roots, matrices, strict=True))))


def _with_gamma(data: DataSet, of: Rescale) -> DataSet:
    """Return the data set with another gamma of the kernel on targets."""
    return DataSet(data.y, of(np.asarray(data.gamma)), data.model)


@dataclass(frozen=True)
class FeatureAwareTargets(RbfTargets):
    """Kernel ((1 - epsilon) k_1(f, f') + epsilon) k_2(y, y'), where the last targets are features f of the others, y.

    k_1 and k_2 are RBF kernels, so it is the sum of two RBF kernels: (1 - epsilon) times the one of all columns, and
    epsilon times the one of y, whose gamma is 0 for the columns of f.
    """

    count: int
    epsilon: float

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "rbf", "feature_targets": self.count, "epsilon": self.epsilon}

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        one = super().features
        return WeightedFeatures(gamma, [(weight, one(y, predictive, of(gamma), run)) for weight, of in self._parts])

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        one = super().shared
        return SharedWeighted(data, self._parts, lambda part: one(part, covered, run, differences=differences))

    @property
    def _parts(self) -> list[tuple[float, Rescale]]:
        """Weight of each RBF kernel, and the function that returns its gamma for that of all columns."""
        parts: list[tuple[float, Rescale]] = [
            (1 - self.epsilon, lambda gamma: gamma),
            (self.epsilon, lambda gamma: np.where(np.arange(len(gamma)) < len(gamma) - self.count, gamma, 0.0)),
        ]
        return [part for part in parts if part[0]]
