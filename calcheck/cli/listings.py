"""`calcheck metrics` and `calcheck schema`: what there is."""

from __future__ import annotations

import json
import sys

from calcheck.metrics import METRICS


def list_metrics() -> None:
    """List the metrics: what each says, what it needs, and where it comes from."""
    from rich import box
    from rich.table import Table

    from calcheck.render.console import rendered

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for column in ("metric", "what it says", "unit", "needs"):
        table.add_column(column)
    for name, metric in METRICS.items():
        table.add_row(name, f"{metric.summary()} {metric.source}", metric.unit, ", ".join(metric.needs))
    sys.stdout.write(rendered(table))


def print_schema() -> None:
    """Print the JSON Schema of reports."""
    from calcheck.render.schema import report_schema

    sys.stdout.write(json.dumps(report_schema(), indent=2) + "\n")
