"""Curves with bands that hold over all their points."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from calcheck.predictions import Predictions
from calcheck.reports import TIED, Alternative, Curve, CurveName, cannot_reject
from calcheck.statistics.binning import NUMBERS, sort_keys
from calcheck.statistics.curves import CurveBins, bins_along, bins_along_values, cells_along, curve_of, plain
from calcheck.typing import Values

ROWS_PER_CELL = 5  # Values at inputs vary smoothly, so few are averaged
WORST = 5  # Marked inputs


class Envelope(NamedTuple):
    """A global envelope."""

    low: Values  # (k,), lower limit of each statistic; NaN where no column has a value
    high: Values  # (k,), upper limit
    p_value: float  # Share of columns that are at least as extreme as the first


def extreme_rank_p_values(statistics: Values, alternatives: Sequence[Alternative] = ()) -> Values:
    """Return the share of vectors that are at least as extreme as each of N vectors (k, N), (N,), itself included.

    Columns have mid-ranks from the extreme end, twice the smaller for two sides, and are compared by their smallest
    rank, then the second smallest, and so on. The first value is a p-value of the first vector. Time O(k N log N).

    Source: Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes".
    """
    k, count = statistics.shape
    ranks = np.empty((k, count))
    for place, line in enumerate(statistics):
        alternative = alternatives[place] if alternatives else "two-sided"
        ranks[place] = _extreme_ranks(line, alternative)
    ranks.sort(axis=0)
    order = np.lexsort(ranks[::-1])
    ordered = ranks[:, order]
    last = np.append((ordered[:, 1:] != ordered[:, :-1]).any(axis=0), True)  # last of the columns with equal ranks
    reached = np.flatnonzero(last)[np.cumsum(last) - last] + 1
    p_values = np.empty(count)
    p_values[order] = reached / count
    return p_values


def global_envelope(statistics: Values, confidence: float, alternatives: Sequence[Alternative] = ()) -> Envelope:
    """Return the first band that contains whole vectors, of (k, N), with at least the given probability."""
    p_values = extreme_rank_p_values(statistics, alternatives)
    inside = statistics[:, p_values > (1 - confidence) * (1 + TIED)]
    known = np.isfinite(inside).any(axis=1)
    low, high = (np.where(known, limit, np.nan) for limit in (np.fmin.reduce(inside, 1), np.fmax.reduce(inside, 1)))
    return Envelope(low, high, float(p_values[0]))


def curve_limits(replicates: Values, confidence: float) -> tuple[Values, Values]:
    """Return the limits, next to the envelope of (b, s) curves, that contain a further whole curve, (s,) each."""
    curves = np.where(np.isfinite(replicates), replicates, np.nan)
    low, high = np.fmin.reduce(curves), np.fmax.reduce(curves)
    rounded = np.where(high - low <= TIED * np.maximum(np.abs(low), np.abs(high)), low, curves)
    level = min((1 - confidence) * (len(curves) + 1), len(curves) - 1) / len(curves)  # At least one curve is inside
    band = global_envelope(rounded.T, 1 - level)
    below, above = (np.where(outside, rounded, np.nan) for outside in (rounded < band.low, rounded > band.high))
    next_low, next_high = np.fmax.reduce(below), np.fmin.reduce(above)  # NaN where no curve is outside
    return np.where(np.isnan(next_low), band.low, next_low), np.where(np.isnan(next_high), band.high, next_high)


def _extreme_ranks(line: Values, alternative: Alternative) -> Values:
    """Return mid-ranks from the extreme end, (N,)."""
    known = ~np.isnan(line)
    line = np.where(known, line, np.median(line[known]) if known.any() else 0.0)
    ordered = np.sort(line)
    before, up_to = (np.searchsorted(ordered, line, side) for side in ("left", "right"))
    from_below = (before + up_to + 1) / 2
    from_above = len(line) + 1 - from_below
    if alternative == "two-sided":
        return np.asarray(2 * np.minimum(from_below, from_above))
    return np.asarray(from_above if alternative == "greater" else from_below)


UNCOMPARED: frozenset[CurveName] = frozenset(
    {"spread-intervals", "spread-histogram", "mean-histogram", "oracle", "worst"}
)
"""Curves that have no band: they describe the data only."""


@dataclass(eq=False)
class CurveBands:
    """The curves of a metric, and those of replicates."""

    curves: tuple[Curve, ...]  # Curves of the data
    limit: int  # Maximum number of replicates; further ones, which the open verdict of a metric needs, are ignored
    # Values that are evidence against a model; the band is where other values of whole curves are
    alternative: Alternative = "two-sided"
    _replicates: list[dict[CurveName, Values]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether there are enough replicates."""
        return len(self._replicates) >= self.limit

    def add(self, curves: tuple[Curve, ...]) -> None:
        """Add the curves of a replicate."""
        self._replicates.append({curve.name: _numbers(curve) for curve in curves if curve.name not in UNCOMPARED})

    def with_bands(self, confidence: float) -> tuple[Curve, ...]:
        """Return the curves of the data with their bands; without, if there are no replicates, or of other bins."""
        return tuple(self._with_band(curve, confidence) for curve in self.curves)

    def _with_band(self, curve: Curve, confidence: float) -> Curve:
        if curve.name in UNCOMPARED or not self._replicates:
            return curve
        found = [each[curve.name] for each in self._replicates]
        if any(len(each) != len(curve.y) for each in found):
            return curve
        return with_band(curve, np.stack(found), confidence, self.alternative)


def with_band(curve: Curve, replicates: Values, confidence: float, alternative: Alternative = "two-sided") -> Curve:
    """Return a curve with the band of its replicates, (R, k); unchanged if they are equal, or too few for a band."""
    statistics = np.vstack([_numbers(curve), replicates]).T
    equal = (statistics == statistics[:, :1]) | np.isnan(statistics)
    if equal.all() or cannot_reject(len(replicates), "greater", confidence):
        return curve
    band = global_envelope(statistics, confidence, [alternative] * len(statistics))
    known = np.isfinite(replicates)
    sums = np.where(known, replicates, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        expected = sums / known.sum(axis=0)
    return replace(
        curve,
        low=plain(band.low),
        high=plain(band.high),
        expected=curve.expected or plain(expected),
        p_value=band.p_value,
        replicates=len(replicates),
    )


def _numbers(curve: Curve) -> Values:
    """Return the values of a curve, (k,); NaN where undefined."""
    return np.array(curve.y, dtype=np.float64)


def curves_at_inputs(shown: Predictions, values: Values, at_inputs: Values | None, by: Sequence[str]) -> CurveBands:
    """Return means in bins of inputs, those of replicates (1 + R, m), and the inputs with the largest values (m,)."""
    bins, places = _bins_by_columns(shown, by) if by else _bins_of_inputs(shown)
    own, *replicates = [values] if at_inputs is None else at_inputs
    worst = _worst(places, values, bins.position)
    bands = CurveBands((bins.curve(bins.means(own)), worst), len(replicates), "greater")
    for each in replicates:
        bands.add((bins.curve(bins.means(each)),))
    return bands


def _bins_by_columns(shown: Predictions, by: Sequence[str]) -> tuple[CurveBins, Values | None]:
    """Return bins along columns, and the positions of the inputs, (m, 1 or 2); None for categories and dates."""
    keys = [sort_keys(shown, name) for name in by]
    numeric = all(key.dtype.kind in NUMBERS for key in keys)
    places = np.stack(keys, axis=1).astype(np.float64) if numeric else None
    if len(by) == 1:
        return bins_along_values(keys[0], by[0], ROWS_PER_CELL), places
    if places is None:
        return bins_along(shown, by), places
    return cells_along(places[:, 0], places[:, 1], tuple(by), ROWS_PER_CELL), places


def _bins_of_inputs(shown: Predictions) -> tuple[CurveBins, Values]:
    """Return bins of the inputs, or of their first two principal components, and their positions, (m, 1 or 2)."""
    if shown.width > 2:  # noqa: PLR2004 - a map has two axes
        from calcheck.linalg.gram import principal_components

        places, shares = principal_components(shown.lazy_inputs(), 2)
        names = tuple(f"principal component {number}, {share:.0%}" for number, share in enumerate(shares, 1))
        return cells_along(places[:, 0], places[:, 1], names, ROWS_PER_CELL), places
    places = shown.inputs().astype(np.float64)
    if shown.width == 1:
        return bins_along_values(places[:, 0], "", ROWS_PER_CELL), places
    return cells_along(places[:, 0], places[:, 1], ("", ""), ROWS_PER_CELL), places


def _worst(places: Values | None, values: Values, position: Curve) -> Curve:
    """Return the inputs with the largest values as a curve."""
    order = np.argsort(-values, kind="stable")[: 0 if places is None else WORST]
    x = np.empty((0, 1)) if places is None else places[order]
    found = curve_of("worst", x[:, 0], values[order], x_name=position.x_name)
    return found if x.shape[1] == 1 else replace(found, x2=tuple(x[:, 1].tolist()), x2_name=position.x2_name)
