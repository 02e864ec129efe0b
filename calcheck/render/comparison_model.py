"""Content of a rendered comparison: models as rows, metrics as columns, and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calcheck.render.cells import ABSENT, number, reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result

NOT_SHOWN = ("no-interval", "no-verdict", "undecided", "interval-shows-spread")
"""Codes of warnings about intervals and verdicts, which the table of values does not show."""


@dataclass(frozen=True)
class Column:
    """The results of one metric for all models.

    Parameters
    ----------
    metric : str
        Name of the metric.
    better : str
        Which values are better: ``"smaller"``, ``"larger"``, the ideal value as text, or ``""``.
    unit : str
        Unit of the values; ``""`` for dimensionless values.
    results : tuple of Result
        One result per model, in the order of the models.
    """

    metric: str
    better: str
    unit: str
    results: tuple[Result, ...]


def models_of(report: Report) -> list[str]:
    """Return the names of the models, in order."""
    return list(dict.fromkeys(str(result.slice["model"]) for result in report.results))


def columns_of(report: Report) -> list[Column]:
    """Return the columns, one per metric."""
    found: dict[str, list[Result]] = {}
    for result in report.results:
        if "minus" not in result.slice:
            found.setdefault(result.metric, []).append(result)
    return [
        Column(metric, _better(results), "" if results[0].unit == "1" else results[0].unit, tuple(results))
        for metric, results in found.items()
    ]


def differences_of(report: Report) -> list[Result]:
    """Return the differences from the first model, grouped by model."""
    found = [result for result in report.results if "minus" in result.slice]
    order = models_of(report)
    return sorted(found, key=lambda result: order.index(str(result.slice["model"])))


def interval_of(result: Result) -> str:
    """Return an interval as text."""
    return ABSENT if result.low is None else f"[{number(result.low)}, {number(result.high)}]"


def format_p(result: Result) -> str:
    """Return a p-value as text."""
    return ABSENT if result.p_value is None else f"{result.p_value:.2g}"


def notes_of(report: Report) -> list[str]:
    """Return the notes: each warning once, with its metrics and models unless it applies to all."""
    told: dict[str, dict[str, list[str]]] = {}
    for result in report.results:
        difference = "minus" in result.slice
        for message in result.warnings:
            if difference or message.code not in NOT_SHOWN:
                model = f"difference{_of(report, result)}" if difference else str(result.slice["model"])
                told.setdefault(message.text, {}).setdefault(model, []).append(result.metric)
    models = models_of(report)
    lines = []
    for note, by in told.items():
        metrics = list(by.values())
        if list(by) == models and all(each == metrics[0] for each in metrics):
            lines.append(f"{_named(report, metrics[0])}{note}")
        else:
            of_some = "; ".join(", ".join([model, *names]) for model, names in by.items())
            lines.append(f"{of_some}: {note}")
    return lines + [f"skipped {names}: {reason}" for names, reason in reasons(report.skipped)]


def _of(report: Report, result: Result) -> str:
    return f" of {result.slice['model']}" if len(models_of(report)) > 2 else ""  # noqa: PLR2004 - two have one difference


def _named(report: Report, metrics: Sequence[str]) -> str:
    every = {result.metric for result in report.results}
    return "" if set(metrics) == every else f"{', '.join(metrics)}: "


def _better(results: Sequence[Result]) -> str:
    """Return which values are better: smaller, larger, or near a number that is the same for all models."""
    better = results[0].orientation
    if better == "zero":
        return "0"
    if better != "reference":
        return "" if better == "none" else better
    references = {number(result.reference) for result in results}
    return references.pop() if len(references) == 1 else "reference"
