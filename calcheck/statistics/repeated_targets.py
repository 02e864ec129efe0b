"""Repeated targets: rows with the same key are one input with several observed targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from calcheck.errors import DataError, Message
from calcheck.predictions import Predictions, Source

if TYPE_CHECKING:
    from calcheck.core.metric_info import MetricInfo
    from calcheck.report import Input
    from calcheck.typing import AnyArray, Indices, Mask


class HasInfo(Protocol):
    """A metric; its info declares whether it supports repeated targets."""

    info: ClassVar[MetricInfo]


def group_by_input(source: Source, metrics: Iterable[type[HasInfo]]) -> Source:
    """Return the source with one row per input, if rows share keys and all metrics support repeated targets."""
    if all(metric.info.repeated_targets for metric in metrics) and _repeats(source.predictions()):
        return GroupedSource(source)
    return source


@dataclass(frozen=True)
class GroupedSource(Source):
    """A source in which rows with the same key are combined into one input with several targets."""

    source: Source

    @cached_property
    def _gathered(self) -> Predictions:
        return group_rows(self.source.predictions())

    def batches(self) -> Iterator[Predictions]:
        yield self._gathered

    def predictions(self) -> Predictions:
        return self._gathered

    @contextmanager
    def error_names(self) -> Iterator[None]:
        with self.source.error_names(), self.error_context():
            yield

    def column_name(self, role: str) -> str:
        return self.source.column_name(role)

    def input_info(self) -> Input:
        return replace(self.source.input_info(), n=len(self._gathered))

    def warnings(self) -> tuple[Message, ...]:
        rows, n = self.source.predictions(), len(self._gathered)
        message = (
            f"{len(rows):,} rows were grouped by {rows.id_name} into {n:,} inputs with {len(rows) // n} targets each"
        )
        return (*self.source.warnings(), Message("grouped-rows", message))


def _repeats(rows: Predictions) -> bool:
    """Return whether several rows have the same key."""
    return rows.id is not None and len(np.unique(rows.id.astype(str))) < len(rows)


def group_rows(rows: Predictions) -> Predictions:
    """Return the rows with one row per key."""
    if rows.id is None or rows.y is None or not _repeats(rows):
        return rows
    _, first, key, counts = np.unique(rows.id.astype(str), return_index=True, return_inverse=True, return_counts=True)
    if counts.min() != counts.max():
        least, most = int(counts.argmin()), int(counts.argmax())
        numbers = " and ".join(f"{rows.id[first[place]]!s} has {counts[place]:,}" for place in (least, most))
        msg = f"repeated targets need the same number of rows for each {rows.id_name}, but {numbers}. Remove some rows"
        raise DataError(msg)
    # Keys are in order of first occurrence, rows in file order
    members = np.argsort(first[key], kind="stable").reshape(len(first), counts[0])
    heads = members[:, 0]
    first_row = np.empty(len(rows), np.intp)
    first_row[members] = heads[:, None]
    _require_same(rows, first_row)
    constant = {name: values[heads] for name, values in rows.columns.items() if _equal(values, values[first_row]).all()}
    one = rows.take(heads)
    y = rows.y.reshape(len(rows), -1)[members]
    order = np.lexsort(np.moveaxis(y, 2, 0)[::-1], axis=1)
    return replace(one, y=np.take_along_axis(y, order[:, :, None], axis=1), columns=constant)


def _require_same(rows: Predictions, first_row: Indices) -> None:
    """Raise unless each row has the inputs and predictions of the first row with its key."""
    parts: dict[str, Mask] = {}
    if rows.x is not None:
        x = rows.inputs()
        parts["inputs"] = (x == x[first_row]).all(axis=1)
    if rows.predictive is not None:
        predictive = rows.predictive.load()
        parts["predictions"] = predictive.equals(predictive.take(first_row))
    for what, same in parts.items():
        if not same.all():
            row = int(np.argmin(same))
            places = rows.row_numbers()
            msg = (
                f"rows {places[first_row[row]]} and {places[row]} have the same {rows.id_name} but different {what}:"
                " repeated targets must have the same input. Choose another key with --id"
            )
            raise DataError(msg)


def _equal(first: AnyArray, second: AnyArray) -> Mask:
    """Return where values are equal; missing values are equal to each other."""
    return np.asarray((first == second) | ((first != first) & (second != second)))  # noqa: PLR0124 - NaN
