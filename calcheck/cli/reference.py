"""`calcheck metrics` and `calcheck schema`: list the metrics, and print the JSON schemas."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcheck.cli.typer_bridge import make_command
from calcheck.errors import OptionError
from calcheck.metrics import ALIASES, METRICS, TWO_SAMPLE_METRICS

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric


def list_metrics() -> None:
    """List all metrics: what each measures, its source, its unit and the columns it needs."""
    from calcheck.render.document import Column, Document, Table, row_of
    from calcheck.render.terminal import render

    rows = tuple(
        row_of(name, _description(metric), metric.info.unit, ", ".join(metric.info.needs))
        for name, metric in (METRICS | TWO_SAMPLE_METRICS).items()
    )
    columns = tuple(map(Column, ("metric", "description", "unit", "needs")))
    sys.stdout.write(render(Document((Table(columns, rows),))))


def _description(metric: type[Metric[Any]]) -> str:
    """Return what a metric measures, its source, and its other names."""
    aliases = [name for name, alias in ALIASES.items() if alias.metric == metric.info.name]
    also = f". Also called {', '.join(aliases)}." if aliases else ""
    return f"{metric.summary()} {metric.info.source}{also}"


def print_schema(
    of: Annotated[
        str, typer.Argument(metavar="[report|diff|map]", help="Which schema to print.", show_default=False)
    ] = "report",
) -> None:
    """Print the JSON Schema of reports, of the output of calcheck diff, or of recalibration maps."""
    from calcheck.render.schema import SCHEMAS

    if of not in SCHEMAS:
        msg = f"unknown schema {of!r}. Available schemas: {', '.join(SCHEMAS)}"
        raise OptionError(msg)
    sys.stdout.write(json.dumps(SCHEMAS[of](), indent=2) + "\n")


metrics_command = make_command("metrics", list_metrics)
schema_command = make_command("schema", print_schema)
