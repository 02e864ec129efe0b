"""`calcheck metrics` and `calcheck schema`: what there is."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from calcheck.errors import OptionError
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS


def list_metrics() -> None:
    """List the metrics: what each says, what it needs, and where it comes from."""
    from rich import box
    from rich.table import Table

    from calcheck.render.console import rendered

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for column in ("metric", "what it says", "unit", "needs"):
        table.add_column(column)
    for name, metric in (METRICS | TWO_SAMPLE_METRICS).items():
        table.add_row(name, f"{metric.summary()} {metric.source}", metric.unit, ", ".join(metric.needs))
    sys.stdout.write(rendered(table))


def print_schema(
    of: Annotated[str, typer.Argument(metavar="[report|diff]", help="Of what.", show_default=False)] = "report",
) -> None:
    """Print the JSON Schema of reports, or of what calcheck diff finds."""
    from calcheck.render.schema import SCHEMAS

    if of not in SCHEMAS:
        msg = f"there are schemas of {' and '.join(SCHEMAS)}, got {of!r}"
        raise OptionError(msg)
    sys.stdout.write(json.dumps(SCHEMAS[of](), indent=2) + "\n")
