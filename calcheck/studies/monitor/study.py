"""Calibration over time: what the rows of a source add to the state of a monitored model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calcheck.errors import DataError, Message, RefusedError, named_rows
from calcheck.evaluation import data_warnings
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.inference.verdicts import StatedShape, basis_of
from calcheck.io.times import parse_times, time_texts
from calcheck.metrics import METRICS
from calcheck.metrics.base import Metric, RowMetric, inapplicable_reason
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.report import Skipped
from calcheck.studies.monitor.e_process import MOST_STEPS, concatenate, summarize
from calcheck.studies.monitor.state import MonitorOptions, MonitorState, file_name, join_states
from calcheck.studies.monitor.windows import Adder, GroupSums, kept_window

if TYPE_CHECKING:
    from calcheck.typing import AnyArray, Values

WINDOW_METRICS = ("pit-bias", "pit-dispersion", "coverage")
NO_MEAN = "is no mean over rows, so that windows of several files cannot be added up"
AT_QUANTILES = Message(
    "verdict-basis",
    "PIT values are random numbers between the stated levels; where targets are equal to quantiles, as for counts, they"
    " are uniform only approximately",
)
ASSUMED_SHAPE = Message(
    "unknown-shape",
    "the file does not state the error distribution: the e-process assumes normal errors (--error-dist)",
)


def window_metrics() -> list[Metric[Any]]:
    """Return the metrics that are computed by window by default."""
    return [METRICS[name]() for name in WINDOW_METRICS]


def observe(
    source: Source,
    options: MonitorOptions,
    metrics: Sequence[Metric[Any]],
    *,
    earlier: MonitorState | None = None,
    run: Run | None = None,
) -> MonitorState:
    """Return the state after the rows of a source."""
    run = run or Run()
    rows = source.predictions()
    if reason := inapplicable_reason(METRICS["pit"], rows):
        msg = f"the e-process {reason}"
        raise DataError(msg)
    times, horizons = _times(rows, options), _horizons(rows, options)
    _require_once(rows, times, horizons)
    history = summarize(rows, times, horizons, run)
    name = file_name(source.input_info())
    before = [] if earlier is None else [(file_name(earlier.input), earlier.history)]
    known = concatenate([*before, (name, history)])
    window = kept_window(options.window, known.steps)
    starts = window.starts(known.steps, str(options.time))[np.searchsorted(known.steps, times)]
    simulation = NullSimulator(rows, run)
    applicable, skipped = _applicable(source, metrics, run, replicates=bool(len(simulation)))
    windows, by_horizon = _add_up(applicable, simulation, (starts, horizons), run)
    found = MonitorState(
        input=source.input_info(),
        options=replace(options, level=MonitorOptions().level),
        metrics=tuple(each.with_defaults(rows) for each in metrics),
        seed=run.seed,
        history=history,
        windows=windows,
        horizons=by_horizon,
        null_metrics=tuple(each.name for each in applicable if each.has_null),
        skipped=skipped,
        warnings=_warnings(source, rows),
    )
    return found if earlier is None else join_states([earlier, found])


def _times(rows: Predictions, options: MonitorOptions) -> AnyArray:
    name = str(options.time)
    return parse_times(name, _column(rows, name), rows.row_numbers())


def _horizons(rows: Predictions, options: MonitorOptions) -> NDArray[np.int64]:
    """Return the horizon of each row, (n,)."""
    if options.constant_horizon is not None:
        return np.full(len(rows), options.constant_horizon, dtype=np.int64)
    name = str(options.horizon)
    raw = _column(rows, name)
    values = raw.astype(np.float64) if raw.dtype.kind in "iuf" else np.full(len(rows), np.nan)
    wrong = ~((np.abs(values) <= MOST_STEPS) & (values == np.round(values)))
    if wrong.any():
        row = int(np.argmax(wrong))
        at = f"{str(raw[row])!r} in row {rows.row_numbers()[row]:,}, counted from 0"
        msg = f"column {name!r} has {at}: horizons are whole numbers of steps, up to {MOST_STEPS:,}"
        raise DataError(msg)
    return values.astype(np.int64)


def _require_once(rows: Predictions, times: AnyArray, horizons: NDArray[np.int64]) -> None:
    """Raise unless each key occurs at most once per time and horizon: a station has one row a day."""
    if rows.id is None:
        return
    found: dict[Any, int] = {}
    for row, key in enumerate(zip(rows.id.tolist(), times.tolist(), horizons.tolist(), strict=True)):
        if (first := found.setdefault(key, row)) != row:
            numbers = rows.row_numbers()[[first, row]]
            msg = (
                f"{rows.id_name} {str(key[0])!r} occurs twice at {time_texts(times[row : row + 1])[0]}, in"
                f" {named_rows(numbers.tolist())}. Keep one row per {rows.id_name} and time, or name another key with"
                " --id"
            )
            raise DataError(msg)


def _column(rows: Predictions, name: str) -> AnyArray:
    if name not in rows.columns:
        msg = f"there is no column {name!r} with one value per row"
        raise DataError(msg)
    return np.asarray(rows.columns[name])


def _warnings(source: Source, rows: Predictions) -> tuple[Message, ...]:
    predictive = rows.distributions()
    shape = () if predictive.shape_is_known else (ASSUMED_SHAPE,)
    quantiles = () if predictive.quantile_levels is None else (AT_QUANTILES,)
    return (*data_warnings(source, predictive), *shape, *quantiles)


@dataclass(frozen=True)
class _WindowMetric:
    """A metric that applies to the rows: its columns, and whether replicates show what to expect of it."""

    metric: RowMetric
    columns: Mapping[str, Values]
    has_null: bool

    @property
    def name(self) -> str:
        return self.metric.info.name


def _applicable(
    source: Source, metrics: Sequence[Metric[Any]], run: Run, *, replicates: bool
) -> tuple[list[_WindowMetric], tuple[Skipped, ...]]:
    """Return the metrics that apply to the rows and are means over them, and those that are skipped."""
    found, skipped = [], []
    for metric in metrics:
        name = metric.info.name
        reason = inapplicable_reason(type(metric), source.predictions())
        try:
            computed = None if reason else _window_metric(metric, source, run, replicates=replicates)
        except RefusedError:
            raise
        except DataError as error:
            skipped.append(Skipped(metric=name, code="error", reason=str(error)))
            continue
        if computed is None:
            skipped.append(Skipped(metric=name, code="inapplicable", reason=reason or NO_MEAN))
        else:
            found.append(computed)
    return found, tuple(skipped)


def _window_metric(metric: Metric[Any], source: Source, run: Run, *, replicates: bool) -> _WindowMetric | None:
    """Return a metric with its columns; None if it is no mean over rows."""
    rows = source.predictions()
    if not isinstance(metric, RowMetric):
        return None
    metric = metric.with_defaults(rows)
    with np.errstate(all="ignore"):
        found = metric.evaluate(None, source, run)
    if not found.columns or found.terms or found.fixed:
        return None
    basis = basis_of(metric, StatedShape.from_predictive(rows.predictive), found, replicates=replicates)
    return _WindowMetric(metric, found.columns, basis.kind == "p")


def _add_up(
    metrics: Sequence[_WindowMetric], simulation: NullSimulator, groupings: Sequence[AnyArray], run: Run
) -> list[GroupSums]:
    """Return the sums of metrics by each grouping of the rows, of the data and of replicates."""
    adders = [Adder(each) for each in groupings]

    def add(name: str, columns: Mapping[str, Values]) -> None:
        for adder in adders:
            adder.update(name, columns)

    for each in metrics:
        add(each.name, each.columns)
    for number, replicate in enumerate(simulation):
        rows = InMemory(replicate)
        for each in metrics:
            with np.errstate(all="ignore"):
                add(each.name, each.metric.evaluate(None, rows, run.quiet()).columns)
        run.progress("windows: replicates", (number + 1) / len(simulation))
    return [adder.result() for adder in adders]
