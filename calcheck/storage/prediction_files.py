"""Predictions and columns written to files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from calcheck.core.text import COMPUTED
from calcheck.distributions import CONVENTIONS, Gaussian, Independent, Intervals, Predictive, Quantiles, Samples
from calcheck.distributions.recalibrated import RecalibratedCounts, RecalibratedScale
from calcheck.errors import DataError, OptionError
from calcheck.io.arrow_columns import key_text, pc, replace_in_text
from calcheck.io.column_names import ERROR, MEANS, OTHER_NAMES, RENAMED, STDS, TARGETS
from calcheck.io.column_roles import GaussianRole, IntervalsRole, QuantilesRole, SamplesRole, columns_of
from calcheck.io.dataframes import list_column
from calcheck.io.file_source import FileSource
from calcheck.io.filters import MODELS
from calcheck.io.interval_columns import PACKED, SIDED
from calcheck.io.naming_schemes import SAMPLE, level_name, level_of
from calcheck.io.tables import table_of
from calcheck.predictions import Predictions, Source
from calcheck.storage.atomic_write import atomic_path
from calcheck.typing import AnyArray

WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".csv": csv.CSVWriter,
    ".feather": pa.ipc.new_file,
    ".arrow": pa.ipc.new_stream,
}  # The incremental writer of each format, by suffix
FLAT = {"samples": "sample", "embedding": "emb"}  # Stems of names in formats where each number has its own column


@contextmanager
def table_writer(path: str) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that appends tables to a file, in the format of its suffix and with the types of the first."""
    with atomic_path(path) as temporary, ExitStack() as opened:
        first: list[tuple[pa.Schema, Any]] = []
        ending = Path(path).suffix.lower()

        def write(table: pa.Table) -> None:
            # An apostrophe protects text that a spreadsheet would evaluate; the readers of calcheck remove it
            table = replace_in_text(table, COMPUTED, r"'\1") if ending == ".csv" else table
            if not first:
                made = WRITERS[ending](temporary, table.schema)
                first.append((table.schema, opened.enter_context(made)))
            schema, writer = first[0]
            try:
                alike = table.select(schema.names).cast(schema)
            except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                msg = f"{path} cannot be written: its rows have different columns ({str(error).splitlines()[0]})"
                raise DataError(msg) from error
            writer.write_table(alike)

        yield write


@contextmanager
def column_writer(path: str) -> Iterator[Callable[[Mapping[str, AnyArray]], None]]:
    """Yield a function that appends columns (b,) to a file; see :func:`table_writer`."""
    with table_writer(path) as write:
        yield lambda columns: write(pa.table({name: pa.array(values) for name, values in columns.items()}))


def write_columns(path: str, columns: Mapping[str, AnyArray]) -> None:
    """Write columns (n,) in the format of the suffix."""
    with column_writer(path) as write:
        write(columns)


def write(source: Source, path: str) -> None:
    """Write predictions in a form that :func:`calcheck.read` reads without options.

    Parameters
    ----------
    source : Source
        The predictions, from a file or from memory.
    path : str
        The output file: .parquet, .csv, .feather or .arrow.

    Raises
    ------
    DataError, OptionError
        The predictions are not valid or not read yet, or the format cannot represent them.
    """
    given: Any = source  # a frame that is not read yet, without types
    if not isinstance(given, Source):
        raise OptionError(f"write takes predictions as calcheck.read returns them, got {type(given).__name__}")
    rows = source.predictions()  # Validates all rows before writing
    if suffix_of(path) == ".csv" and rows.id is not None:
        written = pa.table({"id": pa.array(rows.id)})
        sink = pa.BufferOutputStream()
        csv.write_csv(replace_in_text(written, COMPUTED, r"'\1"), sink)
        before, after = key_text(written["id"]), key_text(table_of(sink.getvalue().to_pybytes(), ",")["id"])
        same = pc.fill_null(pc.equal(before, after), fill_value=False) if len(before) == len(after) else None
        if same is None or not pc.all(same).as_py():
            place = 0 if same is None else pc.index(same, value=False).as_py()
            key = f"{before[place].as_py()!r} (row {place}, counted from 0)"
            raise DataError(f"CSV does not store types: the key {key} would be read as a different one. Write .parquet")
    write_canonical(path, source.batches())


def write_canonical(path: str, batches: Iterable[Predictions], like: Source | None = None) -> None:
    """Write predictions in batches, in a form that :func:`calcheck.read` reads without options.

    Columns have the names of the file that ``like`` reads, where these are known without options.
    """
    ending = suffix_of(path)
    with table_writer(path) as write:
        for batch in batches:
            arrays: dict[str, pa.Array] = {}
            columns = canonical_columns(batch) if like is None else columns_like(batch, like)
            for name, values in columns.items():
                if np.ndim(values) == 1:
                    arrays[name] = pa.array(values)
                elif ending != ".csv":
                    arrays[name] = list_column(values)
                elif np.ndim(values) == 2 and (name != "y" or "mean" in columns):  # noqa: PLR2004 - a matrix
                    stem, first = FLAT.get(name, name), int(name in ("y", "mean", "std"))
                    arrays |= {f"{stem}_{place}": pa.array(each) for place, each in enumerate(values.T, first)}
                else:
                    raise DataError("CSV cannot represent several targets per row: write .parquet")
            write(pa.table(arrays))


def suffix_of(path: str) -> str:
    """Return the suffix of a path, which selects the format."""
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise OptionError(f"{path} must end in {', '.join(WRITERS)}, which selects the format")
    return ending


def corrected_name(path: str, *read: str) -> str:
    """Return a name for the corrected predictions of a file, in its format if that is written, unlike those read.

    >>> corrected_name("a/new.parquet"), corrected_name("a.npz"), corrected_name("corrected.csv")
    ('corrected.parquet', 'corrected.csv', 'recorrected.csv')
    """
    ending, taken = Path(path).suffix.lower(), {Path(each).name for each in (path, *read)}
    name = f"corrected{ending if ending in WRITERS else '.csv'}"
    while name in taken:
        name = f"re{name}"
    return name


def canonical_columns(rows: Predictions) -> dict[str, Any]:
    """Return the columns of a batch: (n,), or (n, d) and (n, m, t) for vectors."""
    columns: dict[str, Any] = {} if rows.id is None else {"id": rows.id}
    columns |= {} if rows.y is None else {"y": rows.y}
    if rows.predictive is not None:
        columns |= _described(rows.predictive.load())
    if rows.x is not None and rows.has_embedding:
        columns["embedding"] = rows.inputs()
    elif rows.x is not None:
        columns |= {f"input_{place}": values for place, values in enumerate(rows.inputs().T)}
    for name, values in rows.columns.items():
        free = f"{name}{RENAMED}" if _plays_a_role(name, has_family="dist" in columns) else name
        targets = () if rows.y is None or rows.y.ndim == 1 else rows.y.T
        same = [*([columns[name]] if name in columns else []), *targets]
        known = any(np.array_equal(each, values) for each in same)
        columns |= {} if known or free in columns else {free: values}
    return columns


def columns_like(rows: Predictions, source: Source) -> dict[str, Any]:
    """Return the columns of a batch under the names, and in the order, of a source whose other columns were read.

    If options named targets or predictions, or these now have another form, they have canonical names.
    """
    inputs = source.input_names() if rows.x is not None and not rows.has_embedding else ()
    if inputs and set(inputs) <= set(rows.columns):
        rows = replace(rows, x=None)  # which the file has under their own names
    names = _own_names(rows, source)
    if not isinstance(source, FileSource):
        return canonical_columns(rows)
    if names is None:
        replaced = {*source.roles.target, *columns_of(source.roles.predictive)}
        others = {name: values for name, values in rows.columns.items() if name not in replaced}
        return canonical_columns(replace(rows, columns=others))
    numbers = [np.asarray(values).reshape(len(rows), -1) for values in _described(rows.distributions().load()).values()]
    own = dict(zip(names, np.concatenate(numbers, axis=1).T, strict=True))
    embedding = {} if rows.x is None else _embedding(rows, source)
    order = {name: place for place, name in enumerate(source.table.schema.names)}
    found = {**rows.columns, **own, **embedding}
    return dict(sorted(found.items(), key=lambda each: order.get(each[0], len(order))))


def _own_names(rows: Predictions, source: Source) -> tuple[str, ...] | None:
    """Return the columns of the source that describe distributions of this form; None if it has no such columns."""
    if not isinstance(source, FileSource) or source.layout.layout:
        return None
    options, role = source.options, source.roles.predictive
    stated = (options.target, options.truth, options.model, options.only, options.id, options.level)
    if options.names_form or any(stated) or rows.predictive is None:
        return None
    names, predictive = columns_of(role), rows.predictive.load()
    forms = {GaussianRole: ("mean", "std"), SamplesRole: ("samples",), QuantilesRole: (*getattr(role, "levels", ()),)}
    if isinstance(role, IntervalsRole):
        forms[IntervalsRole] = _interval_names(role.levels, has_point=role.point is not None)
    described = _described(predictive)
    levels = tuple(level_of(name) for name in described) if isinstance(role, QuantilesRole) else tuple(described)
    width = sum(np.asarray(values)[0].size for values in described.values())
    return names if levels == forms.get(type(role)) and width == len(names) else None


def _embedding(rows: Predictions, source: FileSource) -> dict[str, Any]:
    """Return the columns of the embedding, under the names of the source if it holds these."""
    names, inputs = source.roles.x, rows.inputs()
    return dict(zip(names, inputs.T, strict=True)) if len(names) == rows.width else {"embedding": inputs}


def _plays_a_role(name: str, *, has_family: bool) -> bool:
    """Return whether the reader may assign a role to a column with this name, in a file with or without families."""
    others = (other for names in OTHER_NAMES.values() for other in names)
    known = {*TARGETS, *MEANS, *STDS, *others, ERROR, "id", "dist", "samples", "embedding", *PACKED, *MODELS}
    stem = re.sub(r"[-_]?\d+$", "", name)  # Numbers of mixture components, or of columns of inputs
    numbered = level_of(name) is not None or SAMPLE.fullmatch(name) or SIDED.fullmatch(name)
    of_families = (names for made in CONVENTIONS.values() for names in made.parameters.values())
    parameters = {name for names in of_families for name in names} if has_family else set[str]()
    return name in known or bool(numbered) or stem in {*parameters, "emb", "input"}


def _interval_names(levels: Iterable[float], *, has_point: bool) -> tuple[str, ...]:
    """Return the canonical names of point predictions, lower limits and upper limits."""
    named = [np.format_float_positional(level) for level in levels]
    sides = (f"{side}_{level}" for side in ("lower", "upper") for level in named)
    return (*(("prediction",) if has_point else ()), *sides)


def _described(predictive: Predictive) -> dict[str, Any]:
    """Return the columns that describe distributions."""
    if isinstance(predictive, (RecalibratedScale, RecalibratedCounts)):
        predictive = predictive.as_quantiles()
    match predictive:
        case Gaussian():
            return {"mean": predictive.loc, "std": predictive.scale}
        case Samples():
            return {"samples": predictive.draws}
        case Quantiles():
            return {level_name(level): predictive.values[:, place] for place, level in enumerate(predictive.levels)}
        case Intervals():
            point = () if predictive.point is None else (predictive.point,)
            names = _interval_names(predictive.levels, has_point=bool(point))
            return dict(zip(names, (*point, *predictive.lower.T, *predictive.upper.T), strict=True))
        case Independent() if (normal := predictive.normal()) is not None:
            return {"mean": normal[0], "std": normal[1]}
        case _:
            spelling, parameters = predictive.parameters()
            return {"dist": np.full(len(predictive), spelling), **parameters}
