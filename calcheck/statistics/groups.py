"""Means over groups of rows: bins, histograms, ranks; rows may belong to several groups by shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.execution.prefetch import map_ahead
from calcheck.statistics.digitize import PART

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    Means = dict[str, NDArray[np.float64]]

DRAWS_AHEAD = 1 << 17  # of rows at a time while the last ones are counted
CROWDED = 16  # rows a class from which drawing the counts of classes is faster than drawing rows


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of n rows.

    Parameters
    ----------
    label : (n,) of whole numbers, optional
        The class of each row, 0 to c - 1; absent if each row is a class of its own.
    classes : int
        How many classes there are, c.
    shares : (c, k), optional
        How much of a row of each class belongs to each of k groups; absent if classes are groups.
    cumulative : bool
        Whether a group holds the rows of all classes up to its own, in place of ``shares``; the last class has none.
    """

    label: NDArray[np.integer[Any]] | None
    classes: int
    shares: NDArray[np.float64] | None = None
    cumulative: bool = False

    def sums(self, values: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Sum values, (n,), or count rows, by group, (k,)."""
        return self.of_classes(self.by_class(values))

    def by_class(self, values: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Sum values, (n,), or count rows, by class, (c,)."""
        if self.label is None:
            return np.ones(self.classes) if values is None else values
        sums, part = np.zeros(self.classes), max(PART, self.classes)
        for start in range(0, len(self.label), part):  # numpy makes a copy of small labels
            rows = slice(start, start + part)
            sums += np.bincount(self.label[rows], None if values is None else values[rows], self.classes)
        return sums

    def membership(self) -> NDArray[np.float64]:
        """Return how much of a row of each class belongs to each group, (c, k)."""
        return self.of_classes(np.eye(self.classes)) if self.shares is None else self.shares

    def of_classes(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn sums by class, (..., c), into sums by group, (..., k)."""
        if self.cumulative:
            return np.cumsum(sums, axis=-1)[..., :-1]
        return sums if self.shares is None else sums @ self.shares

    def weighted_sums(self, weighted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum weighted values of the rows in the order of :attr:`order`, (b, n), by group, (b, k)."""
        if self.label is not None:
            starts, present = self._runs
            if len(present) < weighted.shape[1]:  # else each row is a class of its own
                weighted = np.add.reduceat(weighted, starts, axis=1)
            if len(present) < self.classes:
                sums = np.zeros((len(weighted), self.classes))
                sums[:, present] = weighted
                weighted = sums
        return self.of_classes(weighted)

    @cached_property
    def order(self) -> NDArray[np.intp] | slice:
        """The rows class by class."""
        return slice(None) if self.label is None else np.argsort(self.label, kind="stable")

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many rows each class has, (c,)."""
        return np.bincount(self.label if self.label is not None else [], minlength=self.classes)

    @cached_property
    def _runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each class that has rows starts in :attr:`order`, and which class that is."""
        counts = self.counts
        present = np.flatnonzero(counts)
        return (np.cumsum(counts) - counts)[present], present


@dataclass(frozen=True, eq=False)
class MeanTerm:
    """Something that is averaged over rows.

    Parameters
    ----------
    values : (n,), optional
        One value a row; absent for 1.
    groups : Groups, optional
        Groups over which the mean is taken one by one: the sum over a group's rows over the number of all rows.
    """

    values: NDArray[np.float64] | None = None
    groups: Groups | None = None


@dataclass(frozen=True, eq=False)
class Averages:
    """What is averaged over n rows, under equal weights or any others.

    Parameters
    ----------
    terms : mapping
        What is averaged, by name.
    n : int
        How many rows there are.
    """

    terms: Mapping[str, MeanTerm]
    n: int

    @property
    def plain(self) -> bool:
        """Whether every term is the mean of a column over all rows."""
        return all(term.groups is None for term in self.terms.values())

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """The columns of the terms without groups, (n, c)."""
        return np.stack([self._values(term) for term in self.terms.values() if term.groups is None], axis=1)

    def _values(self, term: MeanTerm) -> NDArray[np.float64]:
        return np.ones(self.n) if term.values is None else term.values

    def means(self) -> Means:
        """Average all rows alike: () for each term, or (k,) for one with k groups."""
        return {
            name: np.asarray(self._values(term).mean())
            if term.groups is None
            else term.groups.sums(term.values) / self.n
            for name, term in self.terms.items()
        }

    def weighted(self, weights: NDArray[np.float64], *, sums: NDArray[np.float64] | None = None) -> Means:
        """Average with weights, which are relative.

        Parameters
        ----------
        weights : (b, n)
            One set of weights a line, >= 0.
        sums : (b,), optional
            Their sums, if they are known.

        Returns
        -------
        dict
            (b,) for each term, or (b, k).
        """
        total = weights.sum(axis=1) if sums is None else sums
        grouped = {name: (term, term.groups) for name, term in self.terms.items() if term.groups is not None}
        plain = [name for name in self.terms if name not in grouped]
        found: Means = dict(zip(plain, (weights @ self.columns).T / total, strict=True)) if plain else {}
        ordered = {groups: weights[:, groups.order] for groups in {groups for _, groups in grouped.values()}}
        for name, (term, groups) in grouped.items():
            weighted = ordered[groups] if term.values is None else ordered[groups] * term.values[groups.order]
            found[name] = groups.weighted_sums(weighted) / total[:, None]
        return found

    def leave_one_out(self) -> Means:
        """Average all rows but one, each left out in turn, (n,) for each term; without groups only."""
        means = self.columns.mean(axis=0)
        left = (self.n * means - self.columns) / (self.n - 1)
        return dict(zip(self.terms, left.T, strict=True))

    def resampled(self, resamples: int, rng: Generator) -> Means:
        """Average rows drawn with replacement, as many as there are: (b,) for each term, or (b, k).

        Where rows differ in nothing but their class, the counts of classes are drawn.
        """
        if (groups := self._classes_only()) is not None:
            drawn = rng.multinomial(self.n, groups.counts / self.n, resamples) / self.n
            return dict.fromkeys(self.terms, groups.of_classes(drawn))
        sums = np.full(resamples, float(self.n))
        return self.weighted(resampled_weights(self.n, resamples, rng), sums=sums)

    def _classes_only(self) -> Groups | None:
        """Return the groups of all terms if they are the same and each row counts 1."""
        kinds = {(term.groups, term.values is None) for term in self.terms.values()}
        groups, counted = next(iter(kinds))
        if len(kinds) > 1 or not counted or groups is None or CROWDED * groups.classes > self.n:
            return None
        return groups


def resampled_weights(n: int, resamples: int, rng: Generator) -> NDArray[np.float64]:
    """Return how often each of n rows is drawn in n draws with replacement, (resamples, n)."""
    weights = np.empty((resamples, n))
    step = max(1, DRAWS_AHEAD // n)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    drawn = map_ahead(lambda size: rng.integers(0, n, (size, n)), sizes)
    lines = (line for block in drawn for line in block)
    for counts, line in zip(weights, lines, strict=True):
        counts[:] = np.bincount(line, minlength=n)
    return weights


def cumulative_at(
    shares: NDArray[np.float64], rows: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum values over the first rows, up to some shares of all rows; a group that is cut counts in part.

    Parameters
    ----------
    shares : (s,)
        In [0, 1].
    rows, values : (..., k)
        Means of rows and of values by group, in order.

    Returns
    -------
    (..., s)
    """
    found = np.empty((*rows.shape[:-1], len(shares)))
    for line in np.ndindex(rows.shape[:-1]):
        counted, summed = np.cumsum(rows[line]), np.cumsum(values[line])
        found[line] = np.interp(shares, np.append(0.0, counted), np.append(0.0, summed))
    return found
