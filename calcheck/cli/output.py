"""What a command delivers: the report, and files beside it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.cli.settings import OutputOptions
    from calcheck.metric import Rows
    from calcheck.predictions import Predictions
    from calcheck.report import Report


def require_deliverable(output: OutputOptions) -> None:
    """Raise, before the work starts, if a file that was asked for could not be written."""
    from calcheck.io.write import POINTWISE_SUFFIXES, require_writable

    if output.output:
        require_writable(output.output)
    if output.pointwise:
        require_writable(output.pointwise, suffixes=POINTWISE_SUFFIXES)


def deliver(report: Report, output: OutputOptions) -> None:
    """Print the report, or write it to its file."""
    from calcheck.io.write import write_text
    from calcheck.render import FORMATS

    text = FORMATS[output.format](report)
    if output.output:
        write_text(output.output, text)
    else:
        sys.stdout.write(text)


def write_pointwise(path: str | None, shown: Predictions, rows: Rows) -> None:
    """Write a metric's columns beside the narrow columns of the rows, in the rows' order."""
    if path is None:
        return
    from calcheck.io.write import write_columns

    keys = {} if shown.id is None else {"id": shown.id}
    found = {**keys, **rows.columns}
    others = {
        f"{name}_given" if name in rows.columns else name: values
        for name, values in shown.columns.items()
        if name not in keys
    }
    write_columns(path, {**found, **others})
