"""Batches of rows of a file, whole or by partitions."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from calcheck.core.lazy_inputs import LazyInputs
from calcheck.core.text import count_of
from calcheck.core.validation import finite_rows
from calcheck.distributions import Predictive
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import DataError, FileError, ValuesError
from calcheck.io.arrow_columns import ReadLimits, keys, sort_keys, to_scalars
from calcheck.io.column_names import ColumnOptions
from calcheck.io.column_roles import Roles, arrays_of, columns_read, predictive_of
from calcheck.io.columnar import ParquetTable
from calcheck.io.crossing import Crossing
from calcheck.io.files import AnyFile, File, Files, file_named
from calcheck.io.filters import TableLayout
from calcheck.io.join import JoinedColumn, KeyIndex
from calcheck.io.tables import ConcatTable, Table, read_batches
from calcheck.predictions import Predictions, concat
from calcheck.typing import AnyArray, Floats, Indices, Mask

if TYPE_CHECKING:
    from calcheck.distributions.noise_clip_rounding import Observation, Observations

NO_ROWS = "every row has a missing number, so --nan-policy omit leaves no rows"
LIMITS = ("lower", "upper")
MIN_ROWS = 20  # Minimum rows to check: fewer rows may be equal by chance
MAX_RUNS = 4  # Maximum number of appended runs that are detected
NARROW_BYTES = 32  # Distributions with at most this many bytes of parameters per row are always loaded


def parts_of(file: AnyFile, table: Table) -> Iterator[tuple[AnyFile, int]]:
    """Yield the partitions of files in row order, each with its first row; a table in memory is one partition."""
    if isinstance(table, ConcatTable) and isinstance(file, Files):
        for member, member_table, start in zip(file.members, table.tables, table.starts[:-1], strict=True):
            for part, place in _of_one(member.file, member_table):
                yield Files(file.name, (replace(member, file=part),), table.schema), start + place
    elif isinstance(file, File):
        yield from _of_one(file, table)
    else:
        yield file, 0


def _of_one(file: File, table: Table) -> Iterator[tuple[File, int]]:
    """Yield runs of row groups of a Parquet file, with their first rows; other files whole."""
    if not isinstance(table, ParquetTable):
        yield file, 0
        return
    place = 0
    for groups in _runs(table, file.limits):
        yield replace(file, groups=groups, in_memory=False), place
        place += sum(rows for rows, _ in map(table.group, groups))


def _runs(table: ParquetTable, limits: ReadLimits) -> list[tuple[int, ...]]:
    """Return runs of consecutive row groups of the minimum size; a smaller remainder joins the last run."""
    runs: list[tuple[int, ...]] = []
    groups: tuple[int, ...] = ()
    for group in table.groups:
        groups = (*groups, group)
        rows, size = map(sum, zip(*map(table.group, groups), strict=True))
        if rows >= limits.partition_rows or size >= limits.partition_bytes:
            runs.append(groups)
            groups = ()
    return [*runs[:-1], (*(runs[-1] if runs else ()), *groups)]


def require_no_rerun(rows: Predictions) -> Predictions:
    """Return the rows, unless the file holds the same rows several times in the same order."""
    if rows.y is None or rows.predictive is None or len(rows) < MIN_ROWS:
        return rows
    for runs in range(2, MAX_RUNS + 1):
        size, left = divmod(len(rows), runs)
        if left or not np.array_equal(rows.y[0], rows.y[size]):  # cheap test first
            continue
        if not np.array_equal(rows.y[size:], rows.y[:-size]) or (rows.y == rows.y[0]).all():
            continue
        later, earlier = rows.predictive.take(slice(size, None)), rows.predictive.take(slice(None, -size))
        if later.equals(earlier).all():
            raise DataError(
                f"the file holds the same {size:,} rows {runs} times, one after the other. Were runs appended? Keep one"
                " of them"
            )
    return rows


def require_unique_keys(rows: Predictions) -> Predictions:
    """Return the rows, unless a key occurs more than once."""
    if rows.id is None:
        return rows
    ids = rows.id.tolist()
    if len(set(ids)) == len(ids):
        return rows
    repeated = [key for key, count in Counter(ids).items() if count > 1]
    places = [place for place, key in enumerate(ids) if key == repeated[0]][:2]
    first, second = rows.row_numbers()[places]
    many = count_of(len(repeated), f"value of {rows.id_name!r} occurs", f"values of {rows.id_name!r} occur")
    raise DataError(
        f"{many} more than once, for example {str(rows.id[places[0]])!r} in"
        f" rows {first} and {second}. Were rows appended by a rerun? Keep one row per key, or name another key with"
        " --id. For several targets per input, use jmmd, ammd, cmmd or fid"
    )


@dataclass
class Scan:
    """One pass over the rows of a file."""

    file: AnyFile
    layout: TableLayout  # The table with one row per unit
    options: ColumnOptions  # The column options of the user
    roles: Roles  # The columns to read, by role
    column_names: Callable[[str], str]  # Returns the name of a role in messages
    narrow: tuple[str, ...] | None = None  # Columns to show beside results
    also: tuple[str, ...] = ()  # Columns without a role that rows are sorted or grouped by
    # embedding, truth: columns joined from other files
    embedding: JoinedColumn | None = None
    truth: JoinedColumn | None = None
    start: int = 0  # The number of the first row, in a partition
    part: bool = False  # Whether this is a partition of a larger file, which may be empty
    observed: bool = True  # Whether distributions are those of observed targets, if options say how these were observed
    place: int | None = None  # The place of the only one of several targets that is used
    read: int = field(default=0, init=False)
    n_dropped: int = field(default=0, init=False)
    n_clipped: int = field(default=0, init=False)
    crossing: Crossing = field(default_factory=Crossing, init=False)
    _valid: int = field(default=0, init=False)
    _file_stop: int = field(default=0, init=False)

    def inputs(self) -> Generator[Floats]:
        """Read the inputs again, in batches."""
        roles = replace(self.roles, target=(), predictive=None, id=None, keys=())
        for batch in self._again(roles=roles).batches():
            yield batch.inputs()

    def distributions(self) -> Iterator[Predictive]:
        """Read the distributions again, in batches."""
        roles = replace(self.roles, target=(), x=(), id=None, keys=())
        again = self._again(roles=roles, embedding=None)
        return (batch.predictive for batch in again.batches() if batch.predictive is not None)

    def _again(self, **changes: Any) -> Self:
        """Return a scan of fewer columns, with all that determine which rows are dropped."""
        return replace(self) if self.lenient else replace(self, narrow=None, also=(), truth=None, **changes)

    @property
    def _extra(self) -> tuple[str, ...]:
        """Further columns to read, without a role."""
        return tuple(dict.fromkeys([*self.also, *(self.narrow or ())]))

    @property
    def lenient(self) -> bool:
        """Whether rows with missing numbers in any column are dropped."""
        return self.options.nan_policy == "omit"

    def batches(self) -> Iterator[Predictions]:
        """Read the rows from the start, in order."""
        with file_named(self.file.display_name):
            yield from self._batches()

    def _batches(self) -> Iterator[Predictions]:
        self.n_dropped = self.n_clipped = self._valid = self._file_stop = 0
        self.crossing = Crossing()
        n_kept, keyed = 0, []
        for table, units in self._pieces():
            n_kept += len(table)
            keyed.append(table.select(list(self.roles.keys)))
            self._enter_file()
            rows = self._batch(table, units) if len(table) else None
            self._valid += 0 if rows is None else len(rows)
            if rows is not None and not self._refuses_crossing:
                yield rows
        if self._refuses_crossing:
            raise self._error(partial(self.crossing.message, self.column_names("quantiles")), self.crossing.first)
        if self.part:
            return
        if n_kept == self.n_dropped > 0:
            raise DataError(NO_ROWS)
        if self.read and not n_kept:
            raise DataError(self.layout.filters.no_rows_message())
        for joined in (self.embedding, self.truth):
            if joined is not None:
                joined.require_all_used(self.read)
        if self.roles.keys:
            pairs = tuple((name, name) for name in self.roles.keys)
            remedy = "Were files appended? Keep one row per key"
            KeyIndex.from_table("this file", pairs, pa.concat_tables(keyed), remedy)

    def _pieces(self) -> Iterator[tuple[pa.Table, Indices]]:
        """Yield tables of the needed columns of the rows that pass the filters, with their row numbers."""
        filters, seen = self.layout.filters, dict[str, dict[str, None]]()
        wanted = [*columns_read(self.roles, self._extra), *self.roles.keys, *filters.columns]
        wanted += [key for joined in (self.embedding, self.truth) if joined for key in joined.keys]
        self.read = 0
        # Pieces limit the memory of inputs joined from another file
        values = None if self.embedding is None else self.embedding.values
        most = None if values is None else max(1, self.file.limits.joined_bytes // max(1, values[:1].nbytes))
        names = list(dict.fromkeys(wanted)) or self.layout.table.schema.names[:1]  # a table without columns has no rows
        for table in read_batches(self.file, self.layout.table, names):
            size = most or max(1, len(table))
            for piece in (table.slice(start, size) for start in range(0, max(1, len(table)), size)):
                passed, places = filters.passing(piece)
                places += self.start + self.read
                self.read += len(piece)
                filters.require_one_of_each(passed, seen)
                yield passed, places

    def _batch(self, table: pa.Table, units: Indices) -> Predictions | None:
        """Return the predictions of a batch of rows; None if all rows are dropped."""
        roles, lenient = self.roles, self.lenient
        places = self.layout.row_numbers(units)
        columns: dict[str, AnyArray] = {}
        try:
            arrays = arrays_of(table, roles)
            id_ = keys(table[roles.id], roles.id) if roles.id else None
        except ValuesError as error:
            raise self._located(error, error.name, places) from error
        if self.embedding is not None:
            arrays["x"] = self.embedding.rows(table, units, lenient=lenient)
        if self.truth is not None:
            arrays["y"] = np.asarray(self.truth.rows(table, units, lenient=lenient), dtype=np.float64)
            columns |= {"y": arrays["y"]} if self.narrow is not None else {}
        columns |= {name: to_scalars(table[name]) for name in self._extra}
        columns |= {name: sort_keys(table[name], name) for name in self.also}
        if lenient:
            complete = _complete_rows(arrays, (columns[name] for name in self.also))
            self.n_dropped += int(len(complete) - complete.sum())
            arrays, columns = ({name: each[complete] for name, each in found.items()} for found in (arrays, columns))
            id_, places = None if id_ is None else id_[complete], places[complete]
            if not complete.any():
                return None
        if "quantiles" in arrays:
            arrays["quantiles"] = self.crossing.sort(arrays["quantiles"], places)
        try:
            predictive, raised = predictive_of(roles, arrays, self.options.min_std)
            self.n_clipped += raised
            predictive, observation = self._of_observed(predictive, arrays)
            return Predictions(
                y=arrays.get("y"),
                predictive=predictive,
                observation=None if self.observed else observation,
                x=arrays.get("x"),
                has_embedding=roles.has_embedding,
                id=id_,
                id_name=roles.id or "id",
                row=None if arrays and np.array_equal(places, np.arange(len(places))) else places,
                columns=columns,
                input_columns=frozenset((*roles.x, *self.options.input_names)),
                categories=roles.categories,
            )
        except ValuesError as error:
            raise self._located(error, self.column_names(error.name), places) from error

    def _of_observed(
        self, predictive: Predictive | None, arrays: dict[str, AnyArray]
    ) -> "tuple[Predictive | None, Observation | Observations | None]":
        """Return the distributions of the target that is used as it was observed, and how; select it in the arrays."""
        if predictive is None:
            return None, None
        observation = None
        if self.roles.observed is not None:
            observation = self.roles.observed.observation(arrays, len(predictive), predictive.targets)
        if self.place is not None:
            arrays |= {"y": arrays["y"][:, self.place]} if "y" in arrays else {}
            predictive = predictive.of_target(self.place)
            observation = observation and observation.of_target(self.place)
        if observation is None:
            return predictive, None
        arrays |= {"y": observation.targets(arrays["y"])} if "y" in arrays else {}
        observation = observation.with_keys(predictive)
        return observation.distributions(predictive) if self.observed else predictive, observation

    def _located(self, error: ValuesError, name: str, places: Indices) -> DataError:
        """Return the error with the row numbers of the file that holds the rows, and the number of rows up to them."""
        total = f"{'the first ' if self.read < self._file_stop else ''}{self._valid + error.total:,}"
        return self._error(partial(error.message, name, total=total), places.tolist())

    def _enter_file(self) -> None:
        """Count the valid rows of each file on their own."""
        if self.read > self._file_stop:
            table = self.layout.table
            stops = table.starts[1:] if isinstance(table, ConcatTable) else [table.rows]
            self._valid, self._file_stop = 0, next((stop for stop in stops if stop >= self.read), self.read)

    @property
    def _refuses_crossing(self) -> bool:
        """Whether quantiles cross in a row read so far, and are not to be sorted."""
        return self.options.crossing == "raise" and self.crossing.count > 0

    def _error(self, message: Callable[[Sequence[int]], str], rows: Sequence[int]) -> DataError:
        """Return an error with a message about rows of one file, given their numbers among the rows of all files."""
        if not isinstance(self.layout.table, ConcatTable):
            return DataError(message(rows))
        file, start = self.layout.table.origin(rows[0] - self.start)
        return FileError(f"{file.name}: {message([row - self.start - start for row in rows])}")


def load_all(scan: Scan) -> tuple[Predictions, Scan]:
    """Return all rows as one batch, and its scan; large inputs are read only if they decide which rows are dropped."""
    joined = 0 if scan.embedding is None else scan.embedding.values.nbytes
    read = scan.layout.table.nbytes(scan.roles.x) if scan.roles.x else 0
    large = joined + read > scan.file.limits.input_bytes
    without = large and not scan.lenient
    eager = replace(scan, roles=replace(scan.roles, x=()), embedding=None) if without else scan
    batches: list[Predictions] = []
    size, first = 0, None
    for batch in eager.batches():
        size += 0 if batch.predictive is None or fits_in_memory(batch.predictive) else batch.predictive.nbytes
        if size > scan.file.limits.predictive_bytes and first is None and batch.predictive is not None:
            first = batch.predictive.take(slice(0, 1))
            batches = [earlier.without("predictive") for earlier in batches]
        deferred = [*(["predictive"] if first is not None else []), *(["x"] if large else [])]
        batches.append(batch.without(*deferred) if deferred else batch)
    rows = concat_batches(batches)
    if first is not None:
        rows = replace(rows, predictive=LazyPredictive(scan.distributions, first, len(rows)))
    if large:
        with closing(scan.inputs()) as blocks:
            block = next(blocks)
        inputs = LazyInputs(scan.inputs, (len(rows), block.shape[1]), block.dtype)
        rows = replace(rows, x=inputs if inputs.nbytes > scan.file.limits.input_bytes else inputs.load())
    return rows, eager


def fits_in_memory(predictive: Predictive) -> bool:
    """Return whether distributions have few parameters per row, and no draws or quantiles; intervals are few."""
    if predictive.interval_levels is not None:
        return True
    by_parameters = predictive.n_draws is None and predictive.quantile_levels is None
    return by_parameters and predictive.nbytes <= NARROW_BYTES * len(predictive)


def concat_batches(batches: list[Predictions]) -> Predictions:
    """Concatenate batches; row numbers are dropped if they are 0, 1, … and there are targets."""
    if not batches:
        raise DataError("there are no rows")
    stops = accumulate(map(len, batches))
    if batches[0].y is not None and all(
        np.array_equal(batch.row_numbers(), np.arange(stop - len(batch), stop))
        for batch, stop in zip(batches, stops, strict=True)
    ):
        batches = [copy(batch) for batch in batches]  # already validated
        for batch in batches:
            object.__setattr__(batch, "row", None)
    return concat(batches)


def _complete_rows(arrays: Mapping[str, AnyArray], others: Iterable[AnyArray]) -> Mask:
    """Return which rows have no missing number in any array, (n,); limits of intervals may be infinite, no gap."""
    limits = {name: np.where(np.isinf(arrays[name]), 0.0, arrays[name]) for name in LIMITS if name in arrays}
    complete: Mask = np.logical_and.reduce(
        [finite_rows(values) for values in (*{**arrays, **limits}.values(), *others)]
    )
    return complete
