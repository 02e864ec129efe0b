"""Gates of monitored models: rules on the states that `calcheck monitor --save-state` writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import make_run
from calcheck.errors import MissingFileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.baseline import Base
    from calcheck.cli.gate_rules import Rules
    from calcheck.report import Report

ALARM = "monitor.verdict == 'fail'"


def monitored_states(files: Sequence[str], rules: Rules, base: Base) -> list[str]:
    """Return the files if they are states of monitored models; none if they are predictions.

    Raises
    ------
    OptionError, FileError
        Some are, or the requirements do not fit; or there is no such file.
    """
    from calcheck.io.files import STDIN, File, kind_of, resolve
    from calcheck.storage.archive_kinds import is_monitor_state

    states = [file for file in files if is_monitor_state(file)]
    if not states and any(rule.is_monitored for rule, _ in rules):
        for file in files:
            if file != STDIN and isinstance(resolve(file), File) and kind_of(file) == "nothing":
                raise MissingFileError(file)
        msg = "rules on monitor.… need a state: calcheck monitor FILE --time COLUMN --save-state FILE writes it"
        raise OptionError(msg)
    if states and len(states) < len(files):
        msg = f"{states[0]} is a state of a monitored model, and other files are not: check them separately"
        raise OptionError(msg)
    if states and base.name:
        msg = "--against compares predictions with a baseline, and a state of a monitored model has none: omit it"
        raise OptionError(msg)
    return states


def state_report(file: str, rules: Rules, given: dict[str, Any]) -> Report:
    """Return the report of a state with its gates; without rules, there must be no alarm."""
    from calcheck.gate.evaluate import evaluate_rule
    from calcheck.gate.rules import parse
    from calcheck.storage.monitor_state import read_monitor_state
    from calcheck.studies.monitor_report import monitor_report
    from calcheck.studies.monitor_state import MonitorOptions

    report = monitor_report(read_monitor_state(file), level=MonitorOptions().level, run=make_run(given))
    alarm: Rules = [(parse(ALARM), "fail")]
    gates = (evaluate_rule(rule, report, level=level) for rule, level in rules or alarm)
    return replace(report, gates=tuple(gates))
