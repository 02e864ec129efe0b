"""Clusters of rows that depend on each other, and the corrections of inference from few of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.errors import Message
from calcheck.typing import Indices, Values

FEWEST = 5  # Minimum number of clusters
FEWEST_FREEDOM = 2.0  # Minimum degrees of freedom of influences with a large kurtosis
FEW = 20  # Fewer clusters are warned of
MOST = 2_000  # More clusters would not improve the precision, and are joined


@dataclass(frozen=True, eq=False)
class Clusters:
    """A division of n rows into G clusters: rows of different clusters are independent of each other."""

    label: Indices  # (n,), number of the cluster of each row, 0 to G - 1
    # Factor by which the variance between clusters is too small, >= 1: neighboring blocks of a series depend on each
    # other
    inflation: float = 1.0
    details: dict[str, Any] = field(default_factory=dict)  # What the clusters are, for reports
    messages: tuple[Message, ...] = ()  # What the clusters are, in words, and reasons to doubt inference from them

    def __len__(self) -> int:
        """Return the number of clusters, G."""
        return len(self.sizes)

    @cached_property
    def sizes(self) -> Indices:
        """The number of rows of each cluster, (G,)."""
        return np.bincount(self.label)

    @property
    def degrees_of_freedom(self) -> float:
        """The number of clusters of equal sizes with the same information, minus 1."""
        return float(degrees_of_freedom(self.sizes))

    @property
    def variance_factor(self) -> float:
        """The factor by which the variance between clusters is multiplied."""
        return self.inflation * len(self) / (len(self) - 1)

    def expanded(self, confidence: float, effective: float | None = None) -> float:
        r"""Return the nominal confidence at which an interval from clusters has a given coverage.

        .. math:: 2 \Phi(t \sqrt{v}) - 1

        where t is the quantile of Student's t at the confidence, and v the :attr:`variance_factor`. With e effective
        clusters, t has at most :math:`2 G e / (G - e) - 1` degrees of freedom: those of the variance of influences with
        the kurtosis G / e.

        Source: Hesterberg (2015), The American Statistician 69, 371-386: expanded percentile intervals. Satterthwaite
        (1946), Biometrics Bulletin 2, 110-114.
        """
        from scipy.special import ndtr, stdtrit

        freedom, count = self.degrees_of_freedom, len(self)
        if effective is not None and effective < count:
            freedom = min(freedom, max(FEWEST_FREEDOM, 2 * count * effective / (count - effective) - 1))
        critical = stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(self.variance_factor)
        return min(float(2 * ndtr(critical) - 1), 1 - 1e-9)

    def sums(self, values: Values) -> Values:
        """Return the sums of values (n, ...) by cluster, (G, ...)."""
        if values.ndim == 1:
            return np.bincount(self.label, values, len(self)).astype(np.float64)
        found = np.zeros((len(self), *values.shape[1:]))
        np.add.at(found, self.label, values)
        return found


def degrees_of_freedom(members: Values | Indices) -> Values:
    """Return the number of clusters of equal sizes with the same information, minus 1, given the rows of each.

    Shapes: members (G, ...).
    """
    largest = np.maximum(members.max(axis=0), 1e-300)
    shares = members / largest
    squares = np.maximum(np.sum(shares**2, axis=0), 1)
    return np.asarray(np.maximum(shares.sum(axis=0) ** 2 / squares - 1, 1.0))


def t_scales(uniform: Values, freedom: Values | float) -> Values:
    """Return factors that turn normal noise into Student's t, given levels of their distribution, and its freedom."""
    from scipy.special import chdtri

    return np.asarray(np.sqrt(freedom / chdtri(freedom, uniform)))
