"""Filters of rows (--filter, --model), and row numbers of units."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa

from calcheck.core.filter_conditions import DIFFERENT, EQUAL, Condition
from calcheck.errors import DataError, listed_columns, named_some
from calcheck.io.arrow_columns import decoded, is_scalar, is_text, key_text, pc, times, to_floats
from calcheck.io.tables import Table, is_number_text
from calcheck.typing import Indices, Mask

EVERY = "all"  # --model all: use all rows, for a "model" column that does not name prediction models (cars, …)
MODELS = ("model", "model_id")  # Known names of the column of models
TARGET = "target_name"  # Chronos's column of target names
COMPARISONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def _passing(condition: Condition, table: pa.Table) -> Mask:
    """Return which rows meet a condition, (n,). A missing value meets ``=`` and ``!=`` only, as the empty text."""
    column = table[condition.column]
    if condition.operator in (EQUAL, DIFFERENT):
        wanted = key_text(pa.chunked_array([[condition.value]]))[0]
        same = np.asarray(pc.fill_null(pc.equal(key_text(column), wanted), fill_value=False))
        if not condition.value:
            same = same | np.asarray(column.is_null(nan_is_null=True))
        return np.asarray(same == (condition.operator == EQUAL))
    values, limit = _comparable(column, condition)
    compare = getattr(pc, COMPARISONS[condition.operator])
    return np.asarray(pc.fill_null(compare(values, limit), fill_value=False))


def _comparable(column: pa.ChunkedArray, condition: Condition) -> tuple[pa.ChunkedArray, pa.Scalar]:
    """Return values and the limit of a condition as numbers, times or texts."""
    column = decoded(column)
    kind = column.type
    if is_text(kind) and not is_number_text(condition.value):
        return key_text(column), key_text(pa.chunked_array([[condition.value]]))[0]
    wanted = "times" if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else "numbers"
    try:
        if wanted == "times":
            return times(column), pa.scalar(np.datetime64(condition.value, "us"))
        limit = pa.scalar(float(condition.value))
    except ValueError:
        raise DataError(f"--filter {condition}: the column holds {wanted}, and {condition.value!r} is none") from None
    return pa.chunked_array([to_floats(column, condition.column)]), limit


@dataclass(frozen=True)
class Filters:
    """All filters of a file, and the columns that must name one model and one target."""

    conditions: tuple[Condition, ...] = ()  # A row is used if it meets all conditions
    model: str | None = None  # The column of model names
    chosen_model: str | None = None  # The model given by the user
    target: str | None = None  # The column of target names

    @classmethod
    def from_options(cls, filters: Sequence[str], chosen_model: str | None, schema: pa.Schema) -> Self:
        """Return the filters that the options define."""
        conditions = [Condition.parse(text, schema.names) for text in filters]
        model = next((name for name in MODELS if name in schema.names and is_scalar(schema.field(name).type)), None)
        if model and chosen_model not in (None, EVERY):
            conditions.append(Condition(model, EQUAL, str(chosen_model)))
        for column in (condition.column for condition in conditions):
            if column not in schema.names or not is_scalar(schema.field(column).type):
                shown = listed_columns(schema.names, column)
                raise DataError(f"--filter {column}: there is no such column with one value per row {shown}")
        return cls(tuple(conditions), model, chosen_model, TARGET if TARGET in schema.names else None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the filters need."""
        named = [*(condition.column for condition in self.conditions), self.model, self.target]
        return tuple(dict.fromkeys(filter(None, named)))

    def passing(self, table: pa.Table) -> tuple[pa.Table, Indices]:
        """Return the rows that pass, and their places, (n,)."""
        if not self.conditions:
            return table, np.arange(len(table))
        mask = np.logical_and.reduce([_passing(condition, table) for condition in self.conditions])
        return table.filter(pa.array(mask)), np.flatnonzero(mask)

    def require_one_of_each(self, table: pa.Table, seen: dict[str, dict[str, None]]) -> None:
        """Raise if the rows belong to several models or targets and none was selected."""
        for column in filter(None, (self.model, self.target)):
            values = key_text(table[column]).unique().to_pylist()
            seen.setdefault(column, {}).update(dict.fromkeys(value or "" for value in values))
            if column == self.model and not self.chosen_model:
                remedy = f"--model {{!r}}, or --model {EVERY} to use all rows"
                require_one(list(seen[column]), "models", remedy)
            elif column == self.target:
                require_one(list(seen[column]), "targets", f"--filter {column}={{!r}}")

    def no_rows_message(self) -> str:
        """Return the message that no row passes."""
        shown = ", ".join(map(str, self.conditions))
        return f"no row has {shown}" if shown else "there are no rows"


def require_one(values: Sequence[str], what: str, remedy: str) -> None:
    """Raise if there is more than one value."""
    if len(values) < 2:  # noqa: PLR2004 - more than one
        return
    raise DataError(f"there are several {what}: {named_some(values)}. Pass {remedy.format(values[0])}")


@dataclass(frozen=True, eq=False)
class TableLayout:
    """A table with one row per unit."""

    table: Table  # The rows
    layout: str = ""  # The layout of the file, for reports; empty if the file has one row per unit
    keys: tuple[str, ...] = ()  # Columns that identify units, never targets or predictions
    kind: str | None = None  # The output type of a long layout: quantile or sample
    date_key: str | None = None  # The key that is the date of the observation
    places: Indices | None = None  # (n,), the first row in the file of each unit; None if rows are units
    read: int | None = None  # The number of rows of the file that were converted
    filters: Filters = field(default_factory=Filters)  # The filters that still apply
    notes: tuple[str, ...] = ()  # Messages about rows that are not used

    def row_numbers(self, units: Indices) -> Indices:
        """Return the row numbers in the file of some units (b,)."""
        return units if self.places is None else self.places[units]
