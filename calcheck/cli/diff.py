"""`calcheck diff`: show what changed between two reports."""

from __future__ import annotations

from typing import Any

from calcheck.cli.options import DiffReportOptions
from calcheck.cli.output import deliver_text, require_deliverable
from calcheck.cli.typer_bridge import argument, build, make_command, parameters
from calcheck.errors import OptionError

STDIN = "-"


def _diff(old: str, new: str, **given: Any) -> None:
    """Show what changed between two reports: values, verdicts, input, settings and versions."""
    from calcheck.render import render
    from calcheck.render.builders.diff import diff_document
    from calcheck.storage.report_json import read_report
    from calcheck.studies.diff import diff

    if old == new == STDIN:
        msg = "only one report can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    report_to = build(DiffReportOptions, given)
    require_deliverable(report_to, [old, new])
    deliver_text(render(diff(read_report(old), read_report(new)), report_to.format, diff_document), report_to)


diff_command = make_command(
    "diff",
    _diff,
    [
        argument(
            "old", "OLD.json", "A report written with --format json, or a page of calcheck report; - reads stdin."
        ),
        argument("new", "NEW.json", "A later report, in the same formats."),
        *parameters(DiffReportOptions, "Output"),
    ],
    example="calcheck diff old.json new.json",
)
