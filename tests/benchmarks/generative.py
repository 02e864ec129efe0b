"""Metrics of joint distributions against their naive pairwise form, in one process: prints seconds and MB as JSON.

    python -m tests.benchmarks.generative {ammd,jmmd}
    python -m tests.benchmarks.generative linear COLUMNS ROWS
    python -m tests.benchmarks.generative nulls ROWS

``linear`` compares linear time with all pairs: seconds, and their difference, relative to the value and to the standard
deviation under the null hypothesis. ``nulls`` compares metrics of normal distributions at three inputs with and without
replicates, in processor seconds.
"""

import json
import sys
import time
import tracemalloc

import numpy as np

from calcheck.distributions import Gaussian, Samples
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions

PLAIN = Run(replicates=0, resamples=0)
CORRELATION = 0.9  # of neighboring columns


def sampled(n, d, draws, wrong=0.0):
    """Return n perfect ensembles, or shifted ones, at inputs with correlated columns."""
    rng = np.random.default_rng([n, d])
    x = rng.normal(size=(n, d))
    for column in range(1, d):
        x[:, column] = CORRELATION * x[:, column - 1] + np.sqrt(1 - CORRELATION**2) * x[:, column]
    std = np.exp(0.3 * x[:, :1])
    y = np.sin(2 * x[:, :1]) + std * rng.normal(size=(n, 1 + draws))
    return Predictions(y=y[:, 0], predictive=Samples(y[:, 1:] + wrong), x=x, has_embedding=False)


def standardized(rows):
    """Return inputs, targets and draws, standardized as in the metrics."""
    center, deviation = rows.y.mean(), rows.y.std(ddof=1)
    x = (rows.x - rows.x.mean(axis=0)) / rows.x.std(axis=0, ddof=1)
    return x, (rows.y[:, None] - center) / deviation, (rows.predictive.draws - center) / deviation


def k_y(a, b):
    """Return exp(-(a - b)^2 / 2)."""
    return np.exp(-0.5 * (a - b) ** 2)


def naive_ammd(rows):
    """Return the unbiased estimate by all pairs of each row's values at once."""
    _, y, draws = standardized(rows)
    size = draws.shape[1]
    within = k_y(draws[:, :, None], draws[:, None]).sum(axis=(1, 2)) - size
    return np.mean(-2 * k_y(y, draws).mean(axis=1) + within / (size * (size - 1)))


def naive_jmmd(rows):
    """Return the unbiased estimate by whole Gram matrices, n by n, one for each pair of draws."""
    x, y, draws = standardized(rows)
    n, size = draws.shape
    norms = (x**2).sum(axis=1)
    k = np.exp(-0.5 * np.maximum(norms[:, None] + norms - 2 * x @ x.T, 0))
    np.fill_diagonal(k, 0)
    products = k_y(y, y.T)
    for a in range(size):
        products -= 2 / size * k_y(y, draws[:, a])
        for b in range(size):
            products += k_y(draws[:, a, None], draws[:, b]) / size**2
    return np.sum(k * products) / (n * (n - 1))


def value(name, rows, **options):
    """Return the result of a metric of calcheck."""
    return evaluate(InMemory(rows), [METRICS[name](**options)], run=PLAIN).results[0]


def measured(work):
    """Return the result of a computation, its seconds, and the growth of memory in MB in a separate run."""
    work()
    started = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found, seconds, peak / 1e6


def against_naive(name, rows, naive):
    """Compare a metric with its naive form."""
    mine, seconds, grew = measured(lambda: value(name, rows).value)
    other, other_seconds, other_grew = measured(lambda: naive(rows))
    return {
        "mine": seconds,
        "other": other_seconds,
        "mine_mb": grew,
        "other_mb": other_grew,
        "error": abs(mine - other),
    }


def ammd():
    """A million rows of two draws."""
    return against_naive("ammd", sampled(1_000_000, 4, 2), naive_ammd)


def jmmd():
    """Ten thousand rows of two draws, all pairs."""
    return against_naive("jmmd", sampled(10_000, 4, 2), naive_jmmd)


def linear(d, n):
    """Linear time against all pairs, on perfect ensembles and on shifted ones."""
    found = {}
    for kind, wrong in (("right", 0.0), ("shifted", 0.1)):
        rows = sampled(n, d, 2, wrong)
        started = time.perf_counter()
        fast = value("jmmd", rows, max_exact_rows=1)
        between = time.perf_counter()
        exact = value("jmmd", rows, max_exact_rows=n)
        pairs = fast.details["pairs"]
        missed = abs(fast.value - exact.value)
        found[kind] = {
            "mine": between - started,
            "other": time.perf_counter() - between,
            "rank": pairs["rank"],
            "of_value": missed / abs(exact.value),
            "of_null": missed / pairs["null_std"],
            "estimated": pairs["error"] / pairs["null_std"],
        }
    return found


def nulls(n):
    """Metrics with replicates against the same without; the first run loads modules."""
    rng, found = np.random.default_rng(n), {}
    x, std = rng.uniform(size=(n, 3)), np.exp(0.4 * rng.normal(size=n)) / 2
    rows = Predictions(y=2 * x[:, 0] + std * rng.normal(size=n), predictive=Gaussian(2 * x[:, 0], std), x=x)
    for name in ("cce", "jmmd", "cmmd"):
        times = []
        for run in (Run(replicates=19, resamples=0), PLAIN, Run(replicates=199, resamples=0)):
            started = time.process_time()
            evaluate(InMemory(rows), [METRICS[name]()], run=run)
            times.append(time.process_time() - started)
        found[name] = {"mine": times[2], "other": times[1], "ratio": times[2] / times[1]}
    return found


if __name__ == "__main__":
    work, *numbers = sys.argv[1:]
    print(json.dumps({"ammd": ammd, "jmmd": jmmd, "linear": linear, "nulls": nulls}[work](*map(int, numbers))))
