"""The baseline report of `--against`: its metrics, which are computed again, and the tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.errors import FileError, OptionError
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS

if TYPE_CHECKING:
    from calcheck.cli.options import AgainstOptions
    from calcheck.gate.baseline import Allowed
    from calcheck.metrics.base import Metric
    from calcheck.report import Gate, Report, Result

RTOL = 0.05


@dataclass(frozen=True)
class Base:
    """Stored results, their metrics and the tolerance; empty without ``--against``."""

    results: tuple[Result, ...] = ()
    metrics: tuple[Metric[Any], ...] = ()
    reads: tuple[str, ...] = ()
    allowed: Allowed | None = None

    def gates(self, report: Report) -> tuple[Gate, ...]:
        """Return a gate for each stored result, compared with the current result."""
        from calcheck.gate.baseline import compare_with_baseline

        return () if self.allowed is None else compare_with_baseline(report, self.results, self.allowed)


def read_base(options: AgainstOptions) -> Base:
    """Return the baseline report.

    Raises
    ------
    FileError
        The file is not a report, or its metrics cannot be computed again.
    """
    from calcheck.storage.report_json import read_report

    if options.against is None:
        return Base()
    base = read_report(options.against)
    try:
        _require_comparable(base)
        metrics = tuple(_metric(stored) for stored in base.results)
    except OptionError as error:
        msg = f"{options.against} cannot be used as a baseline: {error}"
        raise FileError(msg) from error
    return Base(base.results, metrics, (options.against,), _allowed(options))


def _require_comparable(base: Report) -> None:
    """Raise unless the report has one result per metric, for all rows, evaluated at these rows."""
    metrics = [result.metric for result in base.results]
    problems = {
        "it has no results": not metrics,
        "its results are for subsets of the rows": any(result.slice for result in base.results),
        "it has several results for one metric": len(set(metrics)) < len(metrics),
        "its results are evaluated at the inputs of another file": any(
            file.role == "evaluation_points" for file in base.input.files
        ),
    }
    for problem, found in problems.items():
        if found:
            msg = f"{problem}. Use a report from calcheck evaluate FILE --format json"
            raise OptionError(msg)


def _metric(stored: Result) -> Metric[Any]:
    """Return the metric of a stored result, with the stored options."""
    if stored.metric in TWO_SAMPLE_METRICS:
        msg = f"{stored.metric} compares two files, but check reads one. To compare stored reports, use calcheck diff"
        raise OptionError(msg)
    return METRICS.named(stored.metric).from_options(stored.options)


def _allowed(options: AgainstOptions) -> Allowed:
    from calcheck.gate.baseline import StoredInterval, Tolerance

    if options.within_interval:
        return StoredInterval()
    rtol = options.rtol if options.rtol is not None else RTOL if options.atol is None else 0.0
    return Tolerance(rtol=rtol, atol=options.atol or 0.0)
