"""`calcheck check`: check a file against rules, a baseline or its verdicts.

The exit code is 1 if one is violated, else 3 if one cannot be judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli.baseline import read_base
from calcheck.cli.common import (
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    INFERENCE,
    LEVEL,
    SEED,
    WEIGHTS,
    files_argument,
    open_source,
    require_groups,
    require_nothing_skipped,
    run_context,
    select_metrics,
    weigh,
)
from calcheck.cli.gate_rules import exit_code, rules_of
from calcheck.cli.options import (
    AgainstOptions,
    GateReportOptions,
    GroupOptions,
    RefitOptions,
    RowOptions,
    RuleOptions,
    SummaryOptions,
)
from calcheck.cli.output import STDOUT, deliver_text
from calcheck.cli.state_gates import monitored_states, state_report
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import FileError, OptionError
from calcheck.metrics import DEFAULT_METRICS, METRICS
from calcheck.render import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.baseline import Base
    from calcheck.cli.gate_rules import Rules
    from calcheck.cli.settings import Settings
    from calcheck.execution.context import Run
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.regions.binning import Cut
    from calcheck.report import Gate, Report

NO_VERDICT = "no metric has a verdict, so nothing would be checked. Pass a rule, e.g. --fail-on 'mae > 1'"


@dataclass(frozen=True)
class SlicePlan:
    """Metrics to compute for groups of the rows, or for the regions of a search if no columns form groups."""

    metrics: tuple[Metric[Any], ...]
    cuts: tuple[Cut, ...]
    refit: bool = False

    def weighed(self, given: dict[str, Any]) -> SlicePlan:
        """Return the same with sampling weights, and refitted, if these are asked for."""
        from calcheck.cli.slices import weigh_slices

        metrics = tuple(weigh_slices(self.metrics, given, self.cuts))
        return replace(self, metrics=metrics, refit=build(RefitOptions, given).refit)

    def added(self, report: Report, source: FileSource, run: Run) -> Report:
        """Return a report with the results of groups or regions, whose conclusion is about these."""
        from calcheck.cli.slices import slice_source

        found = slice_source(source, self.metrics, self.cuts, run, refit=self.refit)
        require_nothing_skipped(found, source)
        return replace(report, results=(*report.results, *found.results))


@dataclass(frozen=True)
class Requirements:
    """What a file is checked against: rules and a baseline; its verdicts if there are neither."""

    rules: Rules
    base: Base

    @property
    def are_verdicts(self) -> bool:
        """Whether the verdicts are checked."""
        return not self.rules and not self.base.name

    @property
    def are_sliced(self) -> bool:
        """Whether a rule refers to groups or regions."""
        return any(rule.is_sliced for rule, _ in self.rules)

    @property
    def are_overall(self) -> bool:
        """Whether a rule refers to the overall verdict, which all metrics have a part in."""
        return any(rule.is_overall for rule, _ in self.rules)

    def take_all(self, named: Sequence[str] | None) -> bool:
        """Return whether every metric that applies is computed."""
        return not named and (self.are_verdicts or self.are_overall or self.base.is_predictions)

    def metrics(
        self, named: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None
    ) -> list[Metric[Any]]:
        """Return the metrics to compute: those of the rules and the baseline, and the named ones.

        Those of the baseline have their stored options. For verdicts and the overall verdict, no named ones means all
        metrics.
        """
        if self.are_verdicts:
            return select_metrics(named, settings, levels)
        wanted = [name for rule, _ in self.rules for name in rule.metrics()]
        wanted += [] if self.base.is_predictions else named or (DEFAULT_METRICS if self.are_overall else [])
        metrics = {metric.info.name: metric for metric in select_metrics(wanted, settings, levels)}
        metrics |= {metric.info.name: metric for metric in self.base.metrics}
        return [metrics[name] for name in METRICS if name in metrics]

    def slices(
        self, by: Sequence[str] | None, named: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None
    ) -> SlicePlan | None:
        """Return what to compute for groups, or for the regions of a search; None if neither is needed.

        Raises
        ------
        OptionError
            A rule names a group, and no columns form groups.
        """
        if not by and not self.are_sliced:
            return None
        from calcheck.cli.slices import cuts_of
        from calcheck.studies.slices import GROUP_METRICS

        for rule, _ in self.rules:
            if rule.names_groups and not by:
                msg = f"rule {rule.text!r} names a group: also pass the columns that form the groups, e.g. --by sex"
                raise OptionError(msg)
        of_rules = [name for rule, _ in self.rules for name in rule.group_metrics()]
        metrics = select_metrics([*(named or GROUP_METRICS), *of_rules], settings, levels)
        return SlicePlan(tuple(metrics), tuple(cuts_of(by)))

    def gates(self, report: Report, source: FileSource, run: Run) -> tuple[Gate, ...]:
        """Return the outcomes for the report of a source."""
        from calcheck.gate.evaluate import evaluate_rule
        from calcheck.gate.verdicts import verdict_gates

        if self.are_verdicts:
            return verdict_gates(report)
        rules = [evaluate_rule(rule, report, level=level) for rule, level in self.rules]
        return (*rules, *self.base.gates(report, source, run))


def _check(files: list[str], settings: Settings, **given: Any) -> None:
    """Check a file against rules, and exit with code 1 if a rule is violated.

    Without rules, every metric that applies is computed, and the overall
    verdict must not be "fail". The exit code is 3 if no rule is violated, but
    one cannot be judged: it depends on a verdict that this file does not have.
    """
    options = build(RuleOptions, given)
    base = read_base(build(AgainstOptions, given), options.metrics, settings, given)
    requirements = Requirements(rules_of(options, settings.config), base)
    output, summary = build(GateReportOptions, given), build(SummaryOptions, given).summary
    if states := monitored_states(files, requirements.rules, requirements.base):
        _require_deliverable(states, requirements.base, output, summary)
        reports = [state_report(file, requirements.rules, given) for file in states]
        _deliver(reports, output, summary, monitored=True)
    else:
        by = build(GroupOptions, given).by
        require_groups(given, by)
        slices = requirements.slices(by, options.metrics, settings, given[LEVEL])
        slices = slices and slices.weighed(given)
        metrics = weigh(requirements.metrics(() if slices else options.metrics, settings, given[LEVEL]), given)
        sources = [_open(file, given, metrics, slices) for file in files]
        reads = [name for source in sources for name in source.reads()]
        _require_deliverable(reads, requirements.base, output, summary, count=len(files))
        skips = requirements.take_all(options.metrics)
        reports = [_checked(source, metrics, requirements, slices, given, skips=skips) for source in sources]
        _deliver(reports, output, summary)
    if (code := exit_code(reports)) and not options.exit_zero:
        raise typer.Exit(code)


def _open(file: str, given: dict[str, Any], metrics: Sequence[Metric[Any]], slices: SlicePlan | None) -> FileSource:
    """Return the source of a file, with the columns that form groups, or those of a search."""
    if slices is None:
        return open_source(file, given, metrics, narrow=False)
    from calcheck.studies.slices import file_columns

    columns = file_columns([cut.text for cut in slices.cuts])
    source = open_source(file, given, [*metrics, *slices.metrics], narrow=not slices.cuts, inputs=not slices.cuts)
    return replace(source, by=columns)


def _checked(
    source: FileSource,
    metrics: list[Metric[Any]],
    requirements: Requirements,
    slices: SlicePlan | None,
    given: dict[str, Any],
    *,
    skips: bool,
) -> Report:
    """Return the report of a file with its gates; with ``skips``, metrics that do not apply are skipped."""
    from calcheck.evaluation import evaluate

    with run_context(given, source) as run:
        report = evaluate(source, metrics, subsample=build(RowOptions, given).subsample, run=run)
        if not skips:
            require_nothing_skipped(report, source)
        if slices is not None:
            report = slices.added(report, source, run)
        gates = requirements.gates(report, source, run)
    if not gates:
        msg = f"{source.name}: {NO_VERDICT}"
        raise FileError(msg)
    return replace(report, gates=gates)


def _require_deliverable(
    reads: Sequence[str], base: Base, output: GateReportOptions, summary: str | None, *, count: int | None = None
) -> None:
    """Raise, before computing, if the reports cannot be written or would overwrite an input file."""
    from calcheck.storage.atomic_write import require_writable

    count = len(reads) if count is None else count
    if count > 1 and FORMATS[output.format].separator is None:
        several = ", ".join(name for name, known in FORMATS.items() if known.separator is not None)
        msg = f"--format {output.format} supports a single file, got {count} files: use one of {several}"
        raise OptionError(msg)
    require_writable(
        [path for path in (output.output, summary) if path and path not in STDOUT], [*reads, *base.reads()]
    )


def _deliver(
    reports: Sequence[Report], output: GateReportOptions, summary: str | None, *, monitored: bool = False
) -> None:
    """Append the reports to the summary file, and print them."""
    from calcheck.render.builders.monitor import monitor_document
    from calcheck.render.builders.report import report_document
    from calcheck.storage.atomic_write import append_text

    document = monitor_document if monitored else report_document

    def text(name: str) -> str:
        between = FORMATS[name].separator or ""
        return between.join(render(report, name, document, legend=not output.quiet) for report in reports)

    if summary:
        append_text(summary, text("markdown"))
    deliver_text(text(output.format), output)


check_command = make_command(
    "check",
    _check,
    [
        files_argument("FILE", "Files of saved predictions; each is checked separately. - reads standard input."),
        *parameters(RuleOptions, "Rules"),
        *parameters(AgainstOptions, "Rules"),
        *parameters(GroupOptions, "Rules"),
        *parameters(RefitOptions, "Rules"),
        *COLUMNS,
        *parameters(RowOptions, "Rows"),
        *WEIGHTS,
        *INFERENCE,
        *DEPENDENCE,
        *parameters(GateReportOptions, "Output"),
        *parameters(SummaryOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck check preds.parquet --fail-on 'zms.p_value < 0.05'",
)
