"""Pictures of a page: intervals of rows, maps and groups with the limits of right models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calcheck.causes.candidates import LOGARITHMS, READINGS
from calcheck.causes.fits import Scored
from calcheck.charts.picture import (
    BEYOND,
    NEW_ROWS,
    PERFECT,
    Axis,
    Bars,
    Cells,
    Hatching,
    Intervals,
    Line,
    Mark,
    Panel,
    Picture,
    Points,
    Rule,
)
from calcheck.core import sc
from calcheck.core.text import percent
from calcheck.distributions import Samples
from calcheck.predictions import Predictions
from calcheck.regions import maps
from calcheck.regions.maps import BINS, ColumnGroups, GroupSums, RegionMap, histogram_limits, quantities
from calcheck.render.pictures import CLEAR, outline
from calcheck.reports.conclusion import Cause
from calcheck.statistics.curves import RowIntervals
from calcheck.typing import Mask, Values

OBSERVED_TARGETS = "target"
MOST_POINTS = 500  # New rows on a map
HATCHES = 30  # Parts of each axis of a map that are hatched or not
INSIDE = 0.95  # Share of cells whose colors differ by their values; the others have the darkest ones
OUTER = 0.005  # Share of new rows on each side that a map need not reach
DISTANCE_BINS = 16
HALF = 0.5
STD_BINS, MEDIAN = 10, 0.6745  # Points of sizes of errors; median of the absolute value of normal numbers
MOST_SHIFT, SIZE_BINS = 5, 30  # Rows at least; bins of the sizes of errors
NEAR_LINE = "Points near the line of the cause speak for it."
Y = Axis("y")


def predictions_picture(shown: RowIntervals) -> Picture:
    """Return the picture of intervals by prediction, by target, along a column, and of errors by width."""
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


def cause_picture(cause: Cause, rows: Predictions) -> Picture | None:
    """Return the picture that shows a cause in the rows; None for causes without one."""
    draw = next((draw for names, draw in CAUSE_PICTURES.items() if cause.cause.startswith(names)), None)
    with np.errstate(all="ignore"):
        found = None if draw is None or len(rows) < STD_BINS else draw(cause, rows)
    if found is None:
        return None
    title = f"Plausible cause: {cause.text}"
    panel, expected = found
    return Picture((panel,), title, expected, f"{title}. {expected}")


def _sizes(cause: Cause, rows: Predictions) -> tuple[Panel, str] | None:
    """Return the sizes of errors by predicted std, beside those stated and those of a cause."""
    scored = Scored.from_rows(rows)
    std, error = scored.spread, scored.y - scored.center
    parts = np.array_split(np.argsort(std), STD_BINS)
    middle = np.array([np.exp(np.mean(np.log(std[part]))) for part in parts])
    if (true := _true_std(cause, middle)) is None:
        return None
    sizes = [float(np.median(np.abs(error[part]))) / MEDIAN for part in parts]
    marks = (
        Line(middle.tolist(), middle.tolist(), "as stated", dashed=True),
        Line(middle.tolist(), true.tolist(), f"if {cause.text}"),
        Points(middle.tolist(), sizes, "observed: median error / 0.6745"),
    )
    axes = Axis("predicted std [y]", log=True), Axis("size of errors [y]", log=True)
    return Panel(marks, *axes), NEAR_LINE


def _true_std(cause: Cause, std: Values) -> Values | None:
    """Return the true standard deviations after a cause, given those stated; None if they are not known."""
    if (read := READINGS.get(cause.cause)) is not None:
        return read.std(std)
    if cause.number is None:
        return None
    return np.hypot(std, cause.number) if cause.cause == "noise-left-out" else std * cause.number


def _targets(cause: Cause, rows: Predictions) -> tuple[Panel, str]:
    """Return targets by predictions, beside equal ones and, for logarithms, those of the cause."""
    scored = Scored.from_rows(rows)
    order = np.argsort(scored.center)[np.unique(np.linspace(0, len(rows) - 1, MOST_POINTS).round().astype(np.intp))]
    x, y = scored.center[order], scored.y[order]
    log, exp, _ = LOGARITHMS.get(cause.cause.partition("-")[0], (None, None, ""))
    change = log if cause.cause.endswith("target") else exp
    line = Line(x.tolist(), x.tolist(), "as stated", dashed=True)
    line = line if change is None else Line(x.tolist(), change(x).tolist(), f"if {cause.text}")
    expected = "Targets of a right model are near the line." if change is None else NEAR_LINE
    return Panel((Points(x.tolist(), y.tolist(), OBSERVED_TARGETS), line), Axis("prediction [y]"), Y), expected


def _shifts(cause: Cause, rows: Predictions) -> tuple[Panel, str]:
    """Return the correlation of targets with the predictions of rows before and after."""
    scored = Scored.from_rows(rows)
    most = max(MOST_SHIFT, abs(int(cause.number or 0)))
    shifts = range(-most, most + 1)
    found = [float(np.corrcoef(np.roll(scored.y, -each), scored.center)[0, 1]) for each in shifts]
    axis = Axis("rows by which targets are below predictions")
    marks = (Rule(x=0.0), Line([float(each) for each in shifts], found, "correlation with the prediction"))
    return Panel(marks, axis, Axis("correlation")), "A right model has its peak at 0."


def _small_errors(cause: Cause, rows: Predictions) -> tuple[Panel, str]:  # noqa: ARG001 - as for other causes
    """Return how many errors have each size, in predicted standard deviations."""
    size = np.log10(np.maximum(np.abs(Scored.from_rows(rows).evaluate()[0]), 1e-4))
    edges = np.linspace(-4, max(1.0, float(size.max())), SIZE_BINS + 1)
    share, start, stop = np.histogram(size, edges)[0] / len(size), 10 ** edges[:-1], 10 ** edges[1:]
    right = (2 * np.diff(sc.ndtr(10**edges))).tolist()
    bars = Bars(start.tolist(), stop.tolist(), [0.0] * len(share), share.tolist(), "observed")
    line = Line(np.sqrt(start * stop).tolist(), right, "right model", dashed=True)
    axis = Axis("size of the error [predicted std]", log=True)
    return Panel((bars, line), axis, Axis("share of rows")), "Rows far to the left of the line were known to the model."


def _distances(cause: Cause, rows: Predictions) -> tuple[Panel, str] | None:  # noqa: ARG001 - as for other causes
    """Return the distance of each member of an ensemble from the mean of the others."""
    predictive = rows.distributions()
    if not isinstance(predictive, Samples):
        return None
    draws, m = predictive.draws, predictive.n_draws
    away = np.sqrt(np.mean((draws - (draws.sum(axis=1, keepdims=True) - draws) / (m - 1)) ** 2, axis=0))
    points = Points(list(range(1, m + 1)), away.tolist(), "root mean square over the rows")
    return Panel((points,), Axis("member"), Axis("distance from the others [y]")), "Members of a right model are alike."


CAUSE_PICTURES: dict[tuple[str, ...], Callable[[Cause, Predictions], tuple[Panel, str] | None]] = {
    (*READINGS, "half-width", "std-in", "noise", "spread-of"): _sizes,
    (*LOGARITHMS, "standardized", "other-unit", "clipped", "shuffled"): _targets,
    ("shifted",): _shifts,
    ("training",): _small_errors,
    ("stuck",): _distances,
}  # What shows causes in the rows, by the beginnings of their names


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
        most = _farthest(values, right, least)
        cells = _cells(found, values, unit, right, (max(right - most, 0.0) if right else -most, right + most))
        panel = Panel((cells, *_region(found)), _axis(found.x), _axis(found.y))
        expected = f"{meaning}, as other rows predict. A right model: {right:g}.{_told(found)}"
        yield Picture((panel,), title, expected, f"Map: {title.lower()}.")


def _farthest(values: Values, right: float, least: float) -> float:
    """Return the distance from the value of a right model at which colors end; few cells are farther away."""
    return max(least, float(np.quantile(np.abs(values - right), INSIDE, method="lower")))


@dataclass(frozen=True, eq=False)
class NewRowsShown:
    """What a page shows of m new rows."""

    beyond: Mask  # (m,), whether they lie beyond the tested inputs
    distances: Values  # (m,), from the tested inputs
    tested: Values | None = None  # Distances of tested rows from the others
    places: Values | None = None  # (m, 2), their places on the map; None if these are not known


def new_inputs_pictures(shown: NewRowsShown, found: RegionMap | None) -> Iterator[Picture]:
    """Yield the map of local factors with the new rows over it, and how far these are from the tested inputs."""
    if found is not None and shown.places is not None and "local_factor" in found.local:
        yield _new_inputs_map(shown, shown.places, found)
    if shown.tested is not None:
        yield distances_picture(shown, shown.tested)


def _new_inputs_map(shown: NewRowsShown, places: Values, found: RegionMap) -> Picture:
    """Return the map of local factors with some of the new rows; those beyond the tested inputs are marked."""
    factors = found.local["local_factor"]
    most = _farthest(factors, 1.0, LOCAL["local_factor"][3])
    cells = _cells(found, factors, "times as wide", 1.0, (max(1 - most, 0.0), 1 + most))
    chosen = np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_POINTS)).astype(np.intp))
    ends = np.quantile(places[chosen], (OUTER, 1 - OUTER), axis=0)
    axes = [_reaching(_axis(axis), *ends[:, column]) for column, axis in enumerate((found.x, found.y))]
    points = [np.clip(places[chosen, column], axis.low, axis.high) for column, axis in enumerate(axes)]
    beyond = shown.beyond[chosen]
    hatched = _hatching(axes, places, shown.beyond)
    marks: list[Mark] = [hatched] if hatched.x_start else []
    marks += [
        Points(points[0][part].tolist(), points[1][part].tolist(), name)
        for part, name in ((~beyond, NEW_ROWS), (beyond, BEYOND))
        if part.any()
    ]
    told = f"{len(chosen):,} of {len(places):,} new rows" if len(chosen) < len(places) else "all new rows"
    return Picture(
        (Panel((cells, *marks), axes[0], axes[1]),),
        "Local factor, and the new rows",
        f"Cells: tested rows. Points: {told}, those outside at the edge."
        + " Hatched: most new rows lie beyond." * bool(hatched.x_start),
        "Map: local factor of the tested rows, with the new rows.",
    )


def _hatching(axes: Sequence[Axis], places: Values, beyond: Mask) -> Hatching:
    """Return the parts of a map in which most new rows, at places (m, 2), lie beyond the tested inputs, (m,)."""
    edges, bins = list[Values](), list[Values]()
    for axis, values in zip(axes, places.T, strict=True):
        low, high = axis.low or 0.0, axis.high or 0.0
        edges.append((np.geomspace if axis.log else np.linspace)(low, high, HATCHES + 1))
        bins.append(np.clip(np.searchsorted(edges[-1], values, side="right") - 1, 0, HATCHES - 1))
    taken, part = np.unique(bins[0] * HATCHES + bins[1], return_inverse=True)
    across, up = np.divmod(taken[np.bincount(part, beyond) > HALF * np.bincount(part)], HATCHES)
    (left, right), (low, high) = (
        (edges[k][at].tolist(), edges[k][at + 1].tolist()) for k, at in enumerate((across, up))
    )
    return Hatching(left, right, low, high, BEYOND)


def _reaching(axis: Axis, low: float, high: float) -> Axis:
    """Return an axis that reaches from the smallest to the largest of its ends and two others."""
    low, high = min(low, axis.low or 0.0), max(high, axis.high or 0.0)
    return replace(axis, low=low, high=high, log=axis.log and low > 0)


def distances_picture(shown: NewRowsShown, tested: Values) -> Picture:
    """Return the shares of tested and of new rows by their distance from the tested inputs, on a logarithmic axis."""
    both = np.concatenate([tested, shown.distances])
    least = both[both > 0].min() if (both > 0).any() else 1.0
    edges = np.geomspace(least, max(both.max(), least * 2), DISTANCE_BINS + 1)
    middle = np.sqrt(edges[1:] * edges[:-1]).tolist()
    lines = []
    for values, name in (
        (tested, "tested rows"),
        (shown.distances, NEW_ROWS),
        (shown.distances[shown.beyond], BEYOND),
    ):
        counts = np.histogram(np.maximum(values, least), edges)[0]
        total = len(tested) if name == "tested rows" else len(shown.distances)
        lines += [Line(middle, (counts / total).tolist(), name)] if len(values) else []
    return Picture(
        (
            Panel(
                tuple(lines), Axis("distance from the nearest tested inputs", log=True), Axis("share of rows", low=0.0)
            ),
        ),
        "Distances from the tested inputs",
        "New inputs like the tested ones: equal lines.",
        "Shares of tested and of new rows by their distance from the tested inputs.",
    )


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
    bars = Bars(start, stop, [0.0] * BINS, total.pit[0].tolist(), "rows")
    mean = Rule(y=float(total.n[0]) / BINS)
    bands: list[Bars] = []
    if total.pit_variance is not None:
        low, high = histogram_limits(total.n, total.pit_variance, confidence)
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
