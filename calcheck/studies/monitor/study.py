"""Calibration over time: what the rows of a source add to the state of a monitored model, and its report."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcheck.conclusion.answer import SHOWN, WIDTH, Estimate, bias_text, is_inside, size_text
from calcheck.core import __version__
from calcheck.core.text import LARGEST, count_of, exponential, percent
from calcheck.errors import DataError, Message, OptionError, RefusedError, listed_columns, named_rows
from calcheck.evaluation import data_warnings
from calcheck.execution.run import Run, run_settings
from calcheck.inference.metric_protocol import HasGrid, HasLimits, HasNullStatistic, RowResults
from calcheck.inference.null_distribution import NullSimulator
from calcheck.inference.p_values_and_verdicts import StatedShape, basis_of
from calcheck.io.file_source import FileSource
from calcheck.io.times import parse_times, time_texts
from calcheck.metrics import METRICS
from calcheck.metrics.base import Metric, RowMetric, inapplicable_reason
from calcheck.options import TOLERANCE, flag_of, options_of
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Conclusion, HorizonEvidence, Inference, Monitor, Report, Result, Skipped
from calcheck.reports.conclusion import Effect
from calcheck.statistics.groups import Means
from calcheck.statistics.pit import direction_of
from calcheck.storage.archives import is_monitor_state, require_archive_path
from calcheck.storage.atomic_write import exclusive
from calcheck.studies import Request
from calcheck.studies.monitor import state as monitor_state
from calcheck.studies.monitor.e_process import MOST_STEPS, History, change_point, concatenate, summarize
from calcheck.studies.monitor.options import MonitorOptions
from calcheck.studies.options import ToleranceOptions
from calcheck.typing import AnyArray, Values

NO_TIME = "--time is required: the column of the target times"
WINDOW_METRICS = ("standardized-bias", "pit-dispersion", "width-factor")
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


def run(request: Request) -> Report:
    """Return the report of a monitored model after all files; save the state that the next run continues."""
    options, save_to = request.options(MonitorOptions), request.data("save_state")
    stored, files = request.data("state"), request.data("files")
    judged = request.judge()
    if request.targets > 1 and (stored is not None or any(map(is_monitor_state, files))):
        raise OptionError("a state is about one target, and there are several: pass --only TARGET")
    if save_to and request.target:
        save_to = str(PurePath(save_to).with_stem(f"{PurePath(save_to).stem}-{request.target}"))
    if save_to:
        require_archive_path(save_to, "--save-state")
    request.require_outputs(reads=[file for file in files if isinstance(file, str) and file != save_to])
    with exclusive(save_to) as require_unchanged:
        state = None if stored is None else _earlier(request, options, stored)
        for file in files:
            if is_monitor_state(file):
                earlier = _earlier(request, options, file)
                state = earlier if state is None else monitor_state.join_states([state, earlier])
            else:
                state = _observed(request, file, state, options)
        if state is None:  # pragma: no cover - Typer requires a file
            raise OptionError(NO_TIME)
        with request.run() as run:
            tolerance = request.options(ToleranceOptions).tolerance
            report = judged(monitor_report(state, level=options.level / request.targets, run=run, tolerance=tolerance))
        if save_to:
            require_unchanged()
            monitor_state.write_monitor_state(save_to, state)
    return report if is_monitor_state(files[-1]) else request.with_commands(report)


def _observed(
    request: Request, file: Any, state: monitor_state.MonitorState | None, options: MonitorOptions
) -> monitor_state.MonitorState:
    """Return the state after the rows of predictions."""
    if state is not None:
        options = replace(options, **state.options.stored())
    metrics = list(state.metrics) if state is not None else request.metrics(WINDOW_METRICS)
    source = request.open(file, metrics, also=options.columns)
    source = replace(source, repeated=True) if isinstance(source, FileSource) else source  # keys, over time
    if options.time is None:
        dates = source.date_columns() if isinstance(source, FileSource) else []
        if len(dates) != 1:
            names = f" {listed_columns(source.table.schema.names)}" if isinstance(source, FileSource) else ""
            raise OptionError(f"{NO_TIME}{names}")
        options = replace(options, time=dates[0])
        source = replace(source, also=(*source.also, dates[0]))
        request.tell(f"--time {dates[0]}, the only column of dates")
    with request.run(source) as run:
        run = run if state is None else state.continue_run(run)
        found = observe(source, options, metrics, earlier=state, run=run)
    request.refuse_skipped(found.skipped, source)
    return found


def _earlier(request: Request, options: MonitorOptions, file: str) -> monitor_state.MonitorState:
    """Return the state in a file; raise if an option contradicts it."""
    state = monitor_state.read_monitor_state(file)
    given = request.data("metrics") or ()
    metrics = request.metrics() if given else []
    named, known = (",".join(each.info.name for each in every) for every in (metrics, state.metrics))
    stored = {
        **{name: (value, state.options.stored()[name]) for name, value in options.stored().items()},
        "metrics": (named or None, known),
        "seed": (request.data("seed"), state.seed),
    }
    for metric, its in zip(given, state.metrics, strict=False):
        for option in options_of(type(metric)) if isinstance(metric, Metric) else ():  # None depends on the rows
            values = getattr(metric, option.field), getattr(its, option.field, None)
            stored[f"{metric.info.name}: {option.field}"] = values
    for name, (wanted, has) in stored.items():
        if wanted not in (None, has):
            called = name if ":" in name else flag_of(name)
            shown = "none" if has is None else has
            raise OptionError(f"{called} {wanted} contradicts {file}, which has {shown}: omit {called}")
    return state


def observe(
    source: Source,
    options: MonitorOptions,
    metrics: Sequence[Metric[Any]],
    *,
    earlier: monitor_state.MonitorState | None = None,
    run: Run | None = None,
) -> monitor_state.MonitorState:
    """Return the state after the rows of a source."""
    run = run or Run()
    rows = source.predictions()
    if reason := inapplicable_reason(METRICS["pit"], rows):
        raise DataError(f"the e-process {reason}")
    column = str(options.time)
    times, horizons = parse_times(column, _column(rows, column), rows.row_numbers()), _horizons(rows, options)
    _require_once(rows, times, horizons)
    history = summarize(rows, times, horizons, run)
    name = monitor_state.file_name(source.input_info())
    before = [] if earlier is None else [(monitor_state.file_name(earlier.input), earlier.history)]
    known = concatenate([*before, (name, history)])
    window = monitor_state.kept_window(options.window, known.steps)
    starts = window.starts(known.steps, str(options.time))[np.searchsorted(known.steps, times)]
    simulation = NullSimulator(rows, run)
    applicable, skipped = _applicable(source, metrics, run, replicates=bool(len(simulation)))
    windows, by_horizon = _add_up(applicable, simulation, (starts, horizons), run)
    predictive = rows.distributions()
    shape = () if predictive.shape_is_known else (ASSUMED_SHAPE,)
    quantiles = () if predictive.quantile_levels is None else (AT_QUANTILES,)
    found = monitor_state.MonitorState(
        input=source.input_info(),
        options=replace(options, level=MonitorOptions().level),
        metrics=tuple(each.with_defaults(rows) for each in metrics),
        seed=run.seed,
        history=history,
        windows=windows,
        horizons=by_horizon,
        null_metrics=tuple(each.metric.info.name for each in applicable if each.has_null),
        skipped=skipped,
        warnings=(*data_warnings(source, predictive), *shape, *quantiles),
    )
    return found if earlier is None else monitor_state.join_states([earlier, found])


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
        raise DataError(f"column {name!r} has {at}: horizons are whole numbers of steps, up to {MOST_STEPS:,}")
    return values.astype(np.int64)


def _require_once(rows: Predictions, times: AnyArray, horizons: NDArray[np.int64]) -> None:
    """Raise unless each key occurs at most once per time and horizon: a station has one row a day."""
    if rows.id is None:
        return
    found: dict[Any, int] = {}
    for row, key in enumerate(zip(rows.id.tolist(), times.tolist(), horizons.tolist(), strict=True)):
        if (first := found.setdefault(key, row)) != row:
            numbers = rows.row_numbers()[[first, row]]
            raise DataError(
                f"{rows.id_name} {str(key[0])!r} occurs twice at {time_texts(times[row : row + 1])[0]}, in"
                f" {named_rows(numbers.tolist())}. Keep one row per {rows.id_name} and time, or name another key with"
                " --id"
            )


def _column(rows: Predictions, name: str) -> AnyArray:
    if name not in rows.columns:
        raise DataError(f"there is no column {name!r} with one value per row")
    return np.asarray(rows.columns[name])


class _WindowMetric(NamedTuple):
    """A metric that applies to the rows: its columns, and whether replicates show what to expect of it."""

    metric: RowMetric
    columns: dict[str, Values]
    has_null: bool


def _applicable(
    source: Source, metrics: Sequence[Metric[Any]], run: Run, *, replicates: bool
) -> tuple[list[_WindowMetric], tuple[Skipped, ...]]:
    """Return the metrics that apply to the rows and are means over them, and those that are skipped."""
    rows, found, skipped = source.predictions(), [], []
    shape = StatedShape.from_predictive(rows.predictive)
    for metric in metrics:
        name, columns = metric.info.name, dict[str, Values]()
        reason = inapplicable_reason(type(metric), rows)
        try:
            if not reason and isinstance(metric, RowMetric):
                own = metric.with_defaults(rows)
                with np.errstate(all="ignore"):
                    columns, results = _columns(own, source, run)
        except RefusedError:
            raise
        except DataError as error:
            skipped.append(Skipped(metric=name, code="error", reason=str(error)))
            continue
        if columns:
            basis = basis_of(own, shape, results, replicates=replicates)
            found.append(_WindowMetric(own, columns, basis.kind == "p"))
        else:
            skipped.append(Skipped(metric=name, code="inapplicable", reason=reason or NO_MEAN))
    return found, tuple(skipped)


def _columns(metric: RowMetric, source: Source, run: Run) -> tuple[dict[str, Values], RowResults]:
    """Return the columns of whose means a metric is a function, none if there are no such columns, and its results."""
    found = metric.evaluate(None, source, run)
    if isinstance(metric, HasGrid):
        return metric.on_grid(source.predictions()), found
    return {} if found.terms or found.fixed else found.columns, found


def _add_up(
    metrics: Sequence[_WindowMetric], simulation: NullSimulator, groupings: Sequence[AnyArray], run: Run
) -> list[monitor_state.GroupSums]:
    """Return the sums of metrics by each grouping of the rows, of the data and of replicates."""
    adders = [monitor_state.Adder(each) for each in groupings]
    for adder, each in product(adders, metrics):
        adder.update(each.metric.info.name, each.columns)
    for replicate in run.track("windows: replicates", simulation, len(simulation)):
        rows = InMemory(replicate)
        for each in metrics:
            with np.errstate(all="ignore"):
                columns, _ = _columns(each.metric, rows, run.quiet())
            for adder in adders:
                adder.update(each.metric.info.name, columns)
    return [adder.result() for adder in adders]


MOST_POINTS = 1_000  # Maximum number of points of the path in a report
COMPONENT_NAMES = ("bias", "dispersion", "skewness", "tails")
FAULTS = {
    "too-narrow": "the uncertainties are too small",
    "too-wide": "the uncertainties are too large",
    "predictions-too-low": "the predictions are too low",
    "predictions-too-high": "the predictions are too high",
    "wrong-shape": "the distributions have the wrong shape",
}


def monitor_report(
    state: monitor_state.MonitorState, *, level: float, run: Run | None = None, tolerance: float = TOLERANCE
) -> Report:
    """Return the report of a state: the e-process, and metrics by window and horizon."""
    run = run or Run()
    found = _monitor(state, level)
    return Report(
        calcheck=__version__,
        input=state.input,
        settings={
            **run_settings(replace(run, seed=state.seed, replicates=state.replicates)),
            "time": state.options.time,
            "window": str(monitor_state.shown_window(state.options.window, state.history.steps)),
            "horizon": state.options.horizon,
            "level": level,
            "tolerance": tolerance,
        },
        results=tuple(_results(state, run.confidence)),
        skipped=state.skipped,
        monitor=found,
        conclusion=_conclude(found, level, state, tolerance, run.confidence),
    )


def _results(state: monitor_state.MonitorState, confidence: float) -> Iterator[Result]:
    """Yield the results of each horizon if there are several, and of each window: the last one is the latest."""
    if len(state.horizons.keys) > 1:
        texts = list(map(str, state.horizons.keys.tolist()))
        yield from _group_results(state, state.horizons, "horizon", texts, confidence)
    windows, steps = state.windows, state.history.steps
    if state.options.window is None:
        windows = monitor_state.regroup(windows, monitor_state.shown_window(state.options.window, steps), steps)
    yield from _group_results(state, windows, "window", time_texts(windows.keys), confidence)


def _group_results(
    state: monitor_state.MonitorState,
    groups: monitor_state.GroupSums,
    kind: str,
    names: Sequence[str],
    confidence: float,
) -> Iterator[Result]:
    computed = {name.partition(".")[0] for name in groups.sums}
    metrics = [metric for metric in state.metrics if metric.info.name in computed]
    by_metric = [list(groups.means(metric.info.name)) for metric in metrics]
    for place, (name, rows) in enumerate(zip(names, groups.rows.tolist(), strict=True)):
        for metric, means in zip(metrics, by_metric, strict=True):
            has_null = metric.info.name in state.null_metrics
            value, inference = _inference(metric, means[place], confidence, has_null=has_null)
            inference = replace(inference, warnings=state.warnings)
            yield metric.result(value, {kind: name, "rows": rows}, inference)


def _inference(
    metric: Metric[Any], means: Means, confidence: float, *, has_null: bool
) -> tuple[float | None, Inference]:
    """Return the value of a metric in a group, with the mean and the limits of perfect models."""
    with np.errstate(all="ignore"):
        values = np.atleast_1d(np.asarray(metric.value(means), dtype=np.float64))
        tested = metric.null_statistic(means) if isinstance(metric, HasNullStatistic) else values
    value = float(values[0]) if np.isfinite(values[0]) else None
    null = tested[1:][np.isfinite(tested[1:])]
    if not has_null or not len(null):
        return value, Inference()
    tail = (1 - confidence) / 2
    low, high = (float(np.quantile(null, share)) for share in (tail, 1 - tail))
    return value, Inference(
        reference=float(null.mean()), reference_low=low, reference_high=high, reference_kind="simulated"
    )


def _monitor(state: monitor_state.MonitorState, level: float) -> Monitor:
    """Return the e-process of a state: its path, the alarm, and what seems to be wrong since when."""
    history = state.history
    lags = np.unique(history.lags).tolist()
    paths = np.stack([history.log_e_values(lag) for lag in lags])  # (h, s)
    path = _storable(paths.max(axis=0) - math.log(len(lags)))
    texts = time_texts(history.steps)
    crossed = np.flatnonzero(path >= -math.log(level))
    peak = int(np.argmax(path))
    fault = {} if not len(crossed) else _fault(history, lags[int(np.argmax(paths[:, peak]))], peak)
    starts = np.unique(np.linspace(0, len(path), min(len(path), MOST_POINTS), endpoint=False).astype(np.intp))
    return Monitor(
        verdict="fail" if len(crossed) else "pass",
        e_value=_e_value(path[-1]),
        log_e_value=float(path[-1]),
        max_e_value=_e_value(path.max()),
        max_log_e_value=float(path.max()),
        threshold=1 / level,
        times=len(path),
        first_time=texts[0],
        last_time=texts[-1],
        alarm_time=texts[int(crossed[0])] if len(crossed) else None,
        **fault,
        horizons=tuple(_horizon(history, lag, own) for lag, own in zip(lags, _storable(paths), strict=True)),
        path_times=tuple(texts[start] for start in starts),
        path_log_e_values=tuple(np.maximum.reduceat(path, starts).tolist()),
    )


def _fault(history: History, lag: int, peak: int) -> dict[str, Any]:
    """Return from when to when rows contradict the model most, up to the largest e-value, and how."""
    chosen = (history.lags == lag) & (history.times <= history.steps[peak])
    own = history.take(chosen)
    own = own.take(own.impossible if own.impossible.any() else slice(change_point(own.log_densities), None))
    components, (first, last) = _components(own), time_texts(own.times[[0, -1]])
    direction = direction_of(np.array([*components.values()]))
    return {"fault_start": first, "fault_end": last, "direction": direction, "components": components}


def _horizon(history: History, lag: int, path: Values) -> HorizonEvidence:
    own = history.take(history.lags == lag)
    return HorizonEvidence(
        horizon=int(own.horizons[0]),
        lag=lag,
        rows=int(own.rows.sum()),
        times=len(own),
        e_value=_e_value(path[-1]),
        log_e_value=float(path[-1]),
        max_e_value=_e_value(path.max()),
        max_log_e_value=float(path.max()),
        components=_components(own),
    )


def _components(history: History) -> dict[str, float]:
    """Return the mean components of the PIT."""
    means = np.average(history.components, axis=0, weights=history.rows)
    return dict(zip(COMPONENT_NAMES, means.tolist(), strict=True))


def _storable(log_e_values: Values) -> Values:
    """Return logs of e-values without infinite ones, which JSON does not have: they become the largest float."""
    return np.minimum(log_e_values, sys.float_info.max)


def _e_value(log_e_value: float) -> float:
    """Return an e-value; the largest float if it is larger."""
    return math.exp(log_e_value) if log_e_value <= LARGEST else sys.float_info.max


def _conclude(
    found: Monitor, level: float, state: monitor_state.MonitorState, tolerance: float, confidence: float
) -> Conclusion:
    """Return whether there is an alarm, and what is wrong since when; a fault that is within the tolerance is no no."""
    history = state.history
    if found.alarm_time is None:
        text = (
            f"no alarm up to {found.last_time}: the e-value is {exponential(found.log_e_value)}, at most"
            f" {exponential(found.max_log_e_value)} so far; there is an alarm at {found.threshold:g}"
        )
        return Conclusion(answer="yes", effects=(Effect(topic="when", within=True, text=text),))
    alarm = (
        f"alarm at {found.alarm_time}: the e-value reached {found.threshold:g}, which at most {100 * level:g} % of"
        f" right models ever do; now it is {exponential(found.log_e_value)}"
    )
    span = f"from {found.fault_start} to {found.fault_end}"
    fault = f"{span}, {FAULTS[str(found.direction)]}"
    size, within = _fault_size(found, state, confidence), False
    if size is not None:
        within = is_inside(size, tolerance)
        if size.topic == "bias":
            told = bias_text(size)
        else:
            told = size_text(next(each.options()["level"] for each in state.metrics if each.info.name == WIDTH), size)
        fault = f"{span}, " + (f"within {percent(tolerance, 1)}: " if within else "") + told
    if impossible := np.unique(history.times[history.impossible]).tolist():
        first = time_texts(np.sort(history.times[history.impossible])[:1])[0]
        at = count_of(len(impossible), "time", "times, first")
        fault = f"at {at} ({first}), targets have probability 0 under the predictions, so the e-value is infinite"
        size, within = None, False
    what = Effect(topic="what", within=within, text=fault)
    if size is not None:
        what = replace(what, value=size.value, low=size.low, high=size.high if math.isfinite(size.high) else None)
    alarmed = Effect(topic="when", within=None if within else False, text=alarm)
    return Conclusion(answer="yes" if within else "no", effects=(what, alarmed))


def _fault_size(found: Monitor, state: monitor_state.MonitorState, confidence: float) -> Estimate | None:
    """Return the width factor or the bias of the windows that begin in the time of a fault; None for others."""
    topic, name = SHOWN.get(str(found.direction), (None, ""))
    metric = next((each for each in state.metrics if each.info.name == name), None)
    steps, windows, texts = state.history.steps, state.windows, time_texts(state.history.steps)
    if topic is None or metric is None or not isinstance(metric, HasLimits):
        return None
    first, last = (texts.index(str(each)) for each in (found.fault_start, found.fault_end))
    inside = (windows.keys >= steps[first]) & (windows.keys <= steps[last])
    sums = {column: each[inside, :1] for column, each in windows.sums.items() if column.startswith(f"{name}.")}
    if not sums or not inside.any():
        return None
    own = monitor_state.GroupSums(windows.keys[inside], windows.rows[inside], sums).merge(np.zeros(inside.sum()))
    means = next(own.means(name))
    times = (last - first + 1) / int(state.history.lags.max())
    low, high = metric.limits_of_sums(
        Means({key: each[0] for key, each in means.items()}, means.n), times, 1 - confidence
    )
    return Estimate(topic, float(metric.value(means)[0]), low, high)
