"""Groups of rows of two samples in which either sample's rows are as likely: there labels may change places.

Two samples need not have their inputs in the same places. Where the distributions of targets are equal, a row may be of
either sample, but with a chance that depends on its input; among neighbors it hardly does. Permuting labels among few
neighbors only (Kim, Neykov, Balakrishnan, Wasserman 2022) keeps each sample's inputs where they are, which what
follows from a regularized fit depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Labels = NDArray[np.bool_]

GROUP = 6  # neighbors: with more of them strongly shifted inputs fail too often, with fewer power is lost
STEPS, SMALL_STEP = 50, 1e-8  # of Newton's method


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups of rows.

    Parameters
    ----------
    group : (n,)
        The number of each row's group.
    labels : (n,)
        Whether a row is of the first sample.
    by : str
        What makes rows neighbors: the same input, inputs that follow each other, or the chance of the first sample.
    """

    group: NDArray[np.intp]
    labels: Labels
    by: Literal["equal inputs", "input", "propensity"]

    @property
    def exchangeable(self) -> int:
        """Count the rows in whose group there are rows of both samples."""
        both = np.bincount(self.group, self.labels) * np.bincount(self.group, ~self.labels)
        return int((both[self.group] > 0).sum())

    def permuted(self, rng: Generator, count: int) -> Iterator[Labels]:
        """Yield other labels, (n,): in each group as many rows are of the first sample as before."""
        ordered = np.argsort(self.group, kind="stable")
        for _ in range(count):
            labels = np.empty_like(self.labels)
            labels[ordered] = self.labels[np.lexsort((rng.random(len(labels)), self.group))]
            yield labels


def strata(x: Values, labels: Labels, features: Callable[[], Values]) -> Strata:
    """Group the rows of two samples.

    Rows with the same input where each input is in both samples: then permutations are exact. Else, of inputs that are
    one number, rows that follow each other; of others, rows whose estimated chance of the first sample is alike.

    Parameters
    ----------
    x : (n, d)
        Inputs of both samples.
    labels : (n,)
        Whether a row is of the first sample.
    features : callable
        Returns Z, (n, q), with the kernel on inputs about Z Z^T, by which that chance is estimated.
    """
    _, same = np.unique(x, axis=0, return_inverse=True)
    same = same.ravel()
    if (np.bincount(same, labels) > 0).all() and (np.bincount(same, ~labels) > 0).all():
        return Strata(same, labels, "equal inputs")
    if x.shape[1] == 1:
        return Strata(_neighbors(x[:, 0]), labels, "input")
    return Strata(_neighbors(propensity(features(), labels)), labels, "propensity")


def _neighbors(score: Values) -> NDArray[np.intp]:
    """Group rows that follow each other; those that tie are never parted."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    start = np.cumsum(counts) - counts
    _, group = np.unique(start // GROUP, return_inverse=True)
    return np.asarray(group[place])


def propensity(features: Values, labels: Labels) -> Values:
    """Return the log odds of the first sample at each row, (n,), by logistic regression with weights w ~ N(0, I).

    Z is brought to a mean squared norm of 1. The prior counts the less the more rows there are: a shift of the inputs
    that the classifier misses would be taken for a difference of the distributions.

    Parameters
    ----------
    features : (n, q)
        Z.
    labels : (n,)
        Whether a row is of the first sample.
    """
    n, q = features.shape
    size = float(np.einsum("ij,ij->", features, features)) / n or 1.0
    known = np.concatenate([np.ones((n, 1)), features / np.sqrt(size)], axis=1)
    penalty = np.r_[0.0, np.full(q, 1 / n)]
    weights = np.zeros(q + 1)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-known @ weights))
        slope = known.T @ (chance - labels) / n + penalty * weights
        curvature = (known.T * (chance * (1 - chance))) @ known / n + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        weights = weights - step
        if np.abs(step).max() < SMALL_STEP:
            break
    return np.asarray(known @ weights)
