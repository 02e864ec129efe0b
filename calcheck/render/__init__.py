"""Reports as text: one format a file."""

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

__all__ = ["COMPARISON_FORMATS", "FORMATS", "GATE_FORMATS", "REJECTION_FORMATS", "SWEEP_FORMATS"]

FORMATS: dict[str, Callable[[Report], str]] = {
    "table": to_table,
    "json": to_json,
    "jsonl": to_jsonl,
    "csv": to_csv,
    "markdown": to_markdown,
}
"""How a report becomes text, by its name in ``--format``."""

COMPARISON_FORMATS: dict[str, Callable[[Report], str]] = FORMATS | {
    "table": comparison_to_table,
    "markdown": comparison_to_markdown,
    "latex": comparison_to_latex,
}
"""The same for comparisons of models."""

REJECTION_FORMATS: dict[str, Callable[[Report], str]] = FORMATS | {
    "table": rejection_to_table,
    "markdown": rejection_to_markdown,
}
"""The same for what is kept as predictions are rejected."""

SWEEP_FORMATS: dict[str, Callable[[Report], str]] = FORMATS | {
    "table": sweep_to_table,
    "markdown": sweep_to_markdown,
}
"""The same for settings that are varied."""

GATE_FORMATS: dict[str, Callable[[Report], str]] = FORMATS | {"junit": to_junit, "github": to_github}
"""The same for reports with gates; what is added shows these only."""
