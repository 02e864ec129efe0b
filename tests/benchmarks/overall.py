"""One verdict for all metrics: its level if the model is right, and its power, by the way of joining the metrics.

    python -m tests.benchmarks.overall levels --sets 1000 --rows 50
    python -m tests.benchmarks.overall power --sets 200 --rows 300

The p-values come from the same replicates: extreme rank length; the maximum over metrics of standardized statistics, or
of statistics relative to the limits of their null distributions; Fisher's sum of the logarithms of p-values; and the
smallest p-value. ``levels`` also prints the binomial band at 99.9 %, divided by the number of cells.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy import stats

from calcheck import evaluation
from calcheck.distributions import Gaussian
from calcheck.execution.run import Run
from calcheck.inference.curve_bands import extreme_rank_p_values
from calcheck.inference.p_values_and_verdicts import (
    Compared,
    common_statistics,
    extremes,
    judged_statistics,
    step_down_p_values,
)
from calcheck.metrics import DEFAULT_METRICS, METRICS
from calcheck.predictions import InMemory
from tests.benchmarks.models import RIGHT, WRONG, gaussian, rows_of, student_t

LEVEL = 0.05


def uneven(rng, n):
    """Predict spreads that are too large for one half of the inputs, and too small for the other half."""
    x, normal = gaussian(rng, n)
    return x, Gaussian(normal.loc, normal.scale * np.where(x[:, 0] > 0, 1.17, 0.8)), normal


def narrow_tails(rng, n):
    """Predict Student-t distributions with 3 degrees of freedom that are too narrow; squares have heavy tails."""
    x, truth = student_t(3, rng, n)
    return x, replace(truth, scale=0.8 * truth.scale), truth


MODELS = {"levels": RIGHT, "power": {**WRONG, "std x 1.17 or 0.8": uneven, "t3, scale x 0.8": narrow_tails}}
IN_BINS = ("lzms", "lrce")  # slow: they need the bootstrap
NAMES = [
    name
    for name in DEFAULT_METRICS
    if METRICS[name].info.alternative != "none" and "x" not in METRICS[name].info.needs and name not in IN_BINS
]


def statistics(maker, replicates, n, seed):
    """Return the common statistics of all metrics on one data set, and their alternatives."""
    with patch.object(evaluation, "overall_verdict", side_effect=lambda computed, _: found.append(computed)):
        found = []
        run = Run(resamples=0, replicates=replicates, seed=seed)
        evaluation.evaluate(InMemory(rows_of(maker, n, seed, 1)), [METRICS[name]() for name in NAMES], run=run)
    tested = [each for each in map(judged_statistics, found[0]) if each]
    return common_statistics(tested), [each.alternative for each in tested]


def share_above(values):
    """Return the share of columns whose value is at least that of the first column."""
    return np.mean(values >= values[0] - 1e-12)


def largest_standardized(values, alternatives):
    """Return the largest standardized statistic of each column, (N,), in the direction of its alternative."""
    away = values - values.mean(axis=1, keepdims=True)
    away /= np.maximum(values.std(axis=1, keepdims=True), 1e-300)
    sides = {"greater": lambda line: line, "less": np.negative, "two-sided": np.abs}
    return np.max([sides[side](line) for line, side in zip(away, alternatives, strict=True)], axis=0)


def column_p_values(values, alternatives):
    """Return the p-value of each metric for each column among all columns, (K, N)."""
    lines = []
    for line, alternative in zip(values, alternatives, strict=True):
        above, below = (stats.rankdata(side, "max") / len(line) for side in (-line, line))
        both = np.minimum(1, 2 * np.minimum(above, below))
        lines.append({"greater": above, "less": below, "two-sided": both}[alternative])
    return np.array(lines)


def tested(values, alternatives):
    return [Compared(line[0], line[1:], side) for line, side in zip(values, alternatives, strict=True)]


METHODS = {
    "extreme rank length": lambda v, a: extreme_rank_p_values(v, a)[0],
    "maximum, standardized": lambda v, a: share_above(largest_standardized(v, a)),
    "maximum relative to limits": lambda v, a: step_down_p_values(extremes(tested(v, a))).min(),
    "Fisher": lambda v, a: share_above(-np.log(column_p_values(v, a)).sum(axis=0)),
    "smallest p-value": lambda v, a: share_above(-column_p_values(v, a).min(axis=0)),
}


def overall_p_values(maker, replicates, n, seed):
    """Return the p-value of each method for one data set."""
    found, alternatives = statistics(maker, replicates, n, seed)
    values = np.where(np.isnan(found), np.nanmedian(found, axis=1, keepdims=True), found)
    return [method(values, alternatives) for method in METHODS.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["levels", "power"])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--families", nargs="*")
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    makers = MODELS[given.what]
    print(f"| {given.sets} sets of {given.rows} rows | {' | '.join(METHODS)} |\n| --- |{' ---: |' * len(METHODS)}")
    chosen = given.families or list(makers)
    with ProcessPoolExecutor(given.workers) as pool:
        for name in chosen:
            work = partial(overall_p_values, makers[name], given.replicates, given.rows)
            found = np.array(list(pool.map(work, range(given.sets), chunksize=5)))
            shares = (found <= LEVEL + 1e-12).mean(axis=0)
            print(f"| {name} | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)
    if given.what == "levels":
        tail = 0.001 / len(chosen) / len(METHODS) / 2
        low, high = (stats.binom.ppf(share, given.sets, LEVEL) / given.sets for share in (tail, 1 - tail))
        print(f"band: {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
