"""Small files of predictions for tests."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, feather

from calcheck.io.arrow_columns import ReadLimits
from calcheck.io.files import Files

N, D = 12, 3


def limited(source, **sizes):
    """Return a source that reads its file, or files, with other limits."""
    file, limits = source.file, ReadLimits(**sizes)
    if isinstance(file, Files):
        members = tuple(replace(each, file=replace(each.file, limits=limits)) for each in file.members)
        return replace(source, file=replace(file, members=members))
    return replace(source, file=replace(file, limits=limits))


def columns(n=N, d=D, seed=0):
    """Return an id, targets, Gaussian predictions and an embedding."""
    rng = np.random.default_rng(seed)
    return {
        "id": np.arange(100, 100 + n),
        "y": rng.normal(size=n),
        "mean": rng.normal(size=n),
        "std": rng.uniform(0.5, 2, n),
        "embedding": rng.normal(size=(n, d)).astype(np.float32),
    }


def table(parts):
    """Return an Arrow table; two-dimensional arrays become fixed-size lists."""
    return pa.table({name: vector_column(v) if np.ndim(v) == 2 else pa.array(v) for name, v in parts.items()})


def vector_column(values):
    """Make a fixed-size list column of (n, d) values."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(values)), values.shape[1])


def wide(parts):
    """Spread vectors over columns emb_0, emb_1, …, for text formats."""
    flat = {name: values for name, values in parts.items() if np.ndim(values) == 1}
    for name, values in parts.items():
        if np.ndim(values) == 2:
            flat |= {f"{name[:3]}_{column}": values[:, column] for column in range(values.shape[1])}
    return flat


def write(path, parts):
    """Write columns in the format of the path's ending; return the path as text."""
    made = parts if isinstance(parts, pa.Table) else table(parts)
    match path.suffix:
        case ".parquet":
            pq.write_table(made, path)
        case ".csv":
            csv.write_csv(made, path)
        case ".feather":
            feather.write_feather(made, path)
        case ".arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, made.schema) as stream:
                stream.write_table(made)
    return str(path)
