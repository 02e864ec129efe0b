"""What a command delivers: the report, and files beside it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.cli.options import AnyReportOptions, ReportOptions
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.render.plot import Plot
    from calcheck.report import Report
    from calcheck.results import RowResults

STDOUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


class Pointwise:
    """What metrics say of each row, gathered to be written beside the rows' other columns.

    Parameters
    ----------
    path : str or None
        Where it goes, as .parquet or .csv; nowhere for None.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._shown: Predictions | None = None
        self._columns: dict[str, NDArray[Any]] = {}

    def take(self, metric: Metric[Any, Any], shown: Predictions, rows: RowResults) -> None:
        """Take what one metric says; a name that another metric uses for something else goes with the metric's."""
        if self.path is None:
            return
        self._shown = shown
        for name, values in rows.columns.items():
            known = self._columns.get(name)
            same = known is None or bool((known == values).all())
            self._columns[name if same else f"{metric.name.replace('-', '_')}_{name}"] = values

    def write(self) -> None:
        """Write all that was taken, in the rows' order; a column of the rows with a name that is taken gets another."""
        import numpy as np

        from calcheck.storage.column_writer import write_columns

        if self.path is None or self._shown is None:
            return
        shown = self._shown
        keys = {} if shown.id is None else {shown.id_name: shown.id}
        written = {**keys, **self._columns}
        for name, values in shown.columns.items():
            if name in keys or (name in written and np.array_equal(written[name], values)):
                continue
            free = name
            while free in written or (free != name and free in shown.columns):
                free += "_given"
            written[free] = values
        write_columns(self.path, written)


def require_deliverable(
    report: AnyReportOptions, pointwise: Pointwise, inputs: Sequence[str], *, plot: str | None = None
) -> None:
    """Raise, before the work starts, if a file that was asked for could not be written, or is one that is read."""
    from calcheck.render.plot import require_plot
    from calcheck.storage.atomic_write import require_suffix, require_writable

    if pointwise.path:
        require_suffix(pointwise.path)
    if plot:
        require_plot(plot)
    require_writable([path for path in (report.output, pointwise.path, plot) if path and path not in STDOUT], inputs)


def draw(plot: Plot, path: str) -> None:
    """Draw a plot to a file, in the format that its name says."""
    from calcheck.render.plot import draw_plot
    from calcheck.storage.atomic_write import write_bytes

    write_bytes(path, draw_plot(plot, path))


def deliver(report: Report, output: ReportOptions) -> None:
    """Print the report, or write it to its file."""
    from calcheck.render import FORMATS

    deliver_text(FORMATS[output.format](report), output)


def deliver_text(text: str, output: AnyReportOptions) -> None:
    """Print a text, or write it to its file."""
    from calcheck.storage.atomic_write import write_text

    if output.output and output.output not in STDOUT:
        write_text(output.output, text)
    else:
        sys.stdout.write(text)
