"""Whether p-values keep their promise where the model is right, and which metric sees what where it is wrong.

    python -m tests.benchmarks.significance levels --sets 1000 --workers 2
    python -m tests.benchmarks.significance power --sets 200 --workers 2
    python -m tests.benchmarks.significance levels --rows 100 --targets 3 --metrics ammd jmmd cmmd fid

``levels`` draws data sets from models that are right, and prints the share of p <= 0.05 of each metric: it should lie
inside the binomial band at 99.9 %, divided by the number of cells (below it where ties make p conservative). ``power``
does the same for models that are wrong. With more than one target an input, only some metrics know rows that belong
together.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.predictive import Gaussian, Samples
from calcheck.predictive.nbinom import NegativeBinomial
from calcheck.predictive.poisson import Poisson
from calcheck.predictive.student_t import StudentT

LEVEL = 0.05
REPLICATES = 39  # the fewest with which a two-sided p-value can be 0.05, and be it exactly
PLAIN, IN_BINS = Run(resamples=0, reference=REPLICATES), Run(resamples=100, reference=REPLICATES)
TESTED = [name for name, metric in METRICS.items() if metric.sided != "none"]
BINNED = ("lzms", "lrce")
CONSERVATIVE = {"coverage", *BINNED}  # shares of few rows or bins tie


def gaussian(rng, n):
    """Return inputs and normal distributions: means and spreads vary with the inputs."""
    x = rng.normal(size=(n, 1))
    return x, Gaussian(x[:, 0], np.exp(0.4 * np.sin(2 * x[:, 0])))


def student_t(rng, n):
    x, normal = gaussian(rng, n)
    return x, StudentT(loc=normal.loc, scale=normal.scale, df=np.full(n, 5.0))


def poisson(rng, n):
    x, normal = gaussian(rng, n)
    return x, Poisson(4 * np.exp(normal.loc / 2))


def nbinom(rng, n):
    x, normal = gaussian(rng, n)
    return x, NegativeBinomial(mu=4 * np.exp(normal.loc / 2), size=np.full(n, 3.0))


def samples(draws, rng, n):
    x, normal = gaussian(rng, n)
    return x, Samples(normal.sample(rng, draws)), normal


RIGHT = {
    "gaussian": gaussian,
    "student-t": student_t,
    "poisson": poisson,
    "nbinom": nbinom,
    **{f"samples {draws}": partial(samples, draws) for draws in (1, 5, 50)},
}


def spread(factor, rng, n):
    """Predict normal distributions whose spread is off by a factor."""
    x, normal = gaussian(rng, n)
    return x, Gaussian(normal.loc, factor * normal.scale), normal


def shifted(rng, n):
    x, normal = gaussian(rng, n)
    return x, Gaussian(normal.loc + 0.3 * normal.scale, normal.scale), normal


def marginal(rng, n):
    """Predict the marginal distribution everywhere: y = 0.9 x + noise is standard normal over all inputs."""
    x = rng.normal(size=(n, 1))
    truth = Gaussian(0.9 * x[:, 0], np.full(n, np.sqrt(1 - 0.81)))
    return x, Gaussian(np.zeros(n), np.ones(n)), truth


def light_tails(rng, n):
    """Predict normal distributions with the spread of Student-t data."""
    x, truth = student_t(rng, n)
    return x, Gaussian(truth.loc, truth.std()), truth


WRONG = {
    **{f"std x {factor:g}": partial(spread, factor) for factor in (0.7, 0.85, 1.2, 1.4)},
    "mean + 0.3 std": shifted,
    "marginal": marginal,
    "normal for t": light_tails,
}


def p_values(maker, names, targets, n, seed):
    """Return the p-value of each metric for one data set; absent where it does not apply."""
    rng = np.random.default_rng([seed, n])
    x, predictive, *truth = maker(rng, n)
    which = np.repeat(np.arange(n), targets)
    y = (truth[0] if truth else predictive).take(which).sample(rng, 1)[:, 0]
    key = which if targets > 1 else None
    rows = Predictions(y=y, predictive=predictive.take(which), x=x[which], embedded=False, id=key)
    found = {}
    for run, chosen in ((PLAIN, names), (IN_BINS, [name for name in names if name in BINNED])):
        report = evaluate(InMemory(rows), [METRICS[name]() for name in chosen], run=run)
        found |= {result.metric: result.p_value for result in report.results if result.p_value is not None}
    return found


def rejected(maker, names, targets, n, sets, workers):
    """Return the share of data sets in which each metric's p-value is at most 0.05."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(partial(p_values, maker, names, targets, n), range(sets), chunksize=10))
    return {name: np.mean([each[name] <= LEVEL for each in found]) for name in names if name in found[0]}


def print_table(names, cells):
    """Print metrics as rows and cells as columns."""
    print(f"| metric | {' | '.join(cells)} |")
    print(f"| --- |{' ---: |' * len(cells)}")
    for name in names:
        shares = (f"{cell[name]:.3f}" if name in cell else "–" for cell in cells.values())
        print(f"| {name} | {' | '.join(shares)} |")


def band(sets, cells):
    """Return between what shares all cells lie with a probability of 99.9 %, if every p-value is exact."""
    from scipy.stats import binom

    tail = 0.001 / cells / 2
    return binom.ppf(tail, sets, LEVEL) / sets, binom.ppf(1 - tail, sets, LEVEL) / sets


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["levels", "power"])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="*")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--targets", type=int, default=1)
    parser.add_argument("--metrics", choices=TESTED, nargs="*", default=TESTED)
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    makers = RIGHT if given.what == "levels" else WRONG
    rows = given.rows or ([200, 1000] if given.what == "levels" else [1000])
    cells = {}
    for n in rows:
        for name, maker in makers.items():
            cells[f"{name}, n = {n}"] = rejected(maker, given.metrics, given.targets, n, given.sets, given.workers)
            print(
                f"{name}, n = {n}:",
                *(f"{each} {share:.3f}" for each, share in cells[f"{name}, n = {n}"].items()),
                flush=True,
            )
    print_table(given.metrics, cells)
    if given.what == "levels":
        low, high = band(given.sets, sum(map(len, cells.values())))
        outside = [
            (cell, name)
            for cell, shares in cells.items()
            for name, share in shares.items()
            if share > high or (share < low and name not in CONSERVATIVE and "samples" not in cell)
        ]
        print(f"band [{low:.3f}, {high:.3f}]; outside: {outside or 'none'}")


if __name__ == "__main__":
    main()
