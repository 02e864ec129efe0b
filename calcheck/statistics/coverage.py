"""Shares of targets inside intervals, exceedances of thresholds, and targets in units of their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.distributions import Predictive
from calcheck.distributions.quantiles import Replicate
from calcheck.distributions.recorded_quantiles import RecordedIntervals, RecordedQuantiles
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import LazyPredictive, Samples
from calcheck.errors import DataError
from calcheck.predictions import MappedSource, Predictions, Source, row_keys
from calcheck.result_details import AtLimits
from calcheck.statistics.groups import TieGroups, digitize
from calcheck.statistics.pit import NEAREST, pit, randomized_pit, share_below
from calcheck.statistics.zscores import centers, central_interval, covered, interval_mass, medians, targets, z_scores
from calcheck.typing import Values

LEVELS = np.arange(1, 50) / 50  # Levels of coverage curves
MAX_OPEN = 1e-3  # Maximum share of targets at limits of intervals for which a level is exact


@cached
def inside(rows: Predictions, level: float) -> dict[str, Values]:
    """Return whether targets are inside intervals, (n,), and strictly for stated limits: P(l < Y < u) <= p.

    If targets are clipped, the excess is by how much that raises the share inside, or may raise it.
    """
    predictive = rows.distributions()
    if isinstance(predictive, RecordedQuantiles | RecordedIntervals):
        shares = predictive.shares_inside(targets(rows), level)
        if shares is not None:
            return dict(zip(("strictly_inside", "covered", "excess"), shares, strict=True))
    found = {"covered": covered(rows, level)}
    if states_limits(predictive):
        found["strictly_inside"] = covered(rows, level, strictly=True)
    if isinstance(predictive, Replicate) and predictive.is_recorded:
        counts = unclipped(predictive, level)
        found["excess"] = np.zeros(len(rows)) if counts is None else (1 - counts) * (found["covered"] - level)
    return found


@cached
def unclipped(predictive: Predictive, level: float) -> Values | None:
    """Return in which rows no limit of the interval is clipped, (n,), 0 or 1; None if targets have no limits."""
    found = predictive.unclipped(level)
    return None if found is None else found.astype(np.float64)


def shares_at_limits(found: Mapping[str, Values]) -> AtLimits:
    """Return the share of targets strictly inside, given what :func:`inside` returns, if some are at limits."""
    strict, closed = found.get("strictly_inside"), found["covered"]
    return {"strictly_inside": float(strict.mean())} if strict is not None and (strict < closed).any() else {}


def nearest_share(shares: Mapping[str, Values], expected: Values) -> Values:
    """Return the number nearest to the expected share between those strictly inside and inside, from their means.

    Rows that are clipped count by what is expected of them, but for intervals with more targets outside than stated.
    """
    closed = shares["covered"]
    if "strictly_inside" not in shares:
        return closed
    excess = shares.get("excess", np.zeros(()))
    return np.asarray(np.clip(expected, shares["strictly_inside"] - excess, closed - excess) + np.minimum(excess, 0))


def states_limits(predictive: Predictive) -> bool:
    """Return whether limits of intervals are stated, and not the distribution at them."""
    return predictive.quantile_levels is not None or predictive.interval_levels is not None


def coverage_outcomes(source: Source, level: float) -> Source:
    """Return rows whose target is 1 if it is inside its prediction interval, else 0, with the probability of that."""
    rows = source.predictions()
    if rows.y is None or rows.predictive is None or rows.predictive.interval_levels is None:
        return source
    return MappedSource(source, partial(_outcomes, level=level))


def _outcomes(rows: Predictions, level: float) -> Predictions:
    """Return a batch with the outcomes as targets; those of targets at limits, as for counts, are open."""
    from calcheck.distributions.count_families import Bernoulli, OpenBernoulli

    closed, strict = covered(rows, level), covered(rows, level, strictly=True)
    family = OpenBernoulli if (strict < closed).mean() > MAX_OPEN else Bernoulli
    return rows.with_targets(closed, family(np.array(interval_mass(rows.distributions(), level))))


def coverage_by_level(rows: Predictions, stated: Sequence[float]) -> tuple[Values, Values]:
    """Return levels of central intervals and shares inside, (k,) each: nearest to the level between open and closed."""
    if not len(stated):
        return LEVELS, _coverage_by_pit(rows, LEVELS)
    levels = np.unique(stated)
    found = [{name: each.mean() for name, each in inside(rows, level).items()} for level in levels.tolist()]
    return levels, np.array([nearest_share(shares, level) for shares, level in zip(found, levels, strict=True)])


def _coverage_by_pit(rows: Predictions, levels: Values) -> Values:
    """Return the share of targets inside central intervals, (k,), from the limits of the PIT."""
    left, right = pit(rows)
    ends = np.concatenate([(1 - levels[::-1]) / 2, (1 + levels) / 2])
    if rows.distributions().n_draws is not None:
        below, up_to = np.split(share_below(left, right, ends).sums(None), 2)
        return (up_to - below[::-1]) / len(left)
    counts = _counts_below(right, ends)
    below, _ = np.split(counts, 2)  # F(y) < p: the target is below its quantile at p
    _, not_above = np.split(counts if left is right else _counts_below(left, ends), 2)  # F(y-) < p: it is not above it
    return (not_above - below[::-1]) / len(left)


def _counts_below(values: Values, cuts: Values) -> Values:
    """Return the number of values strictly below each cut, (k,)."""
    cells = digitize(values, cuts, equal=True)
    return np.bincount(cells, minlength=len(cuts) + 1)[:-1].cumsum().astype(np.float64)


class Exceedances(NamedTuple):
    """Targets beyond a threshold, by row, (n,) each."""

    exceeds: Values  # (n,), whether the target is beyond the threshold, 0 or 1
    probability: Values  # (n,), predicted probability of that
    # (n,), twice the PIT of the excess, given that there is one, in [0, 2]; 0 for other rows. 1 on average if the
    # distribution is right
    excess: Values


@cached
def mixture_quantile(predictive: Predictive, level: float) -> float:
    """Return the quantile of all distributions together, unit of y: of pooled draws, or by bisection."""
    if predictive.n_draws is not None:
        pooled = [batch.draws.ravel() for _, batch in predictive.batches() if isinstance(batch, Samples)]
        return float(np.quantile(np.concatenate(pooled), level, method="inverted_cdf"))
    quantiles = predictive.quantile(level)
    low, high = np.nextafter(quantiles.min(), -np.inf), quantiles.max()
    while low < (middle := low + (high - low) / 2) < high:
        if predictive.cdf(np.full(len(predictive), middle)).mean() >= level:
            high = middle
        else:
            low = middle
    return float(high)


def exceedances(rows: Predictions, threshold: float, *, upper: bool) -> Exceedances:
    """Return the targets above a threshold, or below it; where a distribution jumps, the PIT is the middle.

    Source: Allen, Koh, Segers, Ziegel (2024), "Tail calibration of probabilistic forecasts".
    """
    predictive, y = rows.distributions(), targets(rows)
    at = np.full(len(y), threshold)
    middle = sum(pit(rows)) / 2
    rank, mass = (1 - middle, 1 - predictive.cdf(at)) if upper else (middle, predictive.cdf_left(at))
    exceeds = np.asarray(y > threshold if upper else y < threshold, dtype=np.float64)
    most = mass if predictive.n_draws is None else mass + 1 / (predictive.n_draws + 1)
    beyond = np.divide(rank, most, out=np.zeros_like(rank), where=most > 0)
    draws = predictive.n_draws  # the CDF keeps 1 / (m + 1) of m draws apart
    probability = mass if draws is None else mass * (1 + 1 / draws)
    return Exceedances(exceeds, probability, exceeds * 2 * (1 - beyond))


SEED = 0x31D7  # Of the random numbers between the limits of the PIT of counts
ROUNDING = 1e-9  # Relative tolerance of shares of rows
TINY = 1e-18  # Share of the squared distances from a mean below which all other values are equal
MANY, PART, WINDOW = 50_000, 5_000, 0.03  # Values of which a part shows where a quantile is, and the shares beside it
LEVEL = 0.9  # Of the intervals whose ratios are those of others in another unit
ROLES = 10  # Most draws of a row that play the target


def normal_score(level: float) -> float:
    """Return the half width of the central interval of the standard normal distribution."""
    return float(sc.ndtri((1 + level) / 2))


@dataclass(frozen=True, eq=False)
class Uniforms:
    """Random numbers between the limits of the PIT of rows, which the data and their replicates have in common."""

    values: Values  # (n,)


@cached
def repeated(uniform: Uniforms, count: int) -> Uniforms:
    """Return the numbers for several data sets."""
    return Uniforms(np.tile(uniform.values, count))


@cached
def uniforms(rows: Predictions) -> Uniforms | None:
    """Return random numbers that the rows themselves seed; None where no distribution has atoms."""
    if not rows.distributions().has_atoms:
        return None
    return Uniforms(RowRandom(row_keys(rows, SEED)).random(len(rows)))


def width_ratios(rows: Predictions, level: float, uniform: Uniforms | None) -> Values:
    """Return how many times wider intervals end at the target, (n,); of counts and draws by normal scores."""
    unit = level_unit(rows.distributions(), level)
    return _own_ratios(rows, level) if unit is None else _level_free_ratios(rows, uniform) / unit


@cached
def level_unit(predictive: Predictive, level: float) -> float | None:
    """Return the distance of limits from the middle at a level, relative to that at 90 %; None if it differs by row."""
    if predictive.n_draws is not None or predictive.has_atoms:
        return normal_score(level) / normal_score(LEVEL)
    own, base = _reach(predictive, level), _reach(predictive, LEVEL)
    if not own or len(own) != len(base):
        return None
    units = np.concatenate([one / other for one, other in zip(own, base, strict=True)])
    first = float(units[0])
    return first if bool((np.abs(units - first) <= ROUNDING * first).all()) else None


@cached
def _level_free_ratios(rows: Predictions, uniform: Uniforms | None) -> Values:
    """Return the ratios at 90 %, (n,), which are those at any level in another unit."""
    if uniform is not None:
        u = np.clip(randomized_pit(rows, uniform.values), NEAREST, 1 - NEAREST)
        return np.asarray(np.abs(sc.ndtri(u)) / normal_score(LEVEL))
    if rows.distributions().n_draws is not None:
        return np.asarray(np.abs(z_scores(rows)) / normal_score(LEVEL))
    return _own_ratios(rows, LEVEL)


def width_quantile(rows: Predictions, level: float, uniform: Uniforms | None) -> float:
    """Return the quantile of :func:`width_ratios` at the level of the intervals, without the order of other rows."""
    unit, weights = level_unit(rows.distributions(), level), unclipped(rows.distributions(), level)
    ratios = _own_ratios(rows, level) if unit is None else _level_free_ratios(rows, uniform)
    if weights is not None:
        ratios = ratios[weights > 0]
    return (quantile_of(ratios, level) if len(ratios) else np.nan) / (1.0 if unit is None else unit)


@cached
def width_order(rows: Predictions, level: float, uniform: Uniforms | None) -> TieGroups:
    """Return groups of equal ratios in ascending order."""
    return TieGroups(width_ratios(rows, level, uniform))


@cached
def _reach(predictive: Predictive, level: float) -> tuple[Values, ...]:
    """Return the distances of the limits from the median, (n,) each, or one array; None unless known and positive."""
    if states_limits(predictive) or isinstance(predictive, LazyPredictive):
        return ()
    middle, (low, high) = medians(predictive), central_interval(predictive, level)
    below, above = middle - low, high - middle
    if not bool((below > 0).all() and (above > 0).all()):
        return ()
    return (above,) if bool((np.abs(below - above) <= ROUNDING * above).all()) else (below, above)


@cached
def _targets_before(rows: Predictions) -> Values:
    """Return targets before they were rounded, at random numbers that the rows themselves seed, (n,)."""
    predictive, y = rows.distributions(), targets(rows)
    if not isinstance(predictive, RecordedQuantiles | RecordedIntervals) or not predictive.step.any():
        return y
    return predictive.targets_before(y, RowRandom(row_keys(rows, SEED)).random(len(rows)))


def _own_ratios(rows: Predictions, level: float) -> Values:
    """Return the ratios by the limits at a level."""
    y, predictive = targets(rows), rows.distributions()
    if isinstance(predictive, RecordedQuantiles | RecordedIntervals):
        y, predictive = _targets_before(rows), predictive.unrecorded
        return _ratios(y, centers(predictive, level), *central_interval(predictive, level))
    if reach := _reach(predictive, level):
        away = y - medians(predictive)
        return np.asarray(np.abs(away) / reach[0] if len(reach) == 1 else np.maximum(away / reach[1], -away / reach[0]))

    def ratios(part: Predictive, where: slice) -> Values:
        return _ratios(y[where], centers(part, level), *central_interval(part, level))

    return predictive.map_batches(ratios)


def _ratios(y: Values, middle: Values, low: Values, high: Values) -> Values:
    """Return the distance from the middle, relative to that of the limit on that side; 1 for a target at a limit."""
    above = y > middle
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(above, y - middle, middle - y) / np.where(above, high - middle, middle - low)
    at_limit = (y == low) | (y == high)
    open_ = np.isnan(found) | np.isinf(middle)
    if open_.any():
        inside = (low <= y) & (y <= high)
        found[open_] = np.where(inside, 0.0, np.inf)[open_]
    found[at_limit] = 1.0
    return np.asarray(found)


def shares_up_to(rows: Predictions, level: float, factors: Values, others: tuple[Values, ...]) -> list[Values]:
    """Return the share of each row whose ratio is up to each factor, (n, k), and those of other ratios, (n,) each."""
    if not rows.distributions().has_atoms:
        ratios = (width_ratios(rows, level, None), *others)
        return [np.asarray(each[:, None] <= factors, np.float64) for each in ratios]
    left, right = (each[:, None] for each in pit(rows))
    low, high = (sc.ndtr(side * factors * normal_score(level)) for side in (-1, 1))
    inside, jump = np.minimum(right, high) - np.maximum(left, low), right - left
    return [np.clip(np.divide(inside, jump, out=(inside >= 0).astype(np.float64), where=jump > 0), 0, 1)]


def role_ratios(rows: Predictions, level: float) -> list[Values]:
    """Yield :func:`width_ratios` if one of the first draws plays the target, and the target a draw, (n,) each."""
    y, m = targets(rows), rows.distributions().n_draws or 0
    found = [np.empty(len(y)) for _ in range(min(m, ROLES))]
    for where, part in rows.distributions().batches():
        if not isinstance(part, Samples):
            raise DataError("only draws can play the target")
        center = (part.draws.sum(axis=1) + y[where]) / (m + 1)
        squares = ((part.draws - center[:, None]) ** 2).sum(axis=1) + (y[where] - center) ** 2
        for role, each in enumerate(found):
            each[where] = _role_ratio(part.draws[:, role] - center, squares, m) / normal_score(level)
    return found


def _role_ratio(away: Values, squares: Values, m: int) -> Values:
    """Return the z-score of one of m + 1 values among the others, given its distance from their common mean."""
    own = away**2 * (1 + 1 / m)
    rest = squares - own
    equal = rest <= TINY * squares
    size = np.sqrt(np.divide((m - 1) * (1 + 1 / m) * own, rest, out=np.zeros_like(own), where=~equal))
    return np.where(equal & (squares > 0), np.sqrt(m + 1), size)


def factor_of_draws(ratio: Values, expected: Values | float, draws: Values | float) -> Values:
    """Return the factor by which m draws would have to be spread, given their ratio and that of draws in its role.

    The second is contaminated by targets among the other draws: the mean over all m + 1 roles replaces it.
    """
    relative = np.asarray(ratio / expected)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isinf(relative), relative, relative * (draws + 1) / (relative + draws))
    return np.asarray(np.sqrt(np.maximum(relative**2 * (1 + 1 / draws) - 1 / draws, 0)))


def largest_factor(draws: float) -> float:
    """Return up to which factor m draws have an upper limit: the target is among the others of draws that play it."""
    return draws / 2


def smallest_rank(n: int, level: float) -> int:
    """Return the rank of the quantile of n values at a level, 1 to n: the smallest integer of at least n level."""
    return max(1, int(np.ceil(n * level * (1 - ROUNDING))))


def quantile_of(values: Values, level: float) -> float:
    """Return the quantile at a level, an order statistic, from the values between two quantiles of a part of them."""
    n, rank = len(values), smallest_rank(len(values), level) - 1
    if n >= MANY:
        part = np.sort(values[:: n // PART])
        first, last = (int((level + side * WINDOW) * len(part)) for side in (-1, 1))
        low = part[first] if first >= 0 else -np.inf
        high = part[last] if last < len(part) else np.inf
        below, inside = int(np.count_nonzero(values < low)), values[(values >= low) & (values <= high)]
        if 0 <= rank - below < len(inside):
            values, rank = inside, rank - below
    return float(np.partition(values, rank)[rank])
