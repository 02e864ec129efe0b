"""Documents of a monitored model: whether there is an alarm, and metrics by window and horizon."""

from collections.abc import Iterator, Sequence

from calcheck.core.text import exponential
from calcheck.render import document
from calcheck.render.document import answer_to, gates_table
from calcheck.render.numbers_and_notes import ABSENT, name_with_unit, notes, number, results_by
from calcheck.reports import Report, Result

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
        heads = (document.Column(name, "right") for name in ("horizon", "rows", "e-value", "largest"))
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
    title = f"windows of {length}{unit}"
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
