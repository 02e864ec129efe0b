"""Two samples in two files, for the commands that compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.cli.common import deliver, file_source, require_nothing_skipped, require_outputs, run_context
from calcheck.errors import OptionError

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric

STDIN = "-"
SAMPLE_OPTIONS = (
    "target",
    "embedding",
    "inputs",
    "id",
    "model",
    "filter",
    "nan_policy",
    "input_format",
)  # options that also apply to samples, which have no predictions


def compare_samples(metric: Metric[Any], files: tuple[str, str], given: dict[str, Any]) -> None:
    """Compute a metric of two samples in files, and write the report."""
    from calcheck.models.two_samples import two_samples

    first, second = open_samples(files, given, narrow=False)
    report_to, _ = require_outputs(given, first, second)
    with run_context(given) as run:
        report = two_samples(first, second, metric, run=run)
    require_nothing_skipped(report, first, second)
    deliver(report, report_to)


def open_samples(files: tuple[str, str], given: dict[str, Any], *, narrow: bool) -> list[FileSource]:
    """Return the sources of both files."""
    if files == (STDIN, STDIN):
        msg = "only one file can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    return [file_source(file, given, contents="sample", narrow=narrow) for file in files]
