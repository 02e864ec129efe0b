"""Functions and parameters that several commands share."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.metric_names import metric_name
from calcheck.cli.options import (
    BootstrapOptions,
    EngineOptions,
    InputOptions,
    NullOptions,
    RefitOptions,
    ReportOptions,
    SeedOptions,
    SignificanceOptions,
    WeightOptions,
)
from calcheck.cli.output import Pointwise, require_deliverable
from calcheck.cli.progress import progress_bar
from calcheck.cli.typer_bridge import argument, build, parameters
from calcheck.errors import FileError, OptionError
from calcheck.execution.row_dependence import RowDependence
from calcheck.io.columns.options import ColumnOptions
from calcheck.metrics import DEFAULT_METRICS, METRICS
from calcheck.options import flag_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from inspect import Parameter

    from calcheck.cli.settings import Settings
    from calcheck.execution.context import Run
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report, Skipped

FILE = argument("file", "FILE", "Saved predictions: a file, a folder, or a quoted pattern; - reads standard input.")
INPUTS = ("embedding", "inputs")
LEVEL = "level"  # Of the intervals in a file, and of metrics
COLUMNS = [*parameters(ColumnOptions, "Columns"), *parameters(InputOptions, "Columns")]
REPORT = [*parameters(ReportOptions, "Output")]
BOOTSTRAP = [*parameters(BootstrapOptions, "Inference")]
REFERENCE = [*parameters(NullOptions, "Inference")]
CONFIDENCE = [parameter for parameter in REFERENCE if parameter.name == "confidence"]
SIGNIFICANCE = [*parameters(SignificanceOptions, "Inference")]
INFERENCE = [*BOOTSTRAP, *REFERENCE, *SIGNIFICANCE]
DEPENDENCE = [*parameters(RowDependence, "Inference")]
WEIGHTS = [*parameters(WeightOptions, "Rows")]
UNWEIGHTED = (
    *("plot", "save_state", "settings_from", "dask", "checkpoint", "at", "against"),
    *("cluster", "block", "time", "plot_by", "validation"),
)
"""Options that do not apply to weighted means."""
SEED = [*parameters(SeedOptions, "Computation")]
ENGINE = [*parameters(EngineOptions, "Computation")]


def files_argument(metavar: str, text: str) -> Parameter:
    """Return the argument of a command that reads several files; ``FILE`` is the one for a single file."""
    return argument("files", metavar, text, list[str])


def select_metrics(
    names: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None = None
) -> list[Metric[Any]]:
    """Return the named metrics with their configured options; the default metrics for None.

    Metrics of intervals are at the first of the levels that the command names, if it names levels.

    Raises
    ------
    OptionError
        A name is not a metric.
    """
    named = dict.fromkeys(DEFAULT_METRICS if names is None else map(metric_name, dict.fromkeys(names)))
    for name in named:
        METRICS.named(name, "--metrics: ")
    return [settings.metric(name, {LEVEL: levels} if levels else {}) for name in named]


def require_groups(given: dict[str, Any], by: Sequence[Any] | None) -> None:
    """Raise if metrics are to be fitted to groups, and no columns form groups."""
    if build(RefitOptions, given).refit and not by:
        msg = "--refit applies to groups: also pass the columns that form them, e.g. --by sex"
        raise OptionError(msg)


def weigh_applicable(
    metrics: Sequence[Metric[Any]], given: dict[str, Any], named: Sequence[str] | None, *, plots: bool = False
) -> tuple[list[Metric[Any]], list[Skipped]]:
    """Return weighted metrics, and those without a weighted form, which are skipped unless they are named."""
    column = build(WeightOptions, given).weights
    if named or column is None:
        return weigh(metrics, given, plots=plots), []

    from calcheck.metrics._weights import weighted_forms

    weigh([], given, plots=plots)
    return weighted_forms(metrics, column)


def weigh(metrics: Sequence[Metric[Any]], given: dict[str, Any], *, plots: bool = False) -> list[Metric[Any]]:
    """Return metrics whose means are weighted by the column that the command names, if it names one.

    Commands whose pictures show weighted means have ``plots``.

    Raises
    ------
    OptionError
        A metric is no function of means over rows, or an option of the command does not apply to weighted means.
    """
    weights = build(WeightOptions, given).weights
    if weights is None:
        return list(metrics)

    from calcheck.metrics._weights import weighted

    for name in UNWEIGHTED:
        if given.get(name) and not (plots and name == "plot"):
            msg = f"{flag_of(name)} does not apply to weighted means (--weights): pass only one of them"
            raise OptionError(msg)
    return [weighted(metric, weights) for metric in metrics]


def file_source(file: str, given: dict[str, Any], **settings: Any) -> FileSource:
    """Return the source of a file, with the column options of a command and further settings of the source."""
    from calcheck.io.files import resolve
    from calcheck.io.source import FileSource

    dependence = tuple(given[name] for name in ("time", "cluster") if given.get(name))
    resolved = resolve(file, build(InputOptions, given).input_format)
    return FileSource(resolved, build(ColumnOptions, given), dependence=dependence, **settings)


def open_source(
    file: str,
    given: dict[str, Any],
    metrics: Sequence[Metric[Any]],
    *,
    narrow: bool,
    also: Sequence[str] = (),
    inputs: bool = False,
) -> FileSource:
    """Return the source of a file, with the columns that the metrics need, additional columns, and inputs."""
    from calcheck.evaluation import with_needed_columns

    named = row_dependence(given).columns
    return with_needed_columns(file_source(file, given), metrics, narrow=narrow, also=(*also, *named), inputs=inputs)


def row_dependence(given: dict[str, Any]) -> RowDependence:
    """Return which rows depend on each other; none for commands that do not take clusters."""
    stated: RowDependence = build(RowDependence, given) if "cluster" in given else RowDependence()
    return stated


@contextmanager
def run_context(given: dict[str, Any], source: FileSource | None = None) -> Iterator[Run]:
    """Yield the run settings; show progress, and add the name of a file to errors."""
    run = make_run(given)
    with progress_bar() as progress, source.error_names() if source else nullcontext():
        yield replace(run, progress=progress)


def make_run(given: dict[str, Any]) -> Run:
    """Return the run settings for the options of a command."""
    from calcheck.execution.context import Run, default_memory, parse_memory

    engine = build(EngineOptions, given)
    bootstrap, compared = build(BootstrapOptions, given), build(NullOptions, given)
    if bootstrap.no_bootstrap and bootstrap.resamples is not None:
        msg = "--resamples and --no-bootstrap contradict each other: pass only one of them"
        raise OptionError(msg)
    if compared.no_null and compared.replicates is not None:
        msg = "--replicates and --no-null contradict each other: pass only one of them"
        raise OptionError(msg)
    return Run(
        seed=build(SeedOptions, given).seed,
        device=engine.device,
        precision=engine.precision,
        memory=parse_memory(engine.memory) if engine.memory else default_memory(),
        confidence=compared.confidence,
        resamples=0 if bootstrap.no_bootstrap else bootstrap.resamples,
        replicates=0 if compared.no_null else compared.replicates,
        fdr=build(SignificanceOptions, given).fdr,
        dependence=row_dependence(given),
    )


def require_outputs(given: dict[str, Any], *sources: FileSource | None) -> tuple[ReportOptions, Pointwise]:
    """Return the output options; raise, before computing, if the outputs cannot be written."""
    report, pointwise = build(ReportOptions, given), Pointwise(given.get("pointwise"))
    reads = [name for source in sources if source for name in source.reads()]
    require_deliverable(report, reads, pointwise=pointwise.path, plot=given.get("plot"))
    return report, pointwise


def require_nothing_skipped(report: Report, *sources: FileSource) -> None:
    """Raise if a requested metric was skipped.

    Raises
    ------
    FileError
        A metric was skipped; the message states the reason.
    """
    refuse_skipped(report.skipped, *sources, several=len(report.results) + len(report.skipped) > 1)


def refuse_skipped(skipped: Sequence[Skipped], *sources: FileSource, several: bool = True) -> None:
    """Raise if there are skipped metrics; see :func:`require_nothing_skipped`."""
    for each in skipped:
        begin = f"{each.metric} " if each.code == "inapplicable" else f"{each.metric}: " if several else ""
        msg = f"{' and '.join(source.name for source in sources)}: {begin}{each.reason}"
        raise FileError(msg)
