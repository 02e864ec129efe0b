"""Multivariate predictive distributions with independent components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calcheck.distributions.base import Predictive
from calcheck.distributions.row_random import hash_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random, Words


@dataclass(frozen=True, eq=False)
class Independent(Predictive):
    """One distribution per target column, independent given the input.

    Every method of :class:`Predictive` that returns (n,) returns (n, t) here, with t target columns.
    The mean embedding is the product of the mean embeddings of the columns.

    Parameters
    ----------
    marginals : tuple of Predictive
        One batch of n distributions per target column.
    """

    family: ClassVar[str] = "independent"
    marginals: tuple[Predictive, ...]

    def validate_targets(self, y: NDArray[np.float64]) -> None:
        for marginal, column in zip(self.marginals, y.T, strict=True):
            marginal.validate_targets(column)

    def __len__(self) -> int:
        return len(self.marginals[0])

    @property
    def targets(self) -> int:
        return len(self.marginals)

    @property
    def display_name(self) -> str:
        return ", ".join(dict.fromkeys(marginal.display_name for marginal in self.marginals))

    @property
    def kernel_error(self) -> float:
        return sum(marginal.kernel_error for marginal in self.marginals)

    def describe(self) -> list[str]:
        return ["; ".join(row) for row in zip(*(marginal.describe() for marginal in self.marginals), strict=True)]

    @property
    def nbytes(self) -> int:
        return sum(marginal.nbytes for marginal in self.marginals)

    def take(self, rows: NDArray[np.intp] | slice) -> Self:
        return replace(self, marginals=tuple(marginal.take(rows) for marginal in self.marginals))

    def join(self, others: list[Self]) -> Self:
        columns = zip(self.marginals, *(other.marginals for other in others), strict=True)
        return replace(self, marginals=tuple(first.join(list(rest)) for first, *rest in columns))

    def hashes(self, key: int) -> Words:
        return hash_rows([marginal.hashes(key) for marginal in self.marginals], key)

    def equals(self, other: Self) -> NDArray[np.bool_]:
        pairs = zip(self.marginals, other.marginals, strict=True)
        return np.asarray(np.logical_and.reduce([mine.equals(theirs) for mine, theirs in pairs]))

    def mean(self) -> NDArray[np.float64]:
        return np.stack([marginal.mean() for marginal in self.marginals], axis=1)

    def std(self) -> NDArray[np.float64]:
        return np.stack([marginal.std() for marginal in self.marginals], axis=1)

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = zip(self.marginals, y.T, strict=True)
        return np.stack([marginal.cdf(column) for marginal, column in columns], axis=1)

    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = zip(self.marginals, y.T, strict=True)
        return np.stack([marginal.cdf_left(column) for marginal, column in columns], axis=1)

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = zip(self.marginals, y.T, strict=True)
        return np.stack([marginal.log_prob(column) for marginal, column in columns], axis=1)

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = zip(self.marginals, y.T, strict=True)
        return np.stack([marginal.crps(column) for marginal, column in columns], axis=1)

    def quantile(self, p: float) -> NDArray[np.float64]:
        return np.stack([marginal.quantile(p) for marginal in self.marginals], axis=1)

    def support_interval(self, tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = zip(*(marginal.support_interval(tail) for marginal in self.marginals), strict=True)
        return np.stack(low, axis=1), np.stack(high, axis=1)

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        """Return draws of the target vectors, (n, size, t)."""
        return np.stack([marginal.sample(rng, size) for marginal in self.marginals], axis=2)

    def normal(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        columns = [marginal.normal() for marginal in self.marginals]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        means, stds = zip(*known, strict=True)
        return np.concatenate(means, axis=1), np.concatenate(stds, axis=1)

    def mixed_moments(self, exponents: NDArray[np.intp]) -> NDArray[np.float64]:
        of_columns = zip(self.marginals, exponents.T, strict=True)
        return np.asarray(np.prod([each.mixed_moments(powers[:, None]) for each, powers in of_columns], axis=0))

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        product = np.ones((len(self), len(points)))
        for column, marginal in enumerate(self.marginals):
            if not np.any(gamma[..., column]):
                continue  # the kernel does not depend on this column
            product *= marginal.kernel_mean(points[:, column, None], gamma[..., column, None])
        return product

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = zip(gamma[:, None], self.marginals, strict=True)
        norms = [marginal.kernel_norm(each) for each, marginal in pairs if each[0]]
        return np.asarray(np.prod(norms, axis=0))
