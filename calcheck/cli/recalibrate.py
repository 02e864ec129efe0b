"""`calcheck recalibrate`: which correction helps, fit it, and apply it to other predictions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    FILE,
    INFERENCE,
    SEED,
    deliver,
    draw,
    file_source,
    open_source,
    run_context,
)
from calcheck.cli.study_options import CorrectionOptions
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import FileError
from calcheck.io.columns import ColumnOptions
from calcheck.studies.options import PlotOptions, PrintedReportOptions
from calcheck.studies.recalibrate.study import RecalibrationOptions, judge_map, judges, outside_message, recalibrate

if TYPE_CHECKING:
    from calcheck.io.roles import Contents
    from calcheck.io.source import FileSource
    from calcheck.predictions import Predictions
    from calcheck.recalibration.methods import RecalibrationMap
    from calcheck.report import Report


def _recalibrate(file: str, **given: Any) -> None:
    """Find which correction of the uncertainties helps, and apply it to other predictions.

    Corrections are compared by cross-validation on FILE: each row is scored after a fit to the other folds. "none",
    leaving the predictions as they are, wins where nothing helps. Before and after are shown on rows that were not
    used to fit.
    """
    options = build(CorrectionOptions, given)
    if options.map is not None:
        _apply(file, options, given)
    else:
        _fit(file, options, given)


def _fit(file: str, files: CorrectionOptions, given: dict[str, Any]) -> None:
    """Fit a correction, show what it changes, and store it or the predictions that it corrects."""
    from calcheck.storage.report_json import write_map

    options = recalibration_options(given)
    source = _judged_source(file, given, options.columns, contents="all")
    other = None if files.to is None else _judged_source(files.to, given, options.columns)
    _require_outputs(files, given, source, other)
    judged = None if other is None or other.missing() else other
    with run_context(given, source) as run:
        report, found = recalibrate(source, options=options, other=judged, run=run)
    if files.save_map is not None:
        write_map(found, files.save_map)
    if files.corrected is not None and files.to is not None:
        _write(files.to, given, found, files.corrected)
    _deliver(report, found, given)


def recalibration_options(given: dict[str, Any]) -> RecalibrationOptions:
    """Return the options of a recalibration, which depends on the columns of ``--inputs`` by default."""
    options: RecalibrationOptions = build(RecalibrationOptions, given)
    inputs = build(ColumnOptions, given).inputs
    if inputs is None or given.get("by"):
        return options
    return replace(options, by=(*options.by, *(name.strip() for name in inputs.split(","))))


def _apply(file: str, files: CorrectionOptions, given: dict[str, Any]) -> None:
    """Apply a stored correction, and show what it changes if there are targets."""
    from calcheck.storage.report_json import read_map

    found = read_map(str(files.map))
    source = _judged_source(file, given, found.columns)
    _require_outputs(files, given, source)
    missing = source.missing()
    if missing and files.corrected is None:
        msg = f"{source.name}: {missing[0]}"
        raise FileError(msg)
    report = None
    if not missing:
        with run_context(given, source) as run:
            report = judge_map(source, found, run=run)
    if files.corrected is not None:
        _write(file, given, found, files.corrected)
    if report is not None:
        _deliver(report, found, given)


def _judged_source(
    file: str, given: dict[str, Any], columns: tuple[str, ...], *, contents: Contents = "any"
) -> FileSource:
    """Return the source of a file with the columns that metrics and corrections need; targets may be absent."""
    found = open_source(file, given, judges(), narrow=False, also=columns)
    found = replace(found, contents=contents, repeated=False)
    if found.roles.predictive is None:
        msg = f"{found.name}: {found.missing()[0]}"
        raise FileError(msg)
    return found


def _require_outputs(files: CorrectionOptions, given: dict[str, Any], *sources: FileSource | None) -> None:
    """Raise, before computing, if an output cannot be written."""
    from calcheck.charts.drawing import require_image
    from calcheck.storage.atomic_write import require_writable
    from calcheck.storage.writers import suffix_of

    if files.corrected is not None:
        suffix_of(files.corrected)
    reads = [name for source in sources if source is not None for name in source.reads()]
    plot = build(PlotOptions, given).plot
    if plot is not None:
        require_image(plot)
    outputs = [path for path in (files.corrected, files.save_map, plot) if path is not None]
    require_writable(outputs, [*reads, *([files.map] if files.map is not None else [])])


def _write(file: str, given: dict[str, Any], found: RecalibrationMap, path: str) -> None:
    """Write the corrected predictions of a file with all their other columns, in batches."""
    from calcheck.storage.writers import write_canonical

    source = file_source(file, given, contents="any", narrow=True, also=found.columns)
    counts = {"rows": 0, "outside": 0}

    def corrected() -> Iterator[Predictions]:
        for batch in source.batches():
            rows, outside = found.apply_counted(batch)
            counts["rows"] += len(rows)
            counts["outside"] += outside
            yield rows

    with source.error_names():
        write_canonical(path, corrected())
    note = f"note {outside_message(counts['outside'], counts['rows']).text}\n" if counts["outside"] else ""
    steps = "; ".join(found.texts) or "left as they are"
    sys.stderr.write(f"{path}: {counts['rows']:,} rows, {steps}\n{note}")


def _deliver(report: Report, found: RecalibrationMap, given: dict[str, Any]) -> None:
    """Print the report, and draw its picture if one is asked for."""
    from calcheck.studies.recalibrate.document import recalibration_document
    from calcheck.studies.recalibrate.picture import recalibration_picture

    plot = build(PlotOptions, given).plot
    if plot is not None:
        draw(recalibration_picture(report, found), plot)
    deliver(report, build(PrintedReportOptions, given), recalibration_document)


recalibrate_command = make_command(
    "recalibrate",
    _recalibrate,
    [
        FILE,
        *parameters(RecalibrationOptions, "Correction"),
        *parameters(CorrectionOptions, "Correction"),
        *COLUMNS,
        *INFERENCE,
        *parameters(PrintedReportOptions, "Output"),
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck recalibrate val.parquet --to test.parquet -o corrected.parquet",
)
