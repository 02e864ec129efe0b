"""The error of what is kept as predictions are rejected: tables, and a plot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.metrics import METRICS
from calcheck.render.cells import ABSENT, number, short
from calcheck.render.plot import Curve, Panel, Plot
from calcheck.render.tables import Pivot, pivots_to_markdown, pivots_to_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from calcheck.report import Report, Result

RANDOM, AREA = "random", "area"  # in subsets of results
BETTER = "*"
LEGEND = "* less than nearly all random rejections leave"
NAN = float("nan")


def rejection_to_table(report: Report) -> str:
    """Render a study of rejection for a terminal of at least 80 columns."""
    return pivots_to_table(report, list(_pivots(report)))


def rejection_to_markdown(report: Report) -> str:
    """Render a study of rejection in Markdown."""
    return pivots_to_markdown(report, list(_pivots(report)))


def rejection_plot(report: Report) -> Plot:
    """Describe the curves of each metric, with their bands."""
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
    return Panel(tuple(curves), x_label="rejected [%]", y_label=f"{_called(results[0])} of what is kept")


def _pivots(report: Report) -> Iterator[Pivot]:
    *curves, last = (_curves(results) for results in _by(report.results, "metric").values())
    yield from (*(replace(pivot, legend="") for pivot in curves), last)
    yield _areas([result for result in report.results if result.slice["rejected"] == AREA])
    thresholds = [result for result in report.results if "threshold" in result.slice]
    if thresholds:
        yield _thresholds(thresholds)


def _curves(results: Sequence[Result]) -> Pivot:
    """Lay out a metric: shares as rows, criteria as columns; what is less than chance leaves is marked."""
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
        f"{_called(results[0])} of the rows that are kept",
        ("rejected", "kept", *(f"{criterion} " for criterion in by_criterion)),
        tuple(rows),
        keys=2,
        legend=LEGEND if marked else "",
    )


def _areas(results: Sequence[Result]) -> Pivot:
    """Lay out areas under curves, and by how much they exceed that of random rejection."""
    rows = []
    for metric, own in _by(results, "metric").items():
        for criterion, pair in _by(own, "by").items():
            area, *gain = pair
            chance = "" if not gain or gain[0].p_value is None else f"{gain[0].p_value:.2g}"
            gained = [number(gain[0].value), _interval(gain[0]), chance] if gain else [""] * 3
            rows.append((metric, criterion, number(area.value), _interval(area), *gained))
    head = ("metric", "by", "area", "interval", "− random", "interval", "p")
    return Pivot("area under the curve, and how far it is from that of random rejection", head, tuple(rows), 2, 2)


def _thresholds(results: Sequence[Result]) -> Pivot:
    """Lay out the value of each criterion up to which rows are kept."""
    metrics = _by(results, "metric")
    rows = []
    for criterion, own in _by(results, "by").items():
        subset = own[0].slice
        told = (number(subset["threshold"]), f"{subset['rows']:,}", subset["rejected"])
        rows.append((criterion, *told, *(number(result.value) for result in own)))
    return Pivot("thresholds", ("by", "keep up to", "kept", "rejected", *metrics), tuple(rows), 1, 1)


def _by(results: Iterable[Result], name: str) -> dict[str, list[Result]]:
    """Gather results by their metric, or by what a subset says."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.metric if name == "metric" else str(result.slice[name]), []).append(result)
    return found


def _steps(results: Sequence[Result]) -> list[Result]:
    """List what the curves are made of."""
    return [result for result in results if result.slice["rejected"] != AREA and "threshold" not in result.slice]


def _is_less(result: Result, chance: Result) -> bool:
    """Tell whether a smaller value is better, and one is below those of random rejection."""
    better = METRICS[result.metric].orientation == "smaller"
    return better and result.value is not None and chance.low is not None and result.value < chance.low


def _interval(result: Result) -> str:
    return ABSENT if result.low is None else f"[{short(result.low)}, {short(result.high)}]"


def _called(result: Result) -> str:
    """Name a metric with its unit."""
    return result.metric if result.unit == "1" else f"{result.metric} [{result.unit}]"
