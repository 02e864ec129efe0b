"""Points at which metrics are evaluated: rows of a file, or a grid; and new rows, which may lack targets."""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from calcheck.errors import CalcheckError, DataError, FileError, OptionError
from calcheck.io import column_roles, join
from calcheck.io.array_files import ArrayTable
from calcheck.io.column_names import ColumnOptions
from calcheck.io.file_source import FileSource
from calcheck.io.files import STDIN, AnyFile, resolve
from calcheck.io.tables import open_table
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.typing import AnyArray, Mask

MOST_POINTS = 1_000_000  # maximum number of evaluation points
UNJUDGED = "the tested model is judged, not the predictions there without targets"
UNUSED = "targets there are not used"


def read_inputs(name: str, source: FileSource, *, narrow: bool) -> FileSource:
    """Return a source for the inputs of another file, to compare with those of a source."""
    path, column = _place(name, source.options, "--at")
    return inputs_like(source, resolve(path), column=column, narrow=narrow)


def inputs_like(source: FileSource, file: AnyFile, *, column: str | None = None, narrow: bool = False) -> FileSource:
    """Return a source for the inputs of another file or table, which are in the columns of the first source."""
    options = source.options
    table, inputs = open_table(file), options.inputs
    if inputs and isinstance(table, ArrayTable):
        table = table.split(options.input_names)
    names = table.schema.names
    if inputs and isinstance(table, ArrayTable) and len(names) == 1:
        inputs = names[0]  # an array has all inputs, without their names
    if column is None and len(names) == 1:
        column = names[0]  # for example in a .npy file
    elif column is None and source.roles.x:
        column = options.embedding
    columns = ColumnOptions(
        embedding=None if inputs else column,
        inputs=inputs,
        id=options.id if options.id in names else None,
        nan_policy=options.nan_policy,
    )
    return FileSource(file, columns, contents="inputs", narrow=narrow, categories=source.roles.categories)


@dataclass(frozen=True)
class NewRows:
    """Rows of another file with the inputs of a source; predictions and targets are optional."""

    source: Source  # All rows with their inputs; with predictions if they have those of the first source
    labelled: Source | None = None  # Those that also have targets; None if none has
    unjudged: str = ""  # Why targets or predictions are not judged; empty if they are, or if there are none

    @property
    def has_targets(self) -> bool:
        """Whether some rows have targets, used or not."""
        return self.labelled is not None or self.unjudged.startswith(UNUSED)


def read_new_rows(name: str, source: FileSource) -> NewRows:
    """Return the rows of another file, of which the inputs are in the columns of a source."""
    path, column = _place(name, source.options, "--on")
    return new_rows_like(source, resolve(path), column=column)


def new_rows_like(source: FileSource, file: AnyFile, *, column: str | None = None) -> NewRows:
    """Return the rows of another file or table, of which the inputs are in the columns of a source."""
    if source.layout.layout:  # one row per unit is made of several, as in the source
        found = replace(source, file=file, options=replace(source.options, truth=None), contents="any", narrow=True)
        found.categories = source.roles.categories
        roles = found.roles
    else:
        found = replace(inputs_like(source, file, column=column), narrow=True)
        roles = found.roles
        names, own = found.table.schema.names, source.roles
        if not roles.x and (own.x or source.options.embedding):
            remedy = f". Name it, as in --on {found.name}:COLUMN" * bool(found.file.paths)
            raise FileError(f"{found.name}: no column is an embedding{remedy}")
        if {*column_roles.columns_of(own.predictive)} <= {*names} and own.predictive is not None:
            used = own.observed if {*(own.observed.columns if own.observed else ())} <= {*names} else None
            roles = replace(roles, predictive=own.predictive, observed=used)
        roles = replace(roles, target=own.target if {*own.target} <= {*names} else ())
    roles = replace(roles, other_categories=True)
    found.roles = replace(roles, target=())
    unpredicted = _without_predictions(found)
    with found.error_names():
        known = [_is_known(found.predictions().columns.get(each)) for each in roles.target]
    has_target = np.logical_and.reduce(known)
    if not known or not has_target.any():
        return NewRows(found, unjudged=UNJUDGED if found.roles.predictive or _predicts(found) else "")
    if roles.predictive is None:
        known_names = found.table.schema.names
        lacking = [each for each in column_roles.columns_of(source.roles.predictive) if each not in known_names]
        if _predicts(found):
            return NewRows(
                found, unjudged=f"{UNUSED}: predictions there are of another kind. Evaluate that file itself"
            )
        why = f"without predictions: there is no column {', '.join(map(repr, lacking[:1]))}"
        return NewRows(found, unjudged=f"{UNUSED} {why}")
    if missing := [name for name in source.dependence if name not in found.table.schema.names]:
        raise DataError(
            f"{found.name} has targets, but no column {missing[0]!r}, on which {source.name} says rows depend"
        )
    if not (has_target & ~unpredicted).any():
        return NewRows(found, unjudged=f"{UNUSED}: no row with a target has a prediction")
    count = int((has_target & unpredicted).sum())
    partly = f"{count:,} of {len(unpredicted):,} rows there have a target but no prediction: these targets are not used"
    also = (*found.also, *source.dependence)
    labelled = replace(found, options=replace(found.options, nan_policy="omit"), narrow=False, also=also)
    labelled.roles = roles
    return NewRows(found, labelled, unjudged=partly if count else "")


def _without_predictions(source: FileSource) -> Mask:
    """Return which rows lack predictions, (n,) or (1,); if any does, those of the others are left unread."""
    roles, columns = source.roles, column_roles.columns_of(source.roles.predictive)
    if roles.predictive is None or source.layout.layout or source.options.nan_policy == "omit":
        return np.zeros(1, dtype=bool)
    try:
        source.predictions()
    except DataError:
        inputs = replace(source)
        inputs.roles = replace(roles, predictive=None, observed=None)
        with source.error_names():
            rows = inputs.predictions()
        missing = np.logical_or.reduce([~_is_known(rows.columns.get(each)) for each in columns])
        if missing.any():
            source.roles = inputs.roles
            return np.asarray(missing)
    return np.zeros(1, dtype=bool)


def _predicts(source: FileSource) -> bool:
    """Return whether a file has predictions of any kind beside its inputs."""
    with suppress(CalcheckError):
        return replace(source, contents="any").roles.predictive is not None
    return False


def _is_known(values: AnyArray | None) -> Mask:
    """Return which values of a column are there, (n,); targets in lists are."""
    if values is None:
        return np.ones(1, dtype=bool)
    return np.array([each is not None and each == each for each in values.tolist()])  # noqa: PLR0124 - NaN


def read_evaluation_points(name: str, source: FileSource, *, also: tuple[str, ...]) -> FileSource:
    """Return a source for the predictions, targets and inputs of another file with the same columns."""
    options = source.options
    path, column = _place(name, options, "--new")
    if options.truth is not None:
        msg = "--truth holds only the targets of FILE. Join each file with its targets first, with calcheck inspect -o"
        raise OptionError(msg)
    is_external = (
        options.embedding
        and options.embedding not in source.table.schema.names
        and join.names_a_file(options.embedding)
    )
    if is_external and column is None and source.inputs:
        msg = f"--embedding {options.embedding} belongs to FILE. Name the column for --new, as in --new {path}:COLUMN"
        raise OptionError(msg)
    columns = replace(options, embedding=column) if column or is_external else options
    return FileSource(
        resolve(path),
        columns,
        also=also,
        dependence=source.dependence,
        inputs=source.inputs,
        grouping=source.grouping,
        categories=source.roles.categories,
    )


def _place(name: str, options: ColumnOptions, flag: str) -> tuple[str, str | None]:
    """Split ``FILE[:COLUMN]``."""
    path, column = join.split_column(name)
    if path == STDIN:
        raise OptionError(f"{flag} reads a file, not standard input")
    if column and options.inputs:
        msg = f"{flag} {name} names a column, but --inputs already selects the columns {options.inputs} to compare"
        raise OptionError(msg)
    return path, column


def require_grid(grid: int, *, at: bool) -> None:
    """Raise unless the number of points is in range, and ``at`` says that there are no other evaluation points."""
    if not 1 <= grid <= MOST_POINTS:
        raise OptionError(f"--grid must be between 1 and {MOST_POINTS:,}, got {grid}")
    if at:
        raise OptionError("--grid and --at contradict each other: pass only one of them")


def grid_of(source: Source, size: int, name: str) -> InMemory:
    """Return equally spaced inputs, (size, 1), from the smallest to the largest input of a source."""
    rows = source.predictions()
    x = rows.inputs()
    if x.shape[1] > 1:
        msg = f"--grid needs one-dimensional inputs, and these have {x.shape[1]} dimensions. Pass --at FILE instead"
        raise OptionError(msg)
    points = np.linspace(x.min(), x.max(), size, dtype=np.float64)
    return InMemory(Predictions(x=points[:, None], has_embedding=rows.has_embedding, columns={name: points}))
