"""`calcheck check`: check metrics against rules; the exit code is 1 if a rule is violated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli.baseline import read_base
from calcheck.cli.common import (
    ENGINE,
    INFERENCE,
    LEVEL,
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
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.metrics import METRICS
from calcheck.render import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.baseline import Base
    from calcheck.cli.gate_rules import Rules
    from calcheck.cli.settings import Settings
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report

EXIT_VIOLATED = 1
NO_RULES = (
    "check needs at least one rule: pass --fail-on 'ece > 0.05', --warn-on or --against BASE.json, or set "
    "fail-on = ['ece > 0.05'] in [gates] of calcheck.toml"
)


def _check(files: list[str], settings: Settings, **given: Any) -> None:
    """Check the metrics of a file against rules, and exit with code 1 if a rule is violated."""
    options = build(RuleOptions, given)
    rules, base = rules_of(options, settings.config), read_base(build(AgainstOptions, given))
    if not rules and not base.results:
        raise OptionError(NO_RULES)
    metrics = _metrics(options, rules, base, settings, given[LEVEL])
    sources = [open_source(file, given, metrics, narrow=False) for file in files]
    output, summary = build(GateReportOptions, given), build(SummaryOptions, given).summary
    _require_deliverable(sources, base, output, summary)
    reports = [_judged(source, metrics, rules, base, given) for source in sources]
    _deliver(reports, output, summary)
    if any(report.violated("fail") for report in reports) and not options.exit_zero:
        raise typer.Exit(EXIT_VIOLATED)


def _metrics(
    options: RuleOptions, rules: Rules, base: Base, settings: Settings, levels: Sequence[float] | None
) -> list[Metric[Any]]:
    """Return the metrics of the rules, of ``--metrics`` and of the baseline; the latter with their stored options."""
    named = [*(name for rule, _ in rules for name in rule.metrics()), *(options.metrics or ())]
    selected = select_metrics(named, settings, levels)
    metrics = {metric.info.name: metric for metric in (*selected, *base.metrics)}
    return [metrics[name] for name in METRICS if name in metrics]


def _judged(source: FileSource, metrics: list[Metric[Any]], rules: Rules, base: Base, given: dict[str, Any]) -> Report:
    """Return the report of a file, with the outcomes of the rules and of the baseline comparison."""
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
    """Raise, before computing, if the reports cannot be written or would overwrite an input file."""
    from calcheck.storage.atomic_write import require_writable

    if len(sources) > 1 and FORMATS[output.format].separator is None:
        several = ", ".join(name for name, known in FORMATS.items() if known.separator is not None)
        msg = f"--format {output.format} supports a single file, got {len(sources)} files: use one of {several}"
        raise OptionError(msg)
    reads = [name for source in sources for name in source.reads()]
    require_writable([path for path in (output.output, summary) if path and path not in STDOUT], [*reads, *base.reads])


def _deliver(reports: Sequence[Report], output: GateReportOptions, summary: str | None) -> None:
    """Append the reports to the summary file, and print them."""
    from calcheck.render.builders.report import report_document
    from calcheck.storage.atomic_write import append_text

    def text(name: str) -> str:
        between = FORMATS[name].separator or ""
        return between.join(render(report, name, report_document, legend=not output.quiet) for report in reports)

    if summary:
        append_text(summary, text("markdown"))
    deliver_text(text(output.format), output)


check_command = make_command(
    "check",
    _check,
    [
        *files_and_columns("FILE", "Files of saved predictions; each is checked separately. - reads standard input."),
        *parameters(RuleOptions, "Rules"),
        *parameters(AgainstOptions, "Rules"),
        *parameters(RowOptions, "Rows"),
        *INFERENCE,
        *parameters(GateReportOptions, "Output"),
        *parameters(SummaryOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck check preds.parquet --fail-on 'zms.p_value < 0.05'",
)
