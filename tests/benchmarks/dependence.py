"""Rows that depend on each other: size of tests and coverage of intervals of a right model, with and without options.

    python -m tests.benchmarks.dependence sizes --sets 1000
    python -m tests.benchmarks.dependence warnings --sets 1000
    python -m tests.benchmarks.dependence sizes --designs "AR(1) 0.8, n 500" --sets 200

``sizes`` prints for each design the share of sets in which each metric fails at 5 %: assuming independence, and with
the option; then the share of 95 % intervals that contain the true value. The difference is that of the CRPS of two
models that are equally good. ``warnings`` prints the share of sets in which dependence is noticed without an option.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.signal import lfilter

from calcheck.dependence.clusters import dependence_warnings
from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.inference import null_distribution
from calcheck.metrics import METRICS
from calcheck.models.alignment import Model
from calcheck.models.comparison import compare
from calcheck.predictions import InMemory, Predictions
from tests.helpers.simulations import autoregressive

LEVEL = 0.05
NAMES = ("zms", "rce", "ece", "pit", "coverage", "crps")
DIFFERENCE = "crps difference"
TRUE = {"zms": 1.0, "rce": 0.0, "coverage": 0.9, DIFFERENCE: 0.0}
FEW = Run(replicates=39, resamples=1000)
INDEPENDENT, SERIES, CLUSTERS = RowDependence(), RowDependence(time="time"), RowDependence(cluster="cluster")


def clustered(rng, n, correlation):
    """Return errors of clusters of ten rows with an intra-class correlation."""
    shared = np.repeat(rng.standard_normal(n // 10), 10)
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal(n)


def seasonal(rng, n, correlation, daily):
    """Return hourly errors that depend on the hour before, and on the same hour of the day before."""
    steps = rng.standard_normal(n + 2000)
    filtered = lfilter([1.0], [1.0, -correlation], lfilter([1.0], [1.0] + [0.0] * 23 + [-daily], steps))
    impulse = np.zeros(20_000)
    impulse[0] = 1
    response = lfilter([1.0], [1.0, -correlation], lfilter([1.0], [1.0] + [0.0] * 23 + [-daily], impulse))
    return filtered[-n:] / np.sqrt(np.sum(response**2))


@dataclass(frozen=True)
class Design:
    """Errors of right predictions, n of them, whose dependence an option states."""

    errors: object
    n: int
    option: RowDependence
    daily: bool = False

    def rows(self, rng, errors, mean=None):
        """Return predictions; with a daily cycle, that of the targets and of the uncertainties is predicted."""
        hours = np.arange(self.n) % 24 / 24
        std = np.exp(0.5 * np.sin(2 * np.pi * hours)) if self.daily else np.exp(0.3 * rng.standard_normal(self.n))
        mean = 5 * np.cos(2 * np.pi * hours) + rng.standard_normal(self.n)
        columns = {"time": np.arange(self.n), "cluster": np.arange(self.n) // 10}
        return Predictions(y=mean + std * errors, predictive=Gaussian(mean, std), columns=columns)

    def pair(self, rng):
        """Return two models of the same targets, with errors of the same law."""
        y = rng.standard_normal(self.n)
        columns = {"time": np.arange(self.n), "cluster": np.arange(self.n) // 10}
        return [
            Predictions(y=y, predictive=Gaussian(y - self.errors(rng, self.n), np.ones(self.n)), columns=columns)
            for _ in range(2)
        ]


DESIGNS = {
    **{
        f"AR(1) {correlation:g}, n {n:,}": Design(partial(autoregressive, correlation=correlation), n, SERIES)
        for n in (500, 5000)
        for correlation in (0.0, 0.5, 0.8)
    },
    **{
        f"{count} clusters of 10, ICC {correlation:g}": Design(
            partial(clustered, correlation=correlation), 10 * count, CLUSTERS
        )
        for count in (20, 50, 200)
        for correlation in (0.1, 0.5)
    },
    "hourly, daily cycle, AR(1) 0.7, n 720": Design(partial(autoregressive, correlation=0.7), 720, SERIES, daily=True),
    "hourly, errors of the day before, n 1,440": Design(
        partial(seasonal, correlation=0.5, daily=0.3), 1440, SERIES, daily=True
    ),
}


def one_set(name, seed):
    """Return p-values and whether intervals hold the true values, (2, metrics) each: without, and with the option."""
    design, rng = DESIGNS[name], np.random.default_rng([1, seed])
    rows, models = design.rows(rng, design.errors(rng, design.n)), design.pair(rng)
    metrics, crps = [METRICS[each]() for each in NAMES], METRICS["crps"]()
    p_values, held = [], []
    for option in (INDEPENDENT, design.option):
        run = replace(FEW, dependence=option, seed=seed)
        results = {each.metric: each for each in evaluate(InMemory(rows), metrics, run=run).results}
        named = [Model(label, InMemory(each)) for label, each in zip("ab", models, strict=True)]
        results[DIFFERENCE] = compare(named, [crps], swaps=999, run=replace(run, replicates=0)).results[-1]
        p_values.append([results[each].p_value for each in (*NAMES, DIFFERENCE)])
        held.append([results[each].low <= value <= results[each].high for each, value in TRUE.items()])
    return p_values, held


def noticed(name, seed):
    """Return whether it is noticed that the rows of a set depend on each other."""
    design, rng = DESIGNS[name], np.random.default_rng([2, seed])
    return bool(dependence_warnings(design.rows(rng, design.errors(rng, design.n))))


def sizes(designs, number, workers):
    """Print the share of sets that fail, and the coverage of intervals."""
    print(f"{'':44}{'':10}" + "".join(f"{name:>17}" for name in (*NAMES, DIFFERENCE)))
    for name in designs:
        p_values, held = zip(*mapped(partial(one_set, name), number, workers), strict=True)
        failed, shares = np.mean(np.array(p_values) <= LEVEL, axis=0), np.mean(held, axis=0)
        for place, label in enumerate(("naive", "option")):
            print(f"{name:44}{label:10}" + "".join(f"{each:17.3f}" for each in failed[place]), flush=True)
        for place, label in enumerate(("naive", "option")):
            found = dict(zip(TRUE, shares[place], strict=True))
            cells = "".join(f"{found[each]:17.3f}" if each in found else f"{'':17}" for each in (*NAMES, DIFFERENCE))
            print(f"{'':26}{'intervals hold':18}{label:10}{cells}", flush=True)


def warnings(designs, number, workers):
    """Print the share of sets with a warning."""
    for name in designs:
        print(f"{name:44}{np.mean(mapped(partial(noticed, name), number, workers)):.3f}", flush=True)


def mapped(function, number, workers):
    """Return the results of a function for the seeds of all sets."""
    with patch.object(null_distribution, "MULTIPLIERS", 1999):
        if workers == 1:
            return [function(seed) for seed in range(number)]
        with ProcessPoolExecutor(workers) as pool:
            return list(pool.map(function, range(number), chunksize=10))


def main():
    """Run a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("sizes", "warnings"))
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    {"sizes": sizes, "warnings": warnings}[given.study](given.designs, given.sets, given.workers)


if __name__ == "__main__":
    main()
