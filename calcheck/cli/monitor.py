"""`calcheck monitor`: calibration over time, with an e-value that may be looked at every day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli.check import exit_code, parse_rules, with_gates
from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    LEVEL,
    REFERENCE,
    SEED,
    STDOUT,
    deliver,
    draw,
    files_argument,
    open_source,
    refuse_skipped,
    require_deliverable,
    run_context,
    select_metrics,
)
from calcheck.cli.next_commands import monitor_commands
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.options import flag_of
from calcheck.studies.monitor.state import MonitorOptions, MonitorState
from calcheck.studies.options import (
    GateReportOptions,
    PlotOptions,
    RuleOptions,
    SavedStateOptions,
    WindowMetricOptions,
)

if TYPE_CHECKING:
    from calcheck.report import Report

STORED = ("time", "window", "horizon")
NO_TIME = "--time is required: the column of the target times"


def _monitor(files: list[str], **given: Any) -> None:
    """Tell whether a model is still calibrated, by an e-value that may be looked at as often as you like.

    A right model ever raises an alarm with a probability of at most --level. Files
    of predictions, and states of earlier runs, follow each other in time.
    """
    from calcheck.storage.atomic_write import exclusive
    from calcheck.studies.monitor.document import monitor_document
    from calcheck.studies.monitor.picture import monitor_picture
    from calcheck.studies.monitor.state import write_monitor_state
    from calcheck.studies.monitor.study import monitor_report

    options, conditions = build(MonitorOptions, given), build(RuleOptions, given)
    rules = parse_rules(conditions.fail_on, conditions.warn_on)
    output, plot = build(GateReportOptions, given), build(PlotOptions, given).plot
    save_to = build(SavedStateOptions, given).save_state
    _require_writable(output, files, plot, save_to)
    given = {**given, LEVEL: None}  # the level of alarms, not of intervals
    with exclusive(save_to) as require_unchanged:
        state = _state(files, options, given)
        with run_context(given) as run:
            report = with_gates(monitor_report(state, level=options.level, run=run), rules)
        if save_to:
            require_unchanged()
            write_monitor_state(save_to, state)
    report = _with_commands(report, files[-1], given)
    if plot:
        draw(monitor_picture(report), plot)
    deliver(report, output, monitor_document)
    if (code := exit_code([report])) and not conditions.exit_zero:
        raise typer.Exit(code)


def _require_writable(output: GateReportOptions, files: Sequence[str], plot: str | None, save_to: str | None) -> None:
    """Raise, before computing, if an output cannot be written; a state may replace the one that it continues."""
    from calcheck.storage.archives import require_archive_path
    from calcheck.storage.atomic_write import require_writable

    require_deliverable(output, files, plot=plot)
    if save_to:
        require_archive_path(save_to, "--save-state")
        others = [path for path in (output.output, plot) if path and path not in STDOUT]
        require_writable([save_to, *others], [file for file in files if file != save_to])


def _state(files: Sequence[str], options: MonitorOptions, given: dict[str, Any]) -> MonitorState:
    """Return the state after all files: predictions, and states of earlier runs."""
    from calcheck.storage.archives import is_monitor_state
    from calcheck.studies.monitor.state import join_states, read_monitor_state

    state: MonitorState | None = None
    for file in files:
        if is_monitor_state(file):
            stored = read_monitor_state(file)
            _require_same(stored, file, options, given)
            state = stored if state is None else join_states([state, stored])
        else:
            state = _observed(file, state, options, given)
    if state is None:  # pragma: no cover - Typer requires a file
        raise OptionError(NO_TIME)
    return state


def _observed(file: str, state: MonitorState | None, options: MonitorOptions, given: dict[str, Any]) -> MonitorState:
    """Return the state after the rows of a file of predictions."""
    from calcheck.studies.monitor.study import WINDOW_METRICS, observe

    names = build(WindowMetricOptions, given).metrics
    if state is not None:
        options = replace(options, **{name: getattr(state.options, name) for name in STORED})
    metrics = list(state.metrics) if state is not None else select_metrics(names or WINDOW_METRICS, given["settings"])
    source = replace(open_source(file, given, metrics, narrow=False, also=options.columns), repeated=True)
    if options.time is None:
        raise OptionError(NO_TIME)
    with run_context(given, source) as run:
        if state is not None:
            run = state.continue_run(run)
        found = observe(source, options, metrics, earlier=state, run=run)
    if names:
        refuse_skipped(found.skipped, source)
    return found


def _require_same(state: MonitorState, file: str, options: MonitorOptions, given: dict[str, Any]) -> None:
    """Raise if an option contradicts a state."""
    names = build(WindowMetricOptions, given).metrics
    stored = {
        **{name: (getattr(options, name), getattr(state.options, name)) for name in STORED},
        "metrics": (names and ",".join(names), ",".join(metric.info.name for metric in state.metrics)),
        "seed": (given.get("seed"), state.seed),
    }
    for name, (wanted, known) in stored.items():
        if wanted not in (None, known):
            has = "none" if known is None else known
            msg = f"{flag_of(name)} {wanted} contradicts {file}, which has {has}: omit {flag_of(name)}"
            raise OptionError(msg)


def _with_commands(report: Report, file: str, given: dict[str, Any]) -> Report:
    """Return a report with the command to run next, if the last file has predictions."""
    from calcheck.storage.archives import is_monitor_state

    if report.conclusion is None or is_monitor_state(file):
        return report
    return replace(report, conclusion=replace(report.conclusion, next=monitor_commands(report, file, given)))


monitor_command = make_command(
    "monitor",
    _monitor,
    [
        files_argument(
            "FILE", "Predictions in the order of time: files, folders or quoted patterns, and states of earlier runs."
        ),
        *parameters(MonitorOptions, "Monitor"),
        *parameters(WindowMetricOptions, "Monitor"),
        *parameters(RuleOptions, "Rules"),
        *(each for each in COLUMNS if each.name != LEVEL),
        *REFERENCE,
        *parameters(GateReportOptions, "Output"),
        *parameters(PlotOptions, "Output"),
        *parameters(SavedStateOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck monitor preds.parquet --time date --window 7D --plot monitor.svg",
)
