"""The baseline of `--against`: a stored report, or the predictions of another model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import LEVEL, open_source, select_metrics
from calcheck.cli.options import AgainstOptions, RowOptions
from calcheck.cli.typer_bridge import build
from calcheck.errors import CalcheckError, DataError, FileError, OptionError
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings
    from calcheck.execution.run import Run
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Gate, Inference, Report, Result
    from calcheck.studies.gate.baseline import Allowed

RTOL = 0.05
STDIN = "-"
ROUNDING = 1e-6  # relative difference of a value that was computed again, possibly on another machine
SUBSAMPLED = "--subsample draws other rows"


@dataclass(frozen=True)
class Base:
    """The baseline: its results, their metrics, and what is allowed; empty without ``--against``."""

    name: str = ""  # The file; empty without a baseline
    results: tuple[Result, ...] = ()  # Stored results; empty if the baseline is a file of predictions
    metrics: tuple[Metric[Any], ...] = ()  # The metrics that are compared
    allowed: Allowed | None = None  # Allowed changes
    no_worse: bool = False  # Whether improvements are allowed, and paired differences are used where they are known
    predictions: FileSource | None = None  # The predictions of the baseline, for paired differences
    unpaired: str = ""  # Why the predictions of a stored report are not available

    @property
    def is_predictions(self) -> bool:
        """Whether the baseline is a file of predictions."""
        return self.predictions is not None and not self.results

    def reads(self) -> list[str]:
        """Return the names of the files, which no output may overwrite."""
        return [*([self.name] if self.name else []), *(self.predictions.reads() if self.predictions else [])]

    def gates(self, report: Report, source: FileSource, run: Run) -> tuple[Gate, ...]:
        """Return a gate for each result of the baseline, compared with that of the report of a source."""
        from calcheck.studies.gate.baseline import NotWorse, Tolerance, compare_with_baseline

        if self.allowed is None:
            return ()
        results, allowed = self.results, self.allowed
        if self.no_worse and isinstance(allowed, Tolerance):
            results, differences, unpaired = self._paired(source, run)
            allowed = NotWorse(allowed, run.confidence, differences, unpaired)
        _require_present(results, report, source)
        return compare_with_baseline(report, results, allowed)

    def _paired(self, source: FileSource, run: Run) -> tuple[tuple[Result, ...], Mapping[str, Inference], str]:
        """Return the results of the baseline, the paired differences by metric, and why there are none."""
        from calcheck.models.alignment import Model
        from calcheck.studies.compare.losses import loss_differences

        if self.predictions is None:
            return self.results, {}, self.unpaired
        base = Model.from_source(f"the baseline {self.predictions.name}", self.predictions)
        try:
            report, differences = loss_differences((base, Model.from_source(source.name, source)), self.metrics, run)
        except DataError as error:
            if self.is_predictions:
                raise
            return self.results, {}, str(error)
        if self.results and not _same_values(self.results, report.results):
            return self.results, {}, f"{self.predictions.name} has other values with these options"
        return self.results or report.results, differences, "a model has no value"


def read_base(options: AgainstOptions, named: Sequence[str] | None, settings: Settings, given: dict[str, Any]) -> Base:
    """Return the baseline."""
    from calcheck.io.files import SUFFIXES, suffix_of

    if options.against is None:
        return Base()
    allowed = _allowed(options)
    if suffix_of(options.against) not in SUFFIXES.keys() - {".json"}:  # JSON is a report, not records
        return _report_base(options, allowed, given)
    if not options.no_worse or build(RowOptions, given).subsample is not None:
        problem = "with --no-worse" if not options.no_worse else "without --subsample"
        msg = f"--against {options.against}: predictions can be a baseline only {problem}"
        raise OptionError(msg)
    metrics = select_metrics(named, settings, given[LEVEL])
    source = open_source(options.against, given, metrics, narrow=False)
    return Base(options.against, (), tuple(metrics), allowed, no_worse=True, predictions=source)


def _report_base(options: AgainstOptions, allowed: Allowed, given: dict[str, Any]) -> Base:
    """Return the baseline of a stored report, with the predictions that it was computed from if they are needed."""
    from calcheck.storage.report_json import read_report

    name = str(options.against)
    report = read_report(name)
    try:
        _require_comparable(report)
        metrics = tuple(_metric(stored) for stored in report.results)
    except OptionError as error:
        msg = f"{name} cannot be used as a baseline: {error}"
        raise FileError(msg) from error
    predictions, unpaired = _predictions(report, metrics, given) if options.no_worse else (None, "")
    return Base(name, report.results, metrics, allowed, options.no_worse, predictions, unpaired)


def _predictions(
    report: Report, metrics: Sequence[Metric[Any]], given: dict[str, Any]
) -> tuple[FileSource | None, str]:
    """Return the predictions of a stored report if they are still there, and the reason if they are not."""
    file = next((file for file in report.input.files if file.role == "predictions"), None)
    if file is None or file.path == STDIN:
        return None, "the report names no file of predictions"
    if build(RowOptions, given).subsample is not None:
        return None, SUBSAMPLED
    try:
        source = open_source(file.path, given, metrics, narrow=False)
        unchanged, missing = source.file.sha256() == file.sha256, source.missing()
    except CalcheckError as error:
        return None, f"{file.path} cannot be read like this file: {error}"
    if missing:
        return None, f"{file.path} cannot be read like this file: {missing[0]}"
    return (source, "") if unchanged else (None, f"{file.path} has changed since")


def _same_values(stored: Sequence[Result], now: Sequence[Result]) -> bool:
    """Return whether stored values are reproduced up to rounding."""
    values = {result.metric: result.value for result in now}
    return all(_is_same(result.value, values.get(result.metric)) for result in stored)


def _is_same(stored: float | None, now: float | None) -> bool:
    """Return whether two values are equal up to rounding, or both are absent."""
    return stored == now or (stored is not None and now is not None and math.isclose(stored, now, rel_tol=ROUNDING))


def _require_present(base: Sequence[Result], report: Report, source: FileSource) -> None:
    """Raise if a result of the baseline has no counterpart in a report."""
    present = {result.metric for result in report.results}
    reasons = {skipped.metric: skipped.reason for skipped in report.skipped}
    for metric in (result.metric for result in base):
        if metric not in present:
            msg = f"{source.name} has no {metric} to compare with the baseline: {reasons.get(metric, 'not computed')}"
            raise FileError(msg)


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
    from calcheck.studies.gate.baseline import StoredInterval, Tolerance

    if options.within_interval:
        return StoredInterval()
    rtol = options.rtol if options.rtol is not None else RTOL if options.atol is None else 0.0
    return Tolerance(rtol=rtol, atol=options.atol or 0.0)
