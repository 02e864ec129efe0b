"""Picture of a monitored model: the e-process, and metrics by window."""

from collections.abc import Sequence
from datetime import UTC, datetime

from calcheck.charts.picture import PERFECT, Axis, Intervals, Line, Mark, Panel, Picture, Points, Rule
from calcheck.render.metric_pictures import numbers
from calcheck.render.numbers_and_notes import name_with_unit, results_by
from calcheck.reports import Monitor, Report, Result
from calcheck.studies.monitor.document import results_of

MOST_WINDOWS = 1_000  # Maximum number of windows in the picture
LOWEST = 1e-6  # Smallest e-value of the axis


def monitor_picture(report: Report) -> Picture:
    """Return the picture of a monitored model: the e-process, and one panel per metric with its windows."""
    found = report.monitor
    if found is None:
        raise ValueError("the report has no monitor")
    label = str(report.settings["time"])
    windows = list(results_of(report, "window").values())[-MOST_WINDOWS:]
    by_metric = results_by([result for own in windows for result in own], "metric")
    return Picture(
        (_e_process(found, label), *(_panel(results, label) for results in by_metric.values())),
        "Calibration over time",
        f"A right model: the e-value stays below {found.threshold:g}, and metrics are in the range of perfect models.",
        "The e-value after each time, on a logarithmic axis, and metrics by window with the range of perfect models.",
    )


def _e_process(found: Monitor, label: str) -> Panel:
    """Return the panel of the e-process, with a line at the threshold, and the time of the alarm."""
    axis, times = _axis(found.path_times, label)
    values = [2.718281828459045 ** min(each, 700.0) for each in found.path_log_e_values]
    marks: list[Mark] = [Line(times, values, "e-value"), Rule(y=found.threshold)]
    if found.alarm_time is not None:
        _, at = _axis((found.alarm_time,), label)
        marks.append(Points(at, [found.threshold], "alarm"))
    low = None if min(values) > LOWEST else LOWEST
    return Panel(tuple(marks), axis, Axis("e-value", log=True, low=low), "evidence against the model")


def _panel(results: Sequence[Result], label: str) -> Panel:
    """Return the panel of a metric, with its value in each window."""
    axis, starts = _axis([str(result.slice["window"]) for result in results], label)
    low, high = (numbers(getattr(result, side) for result in results) for side in ("reference_low", "reference_high"))
    expected: list[Mark] = [Intervals(starts, low, high, PERFECT)] if any(each == each for each in low) else []  # noqa: PLR0124 - NaN
    values = Points(starts, numbers(result.value for result in results), "value in the window")
    return Panel((*expected, values), axis, Axis(name_with_unit(results[0])), results[0].metric)


def _axis(texts: Sequence[str], label: str) -> tuple[Axis, list[float]]:
    """Return the axis of times, and the positions of times on it."""
    try:
        return Axis(label), [float(text) for text in texts]
    except ValueError:
        dates = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts)
        return Axis(label, dates=True), [each.timestamp() for each in dates]
