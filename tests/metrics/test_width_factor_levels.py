"""Intervals of the width factor contain the factor that is needed in nine of ten data sets.

`python -m tests.metrics.test_width_factor_levels SETS` prints the coverage for all designs and numbers of rows.
"""

import sys

import numpy as np
import pytest
from scipy import stats

from calcheck.dependence.clusters import find_clusters
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import NegativeBinomial, Poisson
from calcheck.distributions.positive import LogNormal
from calcheck.distributions.quantiles import Intervals
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics.width_factor import WidthFactor
from calcheck.predictions import Predictions
from tests.helpers.simulations import autoregressive, band, sets, slow

NINE = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
METRIC = WidthFactor(level=0.9)
ALL = 400  # Data sets of a cell
ROWS, FEWEST = (30, 60, 100, 300, 1_000, 10_000), 60  # The fewest dependent rows


def spread_of(rng, n):
    """Return means and standard deviations that differ from row to row."""
    return rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))


def stretched(rng, loc, scale, k, noise=None):
    """Return targets of a normal distribution whose spread is k times as large as stated."""
    return loc + k * scale * (rng.normal(size=len(loc)) if noise is None else noise)


def gaussian(rng, n, k):
    loc, scale = spread_of(rng, n)
    return Predictions(y=stretched(rng, loc, scale, k), predictive=Gaussian(loc, scale))


def t4(rng, n, k):
    loc, scale = spread_of(rng, n)
    y = loc + k * scale * rng.standard_t(4, n)
    return Predictions(y=y, predictive=StudentT(loc, scale, np.full(n, 4.0)))


def lognormal(rng, n, k):
    loc, scale = spread_of(rng, n)
    return Predictions(y=np.exp(stretched(rng, loc, 0.3 * scale, k)), predictive=LogNormal(loc, 0.3 * scale))


def poisson(rng, n, k):
    mean = 10 * np.exp(0.5 * rng.normal(size=n))
    y = rng.poisson(mean) if k == 1 else rng.negative_binomial(mean / (k**2 - 1), 1 / k**2)
    return Predictions(y=y.astype(float), predictive=Poisson(mean))


def negative_binomial(rng, n, k):
    mean = 10 * np.exp(0.5 * rng.normal(size=n))
    stated, true = 2.0, 2 * k**2  # variance over mean
    y = rng.negative_binomial(mean / (true - 1), 1 / true)
    return Predictions(y=y.astype(float), predictive=NegativeBinomial(mean, mean / (stated - 1)))


def ensemble(members):
    def draw(rng, n, k):
        loc, scale = spread_of(rng, n)
        draws = loc[:, None] + scale[:, None] * rng.normal(size=(n, members))
        return Predictions(y=stretched(rng, loc, scale, k), predictive=Samples(draws))

    return draw


def quantiles(rng, n, k):
    loc, scale = spread_of(rng, n)
    values = loc[:, None] + scale[:, None] * stats.norm.ppf(NINE)
    return Predictions(y=stretched(rng, loc, scale, k), predictive=Quantiles(NINE, values))


def intervals(rng, n, k):
    loc, scale = spread_of(rng, n)
    half = scale * stats.norm.ppf(0.95)
    limits = (loc - half)[:, None], (loc + half)[:, None]
    return Predictions(y=stretched(rng, loc, scale, k), predictive=Intervals(np.array([0.9]), *limits))


def tied_quantiles(rng, n, k):
    """Return quantiles of counts, to which many targets are equal."""
    rows = poisson(rng, n, k)
    values = stats.poisson.ppf(NINE, rows.predictive.mean()[:, None])
    return Predictions(y=rows.y, predictive=Quantiles(NINE, values))


DESIGNS = {
    "gaussian": gaussian,
    "t4": t4,
    "lognormal": lognormal,
    "poisson": poisson,
    "negative binomial": negative_binomial,
    "30 draws": ensemble(30),
    "11 draws": ensemble(11),
    "9 quantiles": quantiles,
    "intervals": intervals,
    "tied quantiles": tied_quantiles,
}


def series(rng, n, k):
    loc, scale = spread_of(rng, n)
    y = stretched(rng, loc, scale, k, autoregressive(rng, n, 0.5))
    return Predictions(y=y, predictive=Gaussian(loc, scale), columns={"t": np.arange(n)})


def clustered(rng, n, k):
    """Return clusters of ten rows that share half of the variance of their errors."""
    loc, scale = spread_of(rng, n)
    group = np.arange(n) // 10
    noise = np.sqrt(0.5) * (rng.normal(size=n) + rng.normal(size=n)[group])
    return Predictions(y=stretched(rng, loc, scale, k, noise), predictive=Gaussian(loc, scale), columns={"g": group})


DEPENDENT = {"series": (series, RowDependence(time="t")), "clusters": (clustered, RowDependence(cluster="g"))}


def limits(rows, run):
    """Return the limits of the factor."""
    inferred = METRIC.limits(METRIC.compute(rows), run, find_clusters(rows, run.dependence))
    return inferred.low, np.inf if inferred.high is None else inferred.high


NEEDED = {"lognormal": 1.308, "poisson": 1.3135, "negative binomial": 1.3028, "tied quantiles": 4 / 3}
"""Factors of 10^6 rows with k = 1.333, computed with scipy; for other designs, the factor is k."""


def needed(name, k):
    """Return the factor that right intervals need."""
    return k if k == 1 else NEEDED.get(name, k)


def covered(draw, run, truth, n, k, count):
    """Return the number of data sets whose interval contains the factor."""
    found = [limits(draw(np.random.default_rng([seed, n]), n, k), run) for seed in range(count)]
    return sum(low <= truth <= high for low, high in found)


@pytest.mark.parametrize(("name", "k"), [(name, 1) for name in DESIGNS] + [slow((name, 1.333)) for name in DESIGNS])
def test_intervals_contain_the_factor_in_nine_of_ten_data_sets(name, k):
    count = sets(ALL, 10)
    least, _ = band(count, 0.885)
    for n in ROWS[:-1] if count == ALL else (30, 300):
        assert covered(DESIGNS[name], Run(), needed(name, k), n, k, count) >= least, n


@pytest.mark.parametrize(("name", "k"), [(name, 1) for name in DEPENDENT] + [slow((name, 1.333)) for name in DEPENDENT])
def test_intervals_of_dependent_rows_contain_the_factor(name, k):
    count, (draw, dependence) = sets(ALL, 10), DEPENDENT[name]
    least, _ = band(count, 0.86)
    for n in ROWS[1:-1] if count == ALL else (100, 1000):
        assert covered(draw, Run(dependence=dependence), k, n, k, count) >= least, n


def main(count):
    """Print the coverage of all cells."""
    cells = {name: (draw, Run()) for name, draw in DESIGNS.items()}
    cells |= {name: (draw, Run(dependence=dependence)) for name, (draw, dependence) in DEPENDENT.items()}
    for name, (draw, run) in cells.items():
        for k in (1, 1.333):
            truth = needed(name, k)
            shares = [
                covered(draw, run, truth, n, k, count) / count for n in ROWS if n >= FEWEST or name not in DEPENDENT
            ]
            sys.stdout.write(f"{name:18} {truth:.3f} {' '.join(f'{share:.3f}' for share in shares)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
