"""calcheck and another computation on one file in one process, in turn: prints seconds.

The other is the closed form, with the largest difference, or calcheck with replicates of the targets.
"""

import json
import statistics
import sys
import time

import numpy as np

from calcheck import read
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from tests.benchmarks.closed_form import cce_of_file

PLAIN = Run(replicates=0)
RUNS = 3  # of calcheck, before and after the closed form


def compare(path):
    """Return the median seconds of calcheck, those of the closed form, and the largest difference of CCE^2."""
    source, rows, seconds = read(path), {}, []
    source.predictions()

    def calcheck():
        started = time.perf_counter()
        evaluate(source, [Cce()], run=PLAIN, sink=lambda *handed: rows.update(handed[-1].columns))
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


def simulated(path, replicates):
    """Return the median seconds of calcheck without and with replicates."""
    source = read(path)
    source.predictions()
    seconds = {0: [], replicates: []}
    for count in [0, replicates] * (RUNS + 1):  # the first of each is a warm-up
        started = time.perf_counter()
        evaluate(source, [Cce()], run=Run(replicates=count))
        seconds[count].append(time.perf_counter() - started)
    return {
        "calcheck": statistics.median(seconds[0][1:]),
        "simulated": statistics.median(seconds[replicates][1:]),
    }


if __name__ == "__main__":
    path, *replicates = sys.argv[1:]
    print(json.dumps(simulated(path, int(replicates[0])) if replicates else compare(path)))
