"""Where the uncertainties are wrong: in groups of the rows, or in regions that a search finds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calcheck.errors import OptionError
from calcheck.execution.run import Run
from calcheck.metrics.base import Metric
from calcheck.options import TOLERANCE
from calcheck.predictions import Predictions, Source
from calcheck.regions.partition import Cut
from calcheck.reports import Report
from calcheck.studies import Request
from calcheck.studies.options import RefitOptions, ToleranceOptions, WeightOptions
from calcheck.studies.slices.groups import GROUP_METRICS, by_groups, file_columns
from calcheck.studies.slices.options import SearchOptions, SliceOptions
from calcheck.studies.slices.search import RegionSink, search_regions
from calcheck.typing import AnyArray


def run(request: Request) -> Report:
    """Return the report of groups, or of the regions that a search finds if no columns form groups."""
    options, search = request.options(SliceOptions), request.options(SearchOptions)
    cuts, of_groups = cuts_of(options.by), request.options(RefitOptions)
    of_groups.require_groups(cuts)
    mixed = {
        "--by compares groups, and --columns are those in which regions are searched: pass only one of them": (
            search.columns
        ),
        "--by compares groups, and --depth is that of a tree of regions: pass only one of them": search.depth,
        "--pointwise writes the clusters and the regions of a search: omit --by, or use the --filter of a group": (
            request.data("pointwise")
        ),
    }
    for msg, given in mixed.items():
        if cuts and given:
            raise OptionError(msg)
    require_weighable(request.options(WeightOptions).weights, cuts)
    metrics, _ = request.weighted(request.metrics(GROUP_METRICS))
    source = request.open(
        request.data("file"),
        metrics,
        narrow=not cuts and search.columns is None,
        also=file_columns(() if cuts else search.columns or ()),
        inputs=not cuts and search.reads_embedding,
        by=file_columns([cut.text for cut in cuts]),
    )

    def keep(shown: Predictions, columns: dict[str, AnyArray]) -> None:
        request.keep("regions", shown, columns, source)

    with request.run(source) as run:
        confidence = 1 - (1 - run.confidence) / request.targets  # All targets of a right model pass together
        run = replace(run, curves=request.draws, confidence=confidence)
        tolerance = request.options(ToleranceOptions).tolerance
        report = slice_source(source, metrics, cuts, run, search, groups=of_groups, sink=keep, tolerance=tolerance)
    report = request.require_results(report, source)
    if report.conclusion is None:
        return report
    known = source.predictions().columns
    return request.with_commands(report, [cut.resolve(known).column for cut in cuts])


def cuts_of(by: Sequence[str] | None) -> list[Cut]:
    """Return the columns that form groups, and how they are cut."""
    return [Cut.parse(text) for text in by or ()]


def require_weighable(weights: str | None, cuts: Sequence[Cut]) -> None:
    """Raise if there are weights for a search."""
    if weights is not None and not cuts:
        raise OptionError("a search has no weighted form: compare groups with --by, or omit --weights")


def slice_source(
    source: Source,
    metrics: Sequence[Metric[Any]],
    cuts: Sequence[Cut],
    run: Run,
    search: SearchOptions | None = None,
    *,
    groups: RefitOptions | None = None,
    sink: RegionSink | None = None,
    tolerance: float = TOLERANCE,
) -> Report:
    """Return the report of the groups of a source, or of the regions that a search finds if no columns form groups."""
    search = search or SearchOptions()
    if cuts:
        how = vars(groups or RefitOptions())
        return by_groups(source, cuts, metrics=metrics, min_rows=search.min_rows, **how, run=run, tolerance=tolerance)
    return search_regions(source, options=search, metrics=metrics, run=run, sink=sink, tolerance=tolerance)
