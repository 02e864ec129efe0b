"""Where a conditional metric rejects a model: false discoveries, and how far they extend across a border.

    python -m tests.benchmarks.pointwise --sets 50
    python -m tests.benchmarks.pointwise --sets 50 --rows 500 --designs
    python -m tests.benchmarks.pointwise --sets 1000 --rows 200 --sizes

Inputs in two clusters, or in two halves that touch; the model is right in one, and its spread is off by a factor in the
other. ``--designs`` prints the share of right inputs among those called, and that of wrong inputs that are called, with
the standard deviation doubled in a quarter of the rows: beyond 30 of one input of 0 to 40, or beyond a value of the
first of three or of ten inputs, or in two regions of one input; in brackets those of all rejected neighborhoods.
``--sizes`` prints for ten kinds of right models how often p is at most 5 % and 1 % for the mean, and at most 5, 1
and .1 % for an input, pooled over inputs; each with its standard error, from the sets.
"""

import argparse
from functools import partial

import numpy as np
from scipy import stats

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.p_values_and_verdicts import benjamini_hochberg
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.benchmarks.models import RIGHT, rows_of, samples

FDR = 0.05
DISTANCES = ((0.0, 0.25), (0.25, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 3.0))  # from the border, in length scales


def two_clusters(rng, n):
    """Return inputs one length scale wide and 12 apart, and which of them the model is wrong at."""
    wrong = np.arange(n) % 2 == 1
    return rng.uniform(-0.5, 0.5, n) + 12 * wrong, wrong


def two_halves(rng, n):
    """Return inputs on six length scales, and which of them the model is wrong at: those right of the middle."""
    x = rng.uniform(-3, 3, n)
    return x, x > 0


def flagged(layout, n, seed, factor, replicates):
    """Return inputs, which of them the model is wrong at, and which are rejected."""
    rng = np.random.default_rng([seed, n])
    x, wrong = layout(rng, n)
    rows = Predictions(
        y=np.sin(x) + rng.normal(size=n),
        predictive=Gaussian(np.sin(x), np.where(wrong, factor, 1.0)),
        x=x[:, None],
        has_embedding=False,
    )
    found = {}
    cce = METRICS["cce"](kernel_x="rbf", gamma_x=0.5)  # length scale 1
    run = Run(seed=seed, replicates=replicates)
    evaluate(InMemory(rows), [cce], run=run, sink=lambda *handed: found.update(handed[-1].columns))
    return x, wrong, found["significant"]


def in_clusters(given, factor):
    """Print the false discovery rate, and the share of the wrong inputs that are rejected."""
    rates, powers = [], []
    for seed in range(given.sets):
        _, wrong, called = flagged(two_clusters, given.rows, seed, factor, given.replicates)
        rates.append((called & ~wrong).sum() / max(1, called.sum()))
        powers.append(called[wrong].mean())
    rate, error = np.mean(rates), np.std(rates, ddof=1) / np.sqrt(len(rates))
    print(f"clusters, std x {factor}: false discovery rate {rate:.4f} +- {error:.4f}, found {np.mean(powers):.3f}")


def in_halves(given, factor):
    """Print the shares of right inputs that are flagged, by their distance from the border."""
    shares = []
    for seed in range(given.sets):
        x, wrong, called = flagged(two_halves, given.rows, seed, factor, given.replicates)
        bands = [called[~wrong & (-x >= low) & (-x < high)].mean() for low, high in DISTANCES]
        shares.append([*bands, called[wrong].mean()])
    *leaked, found = np.mean(shares, axis=0)
    listed = ", ".join(f"{low:g}-{high:g}: {share:.2f}" for (low, high), share in zip(DISTANCES, leaked, strict=True))
    print(f"halves, std x {factor}: right inputs flagged by distance from the border {listed}; wrong ones {found:.2f}")


def outer(d, rng, n):
    """Return d inputs, and the quarter with the largest values of the first one."""
    x = rng.normal(size=(n, d)) if d > 1 else rng.uniform(0, 40, size=(n, 1))
    return x, np.where(x[:, 0] > (stats.norm.ppf(0.75) if d > 1 else 30), 2.0, 1.0)


def two_regions(rng, n):
    """Return one input, and factors of two regions, of which one is less wrong."""
    x = rng.uniform(0, 40, size=(n, 1))
    return x, np.where(x[:, 0] > 34, 2.0, np.where(np.abs(x[:, 0] - 10) < 3, 1.5, 1.0))


DESIGNS = {
    "one input": partial(outer, 1),
    "three inputs": partial(outer, 3),
    "ten inputs": partial(outer, 10),
    "two regions": two_regions,
}


def in_designs(given):
    """Print for each design the shares of right inputs among those called, and of wrong ones that are called."""
    for name, make in DESIGNS.items():
        shares = []
        for seed in range(given.sets):
            rng, found = np.random.default_rng([seed, given.rows]), {}
            x, factor = make(rng, given.rows)
            predictive = Gaussian(np.zeros(given.rows), np.ones(given.rows))
            rows = Predictions(y=factor * rng.normal(size=given.rows), predictive=predictive, x=x, has_embedding=False)
            run = Run(seed=seed, replicates=given.replicates)
            evaluate(
                InMemory(rows), [METRICS["cce"]()], run=run, sink=lambda *got, to=found: to.update(got[-1].columns)
            )
            wrong, rejected = factor != 1, benjamini_hochberg(found["p_value"], FDR)
            for called in (found["significant"], rejected):
                shares += [(called & ~wrong).sum() / max(1, called.sum()), called[wrong].mean()]
        right, found, right_rejected, found_rejected = np.reshape(shares, (given.sets, 4)).mean(axis=0)
        print(
            f"{name}, {given.rows} rows: {right:.3f} of those called are right ({right_rejected:.3f}),"
            f" {found:.3f} of the wrong ones are called ({found_rejected:.3f})",
            flush=True,
        )


def flat(rng, n):
    """Return three inputs, and one normal distribution for all rows."""
    return rng.normal(size=(n, 3)), Gaussian(np.zeros(n), np.ones(n))


def of_inputs(d, rng, n):
    """Return d inputs, and normal distributions that depend on the first of them."""
    x = rng.normal(size=(n, d))
    return x, Gaussian(x[:, 0], np.exp(0.4 * np.sin(2 * x[:, 0])))


def six_values(rng, n):
    """Return an input that has six values, and normal distributions that depend on it."""
    x = rng.integers(6, size=(n, 1)).astype(float)
    return x, Gaussian(x[:, 0], 1 + x[:, 0] / 5)


KINDS = {
    "20 draws": partial(samples, 20),
    "three inputs, equal std": flat,
    "one input": RIGHT["gaussian"],
    "three inputs": partial(of_inputs, 3),
    "64 inputs": partial(of_inputs, 64),
    "poisson": RIGHT["poisson"],
    "negative binomial": RIGHT["nbinom"],
    "six values of an input": six_values,
    "t4": RIGHT["t4"],
    "lognormal": RIGHT["lognormal"],
}


def p_values(make, given, seed):
    """Return the p-values of the mean and of each input of a data set of a right model."""
    rows, found = rows_of(make, given.rows, seed), {}
    run = Run(seed=seed, resamples=0)
    result = evaluate(InMemory(rows), [METRICS["cce"]()], run=run, sink=lambda *got: found.update(got[-1].columns))
    return result.results[0].p_value, found["p_value"]


def sizes(given):
    """Print for each kind of right model how often p is small, for the mean and pooled over inputs."""
    for name in given.kinds:
        means, inputs = zip(*(p_values(KINDS[name], given, seed) for seed in range(given.sets)), strict=True)
        shares = [np.array(means) <= level for level in (0.05, 0.01)]
        shares += [np.mean(np.array(inputs) <= level, axis=1) for level in (0.05, 0.01, 0.001)]
        means, errors = np.mean(shares, axis=1), np.std(shares, axis=1) / np.sqrt(given.sets)
        found = [f"{mean:.4f} +- {error:.4f}" for mean, error in zip(means, errors, strict=True)]
        print(
            f"{name}: mean at 5, 1 %: {', '.join(found[:2])}; inputs at 5, 1, .1 %: {', '.join(found[2:])}", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--designs", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    given = parser.parse_args()
    if given.designs or given.sizes:
        (in_designs if given.designs else sizes)(given)
        return
    for factor in (0.5, 2.0):
        in_clusters(given, factor)
        in_halves(given, factor)


if __name__ == "__main__":
    main()
