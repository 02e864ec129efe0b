"""All metrics of a file of y, mean and std, against a minimal computation, in turn: prints seconds as JSON.

The minimum is reading the columns with pyarrow, one distribution function of all rows, and one argsort.
"""

import json
import statistics
import sys
import time

import numpy as np
import pyarrow.parquet as pq
from scipy.special import ndtr

from calcheck import METRICS, read
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run

RUNS = 3
PLAIN = Run(resamples=0, replicates=0)


def minimum(path):
    """Read the columns, and do what every evaluation needs."""
    y, mean, std = (column.to_numpy() for column in pq.read_table(path, columns=["y", "mean", "std"]).columns)
    return ndtr((y - mean) / std), np.argsort(std)


def every_metric(path):
    """Do what `calcheck evaluate` does."""
    return evaluate(read(path), [metric() for metric in METRICS.values()], run=PLAIN)


def timed(work, path):
    """Return the seconds that a function takes."""
    started = time.perf_counter()
    work(path)
    return time.perf_counter() - started


if __name__ == "__main__":
    pairs = [(timed(every_metric, sys.argv[1]), timed(minimum, sys.argv[1])) for _ in range(1 + RUNS)][1:]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(first / second for first, second in pairs)
    print(json.dumps({"mine": mine, "other": other, "ratio": ratio}))
