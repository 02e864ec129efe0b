"""Features of targets that serve many data sets, each with a kernel on targets of its own.

That kernel is scaled by the targets, which differ from one replicate to the next. Features of a somewhat narrower
kernel serve them all: they represent a target as a combination of the same few elements, and the products of these
elements under the data set's own kernel make the norm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.dictionary import POOL_POINTS, Fineness
from calcheck.embeddings.output_features import OutputFeatures, output_features
from calcheck.errors import DataError, NumericalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

    Values = NDArray[np.float64]

TOLERANCE = 1e-8  # of a point's squared norm that features may leave out: far below what chance moves
FEWEST_POINTS, POINTS_A_ROW = 400, 4  # in the pool: of few rows, 80 length scales; what is farther becomes an element
TAIL = 1e-6  # of a distribution, on either side, that they need not represent; targets out there become elements
FAR_OUT = 1e-6  # of a target's squared norm, above which it becomes an element itself
MOST_OCTAVES = 40  # between bandwidths, in 1 / unit^2: targets a million times as wide, or narrow, are not alike


@dataclass(frozen=True, eq=False)
class SwappedDraw:
    """Draws of which one has changed places with the target in each row.

    Parameters
    ----------
    draws : Predictive
        The draws before, the same object for all data sets.
    """

    draws: Predictive


@dataclass(frozen=True, eq=False)
class DataSet:
    """Targets with the distributions that they are compared with.

    Parameters
    ----------
    y : (n, t) or (n, r, t)
        Targets; r of each row if they are repeated, and then features of targets are their means.
    gamma : (t,), optional
        Of the kernel on targets; None where these targets have none.
    model : sequence of Predictive or Exchanged
        What stands for the distributions in each trial; the same objects in all data sets, unless they change too.
    """

    y: Values
    gamma: Values | None
    model: Sequence[Predictive | SwappedDraw]


@dataclass(eq=False)
class _BandwidthBin:
    """Features for kernels within a factor of two, and what all data sets share of them."""

    features: OutputFeatures
    before: Values
    fixed: Values
    means: dict[int, tuple[Predictive, Values]]


class SharedFeatures:
    """Features of the targets and distributions of many data sets.

    Parameters
    ----------
    data : DataSet
        The data; replicates are like it.
    covered : Predictive
        Distributions that the features must represent, whatever stands for them in a trial.
    rng : callable
        Makes the generator that chooses among elements that are too many.
    """

    def __init__(self, data: DataSet, covered: Predictive, rng: Callable[[], Generator]) -> None:
        self._data, self._covered, self._rng = data, covered, rng
        self._octaves: dict[int, _BandwidthBin] = {}
        on_a_line = data.y.shape[-1] == 1
        points = min(POOL_POINTS, max(FEWEST_POINTS, POINTS_A_ROW * len(data.y))) if on_a_line else POOL_POINTS
        self._fineness = Fineness(TOLERANCE, TAIL, points)

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and what makes them those of the data set's own kernel and of the data's.

        Parameters
        ----------
        each : DataSet
            With a kernel.

        Returns
        -------
        observed : (n, r)
            f(y); in the directions that rows span, where these are fewer.
        model : list of (n, r)
            E f(Y'), once a trial.
        own, fixed : (r, ...)
            C: psi = f C are features of the data set's own kernel, and of that of the data.
        """
        octave = self._octave(each)
        features = octave.features
        points = each.y.reshape(-1, each.y.shape[-1])
        observed = features.of_points(points)
        far = np.flatnonzero(1 - np.einsum("ij,ij->i", observed, observed) > FAR_OUT)
        if len(far):
            features = features.extend(points[far], FAR_OUT)
            observed = features.of_points(points)
        observed = _by_row(observed, each.y)
        model = [self._mean(octave, one, observed, features) for one in each.model]
        parts, along = _in_few_directions([observed, *model])
        if features is not octave.features:
            fixed = _norm(features, self._data.gamma, along)
        else:
            fixed = octave.fixed if along is None else along.T @ octave.fixed
        return parts[0], parts[1:], _norm(features, each.gamma, along), fixed

    def _octave(self, each: DataSet) -> _BandwidthBin:
        """Return what kernels of about the same bandwidth share.

        Raises
        ------
        DataError
            The bandwidth has nothing to do with that of the data.
        """
        ratio = np.max(np.asarray(each.gamma) / np.asarray(self._data.gamma))
        number = int(np.rint(np.log2(ratio)))
        if abs(number) > MOST_OCTAVES:
            msg = (
                f"targets drawn from the predictions spread {ratio**-0.5:.1g} times as far as those that there are:"
                " are predictions in the unit of the targets? Otherwise pass --no-null"
            )
            raise DataError(msg)
        if number not in self._octaves:
            gamma = np.asarray(self._data.gamma) * 2.0 ** (number + 0.5)
            y = self._data.y
            points = y.reshape(-1, y.shape[-1])
            features = output_features(points, self._covered, gamma, self._rng(), self._fineness)
            before, fixed = _by_row(features.of_points(points), y), _norm(features, self._data.gamma)
            self._octaves[number] = _BandwidthBin(features, before, fixed, {})
        return self._octaves[number]

    def _mean(
        self, octave: _BandwidthBin, one: Predictive | SwappedDraw, observed: Values, features: OutputFeatures
    ) -> Values:
        """Return E f(Y'), (n, r), made once for distributions that all data sets share.

        Where a draw and the target have changed places, the mean of m draws has moved by an m-th of their difference;
        of r targets and their means, by r m-ths.
        """
        predictive = one.draws if isinstance(one, SwappedDraw) else one
        if id(predictive) in octave.means:
            mean = octave.means[id(predictive)][1]
        else:
            mean = octave.features.of_distributions(predictive)
            if any(predictive is shared for shared in self._data.model):
                octave.means[id(predictive)] = predictive, mean
        before = octave.before
        if features is not octave.features:
            mean = features.complete(mean, predictive.kernel_mean)
            y = self._data.y
            before = _by_row(features.of_points(y.reshape(-1, y.shape[-1])), y)
        if isinstance(one, SwappedDraw):
            repeats = self._data.y.size // (len(self._data.y) * self._data.y.shape[-1])
            return np.asarray(mean + (before - observed) * repeats / (predictive.n_draws or 1))
        return mean


def _by_row(features: Values, y: Values) -> Values:
    """Return the means of features of targets over the repeats of each row, (n, q)."""
    return np.asarray(features.reshape(len(y), -1, features.shape[1]).mean(axis=1))


def _in_few_directions(parts: list[Values]) -> tuple[list[Values], Values | None]:
    """Return features in the directions that all rows together span, and these (r, q); as they are if rows are many."""
    rows = np.concatenate(parts)
    if len(rows) >= rows.shape[1]:
        return parts, None
    along, few = np.linalg.qr(rows.T)
    return np.split(few.T, len(parts)), along


def _norm(features: OutputFeatures, gamma: Values | None, along: Values | None = None) -> Values:
    """Return C, (r, r): psi = f C are features of the kernel of gamma; of features along some directions."""
    products = replace(features.pivots, gamma=np.asarray(gamma)).all_products()
    return root(features.gram_of_represented(products, along))


def root(matrix: Values) -> Values:
    """Return C with C C^T a positive semidefinite matrix, whatever rounding made of it."""
    sizes, turns = eigenvectors(matrix)
    return np.asarray(turns * np.sqrt(np.maximum(sizes, 0)))


def eigenvectors(matrix: Values) -> tuple[Values, Values]:
    """Return the eigenvalues (r,) and eigenvectors (r, r) of a symmetric matrix.

    Raises
    ------
    NumericalError
        They are not found.
    """
    try:
        sizes, turns = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        msg = "the kernel on targets has no eigenvalues in floats: are predictions in the unit of the targets?"
        raise NumericalError(msg) from error
    return sizes, turns
