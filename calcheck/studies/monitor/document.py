"""Documents and pictures of a monitored model: whether there is an alarm, and metrics by window and horizon."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from calcheck.charts.picture import PERFECT, Axis, Intervals, Line, Mark, Panel, Picture, Points, Rule
from calcheck.core.text import exponential
from calcheck.render import document
from calcheck.render.document import answer_to, gates_table
from calcheck.render.numbers_and_notes import ABSENT, name_with_unit, notes, number, results_by
from calcheck.render.pictures import numbers
from calcheck.reports import Monitor, Report, Result

QUESTION = "Can the uncertainties still be trusted?"
MOST_WINDOWS = 40  # Maximum number of windows in a table
E_LEGEND = (
    "e-value: evidence against the model, which starts at 1; the probability that it ever reaches {threshold:g} is at"
    " most {percent:g} % for a right model, however often it is looked at"
)
EXPECTED_LEGEND = "expected: range of {percent:g} % of the values of a right model"


def monitor_blocks(report: Report) -> Iterator[document.Block]:
    """Yield the document of a monitored model."""
    found, settings = report.monitor, report.settings
    if found is None:  # pragma: no cover - for type checkers
        return
    yield document.source(report.input)
    if report.conclusion is not None:
        after = ", no alarm so far" if found.alarm_time is None else ""
        yield answer_to(QUESTION, report.conclusion, after)
    if report.gates:
        yield gates_table(report.gates)
    yield from _windows(results_of(report, "window"), settings["window"])
    if len(found.horizons) > 1:
        results = results_of(report, "horizon")
        metrics = next(iter(results.values()), [])
        heads = document.number_columns("horizon", "rows", "e-value", "largest")
        columns = (*heads, *_columns(metrics))
        rows = []
        for each in found.horizons:
            largest = f"{each.max_e_value:.3g}" if each.max_log_e_value is None else exponential(each.max_log_e_value)
            texts = (str(each.horizon), f"{each.rows:,}", exponential(each.log_e_value), largest)
            rows.append((*document.row_of(*texts), *_cells(results.get(texts[0], []))))
        yield document.Table(columns, tuple(rows), "horizons", "omit", keys=4, remedy="--format csv")
    legend = [E_LEGEND.format(threshold=found.threshold, percent=100 * settings["level"])]
    if any(result.reference_low is not None for result in report.results):
        legend.append(EXPECTED_LEGEND.format(percent=100 * settings["confidence"]))
    yield document.Legend(tuple(legend))
    yield from document.note_blocks(notes(report))


def results_of(report: Report, kind: str) -> dict[str, list[Result]]:
    """Return the results of windows or horizons, by the name of each."""
    return results_by((result for result in report.results if kind in result.slice), kind)


def _windows(windows: dict[str, list[Result]], length: str) -> Iterator[document.Block]:
    """Yield the table of the last windows, the last one first, with the metrics as columns."""
    if not windows:
        return
    shown = list(windows.items())[: -MOST_WINDOWS - 1 : -1]
    unit = "" if not length.isdecimal() else " time" if int(length) == 1 else " times"
    title = f"windows of {length}{unit}, newest first"
    rows = tuple((*document.row_of(name, f"{own[0].slice['rows']:,}"), *_cells(own)) for name, own in shown)
    columns = (document.Column("window"), document.Column("rows", "right"), *_columns(shown[0][1]))
    yield document.Table(columns, rows, title, "omit", keys=2, remedy="--format csv")
    if len(windows) > len(shown):
        yield document.Paragraph(f"{len(windows) - len(shown):,} earlier windows are in the JSON and CSV reports")


def _columns(results: Sequence[Result]) -> Iterator[document.Column]:
    for result in results:
        yield document.Column(name_with_unit(result), "right")
        yield document.Column("expected", "right", rank=1)


def _cells(results: Sequence[Result]) -> Iterator[document.Cell]:
    for result in results:
        yield document.Cell(number(result.number), "strong" if is_outside(result) else "")
        low, high = result.reference_low, result.reference_high
        yield document.Cell(ABSENT if low is None else f"[{low:.2g}, {high:.2g}]")


def is_outside(result: Result) -> bool:
    """Return whether a value is outside the range of a right model."""
    low, high = result.reference_low, result.reference_high
    return None not in (result.value, low, high) and not low <= result.value <= high  # type: ignore[operator]


MOST_WINDOWS = 1_000  # Maximum number of windows in the picture
LOWEST, LARGEST = 1e-6, 1e12  # Smallest and largest e-value of the axis


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
    values = [min(math.exp(min(each, math.log(2 * LARGEST))), LARGEST) for each in found.path_log_e_values]
    marks: list[Mark] = [Line(times, values, "e-value"), Rule(y=found.threshold)]
    if found.alarm_time is not None:
        _, at = _axis((found.alarm_time,), label)
        marks.append(Points(at, [found.threshold], "alarm"))
    low = None if min(values) > LOWEST else LOWEST
    title = "evidence against the model" + f", cut at {LARGEST:.0e}" * (max(values) == LARGEST)
    return Panel(tuple(marks), axis, Axis("e-value", log=True, low=low), title.replace("e+", "e"))


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
