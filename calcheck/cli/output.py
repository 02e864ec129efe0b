"""Output of a command: the report, per-row results and pictures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from calcheck.charts.picture import Picture
    from calcheck.cli.options import AnyReportOptions, DiffReportOptions, PageOptions, PrintedReportOptions
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.render.document import Document
    from calcheck.report import Report
    from calcheck.results import RowResults

STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


class Pointwise:
    """Collects the per-row results of metrics, and writes them together with the other columns of the rows.

    Parameters
    ----------
    path : str or None
        Output file, .parquet or .csv; None to write nothing.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._shown: Predictions | None = None
        self._columns: dict[str, NDArray[Any]] = {}

    def take(self, metric: Metric[Any], shown: Predictions, rows: RowResults) -> None:
        """Add the results of one metric; a column name in use for other values gets the metric's name as prefix."""
        if self.path is None:
            return
        self._shown = shown
        for name, values in rows.columns.items():
            known = self._columns.get(name)
            same = known is None or bool((known == values).all())
            self._columns[name if same else f"{metric.info.name.replace('-', '_')}_{name}"] = values

    def add(self, shown: Predictions, columns: dict[str, NDArray[Any]]) -> None:
        """Add columns of all rows."""
        self._shown = shown
        self._columns |= columns

    def write(self) -> None:
        """Write all results in row order, with the other columns of the rows."""
        from calcheck.pointwise import with_input_columns
        from calcheck.storage.column_writer import write_columns

        if self.path is not None and self._shown is not None:
            write_columns(self.path, with_input_columns(self._columns, self._shown))


def require_deliverable(
    report: AnyReportOptions | DiffReportOptions,
    inputs: Sequence[str],
    *,
    pointwise: str | None = None,
    plot: str | None = None,
) -> None:
    """Raise, before computing, if an output file cannot be written or is also an input file."""
    from calcheck.charts.image import require_image
    from calcheck.storage.atomic_write import require_suffix, require_writable

    if pointwise:
        require_suffix(pointwise)
    if plot:
        require_image(plot)
    require_writable([path for path in (report.output, pointwise, plot) if path and path not in STDOUT], inputs)


def draw(picture: Picture, path: str) -> None:
    """Draw a picture to a file, in the format given by the file name."""
    from calcheck.charts import image
    from calcheck.storage.atomic_write import write_bytes

    write_bytes(path, image.draw(picture, path))


def draw_metrics(report: Report, path: str) -> None:
    """Draw the picture of a report of one metric to a file."""
    from calcheck.render.pictures.metrics import metric_pictures

    for picture in metric_pictures(report):
        draw(picture, path)


def deliver(
    report: Report, output: AnyReportOptions | PrintedReportOptions, build: Callable[[Report], Document] | None = None
) -> None:
    """Print the report, or write it to its output file.

    Parameters
    ----------
    report : Report
        The report.
    output : ReportOptions
        Format and destination.
    build : callable, optional
        Builder of the document; default: that of the results of one file.
    """
    from calcheck.render import render
    from calcheck.render.builders.report import report_document

    deliver_text(render(report, output.format, build or report_document, legend=not output.quiet), output)


def deliver_text(text: str, output: AnyReportOptions | DiffReportOptions | PageOptions | PrintedReportOptions) -> None:
    """Print a text, or write it to its output file."""
    from calcheck.storage.atomic_write import write_text

    if output.output and output.output not in STDOUT:
        write_text(output.output, text)
    else:
        sys.stdout.write(text)
