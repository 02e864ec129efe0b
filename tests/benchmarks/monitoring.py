"""E-processes: how often a right model ever crosses 20, and how soon faults are detected.

    python -m tests.benchmarks.monitoring level --sets 1000 --rows 10000
    python -m tests.benchmarks.monitoring power --sets 1000
    python -m tests.benchmarks.monitoring lags --sets 1000

``level`` draws series of right models: normal forecasts, counts, small ensembles, three forecasts at a time with a
shared error, normal forecasts with a lag of three steps, whose errors overlap, and quantiles of counts. It prints the
share of series in which the e-value ever reaches 20. ``power`` prints the same at 500 rows for wrong models, with the
median row at which 20 is reached. ``lags`` compares the largest product, divided by the lag, with the mean of the
products, which is no e-process.
"""

import argparse

import numpy as np
from scipy import stats

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.execution.run import Run
from calcheck.predictions import Predictions
from calcheck.studies.monitor.e_process import log_product, summarize
from tests.helpers.simulations import band

ALARM = np.log(20)
LEVELS = np.array([0.01, 0.025, *np.arange(0.05, 0.96, 0.05), 0.975, 0.99])
FAULTS = {
    "right": lambda z: z,
    "sigma x 1.3": lambda z: 1.3 * z,
    "sigma x 0.8": lambda z: 0.8 * z,
    "bias 0.3 sigma": lambda z: z + 0.3,
    "sigma x 1.5 from 300 on": lambda z: np.where(np.arange(len(z)) < 300, z, 1.5 * z),
}


def normal(rng, n, fault=FAULTS["right"]):
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return Predictions(y=mean + std * fault(rng.normal(size=n)), predictive=Gaussian(mean, std)), np.arange(n), 1


def counts(rng, n):
    rate = np.exp(rng.normal(size=n))
    return Predictions(y=rng.poisson(rate).astype(float), predictive=Poisson(rate)), np.arange(n), 1


def ensembles(rng, n):
    draws = np.round(rng.normal(size=(n, 12)), 1)  # with ties
    return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:])), np.arange(n), 1


def three_at_a_time(rng, n):
    """Return three forecasts at each time, whose errors have a correlation of 0.9."""
    times = np.repeat(np.arange(n // 3), 3)
    z = np.sqrt(0.9) * rng.normal(size=n // 3)[times] + np.sqrt(0.1) * rng.normal(size=len(times))
    mean, std = rng.normal(size=len(times)), rng.uniform(0.5, 2, len(times))
    return Predictions(y=mean + std * z, predictive=Gaussian(mean, std)), times, 1


def lag_of_three(rng, n):
    """Return forecasts three steps ahead, whose errors are the sum of the last three steps of a random walk."""
    steps = rng.normal(size=n + 2)
    error = steps[2:] + steps[1:-1] + steps[:-2]
    mean = rng.normal(size=n)
    return Predictions(y=mean + error, predictive=Gaussian(mean, np.full(n, np.sqrt(3)))), np.arange(n), 3


def quantiles_of_counts(rng, n):
    rate = 20 * np.exp(rng.normal(size=n))
    values = stats.poisson(rate[:, None]).ppf(LEVELS)
    return Predictions(y=rng.poisson(rate).astype(float), predictive=Quantiles(LEVELS, values)), np.arange(n), 1


DESIGNS = (normal, counts, ensembles, three_at_a_time, lag_of_three, quantiles_of_counts)


def path(rows, times, lag, seed):
    """Return the log of the e-value after each time."""
    horizons = np.full(len(rows), lag)
    return summarize(rows, times.astype(float), horizons, Run(seed=seed)).log_e_values(lag)


def level(sets, n, named=""):
    """Print the share of right models that ever cross 20."""
    _, high = band(sets, 0.05)
    for design in (each for each in DESIGNS if named in ("", each.__name__)):
        rng = np.random.default_rng(11)
        count = sum(path(*design(rng, n), seed).max() >= ALARM for seed in range(sets))
        print(f"{design.__name__:20} {count / sets:.3f} of {sets}, {n:,} rows (limit {high / sets:.3f})", flush=True)


def power(sets, n):
    """Print the share of wrong models that cross 20, and the median row."""
    for name, fault in FAULTS.items():
        rng = np.random.default_rng(12)
        paths = [path(*normal(rng, n, fault), seed) for seed in range(sets)]
        first = [int(np.argmax(each >= ALARM)) if each.max() >= ALARM else n for each in paths]
        share = np.mean(np.array(first) < n)
        print(f"{name:24} {share:.3f} of {sets} cross 20 within {n} rows, median {np.median(first):.0f}", flush=True)


def lags(sets, n):
    """Print the share of right models with a lag that ever cross 20, by ways to join the products."""
    rng = np.random.default_rng(13)
    crossed = {"largest product / lag": 0, "mean of products": 0}
    for seed in range(sets):
        rows, times, lag = lag_of_three(rng, n)
        history = summarize(rows, times.astype(float), np.full(n, lag), Run(seed=seed))
        crossed["largest product / lag"] += history.log_e_values(lag).max() >= ALARM
        products = np.zeros((n, lag))
        for phase in range(lag):
            own = np.arange(phase, n, lag)
            known = log_product(history.log_densities[own], history.means[own])
            products[phase:, phase] = np.repeat(known, lag)[: n - phase]
        crossed["mean of products"] += np.logaddexp.reduce(products, axis=1).max() - np.log(lag) >= ALARM
    for name, count in crossed.items():
        print(f"{name:24} {count / sets:.3f} of {sets}, {n:,} rows", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("level", "power", "lags"))
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--design", choices=[each.__name__ for each in DESIGNS], default="")
    given = parser.parse_args()
    if given.what == "level":
        level(given.sets, given.rows or 10_000, given.design)
    elif given.what == "power":
        power(given.sets, given.rows or 500)
    else:
        lags(given.sets, given.rows or 2_000)


if __name__ == "__main__":
    main()
