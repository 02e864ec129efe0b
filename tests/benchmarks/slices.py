"""Slices: how often a right model fails in some group or region, which faults are found, and the time of a search.

    python -m tests.benchmarks.slices level --sets 1000
    python -m tests.benchmarks.slices tree --sets 1000
    python -m tests.benchmarks.slices groups --sets 1000
    python -m tests.benchmarks.slices cce --sets 400
    python -m tests.benchmarks.slices power --sets 100
    python -m tests.benchmarks.slices time --rows 100000 --embedding 64

``level``, ``tree``, ``groups``, ``cce`` and ``cce-refit`` draw data sets from right models of four families, with ties,
texts and missing values in the columns and without, and print the share in which a region is found, or a group fails,
at a p-value of at most 0.05, with the limits of a binomial. ``power`` draws 2,000 rows of five inputs with a fault in
15 % of them, and prints the share of data sets in which it is found, with the mean overlap (intersection over union) of
the region found with the rows that are wrong; with ``--depth 3``, by a tree.
``time`` prints the processor time and the memory of a search of ten columns.
"""

import argparse
import resource
import time
from itertools import product

import numpy as np

from calcheck.core.filter_conditions import Condition
from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut
from calcheck.studies.slices.groups import by_groups
from calcheck.studies.slices.options import SearchOptions
from calcheck.studies.slices.search import search_regions
from tests.helpers.simulations import band

LEVEL = 0.05
FAMILIES = ("gaussian", "student-t", "counts", "ensemble")
TRUTHS = {"right": (1.0, False), "std x 1.3": (1.3, False), "std x 0.75": (0.75, False), "t3, std x 1.3": (1.3, True)}


def right(family, rng, n, *, ties=True):
    """Return a right model, with columns that have ties, texts and missing values, or none of these."""
    x = rng.normal(size=n)
    tied = {
        "tied": rng.integers(0, 4, n),
        "kind": rng.choice(["a", "b", "c"], n),
        "gaps": np.where(rng.random(n) < 0.2, np.nan, x),
    }
    inputs = np.stack([x, rng.normal(size=n)], axis=1)
    columns = {"x": x, **(tied if ties else {"other": rng.normal(size=n), "third": rng.random(n)})}
    mean, std = x, np.exp(0.4 * np.sin(2 * x))
    if family == "ensemble":
        draws = mean[:, None] + std[:, None] * rng.normal(size=(n, 12))
        return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:]), x=inputs, columns=columns)
    predictive = {
        "gaussian": Gaussian(mean, std),
        "student-t": StudentT(loc=mean, scale=std, df=np.full(n, 4.0)),
        "counts": Poisson(2 * np.exp(x / 2)),
    }[family]
    return Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive, x=inputs, columns=columns)


def searched(rows, seed, depth=None):
    """Return the p-value of a search."""
    options = SearchOptions(min_rows=15, bins=5, depth=depth)
    return search_regions(InMemory(rows), options=options, metrics=[], run=Run(replicates=19, seed=seed)).settings[
        "p_value"
    ]


def grown(rows, seed):
    """Return the p-value of a tree."""
    return searched(rows, seed, depth=3)


def grouped(rows, seed):
    """Return the smallest adjusted p-value of groups."""
    return _smallest(rows, seed)


def conditional(rows, seed):
    """Return the smallest adjusted p-value of cce by group, from one fit to all rows."""
    return _smallest(rows, seed, metrics=[Cce()])


def refitted(rows, seed):
    """Return the smallest adjusted p-value of cce by group, fitted to the rows of each group alone."""
    return _smallest(rows, seed, metrics=[Cce()], refit=True)


def _smallest(rows, seed, **options):
    cuts = [Cut.parse("x:3"), Cut("kind") if "kind" in rows.columns else Cut("other", bins=3)]
    run = Run(replicates=19, resamples=0, seed=seed)
    report = by_groups(InMemory(rows), cuts, min_rows=15, cross=True, run=run, **options)
    return min(each.p_value_adjusted for each in report.results if each.p_value_adjusted is not None)


LEVELS = {"level": searched, "tree": grown, "groups": grouped, "cce": conditional, "cce-refit": refitted}


def levels(p_value, sets, n):
    """Print the share of right models that fail somewhere."""
    low, high = band(sets, LEVEL)
    for family, ties in product(FAMILIES, (True, False)):
        rng = np.random.default_rng(7)
        count = sum(p_value(right(family, rng, n, ties=ties), seed) <= LEVEL * (1 + 1e-9) for seed in range(sets))
        name = f"{family}, {'ties' if ties else 'no ties'}"
        print(f"{name:19} {count / sets:.3f} of {sets} (limits {low / sets:.3f} to {high / sets:.3f})", flush=True)


def forecasts(rng, factor, heavy, n=2000):
    """Return forecasts of five inputs, wrong in 15 % of the rows, and which are wrong."""
    x = rng.random((n, 5))
    wrong = (x[:, 0] > 0.7) & (x[:, 1] < 0.5)
    zero, one = np.zeros(n), np.ones(n)
    predictive = StudentT(loc=zero, scale=one, df=np.full(n, 3.0)) if heavy else Gaussian(zero, one)
    y = np.where(wrong, factor, 1.0) * predictive.sample(rng, 1)[:, 0]
    return Predictions(y=y, predictive=predictive, columns=dict(zip("abcde", x.T, strict=True))), wrong


def selected(rows, report):
    """Return the rows of the region with the smallest p-value, by its filter."""
    inside = np.ones(len(rows), dtype=bool)
    first = min(report.results, key=lambda each: each.p_value_adjusted or 2.0)
    for text in first.slice["filter"].replace("'", "").split("--filter ")[1:]:
        condition = Condition.parse(text.strip())
        values, limit = rows.columns[condition.column], float(condition.value)
        inside &= values <= limit if condition.operator == "<=" else values > limit
    return inside


def power(sets, depth=None):
    """Print how often faults are found, and where, by a search or by a tree."""
    options = SearchOptions(most=1, depth=depth)
    for name, (factor, heavy) in TRUTHS.items():
        rng, count, overlaps = np.random.default_rng(3), 0, []
        for seed in range(sets):
            rows, wrong = forecasts(rng, factor, heavy)
            report = search_regions(InMemory(rows), options=options, run=Run(replicates=99, resamples=0, seed=seed))
            found = selected(rows, report)
            count += report.settings["p_value"] <= LEVEL
            overlaps.append((found & wrong).sum() / (found | wrong).sum())
        print(f"{name:14} found {count / sets:.2f}, overlap {np.mean(overlaps):.2f}", flush=True)


def timed(n, d=0, depth=None):
    """Print the processor time of a search of ten columns and an embedding of d numbers, and the peak memory."""
    rng = np.random.default_rng(0)
    columns = {f"x{number}": rng.random(n) for number in range(10)}
    std = np.exp(0.3 * rng.normal(size=n))
    x = rng.standard_normal((n, d), dtype=np.float32) if d else None
    rows = Predictions(y=std * rng.normal(size=n), predictive=Gaussian(rng.normal(size=n), std), x=x, columns=columns)
    start = time.process_time()
    report = search_regions(InMemory(rows), options=SearchOptions(depth=depth))
    took, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{n:,} rows: {took:.1f} s, {peak:.2f} GB, {report.settings.get('regions', 0):,} regions")


def main():
    """Run the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=(*LEVELS, "power", "time"))
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--embedding", type=int, default=0)
    parser.add_argument("--depth", type=int)
    given = parser.parse_args()
    if given.what in LEVELS:
        levels(LEVELS[given.what], given.sets, given.rows or 150)
    elif given.what == "power":
        power(given.sets, given.depth)
    else:
        timed(given.rows or 100_000, given.embedding, given.depth)


if __name__ == "__main__":
    main()
