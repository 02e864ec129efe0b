"""Sums of batches, which can be added and stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from calcheck.errors import DataError, Message, ValuesError
from calcheck.execution.run import Run, reduce_batches
from calcheck.predictions import Predictions, Source
from calcheck.statistics.groups import Means, MeanTerm
from calcheck.typing import AnyArray, Values

Arrays = Mapping[str, AnyArray]
MAX_MEANS = 512  # Maximum number of means with a stored covariance matrix, 2 MiB
MAX_FOURTH_COLUMNS = 3  # Maximum number of columns with stored fourth moments
MAX_WARNINGS = 8  # Maximum number of stored warnings of batches
ColumnOf = Callable[[Predictions], Values]


class Sums(ABC):
    """Sums over rows, which can be added in any order: over batches, files and days."""

    n: int  # The number of rows

    @abstractmethod
    def add(self, other: Self) -> None:
        """Add the sums of other rows, in place."""

    @abstractmethod
    def is_consistent(self) -> bool:
        """Return whether the shapes and types of the arrays are consistent."""


@dataclass(eq=False)
class Metadata:
    """Metadata of accumulated rows."""

    n: int  # The number of rows
    # The expected value of a perfect model, if known: the mean over batches, weighted by their rows
    reference: float | None = None
    warnings: tuple[Message, ...] = ()  # Warnings about batches

    def add(self, other: Metadata) -> None:
        """Add the metadata of other rows, in place."""
        known = self.reference is not None and other.reference is not None
        n = self.n + other.n
        if known and self.reference != other.reference:
            self.reference = ((self.reference or 0.0) * self.n + (other.reference or 0.0) * other.n) / n
        elif not known:
            self.reference = None
        self.n, self.warnings = n, tuple(dict.fromkeys([*self.warnings, *other.warnings]))[:MAX_WARNINGS]


@dataclass(eq=False)
class MomentSums(Sums):
    """Sums of terms over rows, with their second and fourth moments."""

    metadata: Metadata  # The number of rows, the reference and warnings
    sums: dict[str, Values]  # The sums, () or (k,) each, by the names of terms
    # Further arguments of the value that are not means; the same for all rows
    fixed: dict[str, Values] = field(default_factory=dict)
    # (K, K), sums of products of the concatenated terms, centered at their means; absent for too many means
    products: Values | None = None
    # The sums of R replicates of the targets, (R,) or (R, k) each; empty without replicates
    replicates: dict[str, Values] = field(default_factory=dict)
    # ((1 + K)^2, (1 + K)^2), sums of products of any four of 1 and the columns; absent for terms over groups, and for
    # many columns
    fourth: Values | None = None

    @classmethod
    def from_terms(
        cls, terms: Mapping[str, MeanTerm], metadata: Metadata, *, fixed: Mapping[str, Values] | None = None
    ) -> MomentSums:
        """Return the sums of the terms of a batch."""
        sums = {
            name: np.asarray(float(metadata.n) if term.values is None else term.values.sum())
            if term.groups is None
            else term.groups.sums(term.values)
            for name, term in terms.items()
        }
        few = sum(each.size for each in sums.values()) <= MAX_MEANS
        products = central_products(terms, metadata.n) if few else None
        return cls(metadata, sums, dict(fixed or {}), products, fourth=fourth_products(terms, metadata.n))

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.metadata.n

    def means(self) -> Means:
        """Return the means, () or (k,) each."""
        return Means({name: values / self.n for name, values in self.sums.items()}, self.n)

    def replicate_means(self) -> Means:
        """Return the means of each replicate, (R,) or (R, k) each."""
        return Means({name: values / self.n for name, values in self.replicates.items()}, self.n)

    def mean_vector(self) -> Values:
        """Return all means as one vector, (K,)."""
        return np.concatenate([np.ravel(values) for values in self.sums.values()]) / self.n

    def add(self, other: MomentSums) -> None:
        for name, values in self.fixed.items():
            if not np.array_equal(values, other.fixed[name]):
                raise DataError(f"its {name} differ between batches, which therefore cannot be added")
        if self.products is not None and other.products is not None:
            gap = other.mean_vector() - self.mean_vector()  # Each matrix of products is centered at its own means
            self.products += other.products + np.outer(gap, gap) * (self.n * other.n / (self.n + other.n))
        else:
            self.products = None
        self.fourth = None if self.fourth is None or other.fourth is None else self.fourth + other.fourth
        for name in self.sums:
            self.sums[name] = self.sums[name] + other.sums[name]
        for name in self.replicates:
            self.replicates[name] = self.replicates[name] + other.replicates[name]
        self.metadata.add(other.metadata)

    def is_consistent(self) -> bool:
        size = sum(each.size for each in self.sums.values())
        square = self.products is None or self.products.shape == (size, size)
        alike = all(each.shape[1:] == self.sums[name].shape for name, each in self.replicates.items())
        fourth = self.fourth is None or self.fourth.shape == ((1 + size) ** 2,) * 2
        fits = square and alike and fourth
        return bool(self.sums) and fits and all(each.dtype == np.float64 for each in self.sums.values())


@dataclass(eq=False)
class ColumnStore(Sums):
    """The columns that a metric sorts, one number per row, in parts that are concatenated."""

    metadata: Metadata  # The number of rows, the reference and warnings
    parts: dict[str, list[AnyArray]]  # The parts (n_1,), (n_2,), … of each column, by name

    @classmethod
    def from_columns(cls, columns: Mapping[str, AnyArray], metadata: Metadata) -> ColumnStore:
        """Return a store of the columns of a batch."""
        return cls(metadata, {name: [values] for name, values in columns.items()})

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.metadata.n

    def arrays(self) -> dict[str, AnyArray]:
        """Return the columns, (n,) each."""
        self.parts = {name: [np.concatenate(parts)] for name, parts in self.parts.items()}
        return {name: parts[0] for name, parts in self.parts.items()}

    def add(self, other: ColumnStore) -> None:
        for name, parts in self.parts.items():
            parts += other.parts[name]
        self.metadata.add(other.metadata)

    def is_consistent(self) -> bool:
        return bool(self.parts) and all(each.shape == (self.n,) for each in self.arrays().values())


def central_products(terms: Mapping[str, MeanTerm], n: int) -> Values | None:
    """Return the sums of centered products of terms over n rows, (K, K); None for terms over different groups."""
    kinds = {term.groups for term in terms.values()}
    values = [np.ones(n) if term.values is None else term.values for term in terms.values()]
    if len(kinds) > 1:
        return None
    groups = kinds.pop()
    with np.errstate(invalid="ignore", over="ignore"):  # Non-finite sums give no interval
        if groups is None:
            away = np.stack(values, axis=1) - [each.mean() for each in values]
            return np.asarray(away.T @ away)
        shares = groups.membership()
        blocks = [[shares.T @ (groups.by_class(one * other)[:, None] * shares) for other in values] for one in values]
        means = np.concatenate([groups.sums(each) for each in values]) / n
        return np.block(blocks) - n * np.outer(means, means)


def fourth_products(terms: Mapping[str, MeanTerm], n: int) -> Values | None:
    """Return the sums of products of four of 1 and the columns, ((1 + c)^2, (1 + c)^2); None for groups or many."""
    if len(terms) > MAX_FOURTH_COLUMNS or any(term.groups is not None for term in terms.values()):
        return None
    ones = np.ones(n)
    with np.errstate(invalid="ignore", over="ignore"):
        columns = np.stack([ones, *(ones if term.values is None else term.values for term in terms.values())], axis=1)
        pairs = (columns[:, :, None] * columns[:, None]).reshape(n, -1)
        return np.asarray(pairs.T @ pairs)


@dataclass(frozen=True)
class ColumnCollector:
    """Extracts one column of each batch."""

    column: ColumnOf

    def __call__(self, batch: Predictions) -> ColumnStore:
        """Return the column of a batch."""
        with with_row_numbers(batch):
            return self.load({"values": self.column(batch)})

    def load(self, arrays: Arrays) -> ColumnStore:
        """Return the column from its arrays in a checkpoint."""
        return ColumnStore.from_columns(arrays, Metadata(len(arrays["values"])))


@dataclass(eq=False)
class BatchedSource:
    """A source that is read in batches; only single columns of all rows are held in memory."""

    source: Source  # The rows
    run: Run  # The executor, checkpoint and progress of the run
    _columns: dict[str, Values] = field(default_factory=dict, init=False)

    @cached_property
    def first(self) -> Predictions:
        """The first batch of rows."""
        batch = next(iter(self.source.batches()), None)
        if batch is None:
            raise DataError("there are no rows")
        return batch

    def column(self, name: str, column: ColumnOf) -> Values:
        """Return a column of all rows, (n,), or fewer values, from a function of batches; cached by name."""
        if name not in self._columns:
            read = reduce_batches(self.source, ColumnCollector(column), self.run, stage=f"reading {name}")
            self._columns[name] = read.arrays()["values"]
        return self._columns[name]


@contextmanager
def with_row_numbers(batch: Predictions) -> Iterator[None]:
    """Convert the row numbers of errors from numbers in the batch to numbers in the file."""
    try:
        yield
    except ValuesError as error:
        places = batch.row_numbers()[np.asarray(error.rows, dtype=np.intp)].tolist()
        raise type(error)(error.name, error.rule, places, error.total, error.remedy) from error
