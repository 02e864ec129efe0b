"""Which rows of a file are used: `--filter COLUMN=VALUE`, and one model among several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError, named_some
from calcheck.io.arrow_arrays import is_scalar, key_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


EVERY = "all"  # of the models: a column called so may tell cars apart, not models of the targets
MODELS = ("model", "model_id")
TARGET = "target_name"  # of Chronos


@dataclass(frozen=True)
class Filter:
    """Rows are used where a column has a value.

    Parameters
    ----------
    column, value : str
        As they are written.
    """

    column: str
    value: str

    def mask(self, table: pa.Table) -> NDArray[np.bool_]:
        """Tell which rows are used, (n,)."""
        value = key_text(pa.chunked_array([[self.value]]))[0]
        return np.asarray(pc.fill_null(pc.equal(key_text(table[self.column]), value), fill_value=False))


@dataclass(frozen=True)
class Filters:
    """All filters of a file, and the column that must name one model only.

    Parameters
    ----------
    conditions : tuple of Filter
        A row is used if it passes all of them.
    model : str or None
        The column of models.
    of_models : str or None
        The model that was chosen among them.
    target : str or None
        The column of names of targets.
    """

    conditions: tuple[Filter, ...] = ()
    model: str | None = None
    of_models: str | None = None
    target: str | None = None

    @classmethod
    def from_options(cls, filters: Sequence[str], chosen_model: str | None, schema: pa.Schema) -> Self:
        """Say which rows are used.

        Raises
        ------
        DataError
            A column is not there, or has no value that could be compared.
        """
        each = [Filter(*text.split("=", 1)) for text in filters]
        model = next((name for name in MODELS if name in schema.names and is_scalar(schema.field(name).type)), None)
        if model and chosen_model not in (None, EVERY):
            each.append(Filter(model, str(chosen_model)))
        for filter_ in each:
            if filter_.column not in schema.names or not is_scalar(schema.field(filter_.column).type):
                msg = f"--filter {filter_.column}: there is no such column of one value a row"
                raise DataError(msg)
        return cls(tuple(each), model, chosen_model, TARGET if TARGET in schema.names else None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the filters look at."""
        named = [*(filter_.column for filter_ in self.conditions), self.model, self.target]
        return tuple(dict.fromkeys(filter(None, named)))

    def mask(self, table: pa.Table) -> NDArray[np.bool_] | None:
        """Tell which rows are used, (n,); None if all of them are."""
        masks = [filter_.mask(table) for filter_ in self.conditions]
        return np.logical_and.reduce(masks) if masks else None

    def require_one_of_each(self, table: pa.Table, seen: dict[str, dict[str, None]]) -> None:
        """Raise if rows are of several models, or of several targets, and nothing says which of them are meant.

        Parameters
        ----------
        table : pyarrow.Table
            Some more rows.
        seen : dict
            Models and targets of the rows before; those of these rows are added.

        Raises
        ------
        DataError
            There are several; the message lists them.
        """
        for column in filter(None, (self.model, self.target)):
            values = key_text(table[column]).unique().to_pylist()
            seen.setdefault(column, {}).update(dict.fromkeys(value or "" for value in values))
            if column == self.model and not self.of_models:
                remedy = f"--model {{!r}}, or --model {EVERY} to take all rows together"
                require_one(list(seen[column]), "models", remedy)
            elif column == self.target:
                require_one(list(seen[column]), "targets", f"--filter {column}={{!r}}")

    def none_left(self) -> str:
        """Say that no row passes."""
        told = ", ".join(f"{filter_.column}={filter_.value}" for filter_ in self.conditions)
        return f"no row has {told}" if told else "there are no rows"


def require_one(values: Sequence[str], what: str, remedy: str) -> None:
    """Raise if there are several values where one is needed.

    Parameters
    ----------
    values : sequence of str
        Different values.
    what : str
        What they are, in the plural.
    remedy : str
        The option that chooses one, with ``{}`` for a value.

    Raises
    ------
    DataError
        There are several; the message lists them.
    """
    if len(values) < 2:  # noqa: PLR2004 - several
        return
    msg = f"there are several {what}: {named_some(values)}. Pass {remedy.format(values[0])}"
    raise DataError(msg)
