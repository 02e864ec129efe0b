"""What the commands share: files to read, settings of a run, and where reports, rows and pictures go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from calcheck.cli.app import metric_name
from calcheck.cli.typer_options import build
from calcheck.errors import FileError, OptionError
from calcheck.execution import run as runs
from calcheck.execution.run import Run
from calcheck.io.column_names import ColumnOptions
from calcheck.metrics import DEFAULT_METRICS, METRICS
from calcheck.options import flag_of, options_of
from calcheck.render import PAGE, render
from calcheck.studies import options as study_options
from calcheck.typing import AnyArray

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture
    from calcheck.cli.settings import Settings
    from calcheck.inference.metric_protocol import RowResults
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.models.report_difference import Diff
    from calcheck.predictions import Predictions
    from calcheck.render.document import Document
    from calcheck.reports import Report, Skipped

STDIN = "-"
BAR_WIDTH = 16  # Of the bar of progress, in characters: with a stage and the time left, a line fits 60 columns
STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


class Pointwise:
    """Collects the per-row results of metrics, and writes them together with the other columns of the rows."""

    def __init__(self, path: str | None) -> None:
        self.path = path  # Output file, .parquet or .csv; None to write nothing
        self._shown: Predictions | None = None
        self._columns: dict[str, AnyArray] = {}

    def take(self, metric: Metric[Any], shown: Predictions, rows: RowResults, output: str = "") -> None:
        """Add the results of one metric; a column name in use for other values gets the metric's name as prefix."""
        if self.path is None:
            return
        self._shown = shown
        for column, values in rows.columns.items():
            name = f"{output}_{column}" if output else column
            known = self._columns.get(name)
            same = known is None or bool((known == values).all())
            self._columns[name if same else f"{metric.info.name.replace('-', '_')}_{name}"] = values

    def add(self, shown: Predictions, columns: dict[str, AnyArray]) -> None:
        """Add columns of all rows."""
        self._shown = shown
        self._columns |= columns

    def write(self) -> None:
        """Write all results in row order, with the other columns of the rows."""
        if self.path is not None and self._shown is not None:
            from calcheck.predictions import with_input_columns
            from calcheck.storage.prediction_files import write_columns

            write_columns(self.path, with_input_columns(self._columns, self._shown))


def require_deliverable(outputs: Mapping[str, str | None], inputs: Sequence[str]) -> None:
    """Raise, before computing, if the output file of an option cannot be written or is also an input file."""
    if pointwise := outputs.get("pointwise"):
        from calcheck.storage.atomic_write import require_suffix

        require_suffix(pointwise)
    if plot := outputs.get("plot"):
        from calcheck.charts.drawing import require_image

        require_image(plot)
    written = [path for path in outputs.values() if path and path not in STDOUT]
    if written:
        from calcheck.storage.atomic_write import require_writable

        require_writable(written, inputs)


def draw(picture: Picture, path: str) -> None:
    """Draw a picture to a file, in the format given by the file name."""
    from calcheck.charts import drawing
    from calcheck.storage.atomic_write import write_bytes

    write_bytes(path, drawing.draw(picture, path))


def pictures_of(report: Report) -> tuple[Picture, ...]:
    """Return the pictures of a report of metrics."""
    from calcheck.render.pictures import metric_pictures

    return metric_pictures(report)


def deliver(
    report: Report | Diff,
    output: study_options.AnyReportOptions,
    build: Callable[[Any], Document] | None = None,
    pictures: Callable[[], Iterable[Picture]] | None = None,
    *,
    screen: bool = False,
) -> None:
    """Print the report, or write it to its output file; a page has pictures, too."""
    from calcheck.render.document import report_document

    legend = not getattr(output, "quiet", False)
    shown = tuple(pictures()) if pictures is not None and output.format == PAGE else ()
    view = view_of(output, screen=screen)
    text = render(report, output.format, build or report_document, legend=legend, pictures=shown, view=view)
    deliver_text(text, output)


def view_of(output: study_options.AnyReportOptions, *, screen: bool) -> Literal["full", "screen", "file"]:
    """Return how much text shows: everything in a file, and on a screen unless only the first is asked for."""
    return ("screen" if screen else "full") if is_printed(output) else "file"


def is_printed(output: study_options.AnyReportOptions) -> bool:
    """Return whether a report goes to standard output."""
    return not output.output or output.output in STDOUT


def deliver_text(text: str, output: study_options.AnyReportOptions) -> None:
    """Print a text, or write it to its output file."""
    if is_printed(output):
        sys.stdout.write(text)
    else:
        from calcheck.storage.atomic_write import write_text

        write_text(str(output.output), text)


LEVEL = "level"  # Of the intervals in a file, and of metrics
UNWEIGHTED = (
    *("plot", "save_state", "settings_from", "dask", "checkpoint", "at", "against"),
    *("cluster", "block", "time", "plot_by", "validation", "on"),
)  # Options that do not apply to weighted means


def select_metrics(
    names: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None = None
) -> list[Metric[Any]]:
    """Return the named, or the default metrics with their configured options, at the first of the named levels."""
    named = dict.fromkeys(DEFAULT_METRICS if names is None else map(metric_name, dict.fromkeys(names)))
    for name in named:
        METRICS.named(name, "--metrics: ")
    return [settings.metric(name, {LEVEL: levels} if levels else {}) for name in named]


def weigh(
    metrics: Sequence[Metric[Any]], given: dict[str, Any], *, applicable: bool = False, plots: bool = False
) -> tuple[list[Metric[Any]], list[Skipped]]:
    """Return metrics weighted by the named column, if any, and if ``applicable`` those without a weighted form.

    Commands whose pictures are weighted have ``plots``.
    """
    weights = build(study_options.WeightOptions, given).weights
    if weights is None:
        return list(metrics), []

    from calcheck.metrics._weights import weighted, weighted_forms

    for name in UNWEIGHTED:
        if given.get(name) and not (plots and name == "plot"):
            raise OptionError(f"{flag_of(name)} does not apply to weighted means (--weights): pass only one of them")
    return weighted_forms(metrics, weights) if applicable else ([weighted(each, weights) for each in metrics], [])


def file_source(file: str, given: dict[str, Any], **settings: Any) -> FileSource:
    """Return the source of a file, with the column options of a command and further settings of the source."""
    from calcheck.io.file_source import FileSource
    from calcheck.io.files import resolve

    dependence = tuple(given[name] for name in ("time", "cluster") if given.get(name))
    resolved = resolve(file, build(study_options.InputOptions, given).input_format)
    return FileSource(resolved, build(ColumnOptions, given), dependence=dependence, **settings)


def open_source(
    file: str,
    given: dict[str, Any],
    metrics: Sequence[Metric[Any]],
    *,
    narrow: bool,
    also: Sequence[str] = (),
    by: Sequence[str] = (),
    inputs: bool = False,
) -> FileSource:
    """Return the source of a file, with the columns that the metrics need, additional columns, groups and inputs."""
    from calcheck.io.file_source import with_needed_columns

    named = row_dependence(given).columns
    source = file_source(file, given, by=tuple(by))
    return with_needed_columns(source, metrics, narrow=narrow, also=(*also, *named), inputs=inputs)


def row_dependence(given: dict[str, Any]) -> runs.RowDependence:
    """Return which rows depend on each other; none for commands that do not take clusters."""
    stated: runs.RowDependence = build(runs.RowDependence, given) if "cluster" in given else runs.RowDependence()
    return stated


@contextmanager
def show_progress(delay: float = 1.0) -> Iterator[Callable[[str, float], None]]:
    """Yield a callback that shows a line for each stage in progress on a terminal, after a delay in seconds."""
    if not sys.stderr.isatty():
        yield runs.silent
        return
    appears = time.monotonic() + delay
    progress: Any = None
    tasks: dict[str, Any] = {}

    def show(stage: str, share: float) -> None:
        nonlocal progress
        if progress is None:
            if time.monotonic() < appears:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(BAR_WIDTH),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
            )
            shown = Progress(*columns, console=Console(stderr=True), transient=True)
            shown.start()
            progress = shown
        if share < 1:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=1.0)
            progress.update(tasks[stage], completed=share)
        elif stage in tasks:
            progress.remove_task(tasks.pop(stage))

    try:
        yield show
    finally:
        if progress is not None:
            progress.stop()


@contextmanager
def run_context(given: dict[str, Any], source: FileSource | None = None) -> Iterator[Run]:
    """Yield the run settings; show progress, and add the name of a file to errors."""
    run = make_run(given)
    with show_progress() as progress, source.error_names() if source else nullcontext():
        yield replace(run, progress=progress)


def make_run(given: dict[str, Any]) -> Run:
    """Return the run settings for the options of a command."""
    options: runs.RunOptions = build(runs.RunOptions, given)
    return Run(**options.settings(), dependence=row_dependence(given))


OF_ROWS = ("pointwise", "worst", "best", "at", "grid", "subsample", "plot", "cluster", "block", "time", "weights", "on")
"""Options that need all rows in memory."""


def streaming_requested(given: dict[str, Any]) -> bool:
    """Return whether an option of the command requests streaming."""
    return any(given.get(option.field) for option in options_of(study_options.StateOptions))


def streaming_reason(source: FileSource, metrics: Sequence[Metric[Any]], given: dict[str, Any]) -> str:
    """Return why the file is streamed: its rows exceed the memory limit, and a metric can be streamed; else ""."""
    if any(given.get(name) for name in OF_ROWS):
        return ""
    needed, memory = source.narrow_bytes(), make_run(given).memory
    if needed is None or needed <= memory:
        return ""

    from calcheck.streaming.metric_accumulators import accumulator_of

    if all(accumulator_of(metric) is None for metric in metrics):
        return ""
    amounts = f"need {needed / runs.GIB:.2g} GiB, and the --memory limit is {memory / runs.GIB:.2g} GiB"
    return f"rows are processed in batches: targets and predictions {amounts}"


def require_outputs(
    given: dict[str, Any], *sources: FileSource | None
) -> tuple[study_options.ReportOptions, Pointwise]:
    """Return the output options; raise, before computing, if the outputs cannot be written."""
    report, pointwise = build(study_options.ReportOptions, given), Pointwise(given.get("pointwise"))
    reads = [name for source in sources if source for name in source.reads()]
    require_deliverable({"output": report.output, "pointwise": pointwise.path, "plot": given.get("plot")}, reads)
    return report, pointwise


def require_shown(given: dict[str, Any]) -> None:
    """Raise if the format of the report has no place for the rows with extreme values."""
    if given["format"] == "csv" and (given.get("worst") or given.get("best")):
        raise OptionError("--format csv cannot show --worst and --best: use another format, or --pointwise")


def is_given(given: dict[str, Any], name: str) -> bool:
    """Return whether an option was given."""
    return given.get(name) not in (None, False, ())


def refuse(names: Iterable[str], given: dict[str, Any], what: str, remedy: str) -> None:
    """Raise if an option was given that does not apply to what the command does."""
    for name in names:
        if is_given(given, name):
            raise OptionError(f"{flag_of(name)} does not apply to {what}: {remedy}")


def require_nothing_skipped(report: Report, *sources: FileSource) -> None:
    """Raise if a requested metric was skipped."""
    refuse_skipped(report.skipped, *sources, several=len(report.results) + len(report.skipped) > 1)


def refuse_skipped(skipped: Sequence[Skipped], *sources: FileSource, several: bool = True) -> None:
    """Raise if there are skipped metrics; see :func:`require_nothing_skipped`."""
    for each in skipped:
        begin = f"{each.metric} " if each.code == "inapplicable" else f"{each.metric}: " if several else ""
        raise FileError(f"{' and '.join(source.name for source in sources)}: {begin}{each.reason}")
