"""GluonTS layout: one record per forecast, with lists over steps, and samples as lists of paths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError
from calcheck.io.arrow_arrays import inner_length, is_scalar, is_vector, to_matrix
from calcheck.io.columns.naming_schemes import level_of
from calcheck.io.layouts.layout import TableLayout
from calcheck.io.tables.formats import read_batches
from calcheck.io.tables.memory import MemoryTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.io.filters import Filters
    from calcheck.io.paths import AnyFile
    from calcheck.io.tables.formats import Table


def is_nested(schema: pa.Schema) -> bool:
    """Return whether the columns are those of GluonTS forecasts."""
    return _has_paths(schema) or _has_quantiles(schema)


def _has_paths(schema: pa.Schema) -> bool:
    if "samples" not in schema.names or "y" in schema.names:  # with y: multivariate draws, not paths
        return False
    kind = schema.field("samples").type
    return is_vector(kind) and is_vector(getattr(kind, "value_type", pa.null()))


def _has_quantiles(schema: pa.Schema) -> bool:
    return "quantiles" in schema.names and pa.types.is_struct(schema.field("quantiles").type)


def explode(file: AnyFile, table: Table, filters: Filters) -> TableLayout:
    """Return a table with one row per step: the record, the step, and its samples, else its quantiles.

    Samples have priority, because GluonTS computes mean and quantiles from them.

    Raises
    ------
    DataError
        Lists are missing or differ in length, or no record passes the filters.
    """
    records = pa.concat_tables(list(read_batches(file, table, table.schema.names)))
    read, mask = len(records), filters.mask(records)
    places = np.arange(read) if mask is None else np.flatnonzero(mask)
    if not len(places):
        raise DataError(filters.none_left())
    records = records.take(pa.array(places))
    values = _paths(records["samples"]) if _has_paths(table.schema) else _levels(records["quantiles"])
    count, steps = values.shape[:2]
    record = np.repeat(places, steps)
    scalar = [field.name for field in records.schema if is_scalar(field.type) and field.name not in ("record", "step")]
    columns = {name: pc.take(records[name], pa.array(np.repeat(np.arange(count), steps))) for name in scalar}
    columns |= {"record": pa.array(record), "step": pa.array(np.tile(np.arange(1, steps + 1), count))}
    flat = values.reshape(count * steps, -1)
    if _has_paths(table.schema):
        columns["samples"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    else:
        names = _level_names(records["quantiles"])
        columns |= {f"q_{name}": pa.array(flat[:, place]) for place, name in enumerate(names)}
    return TableLayout(
        MemoryTable(pa.table(columns)),
        layout=f"GluonTS, {'samples' if 'samples' in columns else 'quantiles'}",
        keys=(*scalar, "record", "step"),
        places=record,
        read=read,
        filters=replace(filters, conditions=()),
    )


def _paths(samples: pa.ChunkedArray) -> NDArray[np.floating[Any]]:
    """Return the draws (n, h, S) of records with S paths of h steps."""
    paths = to_matrix(samples, "samples")
    return paths.reshape(len(paths), -1, inner_length(samples)).transpose(0, 2, 1)


def _level_names(quantiles: pa.ChunkedArray) -> list[str]:
    """Return the fields that are quantile levels; there may be a mean too."""
    return [field.name for field in quantiles.type if level_of(field.name) is not None]


def _levels(quantiles: pa.ChunkedArray) -> NDArray[np.floating[Any]]:
    """Return the quantiles (n, h, q) of records with one list over h steps per level."""
    names = _level_names(quantiles)
    lists = [to_matrix(pc.struct_field(quantiles, name), f"quantiles.{name}") for name in names]
    if len({values.shape for values in lists}) > 1:
        msg = "the lists of quantiles differ in length"
        raise DataError(msg)
    return np.stack(lists, axis=2)
