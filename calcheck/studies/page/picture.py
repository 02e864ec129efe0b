"""Pictures of a page: intervals of rows, maps and groups with the limits of right models."""

from collections.abc import Iterator

import numpy as np

from calcheck.charts.picture import PERFECT, Axis, Bars, Cells, Intervals, Line, Mark, Panel, Picture, Points, Rule
from calcheck.core.text import percent
from calcheck.regions import maps
from calcheck.regions.maps import BINS, ColumnGroups, GroupSums, RegionMap, histogram_limits, quantities
from calcheck.render.metric_pictures import CLEAR, outline
from calcheck.statistics.curves import RowIntervals
from calcheck.typing import Values

OBSERVED_TARGETS = "target"
HALF = 0.5
Y = Axis("y")


def predictions_picture(shown: RowIntervals) -> Picture:
    """Return the picture of intervals by prediction, by target, along a column, and of errors by width.

    Panels that compare with targets are absent if there are none.
    """
    count, share = len(shown.center), percent(shown.level)
    chosen = f"all {count:,} rows" if count == shown.total else f"{count:,} of {shown.total:,} rows"
    expected = (
        f"A right model has about {share} of the targets inside their intervals at all predictions and widths, but"
        " fewer of the smallest and of the largest targets."
    )
    title = f"{share} intervals of {chosen}"
    return Picture(tuple(_panels(shown, share)), title, expected, f"{title}. {expected}")


def _panels(shown: RowIntervals, share: str) -> Iterator[Panel]:
    name = f"prediction, {share} interval"
    yield _intervals(shown, shown.center, Axis("prediction [y]"), name, "by prediction")
    if shown.along is not None:
        yield _intervals(shown, shown.along, Axis(shown.along_name), name, f"along {shown.along_name}")
    if shown.y is not None:
        yield _intervals(shown, shown.ranks, Axis("rank of the target"), name, "in order of the targets")
        width, limits = shown.half_width, Axis(f"half the width of the {share} interval [y]")
        ends = [0.0, float(width.max())]
        lines = (Line(ends, [0.0, sign * ends[1]], dashed=True) for sign in (1, -1))
        points = Points(width.tolist(), shown.errors.tolist(), OBSERVED_TARGETS)
        yield Panel((*lines, points), limits, Axis("target − prediction [y]"), "errors by width")


def _intervals(shown: RowIntervals, x: Values, axis: Axis, name: str, title: str) -> Panel:
    """Return a panel of intervals at positions, with the targets if there are any."""
    predicted = Points(x.tolist(), shown.center.tolist(), name, shown.low.tolist(), shown.high.tolist())
    observed = () if shown.y is None else (Points(x.tolist(), shown.y.tolist(), OBSERVED_TARGETS),)
    return Panel((predicted, *observed), axis, Y, title)


def map_picture(found: RegionMap) -> Picture:
    """Return the map: each cell is colored by how far its errors are from those that a right model predicts."""
    expected = "1 in 20 is beyond 2" if found.independent else "standard errors are those of independent rows"
    deviation, quantity = found.sums.deviations()
    cells = _cells(found, deviation, f"{quantity}, standard errors", 0.0, (-CLEAR, CLEAR))
    return Picture(
        (Panel((cells, *_region(found)), _axis(found.x), _axis(found.y)),),
        f"Where: {found.x.name} and {found.y.name}",
        f"A right model: pale cells without a pattern; {expected}.{_told(found)}",
        f"Map of {found.x.name} and {found.y.name}. Positive cells have larger errors than predicted.",
    )


LOCAL = {
    "local_factor": ("Local factor", "times as wide", 1.0, 0.2, "Factor by which intervals would have to be wider"),
    "local_shift": ("Local bias", "predicted std", 0.0, 0.2, "Distance of targets above predictions"),
}  # By name of a local error: title, unit, value of a right model, least distance of the darkest color, meaning


def local_pictures(found: RegionMap) -> Iterator[Picture]:
    """Yield the maps of local errors, averaged over the rows of each cell."""
    for name, values in found.local.items():
        title, unit, right, least, meaning = LOCAL[name]
        most = max(least, float(np.abs(values - right).max()))
        cells = _cells(found, values, unit, right, (max(right - most, 0.0) if right else -most, right + most))
        panel = Panel((cells, *_region(found)), _axis(found.x), _axis(found.y))
        expected = f"{meaning}, as other rows predict. A right model: {right:g}.{_told(found)}"
        yield Picture((panel,), title, expected, f"Map: {title.lower()}.")


def _cells(found: RegionMap, values: Values, label: str, middle: float, ends: tuple[float, float]) -> Cells:
    (x, across), (y, up) = (found.x.edges, found.x_bin), (found.y.edges, found.y_bin)
    edges = x[across].tolist(), x[across + 1].tolist(), y[up].tolist(), y[up + 1].tolist()
    return Cells(*edges, values.tolist(), label, middle=middle, low=ends[0], high=ends[1])


def _region(found: RegionMap) -> list[Mark]:
    """Return the outline of the worst region, or points in the cells that have more rows inside than outside."""
    x, y = found.x.edges, found.y.edges
    if found.worst is not None:
        left, right, low, high = found.worst
        return [*outline(float(x[left]), float(x[right + 1]), float(y[low]), float(y[high + 1]))]
    if found.inside is None:
        return []
    inside = found.inside > HALF
    across, up = found.x_bin[inside], found.y_bin[inside]
    return [Points(((x[across] + x[across + 1]) / 2).tolist(), ((y[up] + y[up + 1]) / 2).tolist())]


def _told(found: RegionMap) -> str:
    """Return what shows the worst region."""
    if found.inside is None:
        return ""
    return " Dashed: the worst region." if found.worst else " Points: cells with most rows in the worst region."


def _axis(axis: maps.Axis) -> Axis:
    return Axis(axis.name, log=axis.is_log, low=float(axis.edges[0]), high=float(axis.edges[-1]))


def histogram_picture(total: GroupSums, confidence: float) -> Picture | None:
    """Return the PIT histogram of one group with the limits of right models; None if there is no PIT."""
    if total.pit is None:
        return None
    edges = np.linspace(0, 1, BINS + 1).tolist()
    start, stop = edges[:-1], edges[1:]
    bars = Bars(start, stop, [0.0] * BINS, total.pit.counts[0].tolist(), "rows")
    mean = Rule(y=float(total.n[0]) / BINS)
    bands: list[Bars] = []
    if total.pit.variance is not None:
        low, high = histogram_limits(total.n, total.pit.variance, confidence)
        bands = [Bars(start, stop, low[0].tolist(), high[0].tolist(), f"{percent(confidence)} of {PERFECT}")]
    return Picture(
        (Panel((*bands, bars, mean), Axis("PIT", low=0.0, high=1.0), Axis("rows", low=0.0)),),
        "PIT of the region",
        "A right model: every bar ends in the band." if bands else "A right model: bars of equal heights, up to noise.",
        "Histogram of the PIT of the rows in the selected region.",
    )


def group_picture(groups: ColumnGroups) -> Picture:
    """Return the picture of a table about groups: their values, with the limits of right models."""
    found = quantities(groups.sums, groups.confidence)
    place = [float(number) for number in range(len(groups.names))]
    panels = []
    for each in found:
        marks: list[Mark] = []
        if each.limits is not None:
            low, high = (limit.tolist() for limit in each.limits)
            marks.append(Intervals(place, low, high, f"{percent(groups.confidence)} of {PERFECT}"))
        marks.append(Points(place, each.values.tolist(), "observed"))
        panels.append(Panel(tuple(marks), Axis(groups.column, names=groups.names), Axis(each.name)))
    title = f"Groups by {groups.column}"
    expected, text = "There are no limits of right models.", f"{title}, without limits."
    if any(each.limits is not None for each in found):
        expected, text = "A right model: the points are inside the bars.", f"{title}, with their limits."
    return Picture(tuple(panels), title, expected, text)
