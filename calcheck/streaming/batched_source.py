"""A source that is read in batches: its first batch, and single columns of all rows on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, ValuesError
from calcheck.execution.reduce import reduce_batches
from calcheck.predictions import Predictions, Source
from calcheck.typing import AnyArray, Values

if TYPE_CHECKING:
    from calcheck.execution.run import Run

ColumnOf = Callable[[Predictions], Values]


@dataclass(eq=False)
class Column:
    """One column of the batches read so far."""

    parts: list[AnyArray]

    def add(self, other: Column) -> None:
        """Append the parts of other batches."""
        self.parts += other.parts

    def values(self) -> AnyArray:
        """Return the column, (n,)."""
        return np.concatenate(self.parts)

    def arrays(self) -> dict[str, AnyArray]:
        """Return the column as a named array."""
        return {"values": self.values()}


@dataclass(frozen=True)
class ColumnCollector:
    """Extracts one column of each batch."""

    column: ColumnOf

    def __call__(self, batch: Predictions) -> Column:
        """Return the column of a batch."""
        with with_row_numbers(batch):
            return Column([self.column(batch)])

    def load(self, arrays: dict[str, AnyArray]) -> Column:
        """Return the column from its arrays in a checkpoint."""
        return Column([arrays["values"]])


class BatchedSource:
    """A source that is read in batches; only single columns of all rows are held in memory."""

    def __init__(
        self,
        source: Source,  # The rows
        run: Run,  # The executor, checkpoint and progress of the run
    ) -> None:
        self.source, self.run = source, run
        self._columns: dict[str, Values] = {}

    @cached_property
    def first(self) -> Predictions:
        """The first batch of rows."""
        batch = next(iter(self.source.batches()), None)
        if batch is None:
            msg = "there are no rows"
            raise DataError(msg)
        return batch

    def column(self, name: str, column: ColumnOf) -> Values:
        """Return a column of all rows, (n,), from a function of batches; cached by name.

        The function may return fewer values, such as the distinct ones of each batch.
        """
        if name not in self._columns:
            self._columns[name] = reduce_batches(
                self.source, ColumnCollector(column), self.run, stage=f"reading {name}"
            ).values()
        return self._columns[name]


@contextmanager
def with_row_numbers(batch: Predictions) -> Iterator[None]:
    """Convert the row numbers of errors from numbers in the batch to numbers in the file."""
    try:
        yield
    except ValuesError as error:
        places = batch.row_numbers()[np.asarray(error.rows, dtype=np.intp)].tolist()
        raise type(error)(error.name, error.rule, places, error.total, error.remedy) from error
