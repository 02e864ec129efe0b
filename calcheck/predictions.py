"""Saved predictions: batches of rows that are known to be sound, and where they come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calcheck.distributions.base import REPEATED
from calcheck.errors import DataError, ValuesError
from calcheck.lazy_inputs import LazyInputs, load, take
from calcheck.report import Input
from calcheck.validation import concat_columns, require_finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.lazy_inputs import Inputs


@dataclass(frozen=True, eq=False)
class Predictions:
    """A batch of n rows: what was observed, what was predicted, and from which input.

    Parameters
    ----------
    y : (n,), (n, t) or (n, r, t), optional
        Targets, in their own unit; t columns if the model predicts several at once; r of each if they are repeated.
    predictive : Predictive, optional
        One predictive distribution a row.
    x : (n, d), optional
        Embeddings or inputs on which calibration is conditioned; any unit. Those that would fill the memory are
        deferred: left in their file.
    has_embedding : bool
        True if ``x`` is a learned embedding, False if its columns are inputs with units of their own.
    id : (n,), optional
        Keys of the rows; rows with the same key are targets of one input, for metrics that take these.
    id_name : str
        What the keys are called.
    row : (n,), optional
        Places of the rows in their file, counted from 0; absent if they are 0, 1, ….
    columns : mapping
        The row's narrow columns, (n,) each, by name: shown beside pointwise results, never computed with.

    Raises
    ------
    DataError
        Lengths differ, or there is no row.
    ValuesError
        A number is not finite, or a target is not a count where the family needs one.
    """

    y: NDArray[np.float64] | None = None
    predictive: Predictive | None = None
    x: Inputs | None = None
    has_embedding: bool = True
    id: NDArray[Any] | None = None
    id_name: str = "id"
    row: NDArray[np.intp] | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: len(value) for name, value in self._parts().items()}
        if not lengths:
            msg = "there is nothing in these predictions: give y, predictive or x"
            raise DataError(msg)
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
            msg = f"row counts differ: {told}"
            raise DataError(msg)
        if not len(self):
            msg = "there are no rows"
            raise DataError(msg)
        self._check_values()

    def _check_values(self) -> None:
        if self.y is not None:
            require_finite("y", self.y)
        if self.x is not None:
            if self.x.ndim != 2 or not self.x.shape[1]:  # noqa: PLR2004 - rows and columns
                msg = f"x must be two-dimensional, rows by features, got shape {self.x.shape}"
                raise DataError(msg)
            if not isinstance(self.x, LazyInputs):  # else they are checked whenever they are read
                require_finite("x", self.x)
        if self.y is not None and self.predictive is not None:
            targets = self.y.shape[-1] if self.y.ndim > 1 else 1
            if targets != self.predictive.targets:
                msg = (
                    f"y has {targets} target columns, the predictions have {self.predictive.targets}."
                    " Give --mean and --std, or --samples, for each"
                )
                raise DataError(msg)
            for y in np.moveaxis(self.y, 1, 0) if self.repeated else [self.y]:
                self.predictive.validate_targets(y.reshape(len(y), *([targets] if targets > 1 else [])))

    def _parts(self) -> dict[str, Any]:
        named = {"y": self.y, "predictive": self.predictive, "x": self.x, "id": self.id, "row": self.row}
        named |= self.columns
        return {name: value for name, value in named.items() if value is not None}

    def __len__(self) -> int:
        """Count the rows, n."""
        return len(next(iter(self._parts().values())))

    @property
    def repeated(self) -> bool:
        """Whether there are several targets for each input, ``y`` (n, r, t)."""
        return self.y is not None and self.y.ndim == REPEATED

    def targets(self) -> NDArray[np.float64]:
        """Return the targets, as they are.

        Raises
        ------
        DataError
            There are none.
        """
        if self.y is None:
            msg = "there are no targets"
            raise DataError(msg)
        return self.y

    def inputs(self) -> NDArray[np.floating[Any]]:
        """Return the inputs, (n, d), all of them in memory.

        Raises
        ------
        DataError
            There are none.
        """
        return load(self.lazy_inputs())

    @property
    def width(self) -> int:
        """How many numbers an input has, d.

        Raises
        ------
        DataError
            There are no inputs.
        """
        return int(self.lazy_inputs().shape[1])

    def lazy_inputs(self) -> Inputs:
        """Return the inputs, (n, d), in memory or left in their file.

        Raises
        ------
        DataError
            There are none.
        """
        if self.x is None:
            msg = "there are no inputs nor an embedding of them. Pass --embedding or --inputs"
            raise DataError(msg)
        return self.x

    def distributions(self) -> Predictive:
        """Return the predictive distributions.

        Raises
        ------
        DataError
            There are none.
        """
        if self.predictive is None:
            msg = "there are no predictive distributions"
            raise DataError(msg)
        return self.predictive

    def row_numbers(self) -> NDArray[np.intp]:
        """Return the places of the rows in their file, (n,)."""
        return np.arange(len(self)) if self.row is None else self.row

    def without(self, *parts: str) -> Self:
        """Return the rows without some of their parts; with their places, if nothing else is left."""
        absent: dict[str, Any] = dict.fromkeys(parts)
        return replace(self, row=self.row_numbers(), **absent)

    def with_targets(self, y: NDArray[np.float64], predictive: Predictive) -> Self:
        """Return the rows with other targets and distributions, as many, which are known to be sound."""
        changed = copy(self)  # the inputs, which may be many, are not checked again
        object.__setattr__(changed, "y", y)
        object.__setattr__(changed, "predictive", predictive)
        return changed

    def take(self, rows: NDArray[np.intp] | slice) -> Self:
        """Select rows, in the order given."""
        return replace(
            self,
            y=None if self.y is None else self.y[rows],
            predictive=None if self.predictive is None else self.predictive.take(rows),
            x=None if self.x is None else take(self.x, rows),
            id=None if self.id is None else self.id[rows],
            row=self.row_numbers()[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
        )


def concat(batches: list[Predictions]) -> Predictions:
    """Append batches that have the same parts."""
    first, *rest = batches
    if not rest:
        return first

    def appended(name: str) -> Any:
        parts = [getattr(batch, name) for batch in batches]
        return None if parts[0] is None else concat_columns(parts, name)

    return replace(
        first,
        y=appended("y"),
        predictive=first.predictive and first.predictive.join([b.predictive for b in rest if b.predictive]),
        x=appended("x"),
        id=appended("id"),
        row=None if all(batch.row is None for batch in batches) else np.concatenate([b.row_numbers() for b in batches]),
        columns={name: np.concatenate([batch.columns[name] for batch in batches]) for name in first.columns},
    )


class Source(ABC):
    """A rereadable stream of batches of :class:`Predictions`."""

    @abstractmethod
    def batches(self) -> Iterator[Predictions]:
        """Read the rows from the start, in order."""

    def parts(self) -> Sequence[Source]:
        """Return sources that have the same rows in the same order, one after the other, for several processes.

        They can be sent to other processes, know where their rows are in the whole, and may have none.
        """
        return (self,)

    def predictions(self) -> Predictions:
        """Read all rows into one batch.

        Raises
        ------
        DataError
            There are no rows.
        """
        batches = list(self.batches())
        if not batches:
            msg = "there are no rows"
            raise DataError(msg)
        return concat(batches)

    @contextmanager
    def error_context(self) -> Iterator[None]:
        """Tell problems with the rows by their places in the file they came from, and by the names of its columns."""
        try:
            yield
        except ValuesError as error:
            raise DataError(
                error.message(self.column_name(error.name), self.predictions().row_numbers().tolist())
            ) from error

    @contextmanager
    def error_names(self) -> Iterator[None]:
        """Tell problems as :meth:`with_row_numbers`, and in which file they are."""
        with self.error_context():
            yield

    def column_name(self, role: str) -> str:
        """Name a role as users know it."""
        return role

    @abstractmethod
    def input_info(self) -> Input:
        """Say what was read."""

    def streamed_input_info(self, n: int, first: Predictions) -> Input:  # noqa: ARG002 - for those who would have to read all rows
        """Say what was read, where all n rows were read batch by batch, the first of them these."""
        return self.input_info()

    def warnings(self) -> tuple[str, ...]:
        """Say what was changed on the way."""
        return ()


@dataclass(frozen=True)
class InMemory(Source):
    """Predictions that are there already."""

    rows: Predictions

    def batches(self) -> Iterator[Predictions]:
        yield self.rows

    def input_info(self) -> Input:
        family = None if self.rows.predictive is None else self.rows.predictive.display_name
        return Input(files=(), n=len(self.rows), dropped=0, predictive=family, columns={})
