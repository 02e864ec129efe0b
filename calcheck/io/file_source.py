"""A source of predictions in files."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from calcheck.core.lazy_inputs import Categories
from calcheck.distributions.quantiles import Intervals
from calcheck.errors import DataError, Message, OptionError, listed_columns
from calcheck.execution.run import available_memory
from calcheck.io import column_roles, interval_columns, join, role_inference
from calcheck.io.array_files import ArrayTable
from calcheck.io.arrow_columns import (
    first_label,
    is_absent,
    is_complete,
    is_date,
    is_number,
    is_scalar,
    is_text,
    is_vector,
    key_text,
    pc,
    to_numpy,
)
from calcheck.io.batches import Scan, load_all, parts_of, require_no_rerun, require_unique_keys
from calcheck.io.column_names import SPREADS, ColumnOptions
from calcheck.io.files import STDIN, AnyFile, Files, file_named, resolve, shown_path
from calcheck.io.filters import Filters, TableLayout, require_one
from calcheck.io.long_layouts import explode, parse_distributions, pivot_long
from calcheck.io.naming_schemes import LONG, NESTED, ColumnIndex, Nested, forms_of, unclear_spreads
from calcheck.io.tables import Table, notes_of, open_table, read_batches
from calcheck.predictions import HasInfo, Predictions, Source, first_rows
from calcheck.reports import FileRole, Input, InputFile
from calcheck.typing import AnyArray

MAX_COLUMNS = 3  # Maximum columns to try
MAX_CATEGORIES = 30  # Maximum number of different texts in a column of inputs
MOST_NUMBERS = 20  # Maximum number of columns of numbers that are tried as a cause
FIRST_ROWS = 1_000  # Columns that fall among these are not read as possible times
FAMILY = "dist"  # Column that names the family, in files written by calcheck
MIN_ERRORS = 10  # Fewer errors may all be positive by chance
COPIES = 3  # Peak number of copies of the rows in memory during reading
GIB = 1 << 30


@dataclass
class FileSource(Source):
    """Predictions in a file, or in a table that is in memory."""

    file: AnyFile  # The file or files, or the table
    options: ColumnOptions = field(default_factory=ColumnOptions)  # The column options of the user
    # "all": targets and predictions are required; "any": both are optional; "sample": only targets and inputs are read;
    # "inputs": only inputs and keys are read
    contents: column_roles.Contents = "all"
    narrow: bool = False  # Whether the other scalar columns are read too, to be shown beside results
    also: tuple[str, ...] = ()  # Further columns to read, without a role
    # Further columns and how they are cut, such as "age:5"; this is the column "age", unless it is a name
    by: tuple[str, ...] = ()
    dependence: tuple[str, ...] = ()  # Columns of times or clusters, which are no targets unless an option names them
    # Whether columns of dates and keys are read too if all rows are loaded, to notice that rows depend on each other
    grouping: bool = False
    inputs: bool = True  # Whether inputs and embeddings are read
    repeated: bool = False  # Whether keys may be repeated
    observed: bool = True  # Whether distributions are those of observed targets, if options say how these were observed
    # The categories of inputs that are text, of the rows with which these are compared; None for those of the file
    categories: tuple[Categories, ...] | None = None
    start: int | None = None  # The number of the first row, if this source is one of the `parts` of another
    _passed: Scan | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: no open files, so another process opens the file itself."""
        sent = {declared.name: getattr(self, declared.name) for declared in fields(self) if declared.init}
        return sent | {name: value for name, value in vars(self).items() if name == "roles"}

    def __post_init__(self) -> None:
        if isinstance(self.file, Files) and self.contents != "inputs":
            self.file = self.file.prune_partitions(self.options.filter)

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.file.display_name

    @cached_property
    def layout(self) -> TableLayout:
        """The opened table with one row per unit."""
        table = self._opened()
        with file_named(self.name):
            if self.contents == "inputs":
                return TableLayout(table)
            filters = Filters.from_options(self.options.filter, self.options.model, table.schema)
            searched = self.contents != "sample" and not self.options.names_form
            layout = next((each for each in (*LONG, *NESTED) if searched and each.matches(table.schema)), None)
            if layout is None:
                has_text = searched and any(is_text(each.type) for each in table.schema)
                texts = parse_distributions(self.file, table, filters) if has_text else None
                return texts or TableLayout(table, filters=filters, notes=notes_of(table))
            if isinstance(layout, Nested):
                return explode(layout, self.file, table, filters)
            return pivot_long(layout, self.file, table, self.options, filters)

    def _opened(self) -> Table:
        """Return the table; arrays get as many rows as targets in another file, and a column for each input."""
        table = open_table(self.file)
        if self.contents == "inputs" and isinstance(table, ArrayTable) and self.options.inputs:
            return table.split(self.options.input_names)
        if not isinstance(table, ArrayTable) or self.options.truth is None or self.contents == "inputs":
            return table
        truth, _ = join.split_column(self.options.truth)
        return table if truth == STDIN else table.with_rows(open_table(resolve(truth)).rows)

    @property
    def table(self) -> Table:
        """The table with one row per unit."""
        return self.layout.table

    @cached_property
    def columns(self) -> ColumnIndex:
        """The index of the columns."""
        return ColumnIndex(self.table.schema, self.layout.keys)

    @cached_property
    def roles(self) -> column_roles.Roles:
        """The roles of the columns."""
        with file_named(self.name):
            external = self._external_name is not None
            if self.contents in ("sample", "inputs"):
                targets = self.contents == "sample"
                found = role_inference.find_input_roles(self.columns, self.options, external=external, targets=targets)
                return self._with_categories(found)
            roles = role_inference.find_roles(
                self.columns, self._completed(), external=external, dependence=self.dependence
            )
            if self.contents == "all" and (problem := next(self._missing(roles), None)):
                raise DataError(problem)
            return self._with_categories(roles) if self.inputs else replace(roles, x=())

    def _with_categories(self, roles: column_roles.Roles) -> column_roles.Roles:
        """Return roles with the categories of inputs that are text."""
        if roles.has_embedding or not roles.x:
            return roles
        found: list[Categories] = []
        place = 0
        for name in roles.x:
            values = self._categories_of(name)
            found += [Categories(name, values, place)] if values else []
            place += max(1, len(values))
        narrow = tuple(dict.fromkeys([*roles.narrow, *(each.column for each in found)]))
        return replace(roles, categories=tuple(found), narrow=narrow)

    def _categories_of(self, name: str) -> tuple[str, ...]:
        """Return the different texts of a column of inputs; none if it holds numbers."""
        known = {each.column: each.values for each in self.categories or ()}
        kind = self.table.schema.field(name).type
        if name in known or not (is_text(kind) or pa.types.is_dictionary(kind)):
            return known.get(name, ())
        values = self._values_of(name).unique()
        if (label := first_label(values)) is None:
            return ()
        if self.categories is not None:
            raise DataError(f"column {name!r} has texts, such as {label!r}, and numbers in the rows to compare with")
        values = values.filter(pc.invert(is_absent(values)))
        if len(values) > MAX_CATEGORIES:
            msg = f"column {name!r} has {len(values):,} different texts, such as {label!r}, and --inputs takes up to"
            raise DataError(f"{msg} {MAX_CATEGORIES} categories: name fewer, or numbers, or pass --time or --cluster")
        return tuple(sorted(values.to_pylist()))

    def _completed(self) -> ColumnOptions:
        """Return the options with the family that the file names, and without a model that a filter selected."""
        names = self.columns.free
        options = self.columns.without_absent_target(self.options) if self.contents == "new" else self.options
        if self.layout.filters.model is not None:
            options = replace(options, model=None)
        if FAMILY not in names or options.names_form or not is_text(self.table.schema.field(FAMILY).type):
            return options
        families = [value for value in self._values_of(FAMILY).unique().to_pylist() if value]
        require_one(families, "families of distributions", f"--filter {FAMILY}={{}}")
        return replace(options, dist=families[0]) if families else options

    def _values_of(self, column: str) -> pa.ChunkedArray:
        """Return one column of the rows that pass the filters, as text."""
        return self._texts_of([column])[column]

    def _texts_of(self, columns: Sequence[str], *, plain: Sequence[str] = ()) -> dict[str, pa.ChunkedArray]:
        """Return columns of the rows that pass the filters, as text, except plain ones."""
        chunks = {name: list[pa.Array]() for name in columns}
        for rows in self._passing(columns):
            for name in columns:
                chunks[name] += (rows[name] if name in plain else key_text(rows[name])).chunks
        return {name: pa.chunked_array(each, None if each else pa.string()) for name, each in chunks.items()}

    def _passing(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of some columns of the rows that pass the filters; none without columns."""
        filters = self.layout.filters
        names = [*dict.fromkeys([*columns, *filters.columns])]
        for batch in read_batches(self.file, self.table, names) if columns else ():
            yield filters.passing(batch)[0]

    @property
    def models(self) -> list[str]:
        """The names of models that columns start with; none if an option names the predictions."""
        stated = self.options.names_form or self.options.model is not None
        return [] if stated else list(dict.fromkeys(filter(None, (form.match for form in forms_of(self.columns.free)))))

    def missing(self) -> list[str]:
        """Return why metrics cannot compare predictions with targets, and what to do; empty if they can."""
        return list(self._missing(self.roles))

    def _missing(self, roles: column_roles.Roles) -> Iterator[str]:
        if roles.predictive is None:
            unclear = unclear_spreads(self.columns.free) if roles.target or self.options.truth else []
            missing = role_inference.missing_predictions(
                self.columns, self.options, self.file.name, self.coverage_without_level()
            )
            yield missing + self._scale_hint(unclear[:MAX_COLUMNS])
        if not roles.target and not self.options.truth:
            yield (
                "no column was recognized as the target. Pass --target COLUMN, or --truth FILE if another file has them"
                f" (columns: {self.columns.listed_names()})"
                + self.columns.perhaps(None if roles.predictive is None else column_roles.columns_of(roles.predictive))
            )

    def coverage_without_level(self) -> tuple[int, int] | None:
        """Return how many targets are in the only intervals, whose level is not known, and of how many; else None."""
        if interval_columns.without_level(self.columns, self.options) is None:
            return None
        try:
            rows = self.at_level(0.5).predictions()
        except (DataError, OptionError):
            return None
        if rows.y is None or not isinstance(rows.predictive, Intervals):
            return None
        return int(((rows.predictive.lower[:, 0] <= rows.y) & (rows.y <= rows.predictive.upper[:, 0])).sum()), len(rows)

    def at_level(self, level: float) -> "FileSource":
        """Return the source whose intervals have a level."""
        return replace(self, options=replace(self.options, level=(level,)))

    def _scale_hint(self, columns: Sequence[str]) -> str:
        """Return the mean z² of columns read as variances and as standard deviations, and the command that fits."""
        hints, found = [], list[tuple[float, str]]()
        for column in columns:
            try:
                rows = FileSource(self.file, replace(self.options, var=column)).predictions()
            except (DataError, OptionError):
                continue
            if rows.y is None or rows.predictive is None:
                continue
            error, std = rows.y - rows.predictive.mean(), rows.predictive.std()
            with np.errstate(all="ignore"):  # overflow and division by zero are shown as inf or nan
                as_variance, as_std = (float(np.mean((error / spread) ** 2)) for spread in (std, std**2))
                away = np.abs(np.log([as_variance, as_std]))
            found += [(float(each), f"--{kind} {column}") for each, kind in zip(away, ("var", "std"), strict=True)]
            hints.append(f"{column} gives {as_variance:.3g} as a variance, {as_std:.3g} as a standard deviation")
        if not hints:
            return ""
        command = f"calcheck {shlex.quote(self.file.name)} {min(found)[1]}"
        return f". Mean z² should be about 1: {'; '.join(hints)}; the nearest is {command}"

    def batches(self) -> Iterator[Predictions]:
        self._passed = self._pass()
        return self._passed.batches()

    def _pass(self, shown: tuple[str, ...] | None = None) -> Scan:
        """Return a new scan of all columns that are read, and of further ones that are not used in computations."""
        names = self.table.schema.names
        cut = [text if text in names else text.rpartition(":")[0] or text for text in self.by]
        also = tuple(dict.fromkeys([*self.also, *cut]))
        for name in also:
            if name not in names:
                raise DataError(f"there is no column {name!r} {listed_columns(names, name)}")
            if not is_scalar(self.table.schema.field(name).type):
                raise DataError(f"column {name!r} does not have one value per row")
        return Scan(
            self.file,
            self.layout,
            self.options,
            self.roles,
            self.column_name,
            narrow=self.roles.narrow if self.narrow else shown,
            also=also,
            embedding=self.embedding,
            truth=self.truth,
            start=self.start or 0,
            observed=self.observed,
            part=self.start is not None,
            place=self._place,
        )

    def parts(self) -> Sequence[Source]:
        if self.start is not None:
            return (self,)
        layout, filters = self.layout, self.layout.filters
        one_of_each = filters.target or (filters.model and not filters.chosen_model)
        joined = self.embedding is not None or self.truth is not None
        if layout.layout or joined or self.roles.keys or one_of_each or STDIN in self.file.paths:
            return (self,)  # reading or validating a row needs the other rows
        parts = [replace(self, file=file, start=start) for file, start in parts_of(self.file, self.table)]
        for part in parts:
            part.roles = self.roles  # inferred once, from all files
        return parts

    def narrow_bytes(self) -> int | None:
        """Return the approximate bytes of all rows without inputs, draws and quantiles; None if unknown."""
        if STDIN in self.file.paths or self.layout.layout or self.layout.filters.columns:
            return None
        return self._bytes(replace(self.roles, id=None, keys=()))

    def _bytes(self, roles: column_roles.Roles) -> int:
        """Return the approximate bytes of columns with roles, without inputs, draws and quantiles."""
        narrow = None if column_roles.is_wide(roles.predictive) else roles.predictive
        return self.table.nbytes(
            column_roles.columns_read(replace(roles, predictive=narrow, x=(), observed=None), roles.keys)
        )

    def predictions(self) -> Predictions:
        return self._loaded[0]

    @cached_property
    def _loaded(self) -> tuple[Predictions, Scan]:
        """All rows, and the scan that read them."""
        with file_named(self.name):
            self._require_room()
            rows, scan = load_all(self._pass(self._groupings()))
            pa.default_memory_pool().release_unused()  # the rows were copied: free Arrow's memory
            return require_no_rerun(rows if self.repeated else require_unique_keys(rows)), scan

    def beginning(self, count: int) -> Predictions:
        with file_named(self.name):
            return first_rows(replace(self._pass(self._groupings()), embedding=None).batches(), count)

    def _groupings(self) -> tuple[str, ...] | None:
        """Return the columns of dates and keys, and of numbers that may be times; None if they are not read."""
        if not self.grouping:
            return None
        found = {*role_inference.grouping_columns(self.table.schema), *self._increasing()}
        return tuple(name for name in self.roles.narrow if name in found)

    def _increasing(self) -> list[str]:
        """Return the columns of numbers that are inputs or have no role, and only increase over the first rows."""
        used = self.used_columns().difference(self.roles.x, self.options.input_names)
        schema = self.table.schema
        names = [name for name in self.roles.narrow if name not in used and is_number(schema.field(name).type)]
        for rows in self._passing(names):
            if len(first := rows.slice(0, FIRST_ROWS)) > 1:
                return [name for name in names if role_inference.only_increases(to_numpy(first[name]))]
        return []

    def _require_room(self) -> None:
        """Raise before reading if the rows do not fit in memory; with filters their number is unknown."""
        if self.layout.filters.columns:
            return
        needed, room = COPIES * self._bytes(self.roles), available_memory()
        if needed > room:
            raise DataError(
                f"its {self.table.rows:,} rows need {needed / GIB:,.1f} GiB to read, and {room / GIB:,.1f} are free."
                " Use fewer rows, or a smaller --memory: targets and predictions above that limit are processed in"
                " batches"
            )

    @property
    def reading(self) -> Scan:
        """The scan that read all rows: the one that loaded them, else the last streaming scan."""
        known = self.__dict__.get("_loaded", (None, self._passed))[1]
        return known or self._loaded[1]

    def input_info(self) -> Input:
        rows = self.predictions()
        return self.streamed_input_info(len(rows), rows)

    def streamed_input_info(self, n: int, first: Predictions) -> Input:
        read = self.layout.read or max(self.reading.read, n)
        role = column_roles.FILE_ROLES.get(self.contents, "predictions")
        files = [self._file(role, self.file, read)] if self.file.paths else []
        columns = self.roles.described_columns(self._place)
        unusual = columns.items() if self.roles.unusual else ()
        mapping = "; ".join(f"{role}: {name}" for role, name in unusual if role not in {name, "x"})
        if self.embedding is not None:
            files.append(self._file("embedding", self.embedding.file, len(self.embedding.values)))
            columns["x"] = str(self._external_name)
        if self.truth is not None:
            files.append(self._file("truth", self.truth.file, len(self.truth.values)))
            columns = {"y": f"{self.truth.display_name}, {self.truth.join_method()}", **columns}
        text = self.layout.layout or self.roles.tool or mapping
        only = "" if self._place is None else f"only {self.options.only}"
        return Input(
            files=tuple(files),
            n=n,
            dropped=self.reading.n_dropped,
            predictive=self._family(first),
            columns=columns,
            options=tuple(self.explicit()),
            layout=" · ".join(filter(None, (only, text))) or None,
        )

    def _family(self, rows: Predictions) -> str | None:
        role = self.roles.predictive
        if isinstance(role, column_roles.ResidualRole):
            return f"residuals, {role.shape}" if role.shape else "residuals, assumed normal"
        if rows.predictive is None:
            return None
        is_error = isinstance(role, column_roles.ParametersRole) and role.error
        return f"residuals, {rows.predictive.display_name}" if is_error else rows.predictive.display_name

    @staticmethod
    def _file(role: FileRole, file: AnyFile, rows: int) -> InputFile:
        return InputFile(role=role, path=shown_path(file.name), sha256=file.sha256, rows=rows, files=len(file.paths))

    def reads(self) -> tuple[str, ...]:
        """Return the names of all files that are read."""
        others = [name for name in (self._external_name, self.options.truth) if name is not None]
        return (*self.file.paths, *(path for name in others for path in resolve(join.split_column(name)[0]).paths))

    def warnings(self) -> tuple[Message, ...]:
        messages = [Message("layout", note) for note in self.layout.notes]
        if self.reading.n_clipped:
            text = f"{self.reading.n_clipped:,} standard deviations were raised to {self.options.min_std} (--min-std)"
            messages.append(Message("clipped-std", text))
        if self.reading.crossing.count:
            text = f"quantiles crossed in {self.reading.crossing.description()}, and were sorted (--crossing sort)"
            messages.append(Message("sorted-quantiles", text))
        if self.truth is not None and self.truth.key_index is None:
            text = (
                f"targets are joined {self.truth.join_method()} with {self.truth.file.name}; name keys with --join-on"
            )
            messages.append(Message("targets-joined-by-row", text))
        if isinstance(self.roles.predictive, column_roles.IntervalsRole) and (tool := self.roles.predictive.tool):
            level = f"{self.roles.predictive.levels[0]:g}"
            text = f"the level of {self.roles.predictive.lower[0]!r} is not in the file: {level} is that which {tool}"
            messages.append(Message("assumed-level", f"{text} writes unless told otherwise (else pass --level)"))
        if getattr(self.roles.predictive, "kind", "") == "var" and not self.options.var:
            *_, name = column_roles.columns_of(self.roles.predictive)
            messages.append(Message("assumed-variance", f"{name!r} is read as variances: else pass --std {name}"))
        if isinstance(self.roles.predictive, column_roles.ResidualRole) and self.roles.predictive.shape is None:
            messages.append(Message("unknown-shape", column_roles.SHAPE_UNKNOWN))
        if getattr(self.roles.predictive, "error", None):
            loaded = self.__dict__.get("_loaded")  # all rows, if they are in memory
            errors = [batch.y for batch in ([loaded[0]] if loaded else self.batches()) if batch.y is not None]
            if sum(map(len, errors)) > MIN_ERRORS and all((error >= 0).all() for error in errors):
                text = "no error is negative: are they absolute? Metrics that use the sign are wrong then"
                messages.append(Message("no-negative-error", text))
        return tuple(messages)

    @property
    def _external_name(self) -> str | None:
        name = self.options.embedding if self.inputs else None
        return name if name and name not in self.table.schema.names and join.names_a_file(name) else None

    @cached_property
    def embedding(self) -> join.JoinedColumn | None:
        """The embedding from another file, if any."""
        return join.read_embedding(self._external_name, self.roles.id) if self._external_name else None

    @cached_property
    def truth(self) -> join.JoinedColumn | None:
        """The targets from another file, if any."""
        if self.options.truth is None or self.contents == "inputs":
            return None
        if self.file.name == join.split_column(self.options.truth)[0] == STDIN:
            msg = "--truth and the predictions cannot both be standard input. Pass one of them by file name"
            raise OptionError(msg)
        used = (*column_roles.columns_of(self.roles.predictive), *self.roles.x)
        return join.read_truth(self.options, self.layout, self.roles, used, self._values_of)

    def used_columns(self) -> set[str]:
        """Return the columns with a role: targets, predictions, inputs and keys."""
        return {*column_roles.columns_read(self.roles), *self.roles.keys}

    def unused_columns(self) -> tuple[list[str], list[str]]:
        """Return the columns without a role: those of real numbers, and those of vectors."""
        roles, used = self.roles, self.used_columns()
        fields = [field for field in self.table.schema if field.name not in used]
        numbers = [field.name for field in fields if field.name in roles.narrow and pa.types.is_floating(field.type)]
        return numbers, [field.name for field in fields if is_vector(field.type)]

    @property
    def states_intervals_only(self) -> bool:
        """Whether predictions are intervals."""
        return isinstance(self.roles.predictive, column_roles.IntervalsRole)

    def rows_in_memory(self) -> Predictions | None:
        """Return all rows if they were loaded."""
        return self._loaded[0] if "_loaded" in self.__dict__ else None

    def date_columns(self) -> list[str]:
        """Return the columns of dates without a role."""
        used = self.used_columns()
        return [each.name for each in self.table.schema if each.name not in used and is_date(each.type)]

    def free_columns(self) -> Mapping[str, AnyArray]:
        rows, used, schema = self.rows_in_memory(), self.used_columns(), self.table.schema
        if rows is None or (self.layout.filters.columns and self.reading.n_dropped):  # whose places are not known
            return {}
        free = [each for each in schema if each.name in {*self.roles.narrow} - used and not is_date(each.type)]
        whole = [each.name for each in free if pa.types.is_integer(each.type)]
        real = [each.name for each in free if pa.types.is_floating(each.type)]
        names = [each.name for each in free if each.name not in real or len(real) <= MOST_NUMBERS]
        found, places = {}, np.arange(len(rows)) if self.layout.filters.columns else rows.row_numbers()
        for name, each in self._texts_of(names, plain=[*whole, *real]).items():
            count = len(each.unique()) if len(each) > places.max() else 0
            if count > 1 and is_complete(taken := each.take(places)):
                if name in real or (name in whole and count > MAX_CATEGORIES):
                    found[name] = taken.to_numpy().astype(np.float64)
                elif count <= MAX_CATEGORIES:
                    found[name] = (
                        taken.to_numpy() if name in whole else np.array(key_text(taken).to_pylist(), dtype=str)
                    )
        return found

    def without_gaps(self, names: Sequence[str]) -> list[str]:
        """Return those of some columns that have a value, and a finite number, in all rows that pass the filters."""
        found = list(names)
        for rows in self._passing(names):
            found = [name for name in found if is_complete(rows[name])]
        return found

    def input_names(self) -> tuple[str, ...]:
        return self.roles.input_names

    def target_name(self, place: int) -> str:
        names = self.roles.target
        return names[place] if len(names) > 1 else f"{(*names, 'y')[0]}_{place + 1}"

    @property
    def has_one_target(self) -> bool:
        """Whether there is certainly one target; several may be in one column."""
        names = self.roles.target
        schema = self.table.schema
        one = len(names) == 1 and not (names[0] in schema.names and is_vector(schema.field(names[0]).type))
        return one or self.options.only is not None

    def of_target(self, place: int) -> Source:
        return replace(self, options=replace(self.options, only=self.target_name(place)))

    @cached_property
    def _place(self) -> int | None:
        """The place of the target that is used, of several; None if all are."""
        only, names = self.options.only, self.roles.target
        if only is None or (only,) == names:
            return None
        stem, _, number = only.rpartition("_")
        by_number = len(names) < 2 and stem == (*names, "y")[0] and number.isdecimal()  # noqa: PLR2004 - columns of vectors
        found = names.index(only) if only in names else int(number) - 1 if by_number else -1
        if found < 0:
            raise OptionError(f"--only takes one of the targets {', '.join(names) or 'y_1, y_2, …'}, got {only!r}")
        return found

    def measurement_errors(self) -> list[str]:
        return role_inference.measurement_errors(self.unused_columns()[0], self.roles.target)

    def feature_columns(self) -> list[str]:
        """Return the columns with one value per row that are inputs or have no role, without those of an embedding."""
        roles = self.roles if self.roles.has_embedding else replace(self.roles, x=())
        used = {*column_roles.columns_read(roles), *roles.keys}
        return [name for name in roles.narrow if name not in used]

    def explicit(self) -> list[str]:
        """Return explicit options for everything that was inferred."""
        options = self.options
        arguments = [] if self.layout.layout else self.roles.explicit(self.table.schema.names)
        arguments += ["--input-format", self.file.input_format] if self.file.input_format else []
        arguments += ["--embedding", options.embedding or ""] if self.embedding is not None else []
        if self.truth is not None:
            arguments += ["--truth", self.truth.display_name]
            arguments += (
                ["--join-on", pairs] if self.truth.key_index and (pairs := self.truth.key_index.display_name()) else []
            )
        arguments += ["--only", options.only] if options.only is not None else []
        arguments += ["--model", options.model] if options.model is not None else []
        arguments += [word for text in options.filter for word in ("--filter", text)]
        arguments += ["--min-std", f"{options.min_std:g}"] if options.min_std is not None else []
        arguments += ["--crossing", "sort"] if options.crossing == "sort" and self.reading.crossing.count else []
        arguments += ["--nan-policy", options.nan_policy] if options.nan_policy != "raise" else []
        return arguments

    @contextmanager
    def error_names(self) -> Iterator[None]:
        with file_named(self.name), self.error_context():
            yield

    def column_name(self, role: str) -> str:
        """Return the name of a role with its column."""
        columns = self.roles.described_columns(self._place)
        kind = next((kind for kind in SPREADS if kind in columns), role)
        if role == SPREADS[0] != kind:
            return f"{role} (column {columns[kind]}, as {kind})"
        column = columns.get(role, role)
        observed = self.roles.observed
        is_number = role in column_roles.OBSERVED and observed is not None and not observed.columns
        return role if column == role or is_number else f"{role} (column {column})"


class ReadsColumns(HasInfo, Protocol):
    """A metric, with the names of the columns that it needs besides targets, predictions and inputs."""

    def columns(self) -> tuple[str, ...]: ...


def with_needed_columns(
    source: FileSource,
    metrics: Sequence[ReadsColumns],
    *,
    narrow: bool = False,
    also: Sequence[str] = (),
    inputs: bool = False,
) -> FileSource:
    """Return a source that reads what metrics need."""
    return replace(
        source,
        contents="all" if any("y" in metric.info.needs for metric in metrics) else "any",
        narrow=narrow,
        grouping=True,
        inputs=inputs or any(metric.info.takes_inputs for metric in metrics),
        repeated=all(metric.info.repeated_targets for metric in metrics),
        also=tuple(dict.fromkeys([*(name for metric in metrics for name in metric.columns()), *also])),
    )
