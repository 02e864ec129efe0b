"""`calcheck slices`: in which groups or regions of the rows the uncertainties are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    FILE,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    WEIGHTS,
    deliver,
    draw,
    open_source,
    require_groups,
    require_nothing_skipped,
    require_outputs,
    run_context,
    select_metrics,
    weigh,
)
from calcheck.cli.next_commands import slice_commands
from calcheck.cli.study_options import RefitOptions, SliceOptions
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.regions.partition import Cut
from calcheck.studies.options import PlotOptions, PointwiseOptions
from calcheck.studies.slices.search import RegionSink, SearchOptions, search_regions
from calcheck.studies.slices.study import GROUP_METRICS, by_groups, file_columns

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Source
    from calcheck.report import Report


def _slices(file: str, **given: Any) -> None:
    """Show where the uncertainties are wrong: in groups of the rows, or in regions that a search finds.

    Each group or region is compared with a perfect model on the same rows. P-values are adjusted for the number of
    groups or regions: a perfect model fails somewhere in 5 % of all files.
    """
    options, search = build(SliceOptions, given), build(SearchOptions, given)
    if options.by and search.columns:
        msg = "--by compares groups, and --columns are those in which regions are searched: pass only one of them"
        raise OptionError(msg)
    if options.by and search.depth:
        msg = "--by compares groups, and --depth is that of a tree of regions: pass only one of them"
        raise OptionError(msg)
    if options.by and given["pointwise"]:
        msg = "--pointwise writes the clusters and the regions of a search: omit --by, or use the --filter of a group"
        raise OptionError(msg)
    report_slices(file, given, options.by, options.metrics, search)


def report_slices(
    file: str,
    given: dict[str, Any],
    by: Sequence[str] | None,
    named: Sequence[str] | None,
    search: SearchOptions | None = None,
) -> None:
    """Write the report of groups, or of the regions that a search finds if no columns form groups."""
    from calcheck.studies.slices.document import slices_document
    from calcheck.studies.slices.picture import slices_picture

    search = search or SearchOptions()
    cuts = cuts_of(by)
    metrics = weigh_slices(select_metrics(named or GROUP_METRICS, given["settings"], given[LEVEL]), given, cuts)
    require_groups(given, cuts)
    refit = build(RefitOptions, given).refit
    source = open_source(
        file,
        given,
        metrics,
        narrow=not cuts and search.columns is None,
        also=file_columns(() if cuts else search.columns or ()),
        inputs=not cuts and search.reads_embedding,
    )
    source = replace(source, by=file_columns([cut.text for cut in cuts]))
    report_to, pointwise = require_outputs(given, source)
    plot = build(PlotOptions, given).plot
    with run_context(given, source) as run:
        report = slice_source(
            source, metrics, cuts, replace(run, curves=bool(plot)), search, refit=refit, sink=pointwise.add
        )
    pointwise.write()
    if named or not report.results:
        require_nothing_skipped(report, source)
    known = source.predictions().columns
    report = _with_commands(report, file, given, [cut.resolve(known).column for cut in cuts])
    if plot:
        draw(slices_picture(report), plot)
    deliver(report, report_to, slices_document)


def cuts_of(by: Sequence[str] | None) -> list[Cut]:
    """Return the columns that form groups, and how they are cut."""
    return [Cut.parse(text) for text in by or ()]


def weigh_slices(metrics: Sequence[Metric[Any]], given: dict[str, Any], cuts: Sequence[Cut]) -> list[Metric[Any]]:
    """Return metrics with the weights that the command names."""
    if given.get("weights") and not cuts:
        msg = "a search has no weighted form: compare groups with --by, or omit --weights"
        raise OptionError(msg)
    return weigh(metrics, given)


def slice_source(
    source: Source,
    metrics: Sequence[Metric[Any]],
    cuts: Sequence[Cut],
    run: Run,
    search: SearchOptions | None = None,
    *,
    refit: bool = False,
    sink: RegionSink | None = None,
) -> Report:
    """Return the report of the groups of a source, or of the regions that a search finds if no columns form groups."""
    search = search or SearchOptions()
    if cuts:
        return by_groups(source, cuts, metrics=metrics, min_rows=search.min_rows, refit=refit, run=run)
    return search_regions(source, options=search, metrics=metrics, run=run, sink=sink)


def _with_commands(report: Report, file: str, given: dict[str, Any], columns: Sequence[str]) -> Report:
    """Return a report with the commands to run next."""
    if report.conclusion is None:
        return report
    found = slice_commands(report, file, given, columns)
    return replace(report, conclusion=replace(report.conclusion, next=found))


slices_command = make_command(
    "slices",
    _slices,
    [
        FILE,
        *parameters(SliceOptions, "Slices"),
        *parameters(RefitOptions, "Slices"),
        *parameters(SearchOptions, "Slices"),
        *COLUMNS,
        *WEIGHTS,
        *INFERENCE,
        *DEPENDENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *parameters(PointwiseOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck slices preds.parquet --by sex,age:5",
)
