"""Repeated targets: rows with the same key are one input, of which several targets were observed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calcheck.errors import DataError
from calcheck.predictions import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.report import Input


class TakesRepeats(Protocol):
    """A metric that says whether it takes several targets of one input."""

    repeated_targets: ClassVar[bool]


def group_by_input(source: Source, metrics: Iterable[type[TakesRepeats]]) -> Source:
    """Return the source with a row an input, where rows share keys and all metrics take several targets of one."""
    if all(metric.repeated_targets for metric in metrics) and _repeats(source.predictions()):
        return GroupedSource(source)
    return source


@dataclass(frozen=True)
class GroupedSource(Source):
    """A source whose rows with the same key are one input with several targets."""

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

    def warnings(self) -> tuple[str, ...]:
        rows, n = self.source.predictions(), len(self._gathered)
        told = f"{len(rows):,} rows are {n:,} inputs with {len(rows) // n} targets each, by {rows.id_name}"
        return (*self.source.warnings(), told)


def _repeats(rows: Predictions) -> bool:
    """Tell whether rows share keys."""
    return rows.id is not None and len(np.unique(rows.id.astype(str))) < len(rows)


def group_rows(rows: Predictions) -> Predictions:
    """Make one row of those that share a key.

    Parameters
    ----------
    rows : Predictions
        n r rows with keys, inputs and predictions the same wherever the key is.

    Returns
    -------
    Predictions
        n rows, in the order of the first of each; ``y`` is (n, r, t), the targets of each in ascending order. Other
        columns are kept where they do not vary within a key. The rows themselves, if no key comes twice.

    Raises
    ------
    DataError
        Keys come differently often, or their inputs or predictions differ.
    """
    if rows.id is None or rows.y is None or not _repeats(rows):
        return rows
    _, first, key, counts = np.unique(rows.id.astype(str), return_index=True, return_inverse=True, return_counts=True)
    if counts.min() != counts.max():
        least, most = int(counts.argmin()), int(counts.argmax())
        told = " and ".join(f"{rows.id[first[place]]!s} comes {counts[place]:,} times" for place in (least, most))
        msg = (
            f"repeated targets need the same number of rows for each {rows.id_name}, but {told}. Leave some of them out"
        )
        raise DataError(msg)
    members = np.argsort(first[key], kind="stable").reshape(len(first), counts[0])  # by first row, in file order
    heads = members[:, 0]
    own = np.empty(len(rows), np.intp)
    own[members] = heads[:, None]
    _require_same(rows, own)
    kept = {name: values[heads] for name, values in rows.columns.items() if _equal(values, values[own]).all()}
    one = rows.take(heads)
    y = rows.y.reshape(len(rows), -1)[members]
    order = np.lexsort(np.moveaxis(y, 2, 0)[::-1], axis=1)
    return replace(one, y=np.take_along_axis(y, order[:, :, None], axis=1), columns=kept)


def _require_same(rows: Predictions, own: NDArray[np.intp]) -> None:
    """Raise unless inputs and predictions of each row are those of the first row of its key."""
    parts: dict[str, NDArray[np.bool_]] = {}
    if rows.x is not None:
        x = rows.inputs()
        parts["inputs"] = (x == x[own]).all(axis=1)
    if rows.predictive is not None:
        predictive = rows.predictive.load()
        parts["predictions"] = predictive.equals(predictive.take(own))
    for what, same in parts.items():
        if not same.all():
            row = int(np.argmin(same))
            places = rows.row_numbers()
            msg = (
                f"rows {places[own[row]]} and {places[row]} have the same {rows.id_name} but other {what}: repeated"
                " targets are of one input. Name another key with --id"
            )
            raise DataError(msg)


def _equal(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Compare cells, gaps with gaps too."""
    return np.asarray((first == second) | ((first != first) & (second != second)))  # noqa: PLR0124 - gaps
