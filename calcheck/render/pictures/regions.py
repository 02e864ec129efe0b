"""Pictures of a map of two variables: the cells, and the PIT histogram of a region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.charts.picture import PERFECT, Axis, Bars, Cells, Panel, Picture, Rule
from calcheck.region_maps.sums import BINS, histogram_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.region_maps import grid
    from calcheck.region_maps.grid import RegionMap
    from calcheck.region_maps.sums import GroupSums

    Values = NDArray[np.float64]

CLEAR = 4.0  # Deviation in standard errors that has the darkest color


def map_picture(found: RegionMap) -> Picture:
    """Return the map: each cell is colored by how far its errors are from those that a right model predicts."""
    x, y = found.x, found.y
    expected = "1 in 20 is beyond 2" if found.independent else "standard errors are those of independent rows"
    deviation, quantity = deviations(found.sums)
    cells = Cells(
        x.edges[found.x_bin].tolist(),
        x.edges[found.x_bin + 1].tolist(),
        y.edges[found.y_bin].tolist(),
        y.edges[found.y_bin + 1].tolist(),
        deviation.tolist(),
        f"{quantity}, standard errors",
        middle=0.0,
        low=-CLEAR,
        high=CLEAR,
    )
    return Picture(
        (Panel((cells,), _axis(x), _axis(y)),),
        f"Where: {x.name} and {y.name}",
        f"A right model: pale cells without a pattern; {expected}.",
        f"Map of {x.name} and {y.name}. Positive cells have larger errors than predicted.",
    )


def _axis(axis: grid.Axis) -> Axis:
    return Axis(axis.name, log=axis.is_log, low=float(axis.edges[0]), high=float(axis.edges[-1]))


def deviations(sums: GroupSums) -> tuple[Values, str]:
    """Return how far errors are above those of a right model, in standard errors, (g,), and what they are.

    Errors are squared z-scores, by their cube roots, which are nearly normal (Wilson, Hilferty 1931); of intervals,
    the shares of targets outside. Where the expected errors are unknown, the deviations are NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # Nothing is expected to vary
        return _deviations(sums)


def _deviations(sums: GroupSums) -> tuple[Values, str]:
    if sums.squares is not None:
        total, expected, variance = sums.squares.total, sums.squares.expected, sums.squares.variance
        if expected is None or variance is None:
            return np.full(len(sums.n), np.nan), "squared errors"
        spread = variance / (9 * expected**2)
        return ((total / expected) ** (1 / 3) - 1 + spread) / np.sqrt(spread), "squared errors"
    if sums.coverage is None or sums.coverage.expected is None:
        return np.full(len(sums.n), np.nan), "targets outside"
    expected = sums.coverage.expected
    return (expected - sums.coverage.covered) / np.sqrt(expected * (1 - expected / sums.n)), "targets outside"


def histogram_picture(total: GroupSums, confidence: float) -> Picture | None:
    """Return the PIT histogram of one group with the limits of right models; None if there is no PIT."""
    if total.pit is None:
        return None
    edges = np.linspace(0, 1, BINS + 1)
    start, stop = edges[:-1].tolist(), edges[1:].tolist()
    bars = Bars(start, stop, [0.0] * BINS, total.pit.counts[0].tolist(), "rows")
    mean = Rule(y=float(total.n[0]) / BINS)
    bands: list[Bars] = []
    if total.pit.variance is not None:
        low, high = histogram_limits(total.n, total.pit.variance, confidence)
        bands = [Bars(start, stop, low[0].tolist(), high[0].tolist(), f"{100 * confidence:.4g} % of {PERFECT}")]
    return Picture(
        (Panel((*bands, bars, mean), Axis("PIT", low=0.0, high=1.0), Axis("rows", low=0.0)),),
        "PIT of the region",
        "A right model: every bar ends in the band." if bands else "A right model: bars of equal heights, up to noise.",
        "Histogram of the PIT of the rows in the selected region.",
    )
