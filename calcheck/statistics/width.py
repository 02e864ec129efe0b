"""Targets in units of their prediction intervals."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from calcheck.core.cache import cached
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import LazyPredictive, Samples
from calcheck.errors import DataError
from calcheck.predictions import Predictions, row_keys
from calcheck.statistics.coverage import states_limits
from calcheck.statistics.groups import TieGroups
from calcheck.statistics.pit import NEAREST, pit, randomized_pit
from calcheck.statistics.zscores import central_interval, medians, targets, z_scores
from calcheck.typing import Values

SEED = 0x31D7  # Of the random numbers between the limits of the PIT of counts
ROUNDING = 1e-9  # Relative tolerance of shares of rows
TINY = 1e-18  # Share of the squared distances from a mean below which all other values are equal
MANY, PART, WINDOW = 50_000, 5_000, 0.03  # Values of which a part shows where a quantile is, and the shares beside it
LEVEL = 0.9  # Of the intervals whose ratios are those of others in another unit
ROLES = 10  # Most draws of a row that play the target


def normal_score(level: float) -> float:
    """Return the half width of the central interval of the standard normal distribution."""
    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True, eq=False)
class Uniforms:
    """Random numbers between the limits of the PIT of rows, which the data and their replicates have in common."""

    values: Values  # (n,)


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
        return np.asarray(np.abs(ndtri(u)) / normal_score(LEVEL))
    if rows.distributions().n_draws is not None:
        return np.asarray(np.abs(z_scores(rows)) / normal_score(LEVEL))
    return _own_ratios(rows, LEVEL)


def width_quantile(rows: Predictions, level: float, uniform: Uniforms | None) -> float:
    """Return the quantile of :func:`width_ratios` at the level of the intervals, without the order of other rows."""
    unit = level_unit(rows.distributions(), level)
    if unit is None:
        return quantile_of(_own_ratios(rows, level), level)
    return quantile_of(_level_free_ratios(rows, uniform), level) / unit


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


def _own_ratios(rows: Predictions, level: float) -> Values:
    """Return the ratios by the limits at a level."""
    y, predictive = targets(rows), rows.distributions()
    if reach := _reach(predictive, level):
        away = y - medians(predictive)
        return np.asarray(np.abs(away) / reach[0] if len(reach) == 1 else np.maximum(away / reach[1], -away / reach[0]))

    def ratios(part: Predictive, where: slice) -> Values:
        return _ratios(y[where], _middles(part, level), *central_interval(part, level))

    return predictive.map_batches(ratios)


@cached
def _middles(predictive: Predictive, level: float) -> Values:
    if predictive.interval_levels is None:
        return medians(predictive)
    low, high = central_interval(predictive, level)
    with np.errstate(invalid="ignore"):
        return (low + high) / 2


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
    low, high = (ndtr(side * factors * normal_score(level)) for side in (-1, 1))
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
