"""Records of whole forecasts, as GluonTS writes them: lists over steps, and samples as lists of paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError
from calcheck.io.held import Held
from calcheck.io.layouts.laid import Laid
from calcheck.io.tables import read_batches
from calcheck.io.values import is_scalar, is_vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.io.files import File
    from calcheck.io.tables import Table


def is_nested(schema: pa.Schema) -> bool:
    """Tell whether the columns are those of GluonTS forecasts."""
    return _has_paths(schema) or _has_quantiles(schema)


def _has_paths(schema: pa.Schema) -> bool:
    if "samples" not in schema.names or "mean" not in schema.names:
        return False
    kind, mean = schema.field("samples").type, schema.field("mean").type
    return is_vector(kind) and is_vector(getattr(kind, "value_type", kind)) and is_vector(mean)


def _has_quantiles(schema: pa.Schema) -> bool:
    return "quantiles" in schema.names and pa.types.is_struct(schema.field("quantiles").type)


def unnested(file: File, table: Table) -> Laid:
    """Return a table with a row a step: the record, the step, and its samples; quantiles where there are no samples.

    Samples come first, since mean and quantiles were computed from them.

    Raises
    ------
    DataError
        A record lacks its lists, or they differ in length.
    """
    records = pa.concat_tables(list(read_batches(file, table, table.schema.names)))
    paths = _has_paths(table.schema)
    parts, steps = [], []
    for record, row in enumerate(records.select(["samples" if paths else "quantiles"]).to_pylist()):
        values = _paths(record, row["samples"]) if paths else _levels(record, row["quantiles"])
        parts.append(values)
        steps.append(values.shape[0])
    widths = {values.shape[1] for values in parts}
    if len(widths) > 1:
        msg = f"records have different numbers of {'samples' if paths else 'quantiles'}: {min(widths)} to {max(widths)}"
        raise DataError(msg)
    of = np.repeat(np.arange(len(parts)), steps)
    scalar = [field.name for field in records.schema if is_scalar(field.type) and field.name not in ("record", "step")]
    columns = {name: pc.take(records[name], pa.array(of)) for name in scalar}
    columns |= {"record": pa.array(of), "step": pa.array(np.concatenate([np.arange(1, count + 1) for count in steps]))}
    values = np.concatenate(parts)
    if paths:
        columns["samples"] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    else:
        levels = [field.name for field in records.schema.field("quantiles").type]
        columns |= {f"q_{level}": pa.array(values[:, place]) for place, level in enumerate(levels)}
    return Laid(
        Held(pa.table(columns)),
        layout=f"GluonTS, {'samples' if paths else 'quantiles'}",
        keys=(*scalar, "record", "step"),
        places=of,
        read=len(records),
    )


def _paths(record: int, samples: list[list[float]] | None) -> NDArray[np.float64]:
    """Return the draws of one record, (h, S), from its S paths of h steps."""
    return _matrix(record, samples, "samples").T


def _levels(record: int, quantiles: dict[str, list[float] | None] | None) -> NDArray[np.float64]:
    """Return the quantiles of one record, (h, q)."""
    return _matrix(record, list(quantiles.values()) if quantiles else None, "quantiles").T


def _matrix(record: int, rows: Sequence[list[float] | None] | None, what: str) -> NDArray[np.float64]:
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or not values.size:  # noqa: PLR2004 - paths or levels, by steps
        msg = f"record {record}, counted from 0, has no {what}, or some of different lengths"
        raise DataError(msg)
    return values
