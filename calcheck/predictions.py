"""Saved predictions: validated batches of rows, their keys, and the sources that read them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from calcheck.core.cache import cached
from calcheck.core.lazy_inputs import Categories, Inputs, LazyInputs, load, take
from calcheck.core.metric_info import MetricInfo
from calcheck.core.text import count_of
from calcheck.core.validation import concat_columns, require_moderate
from calcheck.distributions import Predictive
from calcheck.distributions.base import REPEATED
from calcheck.distributions.row_random import bottom_k, hash_rows, mix, occurrences
from calcheck.errors import DataError, Message, ValuesError
from calcheck.reports import Input
from calcheck.typing import AnyArray, Floats, Indices, Mask, Values

if TYPE_CHECKING:
    from calcheck.distributions.noise_clip_rounding import Observation, Observations


@dataclass(frozen=True, eq=False)
class Predictions:
    """A validated batch of n rows: targets, predictive distributions and inputs.

    Parameters
    ----------
    y : (n,), (n, t) or (n, r, t), optional
        Targets; t columns for a multivariate model, r repeated measurements per input.
    predictive : Predictive, optional
        One predictive distribution per row.
    x : (n, d), optional
        Embeddings or inputs on which calibration is conditioned, in any unit. Inputs that do not fit in memory are
        lazy: they stay in their file.
    has_embedding : bool
        True if ``x`` is a learned embedding, False if its columns are features in different units.
    id : (n,), optional
        Keys of the rows; rows with the same key are repeated targets of one input, for metrics that use them.
    id_name : str
        Name of the keys.
    row : (n,), optional
        Row numbers in the file, counted from 0; None means 0, 1, ….
    columns : mapping
        Scalar columns of the file by name, (n,) each: shown with pointwise results, not used in computations.
    input_columns : frozenset of str
        Names of those of them that are inputs.
    categories : tuple of Categories
        The columns of ``x`` that state the categories of a column of text.
    observation : Observation, optional
        How the targets were observed, if ``predictive`` is of targets before that.

    Raises
    ------
    DataError
        Lengths differ, or there are no rows.
    ValuesError
        A value is not finite, or a target is not a count although the family requires counts.
    """

    y: Values | None = None
    predictive: Predictive | None = None
    x: Inputs | None = None
    has_embedding: bool = True
    id: AnyArray | None = None
    id_name: str = "id"
    row: Indices | None = None
    columns: Mapping[str, AnyArray] = field(default_factory=dict)
    input_columns: frozenset[str] = frozenset()
    categories: tuple[Categories, ...] = ()
    observation: "Observation | Observations | None" = None

    def __post_init__(self) -> None:
        lengths = {name: len(value) for name, value in self._parts().items()}
        if not lengths:
            raise DataError("predictions are empty: give at least one of y, predictive and x")
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
            raise DataError(f"row counts differ: {counts}")
        if not len(self):
            raise DataError("there are no rows")
        self._check_values()

    def _check_values(self) -> None:
        if self.y is not None:
            require_moderate("y", self.y)
        if self.x is not None:
            if self.x.ndim != 2 or not self.x.shape[1]:  # noqa: PLR2004 - rows and columns
                raise DataError(f"x must be two-dimensional, rows by features, got shape {self.x.shape}")
            if not isinstance(self.x, LazyInputs):  # lazy inputs are checked on each read
                require_moderate("x", self.x)
        if self.y is not None and self.predictive is not None and self.observation is None:
            targets = self.y.shape[-1] if self.y.ndim > 1 else 1
            if targets != self.predictive.targets:
                found = self.predictive.targets
                pairs = " Members of a mean and a variance each are a mixture: loc, scale and weight of --dist mixture"
                raise DataError(
                    f"y has {count_of(targets, 'target column')}, the predictions have {found}."
                    " Give --mean and --std, --samples, or a loc of --dist joint-gaussian, for each target column."
                    f"{pairs if (targets, found) == (1, 2) and self.predictive.n_draws else ''}"
                )
            for y in np.moveaxis(self.y, 1, 0) if self.repeated else [self.y]:
                self.predictive.validate_targets(y.reshape(len(y), *([targets] if targets > 1 else [])))

    def _parts(self) -> dict[str, Any]:
        named = {"y": self.y, "predictive": self.predictive, "x": self.x, "id": self.id, "row": self.row}
        named |= self.columns
        return {name: value for name, value in named.items() if value is not None}

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return len(next(iter(self._parts().values())))

    @property
    def repeated(self) -> bool:
        """Whether each input has repeated targets: ``y`` is (n, r, t)."""
        return self.y is not None and self.y.ndim == REPEATED

    def targets(self) -> Values:
        """Return the targets."""
        if self.y is None:
            raise DataError("there are no targets")
        return self.y

    def inputs(self) -> Floats:
        """Return the inputs as one array in memory, (n, d)."""
        return load(self.lazy_inputs())

    @property
    def width(self) -> int:
        """Number of input features, d."""
        return int(self.lazy_inputs().shape[1])

    def columns_of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of a file that inputs of these names are from: one for all categories of a column."""
        of_text = {f"{each.column}={value}": each.column for each in self.categories for value in each.values}
        return tuple(dict.fromkeys(of_text.get(name, name) for name in names))

    def lazy_inputs(self) -> Inputs:
        """Return the inputs, (n, d), in memory or lazy."""
        if self.x is None:
            raise DataError("there are no inputs and no embedding. Pass --embedding or --inputs")
        return self.x

    def distributions(self) -> Predictive:
        """Return the predictive distributions."""
        if self.predictive is None:
            raise DataError("there are no predictive distributions")
        return self.predictive

    def row_numbers(self) -> Indices:
        """Return the row numbers in the file, (n,)."""
        return np.arange(len(self)) if self.row is None else self.row

    def without(self, *parts: str) -> Self:
        """Return a copy without the named parts; row numbers are always included."""
        absent: dict[str, Any] = dict.fromkeys(parts)
        return replace(self, row=self.row_numbers(), **absent)

    def with_targets(self, y: Values | None, predictive: Predictive) -> Self:
        """Return a copy with other targets and distributions of the same length, without validation."""
        changed = copy(self)  # skips the costly check of the inputs
        object.__setattr__(changed, "y", y)
        object.__setattr__(changed, "predictive", predictive)
        return changed

    def of_target(self, place: int) -> Self:
        """Return the rows with one of several targets, and its distributions."""
        y = None if self.y is None else np.ascontiguousarray(self.y[:, place])
        own = self.with_targets(y, self.distributions().load().of_target(place))
        object.__setattr__(own, "observation", self.observation and self.observation.of_target(place))
        return own

    def take(self, rows: Indices | slice) -> Self:
        """Return the selected rows, in the given order."""
        return replace(
            self,
            y=None if self.y is None else self.y[rows],
            predictive=None if self.predictive is None else self.predictive.take(rows),
            x=None if self.x is None else take(self.x, rows),
            id=None if self.id is None else self.id[rows],
            row=self.row_numbers()[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
            observation=None if self.observation is None else self.observation.take(rows),
        )

    def observed(self) -> Self:
        """Return the rows with the distributions of targets as they were observed."""
        if self.observation is None or self.predictive is None:
            return self
        return replace(self, predictive=self.observation.distributions(self.predictive.load()), observation=None)


def concat(batches: list[Predictions]) -> Predictions:
    """Return batches with the same parts concatenated into one."""
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
        observation=first.observation and first.observation.join([cast("Any", batch.observation) for batch in rest]),
    )


def first_rows(batches: Iterable[Predictions], count: int) -> Predictions:
    """Return the first rows of batches, and read no more of these than needed."""
    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += len(batch)
        if size >= count:
            break
    return concat(found).take(slice(count))


class Source(ABC):
    """A source of :class:`Predictions` that can be read several times, in batches."""

    @abstractmethod
    def batches(self) -> Iterator[Predictions]:
        """Return an iterator over batches of rows, in order from the first row."""

    def parts(self) -> "Sequence[Source]":
        """Return sources with the same rows in the same order, for parallel work; they can be pickled, or empty."""
        return (self,)

    def predictions(self) -> Predictions:
        """Return all rows as one batch."""
        batches = list(self.batches())
        if not batches:
            raise DataError("there are no rows")
        return concat(batches)

    def beginning(self, count: int) -> Predictions:
        """Return the first rows, with the columns by which rows may depend on each other."""
        return first_rows(self.batches(), count)

    def of_target(self, place: int) -> "Source":
        """Return the source with one of several targets."""
        return MappedSource(self, methodcaller("of_target", place))

    @contextmanager
    def error_context(self) -> Iterator[None]:
        """Convert errors about values into errors that name the column and the row numbers in the file."""
        try:
            yield
        except ValuesError as error:
            places = self.predictions().row_numbers().tolist()
            raise error.named(self.column_name(error.name), places) from error

    @contextmanager
    def error_names(self) -> Iterator[None]:
        """Do the same as :meth:`error_context` and, for sources that are files, name the file."""
        with self.error_context():
            yield

    def column_name(self, role: str) -> str:
        """Return the name of a role for messages."""
        return role

    @abstractmethod
    def input_info(self) -> Input:
        """Return a description of what was read."""

    def streamed_input_info(self, n: int, first: Predictions) -> Input:  # noqa: ARG002 - for overrides that avoid another pass
        """Return a description of n rows that were read in batches, given the first batch."""
        return self.input_info()

    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs, if they are columns."""
        return ()

    def target_name(self, place: int) -> str:
        """Return the name of one of several targets."""
        return f"y_{place + 1}"

    def measurement_errors(self) -> list[str]:
        """Return the columns without a role that may hold the standard deviations of measurement errors."""
        return []

    def free_columns(self) -> Mapping[str, AnyArray]:
        """Return the columns without a role, (n,) each: of few different texts, and of numbers; integers are few."""
        return {}

    def warnings(self) -> tuple[Message, ...]:
        """Return warnings about changes that were made to the data while reading."""
        return ()


@dataclass(frozen=True)
class InMemory(Source):
    """A source of predictions that are already in memory."""

    rows: Predictions

    def batches(self) -> Iterator[Predictions]:
        yield self.rows

    def input_info(self) -> Input:
        family = None if self.rows.predictive is None else self.rows.predictive.display_name
        return Input(files=(), n=len(self.rows), dropped=0, predictive=family, columns={})


@dataclass(frozen=True)
class DerivedSource(Source):
    """A source with other rows than its origin, which keeps the names, description and warnings of the origin."""

    origin: Source  # The source from which the rows are derived

    def column_name(self, role: str) -> str:
        return self.origin.column_name(role)

    def input_info(self) -> Input:
        return self.origin.input_info()

    def input_names(self) -> tuple[str, ...]:
        return self.origin.input_names()

    def measurement_errors(self) -> list[str]:
        return self.origin.measurement_errors()

    def warnings(self) -> tuple[Message, ...]:
        return self.origin.warnings()


@dataclass(frozen=True)
class MappedSource(DerivedSource):
    """A source with a function applied to the rows of its origin."""

    function: Callable[[Predictions], Predictions]  # Returns the new rows of a batch, in the same order

    def free_columns(self) -> Mapping[str, AnyArray]:
        return self.origin.free_columns()

    def batches(self) -> Iterator[Predictions]:
        return map(self.function, self.origin.batches())

    def parts(self) -> Sequence[Source]:
        return [MappedSource(part, self.function) for part in self.origin.parts()]

    @cached_property
    def _rows(self) -> Predictions:
        return self.function(self.origin.predictions())

    def predictions(self) -> Predictions:
        return self._rows


class HasInfo(Protocol):
    """A metric; its info declares whether it supports repeated targets."""

    info: ClassVar[MetricInfo]


def group_by_input(source: Source, metrics: Iterable[type[HasInfo]]) -> Source:
    """Return the source with one row per input, if rows share keys and all metrics support repeated targets."""
    if all(metric.info.repeated_targets for metric in metrics) and _repeats(source.predictions()):
        return GroupedSource(source)
    return source


@dataclass(frozen=True)
class GroupedSource(Source):
    """A source in which rows with the same key are combined into one input with several targets."""

    source: Source

    @cached_property
    def _gathered(self) -> Predictions:
        return group_rows(self.source.predictions())

    def batches(self) -> Iterator[Predictions]:
        yield self._gathered

    def predictions(self) -> Predictions:
        return self._gathered

    @contextmanager
    def error_names(self) -> Iterator[None]:
        with self.source.error_names(), self.error_context():
            yield

    def column_name(self, role: str) -> str:
        return self.source.column_name(role)

    def input_info(self) -> Input:
        return replace(self.source.input_info(), n=len(self._gathered))

    def warnings(self) -> tuple[Message, ...]:
        rows, n = self.source.predictions(), len(self._gathered)
        message = (
            f"{len(rows):,} rows were grouped by {rows.id_name} into {n:,} inputs with {len(rows) // n} targets each"
        )
        return (*self.source.warnings(), Message("grouped-rows", message))


def _repeats(rows: Predictions) -> bool:
    """Return whether several rows have the same key."""
    return rows.id is not None and len(np.unique(rows.id.astype(str))) < len(rows)


def group_rows(rows: Predictions) -> Predictions:
    """Return the rows with one row per key."""
    if rows.id is None or rows.y is None or not _repeats(rows):
        return rows
    _, first, key, counts = np.unique(rows.id.astype(str), return_index=True, return_inverse=True, return_counts=True)
    if counts.min() != counts.max():
        least, most = int(counts.argmin()), int(counts.argmax())
        numbers = " and ".join(f"{rows.id[first[place]]!s} has {counts[place]:,}" for place in (least, most))
        msg = f"repeated targets need the same number of rows for each {rows.id_name}, but {numbers}. Remove some rows"
        raise DataError(msg)
    # Keys are in order of first occurrence, rows in file order
    members = np.argsort(first[key], kind="stable").reshape(len(first), counts[0])
    heads = members[:, 0]
    first_row = np.empty(len(rows), np.intp)
    first_row[members] = heads[:, None]
    _require_same(rows, first_row)
    constant = {name: values[heads] for name, values in rows.columns.items() if _equal(values, values[first_row]).all()}
    one = rows.take(heads)
    y = rows.y.reshape(len(rows), -1)[members]
    order = np.lexsort(np.moveaxis(y, 2, 0)[::-1], axis=1)
    return replace(one, y=np.take_along_axis(y, order[:, :, None], axis=1), columns=constant)


def _require_same(rows: Predictions, first_row: Indices) -> None:
    """Raise unless each row has the inputs and predictions of the first row with its key."""
    parts: dict[str, Mask] = {}
    if rows.x is not None:
        x = rows.inputs()
        parts["inputs"] = (x == x[first_row]).all(axis=1)
    if rows.predictive is not None:
        predictive = rows.predictive.load()
        parts["predictions"] = predictive.equals(predictive.take(first_row))
    for what, same in parts.items():
        if not same.all():
            row = int(np.argmin(same))
            places = rows.row_numbers()
            raise DataError(
                f"rows {places[first_row[row]]} and {places[row]} have the same {rows.id_name} but different {what}:"
                " repeated targets must have the same input. Choose another key with --id"
            )


def _equal(first: AnyArray, second: AnyArray) -> Mask:
    """Return where values are equal; missing values are equal to each other."""
    return np.asarray((first == second) | ((first != first) & (second != second)))  # noqa: PLR0124 - NaN


Words = NDArray[np.uint64]


def row_keys(rows: Predictions, seed: int) -> Words:
    """Return a key for each row of a data set, (n,), which does not depend on the order of the rows.

    A key is a hash of the seed, the target and the distribution. Ties are broken by inputs, other columns and id, and
    for fully equal rows by a counter.
    """
    keys = _row_hashes(rows, seed)
    tied = _tied(keys)
    if len(tied):
        keys[tied] = hash_rows([keys[tied], *_others(rows, tied)], 0)
        keys[tied] ^= mix(occurrences(keys[tied]))
    return keys


@cached
def row_sample(rows: Predictions, size: int, seed: int) -> Indices:
    """Return the places of a random sample of rows, in ascending order, which depends on the seed and on their keys."""
    return np.sort(bottom_k(mix(row_keys(rows, seed)), size))


def batch_row_keys(rows: Predictions, seed: int) -> Words:
    """Return a :func:`row_keys` of each row of a batch, (n,); the row number breaks ties, as others are unknown."""
    keys = _row_hashes(rows, seed)
    tied = _tied(keys)
    keys[tied] = mix(keys[tied] ^ mix(rows.row_numbers()[tied].astype(np.uint64) + np.uint64(1)))
    return keys


def _row_hashes(rows: Predictions, seed: int) -> Words:
    return hash_rows([rows.targets(), rows.distributions().hashes(seed)], seed)


def _tied(hashes: Words) -> Indices:
    """Return the positions of hashes that occur more than once."""
    order = np.argsort(hashes, kind="stable")
    equal = np.diff(hashes[order]) == 0
    return np.asarray(order[np.concatenate([equal, [False]]) | np.concatenate([[False], equal])])


def _others(rows: Predictions, chosen: Indices) -> list[AnyArray]:
    """Return further data of the chosen rows: inputs in memory, and ranks of columns and ids."""
    found: list[AnyArray] = [] if rows.x is None or isinstance(rows.x, LazyInputs) else [rows.x[chosen]]
    for values in (*rows.columns.values(), *([] if rows.id is None else [rows.id])):
        column = values[chosen]
        found.append(np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)[1])
    return found


def with_input_columns(results: Mapping[str, AnyArray], rows: Predictions) -> dict[str, AnyArray]:
    """Return the keys of the rows, their results, and the other columns of the input, (n,) each."""
    keys = {} if rows.id is None else {rows.id_name: rows.id}
    columns = {**keys, **results}
    for name, values in rows.columns.items():
        if name in keys or (name in columns and np.array_equal(columns[name], values)):
            continue
        free = name
        while free in columns or (free != name and free in rows.columns):
            free += "_given"
        columns[free] = values
    return columns
