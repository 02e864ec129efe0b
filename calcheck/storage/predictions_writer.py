"""Our own schema: a row a unit with its key, its target, one form of predictions, and its input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from calcheck.csv_cells import COMPUTED
from calcheck.distributions import CONVENTIONS, Gaussian, Independent, Quantiles, Samples
from calcheck.errors import DataError, OptionError
from calcheck.io.arrow_arrays import key_text, replace_in_text
from calcheck.io.columns.naming_schemes import SAMPLE, level_name, level_of
from calcheck.io.columns.options import ERROR, MEANS, STDS, TARGETS
from calcheck.io.filters import MODELS
from calcheck.io.tables.csv import table_of
from calcheck.storage.column_writer import WRITERS, table_writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions, Source

PARAMETERS = {name for made in CONVENTIONS.values() for known in made.parameters.values() for name in known}
FLAT = {"samples": "sample", "embedding": "emb"}  # what columns of lists are called where each number has its own


def write(source: Source, path: str) -> None:
    """Write predictions so that :func:`read` needs no option to read them.

    Parameters
    ----------
    source : Source
        The predictions, from a file or from memory.
    path : str
        Where they go: .parquet, .csv, .feather or .arrow.

    Raises
    ------
    DataError, OptionError
        The predictions are not sound, or cannot be written so.
    """
    rows = source.predictions()  # what is not sound as a whole is refused before anything is written
    if suffix_of(path) == ".csv" and rows.id is not None:
        _require_same_in_text(rows.id)
    write_canonical(path, source.batches())


def _require_same_in_text(ids: NDArray[Any]) -> None:
    """Raise if keys would be others after they were written to CSV and read again.

    Raises
    ------
    DataError
        They would: ``"1.50"`` is text, and becomes a number.
    """
    written = pa.table({"id": pa.array(ids)})
    sink = pa.BufferOutputStream()
    csv.write_csv(replace_in_text(written, COMPUTED, r"'\1"), sink)
    before, after = key_text(written["id"]), key_text(table_of(sink.getvalue().to_pybytes(), ",")["id"])
    same = pc.fill_null(pc.equal(before, after), fill_value=False) if len(before) == len(after) else None
    if same is None or not pc.all(same).as_py():
        place = 0 if same is None else pc.index(same, value=False).as_py()
        told = f"{before[place].as_py()!r} (row {place}, counted from 0)"
        msg = f"text has no types: the key {told} would be read as another. Write .parquet"
        raise DataError(msg)


def write_canonical(path: str, batches: Iterable[Predictions]) -> None:
    """Write predictions, batch by batch, so that :func:`calcheck.read` needs no option to read them.

    Parameters
    ----------
    path : str
        Where they go: .parquet, .csv, .feather or .arrow. A file that is there is replaced, on success only.
    batches : iterable of Predictions
        Rows of the same form.

    Raises
    ------
    OptionError
        The path ends in something else.
    DataError
        Text cannot hold vectors of targets.
    """
    ending = suffix_of(path)
    with table_writer(path) as write:
        for batch in batches:
            write(_table(_columns(batch), flat=ending == ".csv"))


def suffix_of(path: str) -> str:
    """Return the ending that says how a file is written.

    Raises
    ------
    OptionError
        It says nothing.
    """
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        msg = f"{path} must end in {', '.join(WRITERS)}, which says how it is written"
        raise OptionError(msg)
    return ending


def _columns(rows: Predictions) -> dict[str, Any]:
    """Return the columns of a batch: (n,), or (n, d) and (n, m, t) for vectors."""
    columns: dict[str, Any] = {} if rows.id is None else {"id": rows.id}
    columns |= {} if rows.y is None else {"y": rows.y}
    if rows.predictive is not None:
        columns |= _described(rows.predictive.load())
    if rows.x is not None and rows.has_embedding:
        columns["embedding"] = rows.inputs()
    elif rows.x is not None:
        columns |= {f"x_{place}": values for place, values in enumerate(rows.inputs().T)}
    for name, values in rows.columns.items():
        free = name if not _plays_a_role(name) else f"{name}_given"
        columns |= {free: values} if name not in columns and free not in columns else {}
    return columns


def _plays_a_role(name: str) -> bool:
    """Tell whether a reader might take a column for something by its name."""
    known = {*TARGETS, *MEANS, *STDS, ERROR, "id", "dist", "samples", "embedding", *MODELS}
    stem = re.sub(r"[-_]?\d+$", "", name)  # of a component's parameter, or of a number of an embedding
    told = level_of(name) is not None or SAMPLE.fullmatch(name)
    return name in known or bool(told) or stem in {*PARAMETERS, "emb"}


def _described(predictive: Predictive) -> dict[str, Any]:
    """Return the columns that describe distributions."""
    match predictive:
        case Gaussian():
            return {"mean": predictive.loc, "std": predictive.scale}
        case Samples():
            return {"samples": predictive.draws}
        case Quantiles():
            names = [level_name(level) for level in predictive.levels]
            return {name: predictive.values[:, place] for place, name in enumerate(names)}
        case Independent() if (normal := predictive.normal()) is not None:
            return {"mean": normal[0], "std": normal[1]}
        case _:
            spelling, parameters = predictive.parameters()
            return {"dist": np.full(len(predictive), spelling), **parameters}


def _table(columns: dict[str, Any], *, flat: bool) -> pa.Table:
    """Make an Arrow table: vectors are lists of fixed size, or, flat, a column a number."""
    made: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if np.ndim(values) == 1:
            made[name] = pa.array(values)
        elif not flat:
            made[name] = _lists(values)
        elif np.ndim(values) == 2 and name not in ("y", "mean", "std"):  # noqa: PLR2004 - rows and numbers
            stem = FLAT.get(name, name)
            made |= {f"{stem}_{place}": pa.array(values[:, place]) for place in range(values.shape[1])}
        else:
            msg = "text has no place for several targets a row: write .parquet"
            raise DataError(msg)
    return pa.table(made)


def _lists(values: NDArray[Any]) -> pa.Array:
    """Make a column of lists of (n, d) values, of lists of lists of (n, m, t) values."""
    array = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
