"""Reports as text: one module per format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.render.comparison import comparison_to_markdown, comparison_to_table
from calcheck.render.csv_jsonl import to_csv, to_jsonl
from calcheck.render.github import to_github
from calcheck.render.json import to_json
from calcheck.render.junit import to_junit
from calcheck.render.latex import comparison_to_latex
from calcheck.render.markdown import to_markdown
from calcheck.render.rejection import rejection_to_markdown, rejection_to_table
from calcheck.render.sweep import sweep_to_markdown, sweep_to_table
from calcheck.render.table import to_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.report import Report

    Formats = dict[str, Callable[..., str]]

__all__ = ["COMPARISON_FORMATS", "FORMATS", "GATE_FORMATS", "REJECTION_FORMATS", "SWEEP_FORMATS", "render"]

FORMATS: Formats = {
    "table": to_table,
    "json": to_json,
    "jsonl": to_jsonl,
    "csv": to_csv,
    "markdown": to_markdown,
}
"""Renderers of reports, by the name of the format in ``--format``."""

COMPARISON_FORMATS: Formats = FORMATS | {
    "table": comparison_to_table,
    "markdown": comparison_to_markdown,
    "latex": comparison_to_latex,
}
"""Renderers of model comparisons."""

REJECTION_FORMATS: Formats = FORMATS | {
    "table": rejection_to_table,
    "markdown": rejection_to_markdown,
}
"""Renderers of rejection studies."""

SWEEP_FORMATS: Formats = FORMATS | {
    "table": sweep_to_table,
    "markdown": sweep_to_markdown,
}
"""Renderers of sweeps."""

GATE_FORMATS: Formats = FORMATS | {"junit": to_junit, "github": to_github}
"""Renderers of reports with rules; junit and github contain only the rules."""

WITH_LEGEND = frozenset({"table", "markdown"})
"""Formats that have a legend."""


def render(report: Report, name: str, formats: Formats, *, legend: bool = True) -> str:
    """Return a report in one of the formats.

    Parameters
    ----------
    report : Report
        The report.
    name : str
        Name of the format.
    formats : dict
        Renderers by name, such as ``FORMATS``.
    legend : bool
        Whether tables have a legend.
    """
    return formats[name](report, legend=legend) if name in WITH_LEGEND else formats[name](report)
