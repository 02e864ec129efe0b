"""Values of the CDF at the targets (PIT): their distribution, components, and distances from uniformity."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.distributions.quantiles import Intervals
from calcheck.distributions.recorded_quantiles import RecordedQuantiles, has_both_limits
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.reports.conclusion import Direction
from calcheck.statistics.groups import CROWDED, PART, Groups, MeanTerm, TieGroups, digitize
from calcheck.statistics.zscores import central_interval, targets
from calcheck.typing import Indices, Mask, Values

Slope = Values | float
TIED = 1e-9  # Maximum distance of a PIT from a stated level to which it is equal up to rounding
MANY = 1 << 14  # Minimum rows for which adding by level is faster than a product with all shares
FEW = 16  # Minimum rows per distinct jump for which grouping equal jumps is faster
NARROW = 2.0**-20  # Narrower jumps are treated as points: their large slopes would cause cancellation in sums
COMPONENTS = 4  # Bias, dispersion, skewness and tails
NODES = COMPONENTS // 2 + 1  # Of a Gauss-Legendre quadrature that is exact for these polynomials
SHARE = 0.8  # Minimum size of a component, relative to the largest, to precede those of higher degree
NEAREST = 2.0**-53  # Distance from 0 and 1 of a PIT that rounds to them: there the weight of a step is infinite


@cached
def pit(rows: Predictions) -> tuple[Values, Values]:
    """Return the left limits of F_i at y_i, and F_i(y_i), (n,) each, in [0, 1]; one array if no F_i has jumps."""
    return rows.distributions().cdf_limits(targets(rows))


def randomized_pit(rows: Predictions, uniform: Values) -> Values:
    """Return a PIT that is uniform for a right model, (n,): a random number between the limits where F_i jumps.

    For quantiles, it lies between the stated levels on both sides of the target, and half of the gaps beside a quantile
    belong to targets that are equal to it.
    """
    left, right = stated_pit(rows)
    return np.asarray(left + uniform * (right - left))


def stated_pit(rows: Predictions) -> tuple[Values, Values]:
    """Return limits between which the PIT of a right model is uniform, (n,) each; see :func:`randomized_pit`."""
    left, right = pit(rows)
    levels = rows.distributions().quantile_levels
    return (left, right) if levels is None else _stated_limits(left, right, levels)


def _stated_limits(left: Values, right: Values, levels: Values) -> tuple[Values, Values]:
    """Return the stated levels around the limits of a PIT; half-way to the next ones where they are equal to levels."""
    edges = np.concatenate([[0.0], levels, [1.0]])
    middles = np.concatenate([[0.0], (edges[1:] + edges[:-1]) / 2, [1.0]])  # of the gap before each edge
    low, high = np.searchsorted(edges, left + TIED, "right") - 1, np.searchsorted(edges, right - TIED)
    is_low, is_high = (np.abs(edges[at] - limit) <= TIED for at, limit in ((low, left), (high, right)))
    tied = is_low & is_high
    return np.where(tied, middles[low], edges[low]), np.where(tied, middles[high + 1], edges[high])


def normal_scores(rows: Predictions) -> Values:
    """Return the normal quantile at the PIT of each row of continuous distributions, (n,)."""
    return np.asarray(sc.ndtri(np.clip(pit(rows)[1], NEAREST, 1 - NEAREST)))


class StatedScores(NamedTuple):
    """Normal scores between the levels beside targets, over their mean square for a right model."""

    values: Values  # (n,)
    largest: float  # The largest score that is possible
    unit: Values | None = None  # (n,), mean square of the scores that clips leave, relative to that of the others


def stated_normal_scores(rows: Predictions) -> StatedScores:
    """Return the mean normal score between the levels beside each target; the bias is its mean over that of the unit.

    Limits that are clipped do not count, as no target can be beyond them; of intervals, the other one does not either.
    """
    known = rows.distributions()
    levels, left, right = (
        _between_limits(rows) if known.quantile_levels is None else (known.quantile_levels, *pit(rows))
    )
    left, right = _stated_limits(left, right, levels)
    scores, mean_square = _scores_between(levels)
    clipped, unit = None, None
    if isinstance(known, Intervals) and known.is_clipped is not None:
        outer = len(known.levels) - _leading(~known.is_clipped[:, np.argsort(known.levels)])
        clipped = outer, outer
    elif isinstance(known, RecordedQuantiles) and known.has_limits:
        clipped = known.at_low.sum(axis=1), known.at_high.sum(axis=1)
    if clipped is not None:
        left, right, squares = _without_clipped(left, right, levels, *clipped)
        unit = squares / mean_square
    return StatedScores(_mean_scores(left, right) / mean_square, float(np.abs(scores).max()) / mean_square, unit)


def _leading(is_so: Mask) -> Indices:
    """Return how many of the first columns are true in each row, (n,)."""
    return np.asarray(np.sum(np.cumprod(is_so, axis=1), axis=1))


def _scores_between(levels: Values) -> tuple[Values, float]:
    """Return the mean normal scores between levels, (q + 1,), and their mean square."""
    edges = np.concatenate([[0.0], levels, [1.0]])
    scores = _mean_scores(edges[:-1], edges[1:])
    return scores, float(np.sum(scores**2 * np.diff(edges)))


def _without_clipped(
    left: Values, right: Values, levels: Values, below: Indices, above: Indices
) -> tuple[Values, Values, Values]:
    """Return limits of the PIT without the first and last levels of each row, and the mean squares of scores, (n,)."""
    most = len(levels) - 1
    is_none = below + above > most
    low, high = (np.where(is_none, 1.0, levels[np.clip(at, 0, most)]) for at in (below, most - above))
    is_below, is_above = right <= low, left >= high
    pair = below * len(levels) + np.where(is_none, 0, above)
    squares = np.zeros(len(levels) ** 2 + len(levels))
    for each in np.flatnonzero(np.bincount(pair[~is_none], minlength=1)).tolist():
        first, last = divmod(each, len(levels))
        squares[each] = _scores_between(levels[first : len(levels) - last])[1]
    squares = np.where(is_none, 0.0, squares[pair])
    left = np.where(is_below, 0.0, np.where(is_above, high, left))
    return left, np.where(is_below, low, np.where(is_above, 1.0, right)), squares


def _between_limits(rows: Predictions) -> tuple[Values, Values, Values]:
    """Return the levels of limits of intervals as quantiles, (q,), and limits of the PIT that are right up to these."""
    predictive, y = rows.distributions(), targets(rows)[:, None]
    if not isinstance(predictive, Intervals) or not has_both_limits(predictive):
        raise DataError("a bias is seen by the targets below and above intervals, and some have one limit only")
    stated = np.sort(predictive.levels)
    limits = np.column_stack([end for level in stated.tolist() for end in central_interval(predictive, level)])
    levels = np.concatenate([(1 - stated[::-1]) / 2, (1 + stated) / 2])
    edges = np.concatenate([[0.0], levels, [1.0]])
    below, up_to = np.sum(limits < y, axis=1), np.sum(limits <= y, axis=1)
    between = (edges[below] + edges[below + 1]) / 2
    return levels, *(np.where(up_to > below, edges[at], between) for at in (below + 1, up_to))


def _mean_scores(left: Values, right: Values) -> Values:
    """Return the mean of the normal quantile function between two levels each."""
    density = [np.exp(-(sc.ndtri(each) ** 2) / 2) / np.sqrt(2 * np.pi) for each in (left, right)]
    return np.asarray((density[0] - density[1]) / (right - left))


def levels_of(count: int) -> Values:
    """Return the levels j / (count + 1), (count,)."""
    return np.arange(1, count + 1) / (count + 1)


def share_below(left: Values, right: Values, levels: Values) -> Groups:
    """Return groups whose means are the shares of PIT values up to each level, (q,).

    If a distribution jumps at its target, the row counts by the part of the jump below a level (Czado, Gneiting, Held
    2009).
    """
    cells = len(levels) + 1
    if left is right:
        return Groups(_cell(right, levels), cells, cumulative=True)
    jumps = np.flatnonzero(left < right)
    label, low, high = _different(left[jumps], right[jumps])
    if label is None and CROWDED * (cells + len(low)) > len(left) >= MANY:
        return _Jumps(left, right, levels)
    shares = (levels - low[:, None]) / (high - low)[:, None]  # (c, q)
    np.clip(shares, 0, 1, out=shares)
    if len(jumps) == len(left):
        return Groups(label, len(low), shares)
    all_labels = _cell(right, levels).astype(np.intp)
    all_labels[jumps] = cells + (np.arange(len(jumps)) if label is None else label)
    steps = np.arange(cells)[:, None] <= np.arange(len(levels))
    return Groups(all_labels, cells + len(low), np.concatenate([steps, shares]))


class _Jumps(Groups):
    """Groups of :func:`share_below` with each row as a class; sums take time O(n + q), from level to level."""

    def __init__(self, left: Values, right: Values, levels: Values) -> None:
        first, last = _cell(left, levels), _cell(right, levels)
        edges, is_across = np.concatenate([[0.0], levels, [1.0]]), first < last
        slopes = np.divide(1.0, right - left, out=np.zeros(len(left)), where=is_across)
        start, stop = (edges[first + 1] - left) * slopes, (right - edges[last]) * slopes + ~is_across
        slopes[last - first < 2] = 0  # noqa: PLR2004 - levels, so that slopes are not large and sums do not cancel
        vars(self).update(limits=(left, right, levels), label=None, classes=len(left))
        vars(self).update(at_first=(first, start, slopes), at_last=(last, stop, slopes))

    limits: tuple[Values, Values, Values]
    at_first: tuple[NDArray[np.unsignedinteger[Any]], Values, Values]  # First level above a start, share, and slope
    at_last: tuple[NDArray[np.unsignedinteger[Any]], Values, Values]

    @cached_property
    def shares(self) -> Values:
        left, right, levels = self.limits
        return np.stack([share_of_row_below(left, right, level) for level in levels], axis=1)

    def of_classes(self, sums: Values) -> Values:
        levels = self.limits[2]
        found = np.empty((*sums.shape[:-1], len(levels)))
        for line in np.ndindex(sums.shape[:-1]):
            added, slopes = np.zeros(len(levels) + 1), np.zeros((2, len(levels) + 1))
            for part in (slice(start, start + PART) for start in range(0, self.classes, PART)):
                weights = sums[line][part]
                for slope, (cell, share, own) in zip(slopes, (self.at_first, self.at_last), strict=True):
                    places = cell[part].astype(np.intp)
                    added += np.bincount(places, weights * share[part], len(added))
                    slope += np.bincount(places, weights * own[part], len(added))
            begun, ended = np.cumsum(slopes, axis=1)
            added[1:-1] += (begun[:-2] - ended[1:-1]) * np.diff(levels)
            found[line] = np.cumsum(added)[:-1]
        return found


def mean_share_below(left: Values, right: Values, levels: Values) -> Values:
    """Return the means of :func:`share_below`, (q,), in time O(n + q)."""
    if left is right:
        return share_below(left, right, levels).sums(None) / len(left)
    parts = (slice(start, start + PART) for start in range(0, len(left), PART))
    return np.asarray(sum(_Jumps(left[part], right[part], levels).sums(None) for part in parts) / len(left))


def share_of_row_below(left: Values, right: Values, level: float) -> Values:
    """Return the share of the PIT of each row up to a level, (n,), in [0, 1]: the rows of :func:`share_below`."""
    jump = right - left
    share = (right <= level).astype(np.float64)
    np.divide(level - left, jump, out=share, where=jump > 0)
    return np.clip(share, 0, 1, out=share)


def shares_at_quantiles(rows: Predictions, levels: Values) -> Groups:
    """Return groups whose means are the shares of targets below, and then at or below, the stated quantiles, (2 q,).

    A right model with the quantile q at level p states P(Y < q) <= p <= P(Y <= q), and no more. If targets are clipped,
    rows whose quantile is a limit have the share p, as the limit is not the quantile. These rows state P(Y < limit) <=
    p for an upper limit, and P(Y <= limit) >= p for a lower one: the last groups, (2 q,), are their differences from p.
    """
    predictive, count = rows.distributions(), len(levels)
    if isinstance(predictive, RecordedQuantiles):
        return Groups(None, len(rows), np.array(predictive.shares_below(targets(rows), levels)).T)
    left, right = pit(rows)
    places = [digitize(left, levels), digitize(right, levels, equal=True)]
    size = [count + 1] * len(places)
    found, label = np.unique(np.ravel_multi_index(places, size), return_inverse=True)
    up_to, below = (place[:, None] <= np.arange(count) for place in np.unravel_index(found, size))
    return Groups(label, len(found), np.concatenate([below, up_to], axis=1).astype(np.float64))


def _cell(values: Values, levels: Values) -> NDArray[np.unsignedinteger[Any]]:
    """Return the number of levels strictly below each value, (n,)."""
    count = len(levels)
    if not np.array_equal(levels, levels_of(count)):
        return digitize(values, levels)
    edges = np.concatenate([[-np.inf], levels, [np.inf, np.inf]])
    cell = np.empty(len(values), np.min_scalar_type(count))
    for start in range(0, len(values), PART):
        part = values[start : start + PART]
        near = (part * (count + 1)).astype(np.intp)  # May be off by one because of rounding
        near -= part <= edges[near]
        near += part > edges[near + 1]
        cell[start : start + PART] = near
    return cell


def _different(left: Values, right: Values) -> tuple[Indices | None, Values, Values]:
    """Return the label of the distinct jump of each row, None if jumps rarely repeat, and the limits of the jumps."""
    ordered = np.sort(left)
    if (1 + np.count_nonzero(ordered[1:] != ordered[:-1])) * FEW > len(left):
        return None, left, right
    (low, from_), (high, to) = (np.unique(values, return_inverse=True) for values in (left, right))
    pairs, label = np.unique(from_ * len(high) + to, return_inverse=True)
    return label, low[pairs // len(high)], high[pairs % len(high)]


def distribution(left: Values, right: Values) -> tuple[dict[str, MeanTerm], Values]:
    """Return the terms whose means give the distribution function of the PIT, and its breakpoints."""
    if left is right:
        steps = TieGroups(right)
        return {"steps": MeanTerm(groups=steps)}, steps.distinct
    jump = right - left
    wide = jump > NARROW
    middle = (left + right) / 2
    if not wide.any():
        steps = TieGroups(middle)
        return {"steps": MeanTerm(groups=steps)}, steps.distinct
    ends = np.concatenate([np.where(wide, left, middle), np.where(wide, right, middle)])
    places, label = np.unique(ends, return_inverse=True)
    slopes = np.divide(1.0, jump, out=np.zeros_like(jump), where=wide)
    at_start, at_stop = (Groups(part, len(places)) for part in np.split(label, 2))
    terms = {"steps": MeanTerm((~wide).astype(np.float64), at_start)}
    return terms | {"rises": MeanTerm(slopes, at_start), "falls": MeanTerm(slopes, at_stop)}, places


def cumulate(means: Mapping[str, Values], places: Values) -> Values:
    """Return F at each breakpoint (k,), after its step, (..., k), for F as described by :func:`distribution`."""
    below = means["steps"].cumsum(axis=-1)
    slopes = _slopes(means)
    if slopes is not None:
        below[..., 1:] += np.cumsum(slopes * np.diff(places), axis=-1)
    return np.asarray(below)


def _slopes(means: Mapping[str, Values]) -> Values | None:
    """Return the slope of F between breakpoints, (..., k - 1); None if F is constant there."""
    if "rises" not in means:
        return None
    return np.asarray(np.cumsum(means["rises"] - means["falls"], axis=-1)[..., :-1])


def component(degree: int) -> Legendre:
    """Return a Legendre polynomial on [0, 1] with mean 0 and mean square 1, for a degree of at least 1.

    The means of the first four over a PIT are Neyman's smooth components: bias (positive if targets are above the
    predictions), dispersion (positive if distributions are too narrow), skewness (positive if targets are more skewed
    to the right), and tails (positive if those of the targets are heavier).

    Source: Neyman (1937), "Smooth test for goodness of fit".
    """
    size = float(np.sqrt(2 * degree + 1))
    return Legendre([0.0] * degree + [size], domain=[0, 1])


def mean_component(left: Values, right: Values, degree: int) -> Values:
    """Return the mean of a :func:`component` between the limits of the PIT of each row, (n,), exactly."""
    polynomial = component(degree)
    if left is right:
        return np.asarray(polynomial(right))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    middle, half = (left + right) / 2, (right - left) / 2
    rule = zip(nodes, weights, strict=True)
    return np.asarray(sum(weight / 2 * polynomial(middle + node * half) for node, weight in rule))


def mean_distance(left: Values, right: Values) -> Values:
    """Return the mean of |2 u - 1| between the limits of the PIT of each row, (n,), exactly."""
    jump = right - left
    start, stop = 2 * left - 1, 2 * right - 1
    mean = np.abs(stop)
    np.divide(stop * np.abs(stop) - start * np.abs(start), 4 * jump, out=mean, where=jump > NARROW)
    return np.asarray(mean)


def components(levels: Values, below: Values) -> Values:
    """Return the mean of each :func:`component` of the PIT, (4,), given its shares below levels (q,)."""
    edges = np.concatenate([[0.0], levels, [1.0]])
    gaps = np.concatenate([[0.0], below - levels, [0.0]])
    polynomials = map(component, range(1, COMPONENTS + 1))
    return np.array([-np.trapezoid(polynomial.deriv()(edges) * gaps, edges) for polynomial in polynomials])


def direction(levels: Values, below: Values) -> Direction:
    """Return how a PIT deviates from uniform: the first component nearly the largest, relative to its maximum."""
    return direction_of(components(levels, below))


def direction_of(means: Values) -> Direction:
    """Return how a PIT with these means of its components, (4,), deviates most from uniform; see :func:`direction`."""
    found = means / np.sqrt(2 * np.arange(1, COMPONENTS + 1) + 1)
    first = int(np.argmax(np.abs(found) >= SHARE * np.abs(found).max()))
    if first == 0:
        return "predictions-too-low" if found[0] > 0 else "predictions-too-high"
    if first == 1:
        return "too-narrow" if found[1] > 0 else "too-wide"
    return "wrong-shape"


def cramer_von_mises(means: Mapping[str, Values], places: Values, *, block: int = PART) -> Values:
    """Return the integral of (F(u) - u)^2 over [0, 1], (...), for F as described by :func:`distribution`."""

    def integral(first: Values, slope: Slope, start: Values, stop: Values) -> Values:
        widths = stop - start
        last = first + slope * widths
        return np.asarray((first**2 + first * last + last**2) * widths)

    inner = _integrate(integral, means, places, block)
    return np.asarray((inner + places[0] ** 3 + (1 - places[-1]) ** 3) / 3)


def distance_of_sorted(values: Values) -> float:
    """Return the integral of :func:`cramer_von_mises` for the steps at sorted values (n,)."""
    n = len(values)
    return float(np.mean((values - (np.arange(n) + 0.5) / n) ** 2) + 1 / (12 * n**2))


def distance_of_jumps(left: Values, right: Values) -> float:
    """Return the integral of :func:`cramer_von_mises` for jumps (n,); see :func:`distribution`."""
    n, jump = len(left), right - left
    ends, narrow = np.concatenate([left, right]), np.flatnonzero(jump <= NARROW)
    ends[narrow] = ends[n + narrow] = (left[narrow] + right[narrow]) / 2
    jump[narrow] = np.inf
    rises = 1 / (jump * n)
    changes, order = np.concatenate([rises, -rises]), _order(ends)
    total = below = place = slope = 0.0
    for part in (order[start : start + PART] for start in range(0, 2 * n, PART)):
        places, change = ends[part], changes[part]
        slopes = slope + np.cumsum(np.append(0.0, change))
        widths = np.diff(places, prepend=place)
        above = below + np.cumsum(slopes[:-1] * widths) - places
        if len(narrow):
            above += np.cumsum((change == 0) & (part < n)) / n
        first = np.append(below - place, above[:-1])
        last = first + (slopes[:-1] - 1) * widths
        total += float(np.sum((first**2 + first * last + last**2) * widths))
        below, place, slope = float(above[-1] + places[-1]), float(places[-1]), float(slopes[-1])
    return (total + (1 - place) ** 3) / 3


def _order(values: Values) -> Indices:
    """Return the order of values in [0, 1] up to 2^-32, (n,): numpy sorts 16 bits by radix, four times as fast."""
    whole = (values * (2.0**32 - 1)).astype(np.uint32)
    order = np.argsort(whole.astype(np.uint16), kind="stable")
    return np.asarray(order[np.argsort((whole >> 16).astype(np.uint16)[order], kind="stable")])


def anderson_darling(means: Mapping[str, Values], places: Values, *, block: int = PART) -> Values:
    """Return the integral of (F(u) - u)^2 / (u (1 - u)) over [0, 1], (...); parameters as :func:`cramer_von_mises`.

    Source: Anderson, Darling (1952), "Asymptotic theory of certain goodness of fit criteria based on stochastic
    processes".
    """

    def integral(first: Values, slope: Slope, start: Values, stop: Values) -> Values:
        at_zero, at_one = first - slope * start, first + slope * (1 - start)  # F(u) - u, extrapolated
        widths = stop - start
        below, above = np.log1p(widths / start), np.log1p(widths / (1 - stop))
        return np.asarray(at_zero**2 * below + at_one**2 * above - slope**2 * widths)

    places = np.clip(places, NEAREST, 1 - NEAREST)
    first, last = places[0], places[-1]
    ends = -np.log1p(-first) - first - np.log(last) - (1 - last)
    return np.asarray(_integrate(integral, means, places, block) + ends)


def distance_at_levels(below: Values, levels: Values, *, weighted: bool) -> Values:
    """Return the sum over levels (q,) that replaces the integral of a distance of F from uniform, (...)."""
    squared = (below - levels) ** 2
    if weighted:
        squared /= levels * (1 - levels)
    return np.asarray(squared.sum(axis=-1) / (len(levels) + 1))


def _integrate(
    integral: Callable[[Values, Slope, Values, Values], Values], means: Mapping[str, Values], places: Values, block: int
) -> Values:
    """Return the sum, (...), of integrals given F(u) - u at the start of each interval, its slope, start and stop."""
    above = cumulate(means, places) - places
    slopes = _slopes(means)
    total = np.zeros(above.shape[:-1])
    for start in range(0, len(places) - 1, block):
        pieces = slice(start, min(start + block, len(places) - 1))
        ends = places[pieces.start : pieces.stop + 1]
        slope = (0.0 if slopes is None else slopes[..., pieces]) - 1
        total += np.sum(integral(above[..., pieces], slope, ends[:-1], ends[1:]), axis=-1)
    return total
