"""Kernels on targets: their scale, their features, and features shared by replicates of the targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calcheck.distributions import Predictive, Samples
from calcheck.embeddings.laplace_features import LaplaceFeatures, SharedLaplace
from calcheck.embeddings.monomial_features import MonomialFeatures, SharedMonomials
from calcheck.embeddings.output_features import OutputFeatures, output_features
from calcheck.embeddings.rescaled_features import DataSet, SharedFeatures
from calcheck.embeddings.weighted_features import SharedWeighted, WeightedFeatures
from calcheck.errors import DataError
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels.input_kernel import target_bandwidths, target_precisions

if TYPE_CHECKING:
    from calcheck.kernels.kernel_options import KernelName
    from calcheck.typing import Values

TargetFeatures = OutputFeatures | MonomialFeatures | LaplaceFeatures | WeightedFeatures


class SharedOutputs(Protocol):
    """Features of many data sets; see :class:`calcheck.embeddings.rescaled_features.SharedFeatures`."""

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values | None, Values | None]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data, or None."""
        ...


class TargetKernel(ABC):
    """A kernel on targets whose scale depends on the data."""

    replicates_share_scale: ClassVar[bool] = False  # Whether replicates of the targets have the scale of the data

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Name and shape of the kernel, for the report."""

    @abstractmethod
    def default_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the default gamma for targets (n, r, t), (t,)."""

    @abstractmethod
    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the gamma of targets (n, r, t) that is 1 for standardized targets, (t,)."""

    @abstractmethod
    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        """Return features for targets (p, t) and distributions."""

    @abstractmethod
    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        """Return features of many data sets."""

    def mean_norms(self, points: Values, gamma: Values) -> Values | float:  # noqa: ARG002 - for the polynomial kernel
        """Return the mean of k(u, u) over the points (n, m, t) of each row, (n,) or a number for all rows."""
        return 1.0


class RbfTargets(TargetKernel):
    """RBF kernel exp(-sum_c gamma_c (u_c - v_c)^2)."""

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "rbf"}

    def default_gamma(self, y: Values, predictive: Predictive) -> Values:  # noqa: ARG002 - the targets' own scale
        return target_bandwidths(y.reshape(-1, y.shape[-1]), None)

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:  # noqa: ARG002 - the targets' own scale
        return target_precisions(y.reshape(-1, y.shape[-1]))

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> OutputFeatures:
        return output_features(y, predictive, gamma, run.rng(RandomStream.FEATURES))

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedFeatures:  # noqa: ARG002
        return SharedFeatures(data, covered, lambda: run.rng(RandomStream.FEATURES))


@dataclass(frozen=True)
class PolynomialTargets(RbfTargets):
    """Polynomial kernel (sum_c gamma_c u_c v_c + coef0)^degree, with the scale of the RBF kernel."""

    degree: int
    coef0: float

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "polynomial", "degree": self.degree, "coef0": self.coef0}

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> MonomialFeatures:  # type: ignore[override]  # noqa: ARG002
        return MonomialFeatures(gamma, self.degree, self.coef0)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedMonomials:  # type: ignore[override]  # noqa: ARG002
        return SharedMonomials(data, MonomialFeatures(np.asarray(data.gamma), self.degree, self.coef0))

    def mean_norms(self, points: Values, gamma: Values) -> Values:
        return MonomialFeatures(gamma, self.degree, self.coef0).mean_norms(points)


class LaplaceTargets(TargetKernel):
    """Laplace kernel exp(-sum_c gamma_c |u_c - v_c|).

    Its scale is the deviation of the predictions, so that it does not change if targets are drawn from them. For
    samples, it is the deviation of targets and draws together, which does not change if they are exchanged.
    """

    replicates_share_scale: ClassVar[bool] = True

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "laplace"}

    def default_gamma(self, y: Values, predictive: Predictive) -> Values:
        return np.asarray(self.unit_gamma(y, predictive) / y.shape[-1])

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        try:
            deviation = np.sqrt(_variances(y, predictive.load()))
        except DataError as error:
            msg = f"--kernel-y laplace is scaled by the deviation of the predictions, but {error}. Pass --kernel-y rbf"
            raise DataError(msg) from error
        if not (np.isfinite(deviation) & (deviation > 0)).all():
            msg = "the predictions have no finite positive deviation, which is the scale of --kernel-y laplace"
            raise DataError(msg)
        return np.asarray(1 / deviation)

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> LaplaceFeatures:  # noqa: ARG002
        return LaplaceFeatures(gamma, run)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedLaplace:  # noqa: ARG002
        return SharedLaplace(data, LaplaceFeatures(np.asarray(data.gamma), run), differences=differences)


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

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> WeightedFeatures:  # type: ignore[override]
        parts = [
            (weight, super(FeatureAwareTargets, self).features(y, predictive, of(gamma), run))
            for weight, of in self._parts
        ]
        return WeightedFeatures(gamma, parts)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedWeighted:  # type: ignore[override]
        one = super().shared
        return SharedWeighted(data, self._parts, lambda part: one(part, covered, run, differences=differences))

    @property
    def _parts(self) -> list[tuple[float, Callable[[Values], Values]]]:
        """Weight of each RBF kernel, and the function that returns its gamma for that of all columns."""
        parts: list[tuple[float, Callable[[Values], Values]]] = [
            (1 - self.epsilon, lambda gamma: gamma),
            (self.epsilon, lambda gamma: np.where(np.arange(len(gamma)) < len(gamma) - self.count, gamma, 0.0)),
        ]
        return [part for part in parts if part[0]]


def target_kernel(name: KernelName, degree: int = 3, coef0: float = 1.0) -> TargetKernel:
    """Return the kernel on targets with a name."""
    if name == "polynomial":
        return PolynomialTargets(degree, coef0)
    return LaplaceTargets() if name == "laplace" else RbfTargets()


def _variances(y: Values, predictive: Predictive) -> Values:
    """Return the variance of the predictions of all rows together, (t,); for samples, with the targets."""
    columns = y.shape[-1]
    if isinstance(predictive, Samples):
        pooled = np.concatenate([y.reshape(-1, columns), predictive.draws.reshape(-1, columns)])
        return np.asarray(pooled.var(axis=0, ddof=1))
    mean, std = (each.reshape(-1, columns) for each in (predictive.mean(), predictive.std()))
    return np.asarray(mean.var(axis=0) + (std**2).mean(axis=0))
