"""Documents and pictures of rejection studies: the error of the retained predictions."""

from collections.abc import Iterable, Iterator, Sequence

from calcheck.charts.picture import Axis, Band, Mark, Panel, Picture
from calcheck.render.document import Block, Cell, Column, Table, marks_in, note_blocks, number_columns, row_of, source
from calcheck.render.numbers_and_notes import interval, name_with_unit, notes, number, p_value, results_by
from calcheck.render.pictures import curve, expected_marks, numbers
from calcheck.reports import Report, Result

RANDOM, AREA = "random", "area"  # values in the subsets of results


def rejection_blocks(report: Report) -> Iterator[Block]:
    """Yield the document of a rejection study: values below those of random rejection are marked."""
    yield source(report.input)
    curves = [_curves(results) for results in results_by(report.results, "metric").values()]
    yield from curves
    yield from marks_in(curves, ("best", "below the band of random rejection"))
    rows = []
    areas = [result for result in report.results if result.slice["rejected"] == AREA]
    for metric, own in results_by(areas, "metric").items():
        for criterion, (area, *gain) in results_by(own, "by").items():
            gained = (number(gain[0].value), interval(gain[0]), p_value(gain[0])) if gain else ("", "", "")
            rows.append(row_of(metric, criterion, number(area.value), interval(area), *gained))
    title = "area under the curve, and its difference from random rejection"
    yield _table(title, ("metric", "by"), ("area", "interval", "− random", "interval", "p"), rows, keys=2)
    if thresholds := [result for result in report.results if "threshold" in result.slice]:
        rows = []
        for criterion, own in results_by(thresholds, "by").items():
            subset = own[0].slice
            texts = (number(subset["threshold"]), f"{subset['rows']:,}", subset["rejected"])
            rows.append(row_of(criterion, *texts, *(number(result.number) for result in own)))
        numbers = ("threshold", "retained", "rejected", *results_by(thresholds, "metric"))
        yield _table("thresholds", ("by",), numbers, rows, keys=1)
    yield from note_blocks(notes(report))


def _table(
    title: str, texts: Sequence[str], numbers: Iterable[str], rows: Iterable[tuple[Cell, ...]], keys: int
) -> Table:
    """Return a table whose first columns are text."""
    columns = (*map(Column, texts), *number_columns(*numbers))
    return Table(columns, tuple(rows), title, overflow="split", keys=keys)


def _curves(results: Sequence[Result]) -> Table:
    """Return the table of a metric: rejected fractions as rows, criteria as columns; values below chance are marked."""
    by_criterion = results_by(curve_results(results), "by")
    chance = by_criterion.get(RANDOM)
    rows = []
    for place, first in enumerate(next(iter(by_criterion.values()))):
        cells = row_of(str(first.slice["rejected"]), f"{first.slice['rows']:,}")
        band = chance[place].low if chance else None
        for result in (own[place] for own in by_criterion.values()):
            below = result.value is not None and band is not None and result.value < band
            cells += (Cell(number(result.number), "best" if below and result.orientation == "smaller" else ""),)
        rows.append(cells)
    title = f"{name_with_unit(results[0])} of the retained rows"
    return _table(title, (), ("rejected", "retained", *by_criterion), rows, keys=2)


def curve_results(results: Sequence[Result]) -> list[Result]:
    """Return the results that are points of the curves."""
    return [result for result in results if result.slice["rejected"] != AREA and "threshold" not in result.slice]


def rejection_picture(report: Report) -> Picture:
    """Return the picture of a rejection study: one panel per metric, with curves and bands."""
    panels = []
    for results in results_by(report.results, "metric").values():
        marks: list[Mark] = []
        for criterion, own in results_by(curve_results(results), "by").items():
            shares = [float(result.slice["rejected"].removesuffix(" %")) for result in own]
            values, low, high = (numbers(getattr(result, side) for result in own) for side in ("value", "low", "high"))
            marks += curve(criterion, shares, values, (low, high), dashed=criterion == RANDOM)
        marks.sort(key=lambda mark: not isinstance(mark, Band))  # lines lie above all bands
        y = Axis(f"{name_with_unit(results[0])} of retained rows")
        panels.append(Panel(tuple(marks), Axis("rejected [%]"), y))
    return Picture(
        tuple(panels),
        "Error of the retained rows",
        "Useful uncertainties: their curve falls below the band of random rejection.",
        "Error of the retained rows against the share of rejected rows, one line for each order of rejection.",
    )


def prune_picture(report: Report) -> Picture:
    """Return the picture of a removal of rows: one panel per metric, with intervals and limits of perfect models."""
    panels = []
    for results in results_by(report.results, "metric").values():
        shares = [float(result.slice["removed"].removesuffix(" %")) for result in results]
        values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
        marks = (*expected_marks(results, shares), *curve("observed", shares, values, (low, high)))
        panels.append(Panel(marks, Axis("removed rows [%]"), Axis(name_with_unit(results[0]))))
    return Picture(
        tuple(panels),
        "Metrics without the rows of the largest uncertainties",
        "A right model stays within the limits of perfect models at each share. A jump: the removed rows are wrong.",
        "Metrics against the share of removed rows, with their intervals.",
    )
