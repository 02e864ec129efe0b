"""calcheck and the closed form on one file in one process, in turn: prints seconds and the largest difference."""

import json
import statistics
import sys
import time

import numpy as np

from calcheck import evaluate, read
from calcheck.metrics.cce import Cce
from tests.benchmarks.closed_form import cce_of_file

RUNS = 3  # of calcheck, before and after the closed form


def compare(path):
    """Return the median seconds of calcheck, those of the closed form, and the largest difference of CCE^2."""
    source, rows, seconds = read(path), {}, []
    source.predictions()

    def calcheck():
        started = time.perf_counter()
        evaluate(source, [Cce()], sink=lambda *handed: rows.update(handed[-1].columns))
        seconds.append(time.perf_counter() - started)

    for _ in range(RUNS):
        calcheck()
    started = time.perf_counter()
    squared = cce_of_file(path)
    naive = time.perf_counter() - started
    for _ in range(RUNS):
        calcheck()
    error = float(np.abs(rows["cce"] ** 2 - squared).max())
    return {"calcheck": statistics.median(seconds), "closed form": naive, "error": error}


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
