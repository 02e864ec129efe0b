"""Strata of rows of two samples within which the sample labels are (nearly) exchangeable.

The inputs of two samples may have different distributions. If the conditional distributions of the targets are equal, a
row belongs to the first sample with a probability that depends only on its input, and that is nearly constant among
neighbors. Permuting labels only within small groups of neighbors (Kim, Neykov, Balakrishnan, Wasserman 2022) nearly
preserves the input distribution of each sample, which the result of a regularized fit depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Labels = NDArray[np.bool_]

GROUP = 6  # Rows per group: larger groups reject too often for strongly shifted inputs, smaller groups lose power
MIN_EXCHANGEABLE = 0.5  # share of exchangeable rows below which there is a warning
NO_OVERLAP = "the inputs of the two samples do not overlap, so the samples cannot be compared at any input"
NOT_EXACT = {
    "input": "the samples have different inputs: permutations among neighboring rows are exact if the inputs"
    " have the same distribution, and approximate otherwise",
    "propensity": "the samples have different inputs: permutations are among rows with similar propensities, so p"
    " is approximate, and too small if the two input distributions differ strongly",
}
MAX_STEPS, STEP_TOLERANCE = 50, 1e-8  # Newton's method: maximum iterations, and step size at which it stops


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups of rows within which labels are permuted.

    Parameters
    ----------
    group : (n,)
        Group number of each row.
    labels : (n,)
        Whether a row is from the first sample.
    by : str
        How groups are formed: equal inputs, consecutive inputs, or similar propensity scores; or all rows.
    """

    group: NDArray[np.intp]
    labels: Labels
    by: Literal["equal inputs", "input", "propensity", "all rows"]

    @property
    def description(self) -> str:
        """Return how labels are permuted, for reports."""
        return "permuted over all rows" if self.by == "all rows" else f"permuted by {self.by}"

    @property
    def exchangeable(self) -> int:
        """Return the number of rows in groups that contain rows of both samples."""
        both = np.bincount(self.group, self.labels) * np.bincount(self.group, ~self.labels)
        return int((both[self.group] > 0).sum())

    def permuted(self, rng: Generator, count: int) -> Iterator[Labels]:
        """Yield permuted labels, (n,); the number of rows of each sample in each group is unchanged."""
        ordered = np.argsort(self.group, kind="stable")
        for _ in range(count):
            labels = np.empty_like(self.labels)
            labels[ordered] = self.labels[np.lexsort((rng.random(len(labels)), self.group))]
            yield labels


def strata(x: Values, labels: Labels, features: Callable[[], Values]) -> Strata:
    """Return groups of rows of two samples within which labels are permuted.

    If every input occurs in both samples, rows with equal inputs are grouped, and the permutation test is exact.
    Otherwise, consecutive rows are grouped: by input for a single column, by estimated propensity score for several.

    Parameters
    ----------
    x : (n, d)
        Inputs of both samples.
    labels : (n,)
        Whether a row is from the first sample.
    features : callable
        Returns Z, (n, q), with the kernel on inputs approximated by Z Z^T, for estimating the propensity score.
    """
    same, first, second = _equal_inputs(x, labels)
    if (first > 0).all() and (second > 0).all():
        return Strata(same, labels, "equal inputs")
    if x.shape[1] == 1:
        return Strata(_neighbors(x[:, 0]), labels, "input")
    return Strata(_neighbors(propensity(features(), labels)), labels, "propensity")


def joint_strata(x: Values, labels: Labels) -> Strata:
    """Return groups of rows of two samples, for comparing inputs and targets together.

    A single group of all rows is exact if rows are independent and the joint distributions are equal. If each input is
    equally frequent in both samples, as for draws of a model at the inputs of the data, rows with equal inputs are
    grouped. Exchanging any rows would then make the inputs differ, which those of the samples do not.

    Parameters
    ----------
    x : (n, d)
        Inputs of both samples.
    labels : (n,)
        Whether a row is from the first sample.
    """
    same, first, second = _equal_inputs(x, labels)
    if (first * second.sum() == second * first.sum()).all():
        return Strata(same, labels, "equal inputs")
    return one_stratum(labels)


def one_stratum(labels: Labels) -> Strata:
    """Return a single group of all rows."""
    return Strata(np.zeros(len(labels), dtype=np.intp), labels, "all rows")


def _equal_inputs(x: Values, labels: Labels) -> tuple[NDArray[np.intp], Values, Values]:
    """Return the number of the distinct input of each row, (n,), and the rows of each sample per distinct input."""
    _, same = np.unique(x, axis=0, return_inverse=True)
    same = np.asarray(same.ravel(), dtype=np.intp)
    first, second = (np.asarray(np.bincount(same, chosen), dtype=np.float64) for chosen in (labels, ~labels))
    return same, first, second


def _neighbors(score: Values) -> NDArray[np.intp]:
    """Return the group numbers of rows grouped by consecutive scores; ties are never split."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    start = np.cumsum(counts) - counts
    _, group = np.unique(start // GROUP, return_inverse=True)
    return np.asarray(group[place])


def propensity(features: Values, labels: Labels) -> Values:
    """Return the log odds of the first sample at each row, (n,), by logistic regression with the prior w ~ N(0, I).

    Z is scaled to a mean squared norm of 1. The influence of the prior decreases with the number of rows, because an
    input shift that the classifier misses would be mistaken for a difference between the conditional distributions.

    Parameters
    ----------
    features : (n, q)
        Features Z.
    labels : (n,)
        Whether a row is from the first sample.
    """
    n, q = features.shape
    size = float(np.einsum("ij,ij->", features, features)) / n or 1.0
    design = np.concatenate([np.ones((n, 1)), features / np.sqrt(size)], axis=1)
    penalty = np.r_[0.0, np.full(q, 1 / n)]
    weights = np.zeros(q + 1)
    for _ in range(MAX_STEPS):
        probability = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (probability - labels) / n + penalty * weights
        hessian = (design.T * (probability * (1 - probability))) @ design / n + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step
        if np.abs(step).max() < STEP_TOLERANCE:
            break
    return np.asarray(design @ weights)


def permutation_warnings(groups: Strata) -> tuple[Message, ...]:
    """Return warnings about why p is not exact."""
    warnings = [Message("permutations-approximate", NOT_EXACT[groups.by])] if groups.by in NOT_EXACT else []
    if groups.exchangeable < MIN_EXCHANGEABLE * len(groups.labels):
        share = f"{groups.exchangeable:,} of {len(groups.labels):,} rows"
        text = f"only {share} have neighbors in both files: p is for these rows, the value is for all rows"
        warnings.append(Message("permutations-partial", text))
    return tuple(warnings)
