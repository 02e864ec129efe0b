"""The region of `evaluate --inputs`: how much of it is wrong, how much of what is wrong is in it, and false regions.

    python -m tests.benchmarks.places --sets 100

Standard deviations are half of the right ones in about a quarter of the rows (a share of 0.2 to 0.3, drawn for each
set), which the inputs determine: beyond a value of the only input, of the first of three or of ten, of a sum of two or
three inputs, in a corner of two of four inputs, or in a ball of an embedding of 64 columns round a row, or round
another point. The last design is a right model.
"""

import argparse
import time

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.predictions import Predictions
from calcheck.regions.worst import worst_region

CONFIDENCE = 0.95


def _normal(d):
    return lambda rng, n: rng.normal(size=(n, d))


def _near(x, point):
    return -((x - point) ** 2).sum(axis=1)


DESIGNS = {
    "one input": (_normal(1), lambda _, x: x[:, 0]),
    "three inputs, x1 > c": (_normal(3), lambda _, x: x[:, 0]),
    "ten inputs, x1 > c": (_normal(10), lambda _, x: x[:, 0]),
    "three inputs, oblique": (_normal(3), lambda _, x: x @ [1, 1, 0.5]),
    "four inputs, corner": (_normal(4), lambda _, x: np.minimum(x[:, 0], x[:, 2])),
    "ball round a row": (_normal(64), lambda rng, x: _near(x, x[rng.integers(len(x))])),
    "ball round a point": (_normal(64), lambda rng, x: _near(x, rng.normal(size=64))),
    "right, three inputs": (_normal(3), None),
    "right, embedding": (_normal(64), None),
}


def found(design, rng, n, seed):
    """Return whether a region is found, the share of its rows that are wrong, and that of wrong rows in it."""
    draw, position = DESIGNS[design]
    x = draw(rng, n)
    where = np.zeros(n) if position is None else position(rng, x)
    wrong = where > np.quantile(where, 1 - rng.uniform(0.2, 0.3))
    y = rng.normal(size=n) * np.where(wrong, 2, 1)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(n), np.ones(n)), x=x, has_embedding=x.shape[1] > 10)
    names = [f"x{number + 1}" for number in range(x.shape[1])]
    region = worst_region(rows, NullSimulator(rows, Run(seed=seed)), names, CONFIDENCE)
    if region is None:
        return False, np.nan, np.nan
    both = (region.place.inside & wrong).sum()
    return True, both / region.place.inside.sum(), both / max(1, wrong.sum())


def main():
    """Print a line for each design and number of rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 2_000])
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    arguments = parser.parse_args()
    print(f"{'':22} {'rows':>5} {'found':>6} {'right in it':>12} {'of wrong in it':>15} {'s':>6}")
    for design in arguments.designs:
        for n in arguments.rows:
            rng, started = np.random.default_rng(7), time.perf_counter()
            sets = np.array([found(design, rng, n, seed) for seed in range(arguments.sets)])
            seconds = (time.perf_counter() - started) / arguments.sets
            share, recall = sets[sets[:, 0] > 0, 1:].sum(axis=0) / max(1, sets[:, 0].sum())
            print(
                f"{design:22} {n:5} {sets[:, 0].mean():6.2f} {1 - share:12.3f} {recall:15.3f} {seconds:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
