"""How often mcmd rejects equal conditional distributions, by the distributions of inputs; or shifted means.

python -m tests.benchmarks.two_samples --sets 300
python -m tests.benchmarks.two_samples --sets 100 --shift 0.15
"""

import argparse

import numpy as np

from calcheck.execution.run import Run
from calcheck.metrics.mcmd import Mcmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions


def shuffled(rng, n):
    x = rng.uniform(0, 2 * np.pi, (n, 1))
    return x, rng.permutation(x)


INPUTS = {
    "the same distribution": lambda rng, n: rng.uniform(0, 2 * np.pi, (2, n, 1)),
    "the same inputs": shuffled,
    "denser to the right": lambda rng, n: (rng.uniform(0, 2 * np.pi, (n, 1)), 2 * np.pi * rng.beta(2, 1, (n, 1))),
    "1.25 deviations apart": lambda rng, n: (rng.normal(2.4, 1.2, (n, 1)), rng.normal(3.9, 1.2, (n, 1))),
    "2.2 deviations apart": lambda rng, n: (rng.normal(2, 1, (n, 1)), rng.normal(4.2, 1, (n, 1))),
    "three, the same distribution": lambda rng, n: rng.normal(size=(2, n, 3)),
    "three, 0.8 deviations apart": lambda rng, n: (rng.normal(size=(n, 3)), rng.normal([0.8, 0, 0], size=(n, 3))),
    "three, narrower": lambda rng, n: (rng.normal(size=(n, 3)), 0.7 * rng.normal(size=(n, 3))),
    "three, in boxes apart": lambda rng, n: (rng.uniform(0, 6, (n, 3)), rng.uniform(0.5, 6.5, (n, 3))),
}
"""Draws of the inputs of two samples, by their name in the table."""


def sample(rng, x, shift=0.0):
    mean = np.sin(x[:, 0]) + (0.5 * x[:, 1] if x.shape[1] > 1 else 0)
    noise = 0.2 + 0.1 * np.abs(np.sin(x[:, 0]))
    return InMemory(Predictions(x=x, y=mean + shift + noise * rng.normal(size=len(x)), has_embedding=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--shift", type=float, default=0.0)
    parser.add_argument("--inputs", help="only those whose name begins with this", default="")
    given = parser.parse_args()
    for name, draw in INPUTS.items():
        if not name.startswith(given.inputs):
            continue
        failed, flagged = [], []
        for seed in range(given.sets):
            rng = np.random.default_rng([7, seed])
            first, second = draw(rng, given.rows)
            (found,) = two_samples(sample(rng, first), sample(rng, second, given.shift), Mcmd(), run=Run()).results
            failed.append(found.verdict == "fail")
            flagged.append(found.details["rejected"]["count"] > 0)
        print(f"{name:<30} fail {np.mean(failed):.3f}, some input flagged {np.mean(flagged):.3f}")


if __name__ == "__main__":
    main()
