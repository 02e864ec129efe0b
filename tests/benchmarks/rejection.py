"""Bands of rejection curves: how often whole curves are inside, for normal errors with uniform standard deviations.

    python -m tests.benchmarks.rejection --sets 400 --rows 300

The mean absolute error of the share r of the rows with the smallest standard deviations, uniform from 0.5 to 2, is
sqrt(2 / pi) (0.5 + 0.75 r).
"""

import argparse

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.reject.study import RejectionGrid, reject

RETAINED = 1 - RejectionGrid().shares()
TRUTH = np.sqrt(2 / np.pi) * (0.5 + 0.75 * RETAINED)


def curves_of(seed, n):
    """Return value, low and high of the curve of each criterion, (3, s)."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.5, 2, n)
    rows = Predictions(
        y=std * rng.normal(size=n),
        predictive=Gaussian(np.zeros(n), std),
        has_embedding=False,
        columns={"noise": rng.normal(size=n)},
    )
    report = reject(InMemory(rows), [METRICS["mae"]()], by=["std", "noise", "random"], run=Run(seed=seed))
    found = {}
    for each in report.results:
        if each.slice["rejected"] != "area":
            found.setdefault(each.slice["by"], []).append((each.value, each.low, each.high))
    return {name: np.array(line, dtype=float).T for name, line in found.items()}


def is_inside(curve, limits):
    """Return whether a curve is inside the limits wherever there are some."""
    return not ((curve < limits[1]) | (curve > limits[2])).any()


def outcome(seed, n):
    """Return whether the true curve is in the band of std, and the curve of noise in that of random orders."""
    found = curves_of(seed, n)
    return is_inside(TRUTH, found["std"]), is_inside(found["noise"][0], found["random"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300)
    given = parser.parse_args()
    shares = np.mean([outcome(seed, given.rows) for seed in range(given.sets)], axis=0)
    print(f"{given.sets} sets of {given.rows} rows: true curve in the band of resampled rows {shares[0]:.3f}")
    print(f"curve of noise in the band of random orders {shares[1]:.3f}")


if __name__ == "__main__":
    main()
