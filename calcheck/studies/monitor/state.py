"""The state of a monitored model: its history and the sums of metrics by window, in memory and in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcheck.errors import Message, OptionError
from calcheck.execution.run import Run
from calcheck.io.times import DATE_UNIT, Window
from calcheck.metrics import METRICS
from calcheck.metrics.base import Metric
from calcheck.reports import Input, Skipped
from calcheck.statistics.groups import Means
from calcheck.storage import archives
from calcheck.storage.report_json import from_json
from calcheck.studies.monitor.e_process import DENSITIES, History, concatenate
from calcheck.studies.monitor.options import MonitorOptions
from calcheck.typing import AnyArray, Values

Arrays = Mapping[str, AnyArray]
SIMPLE = ("seed", "null_metrics", "skipped", "warnings")  # Fields that are JSON in the header of a file
DEFAULT_WINDOWS = 20
MOST_GROUPS = 400  # Maximum number of groups of times whose sums a state keeps if no window is stated


@dataclass(frozen=True, eq=False)
class MonitorState:
    """What is known about a model up to some time, from which the next run continues."""

    input: Input  # The files
    options: MonitorOptions  # The columns and the window; the level belongs to each report
    metrics: tuple[Metric[Any], ...]  # Metrics by window
    seed: int  # Seed of the random numbers
    history: History  # What the e-process needs
    # windows, horizons: sums of the columns of metrics by window, or by groups of times if no window is stated; and by
    # horizon
    windows: GroupSums
    horizons: GroupSums
    null_metrics: tuple[str, ...] = ()  # Metrics whose replicates show what a perfect model scores
    skipped: tuple[Skipped, ...] = ()  # Metrics that do not apply
    warnings: tuple[Message, ...] = ()  # Warnings about the rows

    @property
    def replicates(self) -> int:
        """Number of replicates of the metrics."""
        return next((sums.shape[1] - 1 for sums in self.windows.sums.values()), 0)

    def continue_run(self, run: Run) -> Run:
        """Return a run with the seed of the state, and by default with as many replicates."""
        return replace(run, seed=self.seed, replicates=self.replicates if run.replicates is None else run.replicates)


def join_states(states: Sequence[MonitorState]) -> MonitorState:
    """Return the state after the rows of several states, which follow each other in time."""
    first = states[0]
    for other in states[1:]:
        for what, one, two in (
            ("time columns", first.options.time, other.options.time),
            ("horizons", first.options.horizon, other.options.horizon),
            ("windows", *(each.options.window or "the default" for each in (first, other))),
            ("predictive distributions", first.input.predictive, other.input.predictive),
            ("metrics", [repr(each) for each in first.metrics], [repr(each) for each in other.metrics]),
            ("computed columns", sorted(first.windows.sums), sorted(other.windows.sums)),
            ("seeds", first.seed, other.seed),
        ):
            if one != two:
                files = f"{file_name(first.input)} and {file_name(other.input)}"
                raise OptionError(f"{files} cannot be monitored together: their {what} differ, {one} and {two}")
    history = concatenate([(file_name(each.input), each.history) for each in states])
    windows, horizons = first.windows, first.horizons
    for other in states[1:]:
        windows, horizons = windows.add(other.windows), horizons.add(other.horizons)
    if first.options.window is None:
        windows = regroup(windows, kept_window(first.options.window, history.steps), history.steps)
    return replace(
        first,
        input=replace(
            first.input,
            files=tuple(file for each in states for file in each.input.files),
            n=sum(each.input.n for each in states),
            dropped=sum(each.input.dropped for each in states),
        ),
        history=history,
        windows=windows,
        horizons=horizons,
        warnings=tuple(dict.fromkeys(message for each in states for message in each.warnings)),
    )


def file_name(read: Input) -> str:
    """Return the name of the last file of an input, for messages."""
    return read.files[-1].path if read.files else "the rows before"


def write_monitor_state(path: str, state: MonitorState) -> None:
    """Write a state to a file; an existing file is replaced on success only."""
    header = archives.to_header(state, ("input", "options", "metrics", *SIMPLE))
    header["dates"] = state.history.times.dtype.kind == "M"
    arrays: dict[str, AnyArray] = {}
    for name, kind in ARRAYS.items():
        arrays |= archives.to_arrays(name, getattr(state, name), kind)
    archives.write_archive(path, archives.MONITOR_STATE, header, arrays)


def read_monitor_state(path: str) -> MonitorState:
    """Return a state from a file, without executing any code from it."""
    header, arrays = archives.read_archive(path, archives.MONITOR_STATE)
    with archives.damage_as_error(path):
        unit = DATE_UNIT if from_json(bool, header["dates"], "dates") else "float64"
        found = {name: archives.from_arrays(name, kind, arrays) for name, kind in ARRAYS.items()}
        history, windows, horizons = found.values()
        history = replace(history, times=history.times.astype(unit))
        shapes = {each.name: getattr(history, each.name).shape for each in fields(History)}
        t = len(history)
        columns = {"log_densities": DENSITIES, "means": 2, "components": 4}
        if not t or shapes != {name: (t, columns[name]) if name in columns else (t,) for name in shapes}:
            raise ValueError("its arrays do not match")
        options = MonitorOptions(**{name: header["options"][name] for name in ("time", "window", "horizon")})
        windows, horizons = _groups("windows", windows, unit), _groups("horizons", horizons, "int64")
        if options.window is None and not np.isin(windows.keys, history.steps).all():
            raise ValueError("its groups of times do not match")
        return MonitorState(
            options=options,
            metrics=tuple(METRICS[each["metric"]].from_options(dict(each["options"])) for each in header["metrics"]),
            history=history,
            windows=windows,
            horizons=horizons,
            **archives.from_header(MonitorState, ("input", *SIMPLE), header),
        )


def _groups(name: str, found: GroupSums, unit: str) -> GroupSums:
    if any(each.ndim != 2 or len(each) != len(found.keys) for each in (found.rows[:, None], *found.sums.values())):  # noqa: PLR2004
        raise ValueError(f"its sums by {name} do not match")
    return replace(found, keys=found.keys.astype(unit))


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of columns over g groups of rows."""

    keys: AnyArray  # (g,), groups in ascending order: starts of windows, or horizons
    rows: NDArray[np.int64]  # (g,)
    # For each column of a metric, named `metric.column`, its sums (g, 1 + R): of the data, then of replicates
    sums: Mapping[str, Values]

    def add(self, other: GroupSums) -> GroupSums:
        """Return the sums over these and other rows, whose groups may be the same, and of the replicates of both."""
        sums = {}
        for name, own in self.sums.items():
            common = min(own.shape[1], other.sums[name].shape[1])
            sums[name] = np.concatenate([own[:, :common], other.sums[name][:, :common]])
        keys, rows = (np.concatenate([own, its]) for own, its in ((self.keys, other.keys), (self.rows, other.rows)))
        return GroupSums(keys, rows, sums).merge(keys)

    def merge(self, keys: AnyArray) -> GroupSums:
        """Return the sums over larger groups, whose keys are those of each group, (g,)."""
        keys, at = np.unique(keys, return_inverse=True)
        sums = {}
        for name, own in self.sums.items():
            sums[name] = np.zeros((len(keys), own.shape[1]))
            np.add.at(sums[name], at, own)
        return GroupSums(keys, np.bincount(at, self.rows).astype(np.int64), sums)

    def means(self, metric: str) -> Iterator[Means]:
        """Yield the means of the columns of a metric in each group, (1 + R,) each."""
        prefix = f"{metric}."
        columns = {name.removeprefix(prefix): each for name, each in self.sums.items() if name.startswith(prefix)}
        for group, rows in enumerate(self.rows.tolist()):
            yield Means({name: sums[group] / rows for name, sums in columns.items()}, rows)


ARRAYS = {"history": History, "windows": GroupSums, "horizons": GroupSums}
"""Fields of a state that are arrays in its file."""


class Adder:
    """Adds up columns by group, one data set after the other."""

    def __init__(self, keys: AnyArray) -> None:  # (n,), group of each row
        self._keys, self._codes = np.unique(keys, return_inverse=True)
        self._sums: dict[str, list[Values]] = {}

    def update(self, metric: str, columns: Mapping[str, Values]) -> None:
        """Add the columns of a metric, (n,) each: of the data, then of one replicate after the other."""
        for name, values in columns.items():
            sums = self._sums.setdefault(f"{metric}.{name}", [])
            sums.append(np.bincount(self._codes, values, len(self._keys)).astype(np.float64))

    def result(self) -> GroupSums:
        """Return the sums."""
        counts = np.bincount(self._codes, minlength=len(self._keys)).astype(np.int64)
        return GroupSums(self._keys, counts, {name: np.stack(sums, axis=1) for name, sums in self._sums.items()})


def kept_window(stated: str | int | None, steps: AnyArray) -> Window:
    """Return the groups of times whose sums a state keeps: the windows, or by default groups of one or a few times.

    Default windows depend on the number of all times, which later rows change. Groups have a power of 2 of times, so
    that groups of fewer times are parts of them.

    Shapes: steps (s,).
    """
    return Window(count=_times_per_group(len(steps))) if stated is None else Window.parse(str(stated))


def shown_window(stated: str | int | None, steps: AnyArray) -> Window:
    """Return the windows of a report: by default whole groups of times, in at most 20 windows."""
    if stated is not None:
        return Window.parse(str(stated))
    per_group = _times_per_group(len(steps))
    return Window(count=-(-len(steps) // (DEFAULT_WINDOWS * per_group)) * per_group)


def regroup(sums: GroupSums, window: Window, steps: AnyArray) -> GroupSums:
    """Return sums over windows of a number of times, of sums over parts of these."""
    starts = window.starts(steps, "")
    return sums.merge(starts[np.searchsorted(steps, sums.keys)])


def _times_per_group(times: int) -> int:
    """Return the number of times of a group.

    >>> [_times_per_group(times) for times in (1, 400, 401, 800, 801, 10_000)]
    [1, 1, 2, 2, 4, 32]
    """
    return 1 << (-(-times // MOST_GROUPS) - 1).bit_length()
