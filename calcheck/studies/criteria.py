"""Criteria for rejecting predictions: pointwise cce, the predicted std, a column, or random order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, listed_columns
from calcheck.evaluation import evaluate
from calcheck.messages import Message
from calcheck.metrics.base import inapplicable_reason
from calcheck.statistics.moments import uncertainties
from calcheck.validation import require_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions, Source
    from calcheck.results import RowResults

    Values = NDArray[np.float64]

CCE, STD, RANDOM = "cce", "std", "random"
ERROR_METRICS = ("mae", "rmse", "nll")  # default metrics of retained predictions
WORDS = (CCE, STD, RANDOM)
HINDSIGHT = Message(
    "in-hindsight",
    "cce is evaluated at the rows it was fitted on and includes their own errors, so the gain from rejecting by it is"
    " optimistic. To avoid this, fit cce on other rows, and pass the rows to reject with --new",
)


@dataclass(frozen=True, eq=False)
class Criteria:
    """Values of the criteria for rejecting rows.

    Parameters
    ----------
    values : dict
        Values of each criterion, (n,), by name.
    notes : dict
        Warnings about each criterion, by name.
    missing : tuple of Message
        Why a default criterion is absent.
    """

    values: dict[str, Values]
    notes: dict[str, tuple[Message, ...]]
    missing: tuple[Message, ...] = ()


def columns_of(by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the criteria that are columns of the file."""
    return tuple(name for name in by or () if name not in WORDS)


def compute_criteria(
    source: Source, at: Source | None, by: Sequence[str] | None, cce: Metric[Any], run: Run
) -> Criteria:
    """Return the criteria of the rows of ``at``, or of ``source`` if that is None.

    Parameters
    ----------
    source : Source
        Predictions with targets, on which cce is fitted.
    at : Source, optional
        Other predictions.
    by : sequence of str, optional
        Names of the criteria; by default all that are not columns, without cce if there are no inputs.
    cce : Metric
        cce with its options.
    run : Run
        Seed, device, precision, memory.

    Raises
    ------
    DataError
        A requested criterion does not apply.
    """
    place, names = at or source, list(dict.fromkeys(WORDS if by is None else by))
    found = Criteria({}, {})
    if by is None and (reason := inapplicable_reason(type(cce), source.predictions())):
        names.remove(CCE)
        found = replace(found, missing=(Message("criterion-missing", f"cce is not used as a criterion: it {reason}"),))
    for name in names:
        if name == CCE:
            rows = _cce(source, at, cce, run)
            found.values[name] = next(iter(rows.columns.values()))
            found.notes[name] = (*rows.warnings, *(() if at else (HINDSIGHT,)))
        else:
            with place.error_names():
                found.values[name] = _column(place.predictions(), name)
    return found


def _cce(source: Source, at: Source | None, cce: Metric[Any], run: Run) -> RowResults:
    """Return the per-row results of cce at the rows of another source, or at its own."""
    results = list[Any]()
    report = evaluate(source, [cce], at=at, run=run, sink=lambda _metric, _shown, rows: results.append(rows))
    with source.error_names():
        for skipped in report.skipped:
            msg = f"cce {skipped.reason}" if skipped.code == "inapplicable" else skipped.reason
            raise DataError(msg)
    rows: RowResults = results[0]
    return rows


def _column(rows: Predictions, name: str) -> Values:
    """Return a criterion that is read from the rows, (n,)."""
    if name == RANDOM:
        return np.zeros(len(rows))
    if name == STD:
        return uncertainties(rows)
    if name not in rows.columns:
        available = f"Available criteria: {', '.join(WORDS)}, and numeric columns {listed_columns(rows.columns, name)}"
        msg = f"there is no column {name!r} to reject by. {available}"
        raise DataError(msg)
    values = _numbers(rows.columns[name], name)
    require_finite(name, values)
    return values


def _numbers(values: NDArray[Any], name: str) -> Values:
    """Return a column as numbers, (n,), also of text: files of text store numbers with leading zeros as text."""
    msg = f"column {name!r} is not numeric, so it cannot be a criterion. Use a numeric column"
    if values.dtype.kind not in "biufO":
        raise DataError(msg)
    try:
        return values.astype(np.float64)
    except ValueError:
        raise DataError(msg) from None
