"""Files of the states of monitored models: what is written to them and read from them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.io.times import DATE_UNIT
from calcheck.messages import Message
from calcheck.metrics import METRICS
from calcheck.monitoring.bets import DENSITIES
from calcheck.monitoring.history import History
from calcheck.monitoring.windows import GroupSums
from calcheck.report import Input, Skipped
from calcheck.storage.archive_kinds import MONITOR_STATE
from calcheck.storage.npz import damage_as_error, read_archive, write_archive
from calcheck.storage.report_json import from_json
from calcheck.streaming.codec import strip_prefix
from calcheck.studies.monitor_state import MonitorOptions, MonitorState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

VERSION = 1
GROUPS = ("windows", "horizons")
SUMS = "sums"


def write_monitor_state(path: str, state: MonitorState) -> None:
    """Write a state to a file; an existing file is replaced on success only.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    from calcheck.version import __version__

    header = {
        "calcheck": __version__,
        "input": asdict(state.input),
        "options": {"time": state.options.time, "window": state.options.window, "horizon": state.options.horizon},
        "metrics": [{"metric": each.info.name, "options": each.options()} for each in state.metrics],
        "seed": state.seed,
        "null_metrics": list(state.null_metrics),
        "skipped": [asdict(each) for each in state.skipped],
        "warnings": [asdict(each) for each in state.warnings],
        "dates": state.history.times.dtype.kind == "M",
    }
    arrays = {f"history.{each.name}": _plain(getattr(state.history, each.name)) for each in fields(History)}
    for name in GROUPS:
        groups: GroupSums = getattr(state, name)
        arrays |= {f"{name}.keys": _plain(groups.keys), f"{name}.rows": groups.rows}
        arrays |= {f"{name}.{SUMS}.{column}": sums for column, sums in groups.sums.items()}
    write_archive(path, MONITOR_STATE, VERSION, header, arrays)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return times as whole numbers; other arrays as they are."""
    return values.astype(np.int64) if values.dtype.kind == "M" else values


def read_monitor_state(path: str) -> MonitorState:
    """Return a state from a file, without executing any code from it.

    Raises
    ------
    FileError
        The file is not such a state, is of another version, or is damaged.
    """
    header, arrays = read_archive(path, MONITOR_STATE, VERSION)
    with damage_as_error(path):
        return _state(header, arrays)


def _state(header: dict[str, Any], arrays: Arrays) -> MonitorState:
    unit = DATE_UNIT if from_json(bool, header["dates"], "dates") else "float64"
    history = strip_prefix("history", arrays)
    parts = {each.name: history[each.name] for each in fields(History)}
    known = _sound(History(**{**parts, "times": parts["times"].astype(unit)}))
    options = MonitorOptions(**{name: header["options"][name] for name in ("time", "window", "horizon")})
    windows = _groups("windows", arrays, unit)
    if options.window is None and not np.isin(windows.keys, known.steps).all():
        msg = "its groups of times do not match"
        raise ValueError(msg)
    return MonitorState(
        input=from_json(Input, header["input"], "input"),
        options=options,
        metrics=tuple(METRICS[each["metric"]].from_options(dict(each["options"])) for each in header["metrics"]),
        seed=from_json(int, header["seed"], "seed"),
        history=known,
        windows=windows,
        horizons=_groups("horizons", arrays, "int64"),
        null_metrics=from_json(tuple[str, ...], header["null_metrics"], "null_metrics"),
        skipped=from_json(tuple[Skipped, ...], header["skipped"], "skipped"),
        warnings=from_json(tuple[Message, ...], header["warnings"], "warnings"),
    )


def _groups(name: str, arrays: Arrays, unit: str) -> GroupSums:
    stored = strip_prefix(name, arrays)
    keys, rows, sums = stored["keys"].astype(unit), stored["rows"], strip_prefix(SUMS, stored)
    if any(each.ndim != 2 or len(each) != len(keys) for each in (rows[:, None], *sums.values())):  # noqa: PLR2004
        msg = f"its sums by {name} do not match"
        raise ValueError(msg)
    return GroupSums(keys, rows, sums)


def _sound(history: History) -> History:
    """Return the history if its arrays match."""
    shapes = {each.name: getattr(history, each.name).shape for each in fields(History)}
    t = len(history)
    columns = {"log_densities": DENSITIES, "means": 2, "components": 4}
    if not t or shapes != {name: (t, columns[name]) if name in columns else (t,) for name in shapes}:
        msg = "its arrays do not match"
        raise ValueError(msg)
    return history
