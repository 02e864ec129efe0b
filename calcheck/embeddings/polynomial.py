"""Polynomial kernel on targets: monomials as features."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np

from calcheck.distributions import Predictive
from calcheck.distributions.special import monomials
from calcheck.embeddings import target_kernels
from calcheck.embeddings.rbf import RbfTargets
from calcheck.embeddings.target_kernels import DataSet, SharedOutputs, TargetFeatures
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import Run
from calcheck.typing import Indices, Values

MAX_FEATURES = 1500  # Maximum number of monomials


@dataclass(frozen=True, eq=False)
class MonomialFeatures:
    """Features psi with psi(u) . psi(v) = (sum_c gamma_c u_c v_c + coef0)^degree: weighted monomials."""

    gamma: Values  # (t,), scale of each target column
    degree: int  # Degree of the kernel
    coef0: float  # Constant of the kernel

    def __post_init__(self) -> None:
        if self.rank > MAX_FEATURES:
            raise OptionError(
                f"--kernel-y polynomial of degree {self.degree} has {self.rank:,} monomials of {len(self.gamma)} target"
                f" columns, at most {MAX_FEATURES:,} are allowed. Pass a smaller --degree, or --kernel-y rbf"
            )

    @property
    def rank(self) -> int:
        """Number of features: monomials up to the degree."""
        return comb(len(self.gamma) + self.degree, self.degree)

    @property
    def exponents(self) -> Indices:
        """Exponents of the monomials, (r, t)."""
        columns = range(len(self.gamma))
        chosen = (each for total in range(self.degree + 1) for each in combinations_with_replacement(columns, total))
        return np.array([[each.count(column) for column in columns] for each in chosen])

    @property
    def weights(self) -> Values:
        """Weights of the monomials, (r,): roots of the multinomial coefficients times powers of gamma and coef0."""
        exponents = self.exponents
        rest = self.degree - exponents.sum(axis=1)
        ways = [
            factorial(self.degree) // (factorial(left) * prod(map(factorial, powers)))
            for left, powers in zip(rest.tolist(), exponents.tolist(), strict=True)
        ]
        return np.asarray(np.sqrt(np.array(ways) * self.coef0**rest * np.prod(self.gamma**exponents, axis=1)))

    def of_points(self, points: Values) -> Values:
        """Return psi(u) for (p, t) points, (p, r)."""
        return monomials(points, self.exponents) * self.weights

    def of_distributions(self, predictive: Predictive) -> Values:
        """Return E psi(Y_i), (n, r)."""
        moments = predictive.mixed_moments(self.exponents)
        good = np.asarray(np.isfinite(moments).all(axis=1))
        if not good.all():
            raise DataError(
                f"{int((~good).sum()):,} of {len(good):,} {predictive.display_name} distributions have moments of order"
                f" {self.degree} that overflow. Pass --kernel-y rbf, or a smaller --degree"
            )
        return moments * self.weights

    def embed(
        self, points: Values, models: Iterable[Predictive]
    ) -> tuple[Values, Iterator[Values], target_kernels.FeatureBounds]:
        """Return the features of targets (p, t), and of the distributions of each trial."""
        return self.of_points(points), map(self.of_distributions, models), target_kernels.FeatureBounds(self.rank)


class SharedMonomials:
    """Monomials of many data sets, whose kernels differ from that of the data in gamma only."""

    def __init__(self, data: DataSet, features: MonomialFeatures) -> None:
        self._data, self._features = data, features
        self._means = target_kernels.OfDistributions(data, features.of_distributions)
        self._before = target_kernels.by_row(features.of_points(data.y.reshape(-1, data.y.shape[-1])), data.y)

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data."""
        observed = target_kernels.by_row(self._features.of_points(each.y.reshape(-1, each.y.shape[-1])), each.y)
        ratios = np.asarray(each.gamma) / self._features.gamma
        own = np.diag(np.prod(ratios ** (self._features.exponents / 2), axis=1))
        repeats = self._data.repeats
        model = [
            target_kernels.mean_after_swap(
                one, self._means(target_kernels.draws_of(one)), self._before, observed, repeats
            )
            for one in each.model
        ]
        return observed, model, own, np.eye(self._features.rank)


@dataclass(frozen=True)
class PolynomialTargets(RbfTargets):
    """Polynomial kernel (sum_c gamma_c u_c v_c + coef0)^degree, with the scale of the RBF kernel."""

    degree: int
    coef0: float

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "polynomial", "degree": self.degree, "coef0": self.coef0}

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:  # noqa: ARG002
        return MonomialFeatures(gamma, self.degree, self.coef0)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:  # noqa: ARG002
        return SharedMonomials(data, MonomialFeatures(np.asarray(data.gamma), self.degree, self.coef0))

    def mean_norms(self, points: Values, gamma: Values) -> Values:
        return np.asarray(((points**2 @ gamma + self.coef0) ** self.degree).mean(axis=1))
