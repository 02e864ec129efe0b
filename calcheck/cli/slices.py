"""`calcheck slices`: in which groups of the rows the uncertainties are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    FILE,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    open_source,
    require_nothing_skipped,
    require_outputs,
    run_context,
    select_metrics,
)
from calcheck.cli.next_commands import slice_commands
from calcheck.cli.options import SliceOptions
from calcheck.cli.output import deliver
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError


def _slices(file: str, **given: Any) -> None:
    """Show in which groups of the rows the uncertainties are wrong.

    Each group is compared with a perfect model on the same rows. P-values are adjusted for the number of groups and
    metrics: a perfect model fails somewhere in 5 % of all files.
    """
    from calcheck.regions.cut import Cut
    from calcheck.render.builders.slices import slices_document
    from calcheck.studies.slices import GROUP_METRICS, by_groups, file_columns

    options = build(SliceOptions, given)
    if not options.by:
        msg = "--by names the columns that form groups, such as --by sex,age:5"
        raise OptionError(msg)
    cuts = [Cut.parse(text) for text in options.by]
    metrics = select_metrics(options.metrics or GROUP_METRICS, given["settings"], given[LEVEL])
    source = open_source(file, given, metrics, narrow=False, also=file_columns(cuts))
    report_to, _ = require_outputs(given, source)
    with run_context(given, source) as run:
        report = by_groups(source, cuts, metrics=metrics, min_rows=options.min_rows, run=run)
    if options.metrics or not report.results:
        require_nothing_skipped(report, source)
    if report.conclusion is not None:
        found = slice_commands(report, file, given, [cut.column for cut in cuts])
        report = replace(report, conclusion=replace(report.conclusion, next=found))
    deliver(report, report_to, slices_document)


slices_command = make_command(
    "slices",
    _slices,
    [
        FILE,
        *parameters(SliceOptions, "Slices"),
        *COLUMNS,
        *INFERENCE,
        *REPORT,
        *SEED,
        *ENGINE,
    ],
    example="calcheck slices preds.parquet --by sex,age:5",
)
