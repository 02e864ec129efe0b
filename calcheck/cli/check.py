"""`calcheck check`: the gate, which ends with 1 where a rule is violated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli.baseline import read_base
from calcheck.cli.common import (
    ENGINE,
    INFERENCE,
    SEED,
    files_and_columns,
    open_source,
    require_nothing_skipped,
    run_context,
    select_metrics,
)
from calcheck.cli.gate_rules import rules_of
from calcheck.cli.options import AgainstOptions, GateReportOptions, RowOptions, RuleOptions, SummaryOptions
from calcheck.cli.output import STDOUT, deliver_text
from calcheck.cli.typer_bridge import build, parameters, with_signature
from calcheck.errors import OptionError
from calcheck.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.baseline import Base
    from calcheck.cli.gate_rules import Rules
    from calcheck.cli.settings import Settings
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report

EXIT_VIOLATED = 1
OF_SEVERAL = ("table", "markdown", "jsonl")  # formats in which reports may stand below each other
NO_RULES = (
    "check needs a rule that says what must not be: --fail-on 'ece > 0.05', --warn-on, --against BASE.json, or "
    "fail-on = ['ece > 0.05'] below [gates] in calcheck.toml"
)


def _check(files: list[str], settings: Settings, **given: Any) -> None:
    """Hold the metrics of a file against rules, and end with exit code 1 if one is violated."""
    said = build(RuleOptions, given)
    rules, base = rules_of(said, settings.config), read_base(build(AgainstOptions, given))
    if not rules and not base.results:
        raise OptionError(NO_RULES)
    metrics = _metrics(said, rules, base, settings)
    sources = [open_source(file, given, metrics, narrow=False) for file in files]
    output, summary = build(GateReportOptions, given), build(SummaryOptions, given).summary
    _require_deliverable(sources, base, output, summary)
    reports = [_judged(source, metrics, rules, base, given) for source in sources]
    _deliver(reports, output, summary)
    if any(report.violated("fail") for report in reports) and not said.exit_zero:
        raise typer.Exit(EXIT_VIOLATED)


def _metrics(said: RuleOptions, rules: Rules, base: Base, settings: Settings) -> list[Metric[Any, Any]]:
    """Make the metrics that rules name, that are asked for, and that were stored: these as they were."""
    named = {name for rule, _ in rules for name in rule.metrics()}
    asked = select_metrics(said.metrics, settings) if said.metrics else []
    wanted = {metric.name: metric for metric in (*map(settings.metric, named), *asked, *base.metrics)}
    return [wanted[name] for name in METRICS if name in wanted]


def _judged(
    source: FileSource, metrics: list[Metric[Any, Any]], rules: Rules, base: Base, given: dict[str, Any]
) -> Report:
    """Compute the metrics of a file, and hold them against the rules and what was stored."""
    from calcheck.evaluation import evaluate
    from calcheck.gate.evaluate import evaluate_rule

    with run_context(given, source) as run:
        report = evaluate(source, metrics, subsample=build(RowOptions, given).subsample, run=run)
    require_nothing_skipped(report, source)
    gates = [evaluate_rule(rule, report, level=level) for rule, level in rules]
    return replace(report, gates=(*gates, *base.gates(report)))


def _require_deliverable(
    sources: Sequence[FileSource], base: Base, output: GateReportOptions, summary: str | None
) -> None:
    """Raise, before the work starts, if reports could not be written, or would overwrite what is read."""
    from calcheck.storage.atomic_write import require_writable

    if len(sources) > 1 and output.format not in OF_SEVERAL:
        msg = f"--format {output.format} is for a single file, got {len(sources)}: take {', '.join(OF_SEVERAL)}"
        raise OptionError(msg)
    reads = [name for source in sources for name in source.reads()]
    require_writable([path for path in (output.output, summary) if path and path not in STDOUT], [*reads, *base.reads])


def _deliver(reports: Sequence[Report], output: GateReportOptions, summary: str | None) -> None:
    """Append reports to the summary, then print them, one below the other."""
    from calcheck.render import GATE_FORMATS
    from calcheck.storage.atomic_write import append_text

    if summary:
        append_text(summary, "\n".join(map(GATE_FORMATS["markdown"], reports)))
    between = "" if output.format == "jsonl" else "\n"
    deliver_text(between.join(map(GATE_FORMATS[output.format], reports)), output)


check_command = with_signature(
    _check,
    [
        *files_and_columns("FILE", "Saved predictions, each checked by itself; - reads standard input."),
        *parameters(RuleOptions, "Rules"),
        *parameters(AgainstOptions, "Rules"),
        *parameters(RowOptions, "Rows"),
        *INFERENCE,
        *parameters(GateReportOptions, "Output"),
        *parameters(SummaryOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
)
