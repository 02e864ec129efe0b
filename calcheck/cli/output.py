"""What a command delivers: the report, and files beside it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.settings import OutputOptions
    from calcheck.metric import Rows
    from calcheck.predictions import Predictions
    from calcheck.report import Report

STDOUT = "-"


def require_deliverable(output: OutputOptions, inputs: Sequence[str]) -> None:
    """Raise, before the work starts, if a file that was asked for could not be written, or is one that is read."""
    from calcheck.io.write import require_suffix, require_writable

    if output.pointwise:
        require_suffix(output.pointwise)
    require_writable([path for path in (output.output, output.pointwise) if path and path != STDOUT], inputs)


def deliver(report: Report, output: OutputOptions) -> None:
    """Print the report, or write it to its file."""
    from calcheck.io.write import write_text
    from calcheck.render import FORMATS

    text = FORMATS[output.format](report)
    if output.output and output.output != STDOUT:
        write_text(output.output, text)
    else:
        sys.stdout.write(text)


def write_pointwise(path: str, shown: Predictions, rows: Rows) -> None:
    """Write a metric's columns beside the narrow columns of the rows, in the rows' order."""
    from calcheck.io.write import write_columns

    keys = {} if shown.id is None else {shown.id_name: shown.id}
    written = {**keys, **rows.columns}
    for name, values in shown.columns.items():
        if name in keys:
            continue
        free = name
        while free in written or (free != name and free in shown.columns):
            free += "_given"
        written[free] = values
    write_columns(path, written)
