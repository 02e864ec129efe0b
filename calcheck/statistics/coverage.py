"""Shares of targets inside intervals, and exceedances of thresholds."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from calcheck.core.cache import cached
from calcheck.distributions import Predictive
from calcheck.distributions.count_families import Bernoulli, OpenBernoulli
from calcheck.distributions.samples import Samples
from calcheck.predictions import MappedSource, Predictions, Source
from calcheck.result_details import AtLimits
from calcheck.statistics.groups import digitize
from calcheck.statistics.pit import pit, share_below
from calcheck.statistics.zscores import covered, interval_mass, targets
from calcheck.typing import Values

LEVELS = np.arange(1, 50) / 50  # Levels of coverage curves
MAX_OPEN = 1e-3  # Maximum share of targets at limits of intervals for which a level is exact


def inside(rows: Predictions, level: float) -> dict[str, Values]:
    """Return whether targets are inside intervals, (n,), and strictly for stated limits: P(l < Y < u) <= p."""
    found = {"covered": covered(rows, level)}
    if states_limits(rows.distributions()):
        found["strictly_inside"] = covered(rows, level, strictly=True)
    return found


def shares_at_limits(found: Mapping[str, Values]) -> AtLimits:
    """Return the share of targets strictly inside, given what :func:`inside` returns, if some are at limits."""
    strict, closed = found.get("strictly_inside"), found["covered"]
    return {"strictly_inside": float(strict.mean())} if strict is not None and (strict < closed).any() else {}


def nearest_share(shares: Mapping[str, Values], expected: Values) -> Values:
    """Return the number nearest to the expected share between those strictly inside and inside, from their means."""
    closed = shares["covered"]
    return np.asarray(np.clip(expected, shares["strictly_inside"], closed)) if "strictly_inside" in shares else closed


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
    closed, strict = inside(rows, level).values()
    family = OpenBernoulli if (strict < closed).mean() > MAX_OPEN else Bernoulli
    return rows.with_targets(closed, family(np.array(interval_mass(rows, level))))


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
