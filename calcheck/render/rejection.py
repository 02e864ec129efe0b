"""Tables and plot of the error of the retained predictions in a rejection study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.render.cells import ABSENT, number, short
from calcheck.render.plot import Curve, Panel, Plot
from calcheck.render.tables import Pivot, pivots_to_markdown, pivots_to_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from calcheck.report import Report, Result

RANDOM, AREA = "random", "area"  # values in the subsets of results
BETTER = "*"
LEGEND = "* below the interval of random rejection"
NAN = float("nan")


def rejection_to_table(report: Report, *, legend: bool = True) -> str:
    """Return a rejection study as tables for a terminal of at least 80 columns."""
    return pivots_to_table(report, list(_pivots(report)), legend=legend)


def rejection_to_markdown(report: Report, *, legend: bool = True) -> str:
    """Return a rejection study in Markdown."""
    return pivots_to_markdown(report, list(_pivots(report)), legend=legend)


def rejection_plot(report: Report) -> Plot:
    """Return the plot of a rejection study: one panel per metric, with curves and bands."""
    return Plot(tuple(_panel(results) for results in _by(report.results, "metric").values()))


def _panel(results: Sequence[Result]) -> Panel:
    curves = []
    for criterion, own in _by(_steps(results), "by").items():
        shares = [float(result.slice["rejected"].removesuffix(" %")) for result in own]
        values, low, high = (
            [NAN if each is None else each for each in side]
            for side in zip(*((result.value, result.low, result.high) for result in own), strict=True)
        )
        curves.append(Curve(criterion, shares, values, low, high, style="dashed" if criterion == RANDOM else "line"))
    return Panel(tuple(curves), x_label="rejected [%]", y_label=f"{_called(results[0])} of retained rows")


def _pivots(report: Report) -> Iterator[Pivot]:
    *curves, last = (_curves(results) for results in _by(report.results, "metric").values())
    yield from (*(replace(pivot, legend="") for pivot in curves), last)
    yield _areas([result for result in report.results if result.slice["rejected"] == AREA])
    thresholds = [result for result in report.results if "threshold" in result.slice]
    if thresholds:
        yield _thresholds(thresholds)


def _curves(results: Sequence[Result]) -> Pivot:
    """Return the table of a metric: rejected fractions as rows, criteria as columns; values below chance are marked."""
    by_criterion = _by(_steps(results), "by")
    chance = by_criterion.get(RANDOM)
    rows, marked = [], False
    for place, first in enumerate(next(iter(by_criterion.values()))):
        cells = []
        for own in by_criterion.values():
            better = chance is not None and _is_less(own[place], chance[place])
            marked |= better
            cells.append(number(own[place].value) + (BETTER if better else " "))
        rows.append((str(first.slice["rejected"]), f"{first.slice['rows']:,}", *cells))
    return Pivot(
        f"{_called(results[0])} of the retained rows",
        ("rejected", "retained", *(f"{criterion} " for criterion in by_criterion)),
        tuple(rows),
        keys=2,
        legend=LEGEND if marked else "",
    )


def _areas(results: Sequence[Result]) -> Pivot:
    """Return the table of the areas under the curves, and their differences from random rejection."""
    rows = []
    for metric, own in _by(results, "metric").items():
        for criterion, pair in _by(own, "by").items():
            area, *gain = pair
            chance = "" if not gain or gain[0].p_value is None else f"{gain[0].p_value:.2g}"
            gained = [number(gain[0].value), _interval(gain[0]), chance] if gain else [""] * 3
            rows.append((metric, criterion, number(area.value), _interval(area), *gained))
    head = ("metric", "by", "area", "interval", "− random", "interval", "p")
    return Pivot("area under the curve, and its difference from random rejection", head, tuple(rows), 2, 2)


def _thresholds(results: Sequence[Result]) -> Pivot:
    """Return the table of thresholds: the value of each criterion up to which rows are retained."""
    metrics = _by(results, "metric")
    rows = []
    for criterion, own in _by(results, "by").items():
        subset = own[0].slice
        told = (number(subset["threshold"]), f"{subset['rows']:,}", subset["rejected"])
        rows.append((criterion, *told, *(number(result.value) for result in own)))
    return Pivot("thresholds", ("by", "threshold", "retained", "rejected", *metrics), tuple(rows), 1, 1)


def _by(results: Iterable[Result], name: str) -> dict[str, list[Result]]:
    """Return results grouped by their metric, or by an entry of their subset."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.metric if name == "metric" else str(result.slice[name]), []).append(result)
    return found


def _steps(results: Sequence[Result]) -> list[Result]:
    """Return the results that are points of the curves."""
    return [result for result in results if result.slice["rejected"] != AREA and "threshold" not in result.slice]


def _is_less(result: Result, chance: Result) -> bool:
    """Return whether smaller values are better and the value is below the interval of random rejection."""
    better = result.orientation == "smaller"
    return better and result.value is not None and chance.low is not None and result.value < chance.low


def _interval(result: Result) -> str:
    return ABSENT if result.low is None else f"[{short(result.low)}, {short(result.high)}]"


def _called(result: Result) -> str:
    """Return the name of a metric with its unit."""
    return result.metric if result.unit == "1" else f"{result.metric} [{result.unit}]"
