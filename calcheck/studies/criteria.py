"""Criteria by which predictions are rejected: pointwise cce, the predicted std, any column, or chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.evaluation import evaluate
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
WORDS = (CCE, STD, RANDOM)
HINDSIGHT = (
    "cce is taken at the rows it is fitted on, whose own errors are part of it: what rejecting by it gains is partly"
    " hindsight. Fit it on other rows, and give those to be rejected with --at"
)


@dataclass(frozen=True, eq=False)
class Criteria:
    """By what rows are rejected.

    Parameters
    ----------
    values : dict
        The criteria, (n,) each, by name.
    notes : dict
        What a reader should know of them, by name.
    missing : tuple of str
        Why there is none of a kind that was not asked for.
    """

    values: dict[str, Values]
    notes: dict[str, tuple[str, ...]]
    missing: tuple[str, ...] = ()


def columns_of(by: Sequence[str] | None) -> tuple[str, ...]:
    """Name the columns among criteria."""
    return tuple(name for name in by or () if name not in WORDS)


def compute_criteria(
    source: Source, at: Source | None, by: Sequence[str] | None, cce: Metric[Any, Any], run: Run
) -> Criteria:
    """Compute criteria of the rows of ``at``, or of ``source`` itself.

    Parameters
    ----------
    source : Source
        Predictions with their targets, which tell cce.
    at : Source, optional
        Other predictions.
    by : sequence of str, optional
        The criteria; by default all that need no column, without cce where there are no inputs.
    cce : Metric
        cce with its options.
    run : Run
        Seed, device, precision, memory.

    Raises
    ------
    DataError
        A criterion that was asked for does not apply.
    """
    place, names = at or source, list(dict.fromkeys(WORDS if by is None else by))
    found = Criteria({}, {})
    if by is None and (reason := inapplicable_reason(type(cce), source.predictions())):
        names.remove(CCE)
        found = replace(found, missing=(f"nothing is rejected by cce: it {reason}",))
    for name in names:
        if name == CCE:
            rows = _cce(source, at, cce, run)
            found.values[name] = next(iter(rows.columns.values()))
            found.notes[name] = (*rows.warnings, *(() if at else (HINDSIGHT,)))
        else:
            with place.error_names():
                found.values[name] = _column(place.predictions(), name)
    return found


def _cce(source: Source, at: Source | None, cce: Metric[Any, Any], run: Run) -> RowResults:
    """Say what cce is at the rows of another source, or at its own."""
    said = list[Any]()
    report = evaluate(source, [cce], at=at, run=run, sink=lambda _metric, _shown, rows: said.append(rows))
    with source.error_names():
        for skipped in report.skipped:
            msg = f"cce {skipped.reason}" if skipped.reason.startswith("needs ") else skipped.reason
            raise DataError(msg)
    rows: RowResults = said[0]
    return rows


def _column(rows: Predictions, name: str) -> Values:
    """Return a criterion that the rows tell themselves, (n,).

    Raises
    ------
    DataError
        There is no such column, or it holds no numbers.
    """
    if name == RANDOM:
        return np.zeros(len(rows))
    if name == STD:
        return uncertainties(rows)
    if name not in rows.columns:
        msg = f"there is no column {name!r} to reject by. Criteria are {', '.join(WORDS)}, and columns of numbers"
        raise DataError(msg)
    if rows.columns[name].dtype.kind not in "biuf":
        msg = f"column {name!r} holds no numbers, so there is no threshold to reject by"
        raise DataError(msg)
    values = rows.columns[name].astype(np.float64)
    require_finite(name, values)
    return values
