"""Reading 1,000,000 rows of y, mean and std, against pyarrow, in turn: prints seconds as JSON."""

import json
import statistics
import sys
import time

import pyarrow.parquet as pq

from calcheck import read

PAIRS = 31


def compare(path):
    """Return the median seconds of both, and the median ratio of pairs."""

    def timed(function):
        started = time.perf_counter()
        function()
        return time.perf_counter() - started

    def mine():
        read(path).predictions()

    def other():
        pq.read_table(path, columns=["y", "mean", "std"])

    mine(), other()
    pairs = [(timed(mine), timed(other)) for _ in range(PAIRS)]
    seconds = [statistics.median(column) for column in zip(*pairs, strict=True)]
    return {"mine": seconds[0], "other": seconds[1], "ratio": statistics.median(a / b for a, b in pairs)}


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
