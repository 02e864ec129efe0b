"""Monitoring in Python: the state of a monitored model, in memory or in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Unpack

from calcheck.api import arguments
from calcheck.api.interactive import InteractiveReport
from calcheck.errors import OptionError, keyword_messages
from calcheck.io.source import FileSource
from calcheck.options import Option, options_of
from calcheck.storage.atomic_write import exclusive
from calcheck.studies.monitor.document import monitor_document
from calcheck.studies.monitor.options import MonitorOptions
from calcheck.studies.monitor.picture import monitor_picture
from calcheck.studies.monitor.state import MonitorState, read_monitor_state, write_monitor_state
from calcheck.studies.monitor.study import monitor_report, observe, window_metrics


@keyword_messages()
def monitor(
    data: arguments.Data,
    time: str | None = None,
    *,
    metrics: arguments.Metrics | None = None,
    state: str | PathLike[str] | None = None,
    save_state: str | PathLike[str] | None = None,
    **options: Unpack[arguments.MonitorArguments],
) -> InteractiveReport:
    """Return whether a model is still calibrated, by an e-value that may be looked at as often as you like.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions
        Predictions with targets, as for :func:`evaluate`, in any order.
    time : str, optional
        Column of the target times: dates, or numbers in the order of time. Required without a state.
    metrics : str, Metric, or sequence of these, optional
        Metrics by window, which are means over rows; by default pit-bias, pit-dispersion and coverage.
    state : path, optional
        Stored state of an earlier run, which the data follow in time.
    save_state : path, optional
        File for the state after the data.
    window : str or int
        Windows of the metrics: a duration or period, ``"7D"`` or ``"M"``, or a number of times.
    horizon : str or int
        Column of horizons in steps of the times, or one horizon for all rows; by default 1.
    alarm_level : float
        Probability of ever raising a false alarm (default 0.05): there is an alarm at an e-value of 20.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        ``monitor`` has the e-value, the time of an alarm, and since when and how the model seems to be wrong. There is
        one result per metric and window, with ``slice`` ``{"window": "2026-01-05", "rows": 70}``.

    Raises
    ------
    DataError
        A column is missing, a value is no time, or the data do not follow the state in time.
    OptionError
        A keyword is invalid, or contradicts the state.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"day": range(300), "y": 1.5 * rng.normal(size=300), "mean": 0.0, "std": 1.0})
    >>> found = monitor(frame, "day", window=100, metrics="coverage", replicates=99).monitor
    >>> found.verdict, found.e_value > 20, found.alarm_time, found.direction
    ('fail', True, '98', 'too-narrow')
    """
    arguments.require_known(options, arguments.MonitorArguments)
    path = None if save_state is None else fspath(save_state)
    with exclusive(path) as require_unchanged:
        earlier = None if state is None else read_monitor_state(fspath(state))
        settings, further = _monitor_settings(time, earlier, dict(options))
        chosen, run, columns = arguments.parsed(window_metrics() if metrics is None else metrics, further)
        if earlier is not None:
            _require_same_run(earlier, None if metrics is None else chosen, further)
            chosen, run = list(earlier.metrics), earlier.continue_run(run)
        source = arguments.open_source(data, columns, chosen, also=settings.columns, dependence=settings.columns)
        source = replace(source, repeated=True) if isinstance(source, FileSource) else source  # keys, over time
        with source.error_names():
            found = observe(source, settings, chosen, earlier=earlier, run=run)
        if path is not None:
            require_unchanged()
            write_monitor_state(path, found)
    report = arguments.require_results(monitor_report(found, level=settings.level, run=run))
    return InteractiveReport.from_report(report, build=monitor_document, draw=lambda report: [monitor_picture(report)])


def _monitor_settings(
    time: str | None, earlier: MonitorState | None, options: dict[str, Any]
) -> tuple[MonitorOptions, Any]:
    """Return the options of a monitored model, those of a state if there is one; and the other keywords."""
    given: dict[str, Any] = {"time": time}
    given |= {name: options.pop(name) for name in ("window", "horizon") if name in options}
    given = {name: value if value is None else str(value) for name, value in given.items()}
    level = arguments.checked(Option("alarm_level", float, 0.05), options.pop("alarm_level", 0.05), "alarm_level")
    if earlier is None:
        if time is None:
            msg = "time is required: the column of the target times"
            raise OptionError(msg)
        return MonitorOptions(**given, level=level), options
    for name, value in given.items():
        _require_same(name, value, getattr(earlier.options, name))
    return replace(earlier.options, level=level), options


def _require_same_run(
    earlier: MonitorState, metrics: Sequence[arguments.AnyMetric] | None, options: Mapping[str, Any]
) -> None:
    """Raise if the metrics or the seed contradict a state."""
    if metrics is not None:
        named, stored = ([each.info.name for each in every] for every in (metrics, earlier.metrics))
        _require_same("metrics", ", ".join(named), ", ".join(stored))
        for each, known in zip(metrics, earlier.metrics, strict=True):
            for option in options_of(type(each)):
                name, value = f"{each.info.name}: {option.field}", getattr(each, option.field)
                _require_same(name, value, getattr(known, option.field))  # None depends on the rows
    _require_same("seed", options.get("seed"), earlier.seed)


def _require_same(name: str, value: Any, stored: Any) -> None:
    """Raise if a keyword contradicts a state."""
    if value not in (None, stored):
        known = "none" if stored is None else repr(stored)
        msg = f"{name} {value!r} contradicts the state, which has {known}: omit {name}"
        raise OptionError(msg)
