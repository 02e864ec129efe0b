"""Conversion of layouts with several rows per unit, or several units per row, to one row per unit."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from calcheck.core.text import count_of
from calcheck.errors import DataError
from calcheck.io.arrow_columns import (
    MemoryTable,
    inner_length,
    is_scalar,
    is_text,
    key_text,
    natural,
    pc,
    to_floats,
    to_matrix,
)
from calcheck.io.column_names import MEANS, OTHER_NAMES, STDS, ColumnOptions
from calcheck.io.files import AnyFile
from calcheck.io.filters import Filters, TableLayout, require_one
from calcheck.io.naming_schemes import Long, Nested, forms_of, level_name, level_of
from calcheck.io.tables import Table, read_batches
from calcheck.typing import Indices, Mask

POINTS = frozenset({"point", "mean", "median"})
UNSUPPORTED = frozenset({"pmf", "cdf"})
TARGET_COLUMNS = ("target", "target_type")
DIGITS = 12  # Decimals to which levels are rounded
AHEAD = r"^(?P<horizon>\d+) (?P<unit>\w+) ahead (?P<target>.+)$"  # "1 wk ahead inc flu hosp"


def pivot_long(layout: Long, file: AnyFile, table: Table, options: ColumnOptions, filters: Filters) -> TableLayout:
    """Return a table with one row per unit: its keys, its target if there is one, and quantiles or samples."""
    names = set(table.schema.names)
    layout = layout.match(names)
    rows, places, read = _rows(file, table, filters)
    kind, rows, places, notes = _of_one_kind(layout, rows, places)
    filters.require_one_of_each(rows, {})
    if "horizon" not in names and "target" in names:
        parts = pc.extract_regex(key_text(rows["target"]), AHEAD).combine_chunks()
        if not parts.null_count:  # "1 wk ahead inc flu hosp" of legacy hubs becomes "wk inc flu hosp" at horizon 1
            target = pc.binary_join_element_wise(parts.field("unit"), parts.field("target"), " ")
            rows = rows.set_column(rows.schema.get_field_index("target"), "target", target)
            rows = rows.append_column("horizon", parts.field("horizon").cast(pa.int64()))
    keys = tuple(name for name in rows.schema.names if name not in layout.non_key_columns)
    for name in TARGET_COLUMNS:
        if name in keys:
            require_one(_different(rows[name]), "targets", f"--filter {name}={{!r}}")
    unit, first = np.zeros(len(rows), dtype=np.intp), np.zeros(1, dtype=np.intp)
    if keys:  # units are numbered in order of appearance
        frame = pa.table({name: key_text(rows[name]) for name in keys}).to_pandas()
        numbers = frame.groupby(list(keys), sort=False, dropna=False).ngroup()
        unit, first = numbers.to_numpy(), np.flatnonzero(~numbers.duplicated())
    columns = {name: rows[name].take(pa.array(first)) for name in keys}
    if layout.observed in names:
        columns["y"] = _observed(layout, rows, unit, first)
    columns |= _quantiles(layout, rows, unit, options) if kind == "quantile" else _draws(layout, rows, unit, options)
    return TableLayout(
        MemoryTable(pa.table(columns)),
        layout=f"{layout.name}, {kind}s",
        keys=keys,
        kind=kind,
        date_key=layout.date_key if layout.date_key in keys else None,
        places=places[first],
        read=read,
        filters=replace(filters, conditions=()),
        notes=notes,
    )


def _rows(file: AnyFile, table: Table, filters: Filters) -> tuple[pa.Table, Indices, int]:
    """Return the rows that pass the filters, their row numbers, and the number of all rows."""
    batches, places, read = [], [], 0
    for batch in read_batches(file, table, table.schema.names):
        passing, inside = filters.passing(batch)
        batches.append(passing)
        places.append(read + inside)
        read += len(batch)
    rows = pa.concat_tables(batches).combine_chunks() if batches else table.schema.empty_table()
    if not len(rows):
        raise DataError(filters.no_rows_message())
    return rows, np.concatenate(places), read


def _different(column: pa.ChunkedArray) -> list[str]:
    """Return the distinct values of a column as text, in order of appearance; null is empty text."""
    return list(dict.fromkeys(value or "" for value in pc.unique(key_text(column)).to_pylist()))


def _of_one_kind(layout: Long, rows: pa.Table, places: Indices) -> tuple[str, pa.Table, Indices, tuple[str, ...]]:
    """Return the output type, quantile or sample, its rows and their numbers, and notes."""
    if not layout.typed:
        return layout.kind, *_with_index(layout, rows, places)
    kinds = _different(rows[layout.kind])
    notes: tuple[str, ...] = ()
    if layout.kind == "type" and set(kinds) == {"point", "quantile"}:  # legacy files hold point forecasts too
        mask = np.asarray(pc.fill_null(pc.equal(key_text(rows[layout.kind]), "quantile"), fill_value=False))
        notes = (f"{int((~mask).sum()):,} point forecasts beside the quantiles are not used",)
        kinds, rows, places = ["quantile"], rows.filter(pa.array(mask)), places[mask]
    require_one(kinds, "output types", f"--filter {layout.kind}={{}}")
    kind = kinds[0] if kinds else ""
    if kind in POINTS:
        msg = f"the file holds point forecasts only ({layout.kind} is {kind!r}): there is no uncertainty to check"
        raise DataError(msg)
    if kind in UNSUPPORTED:
        raise DataError(f"the output type {kind!r} is not supported yet. Use quantiles or samples")
    if kind not in ("quantile", "sample"):
        raise DataError(f"{layout.kind} must be quantile or sample, got {kind!r}")
    return kind, rows, places, notes


def _with_index(layout: Long, rows: pa.Table, places: Indices) -> tuple[pa.Table, Indices, tuple[str, ...]]:
    """Return the rows that hold a quantile or draw: others are targets without a forecast, or point forecasts."""
    mask = np.logical_and.reduce([np.asarray(rows[name].is_valid()) for name in layout.index])
    if mask.all():
        return rows, places, ()
    if not mask.any():
        raise DataError(f"no row has a value of {' and '.join(layout.index)}, so there are no forecasts")
    without = f"without {' and '.join(layout.index)}"
    note = f"{count_of(int((~mask).sum()), f'row {without} is', f'rows {without} are')} not used"
    return rows.filter(pa.array(mask)), places[mask], (note,)


def _observed(layout: Long, rows: pa.Table, unit: Indices, first: Indices) -> pa.Array:
    """Return the target of each unit."""
    name = layout.observed or ""
    y = to_floats(rows[name], name)
    differ = ~((y == y[first][unit]) | (np.isnan(y) & np.isnan(y[first][unit])))
    if differ.any():
        row = int(np.flatnonzero(differ)[0])
        both = f"{y[first][unit][row]:g} and {y[row]:g}"
        raise DataError(f"a unit has different targets: {name!r} is {both} ({_described(rows, layout, row)})")
    return pa.array(y[first])


def _quantiles(layout: Long, rows: pa.Table, unit: Indices, options: ColumnOptions) -> dict[str, pa.Array]:
    """Return one column of quantiles (u,) per level."""
    name = layout.index[0]
    level = to_floats(rows[name], name)
    odd = level[~((level > 0) & (level < 1))]
    if len(odd):
        raise DataError(f"column {name!r} must hold levels strictly between 0 and 1, got {odd[0]:g}")
    levels, place = np.unique(np.round(level, DIGITS), return_inverse=True)
    values = np.full((unit.max() + 1, len(levels)), np.nan)
    _require_once(layout, rows, unit * len(levels) + place)
    values[unit, place] = to_floats(rows[layout.value], layout.value)
    complete = np.bincount(unit, minlength=len(values)) == len(levels)
    _require_complete(layout, rows, unit, complete, f"the {len(levels)} quantile levels", options)
    return {level_name(level): pa.array(values[:, column]) for column, level in enumerate(levels)}


def _draws(layout: Long, rows: pa.Table, unit: Indices, options: ColumnOptions) -> dict[str, pa.Array]:
    """Return a column of draws (u, m), ordered by id."""
    which = np.zeros(len(rows), dtype=np.intp)
    for name in layout.index:
        text = key_text(rows[name])
        if text.null_count:
            raise DataError(f"column {name!r}, which identifies draws, is empty in {count_of(text.null_count, 'row')}")
        ids = sorted(text.unique().to_pylist(), key=natural)
        which = which * len(ids) + np.asarray(pc.index_in(text, value_set=pa.array(ids)))
    _require_once(layout, rows, unit * (which.max() + 1) + which)
    order = np.lexsort((which, unit))
    counts = np.bincount(unit)
    most = counts.max()
    _require_complete(layout, rows, unit, counts == most, f"the {most} draws of other units", options)
    values = np.full((len(counts), most), np.nan)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    values[unit[order], within] = to_floats(rows[layout.value], layout.value)[order]
    return {"samples": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), int(most))}


def _require_once(layout: Long, rows: pa.Table, cell: Indices) -> None:
    """Raise if several rows have the same unit and the same level or draw."""
    import pandas as pd

    repeated = pd.Series(cell).duplicated()
    if not repeated.any():
        return
    raise DataError(
        f"{count_of(repeated.sum(), 'row repeats', 'rows repeat')} a unit and its {' and '.join(layout.index)}, for"
        f" example {_described(rows, layout, int(repeated.argmax()))}. Were files appended? Keep one of each, or select"
        " rows with --filter"
    )


def _require_complete(
    layout: Long, rows: pa.Table, unit: Indices, complete: Mask, what: str, options: ColumnOptions
) -> None:
    """Raise if a unit lacks values, unless incomplete units are dropped."""
    if complete.all() or options.nan_policy == "omit":
        return
    row = int(np.flatnonzero(~complete[unit])[0])
    raise DataError(
        f"{int((~complete).sum()):,} of {len(complete):,} units lack some of {what}, for example"
        f" {_described(rows, layout, row, index=False)}. Complete them, or pass --nan-policy omit to drop these units"
    )


def _described(rows: pa.Table, layout: Long, row: int, *, index: bool = True) -> str:
    """Return the keys of a row as text."""
    shown = [name for name in rows.schema.names if name not in layout.non_key_columns] + (
        list(layout.index) if index else []
    )
    return ", ".join(f"{name}={key_text(rows[name].slice(row, 1))[0].as_py()}" for name in shown)


def explode(layout: Nested, file: AnyFile, table: Table, filters: Filters) -> TableLayout:
    """Return a table with one row per step: the record, the step, and its samples or quantiles."""
    records, places, read = _rows(file, table, filters)
    if layout.kind == "samples":
        paths = to_matrix(records["samples"], "samples")
        values = paths.reshape(len(paths), -1, inner_length(records["samples"])).transpose(0, 2, 1)
    else:
        names = [field.name for field in records["quantiles"].type if level_of(field.name) is not None]
        lists = [to_matrix(pc.struct_field(records["quantiles"], name), f"quantiles.{name}") for name in names]
        if len({each.shape for each in lists}) > 1:
            raise DataError("the lists of quantiles differ in length")
        values = np.stack(lists, axis=2)  # records, steps, levels
    count, steps = values.shape[:2]
    record = np.repeat(places, steps)
    scalar = [field.name for field in records.schema if is_scalar(field.type) and field.name not in ("record", "step")]
    columns = {name: pc.take(records[name], pa.array(np.repeat(np.arange(count), steps))) for name in scalar}
    columns |= {"record": pa.array(record), "step": pa.array(np.tile(np.arange(1, steps + 1), count))}
    flat = values.reshape(count * steps, -1)
    if layout.kind == "samples":
        columns["samples"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    else:
        columns |= {f"q_{name}": pa.array(flat[:, place]) for place, name in enumerate(names)}
    return TableLayout(
        MemoryTable(pa.table(columns)),
        layout=f"{layout.name}, {layout.kind}",
        keys=(*scalar, "record", "step"),
        places=record,
        read=read,
        filters=replace(filters, conditions=()),
    )


NUMBER = r"(?:[^=,()]*= *)?(?P<{}>[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)"
JULIA = r"^(?:Distributions\.)?"
DISTRIBUTION = rf"{JULIA}(?P<family>[A-Za-z]+)(?:\{{\w+\}})?\({NUMBER.format('one')}(?:, *{NUMBER.format('two')})?\)$"
TEXTS = {  # Parameters of distributions as text, and the family if it is not normal: Julia's names, and R's
    "Normal": (("mean", "std"), ""),
    "N": (("mean", "variance"), ""),
    "LogNormal": (("loc", "scale"), "lognormal:torch"),
    "Poisson": (("rate",), "poisson"),
    "Pois": (("rate",), "poisson"),
}
KNOWN = ("t", "TDist", "Gamma", "Beta", "Exp", "Exponential", "NB", "NegativeBinomial", "Laplace", "Cauchy", "Weibull")
OTHERS = rf"{JULIA}(?:{'|'.join(KNOWN)})(?:\{{.*\}})?\(.*[0-9].*\)$"
"""Families that are not read."""


def parse_distributions(file: AnyFile, table: Table, filters: Filters) -> TableLayout | None:
    """Return a table with the parameters of distributions that a column states as text; None if no column does."""
    names, known = table.schema.names, {*STDS, *OTHER_NAMES["std"]}
    texts = [field.name for field in table.schema if is_text(field.type)]
    if known.intersection(names) or forms_of(names):
        return None
    first = next(iter(read_batches(file, table, texts)), pa.table({}))
    for name in first.schema.names:
        start = key_text(first[name].drop_null().slice(0, 1))
        family = pc.extract_regex(start, DISTRIBUTION).to_pylist() if len(start) else []
        if family and family[0] and family[0]["family"] in TEXTS:
            return _with_parameters(pa.concat_tables(list(read_batches(file, table, names))), name, filters)
        if len(start) and pc.match_substring_regex(start, OTHERS)[0].as_py():
            msg = f"column {name!r} holds distributions as text, such as {start[0].as_py()!r}, and only those of"
            raise DataError(f"{msg} {', '.join(TEXTS)} are read: write their parameters as columns, and pass --dist")
    return None


def _with_parameters(rows: pa.Table, name: str, filters: Filters) -> TableLayout:
    """Return a table with the parameters of the distributions in one of its columns, in place of this."""
    texts = key_text(rows[name])
    found = pc.extract_regex(texts, DISTRIBUTION).combine_chunks()
    families = pc.unique(found.field("family")).to_pylist()
    if found.null_count or len(families) > 1 or families[0] not in TEXTS:
        others = texts.filter(pc.or_kleene(pc.is_null(found), pc.not_equal(found.field("family"), families[0])))
        odd = others[0].as_py() if len(others) else texts[0].as_py()
        raise DataError(f"column {name!r} holds distributions of one family as text, and also {odd!r}")
    parameters, family = TEXTS[families[0]]
    numbers = {each: to_floats(found.field(side), name) for each, side in zip(parameters, ("one", "two"), strict=False)}
    if "variance" in numbers:
        numbers["std"] = np.sqrt(np.maximum(numbers.pop("variance"), 0))
    stated = {name, *MEANS, *OTHER_NAMES["mean"], ".mean"}
    columns = {each: rows[each] for each in rows.schema.names if each not in stated}
    columns |= {"dist": pa.array([family] * len(rows))} if family else {}
    columns |= {each: pa.array(values) for each, values in numbers.items()}
    return TableLayout(MemoryTable(pa.table(columns)), layout=f"distributions as text ({name})", filters=filters)
