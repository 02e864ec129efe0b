"""Average and binned calibration against a minimal computation, in turn: prints seconds as JSON."""

import json
import statistics
import time

import numpy as np
from scipy import stats
from scipy.special import ndtr

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions

PAIRS = 7


def gaussian(rows):
    """Return calibrated predictions."""
    rng = np.random.default_rng(0)
    std = np.exp(0.4 * rng.normal(size=rows))
    return Predictions(y=std * rng.normal(size=rows), predictive=Gaussian(np.zeros(rows), std))


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turn(mine, other, pairs=PAIRS):
    """Return the median seconds of both, and the median of their ratio."""
    mine(), other()
    times = [(seconds(mine), seconds(other)) for _ in range(pairs)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    return {"mine": first, "other": second, "ratio": statistics.median(b / a for a, b in times)}


def fresh(rows):
    """Return the same predictions in a new source, of which nothing is cached."""
    return InMemory(Predictions(y=rows.y, predictive=rows.predictive))


def bca():
    """ZMS and RCE with 10,000 resamples, n = 13,885, against scipy's bootstrap at its best setting."""
    rows = gaussian(13_885)
    error, std = rows.y, rows.predictive.scale
    z2, variance, squared = (error / std) ** 2, std**2, error**2
    settings = {"n_resamples": 10_000, "method": "BCa", "vectorized": True, "batch": 50}

    def mine():
        evaluate(fresh(rows), [METRICS["zms"](), METRICS["rce"]()], run=Run(resamples=10_000, replicates=0))

    def rce(v, e, axis=-1):
        return 1 - np.sqrt(e.mean(axis=axis) / v.mean(axis=axis))

    def other():
        stats.bootstrap((z2,), np.mean, rng=np.random.default_rng(0), **settings)
        stats.bootstrap((variance, squared), rce, paired=True, rng=np.random.default_rng(0), **settings)

    return in_turn(mine, other, pairs=1)


def ece():
    """99 levels on a million rows, against one ndtr and one histogram."""
    rows = gaussian(1_000_000)
    z = rows.y / rows.predictive.scale
    metric = METRICS["ece"]()

    def mine():
        evaluate(fresh(rows), [metric], run=Run(resamples=0, replicates=0))

    return in_turn(mine, lambda: np.histogram(ndtr(z), 100, (0, 1)))


def ence():
    """A million rows, against one argsort of the uncertainties."""
    rows = gaussian(1_000_000)
    metric = METRICS["ence"]()

    def mine():
        evaluate(fresh(rows), [metric], run=Run(resamples=0, replicates=0))

    return in_turn(mine, lambda: np.argsort(rows.predictive.scale))


if __name__ == "__main__":
    print(json.dumps({work.__name__: work() for work in (bca, ece, ence)}))
