"""Several targets: how often right models are rejected, and models that treat dependent targets as independent.

    python -m tests.benchmarks.vectors --sets 1000

Normal forecasts of two targets, 500 rows, as families (whose own draws are compared) and as ensembles of 20. Errors of
the two targets have a correlation of 0, or of 0.5, which the forecasts do not have. It prints the share of data sets
with a p-value of at most 0.05, with 39 replicates, and the same for metrics of the first target alone.
"""

import argparse

import numpy as np

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.joint import Independent
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.helpers.simulations import band

ROWS, TARGETS, DRAWS = 500, 2, 20
JOINT = {
    "energy score": METRICS["crps"](),
    "variogram score": METRICS["crps"](vector_score="variogram"),
    **{
        f"ranks by {name}": METRICS["pit"](pre_rank=name)
        for name in ("variogram", "band-depth", "average", "multivariate")
    },
}
SINGLE = {name: METRICS[name]() for name in ("zms", "pit", "crps", "coverage")}


def forecasts(rng, rho, *, ensembles):
    """Return forecasts that are right for each target, and independent; their errors have a correlation."""
    mean, std = rng.normal(size=(ROWS, TARGETS)), rng.uniform(0.5, 2, (ROWS, TARGETS))
    z = np.sqrt(rho) * rng.normal(size=(ROWS, 1)) + np.sqrt(1 - rho) * rng.normal(size=(ROWS, TARGETS))
    draws = mean[:, None] + std[:, None] * rng.normal(size=(ROWS, DRAWS, TARGETS))
    columns = Independent(tuple(Gaussian(mean[:, place], std[:, place]) for place in range(TARGETS)))
    return Predictions(y=mean + std * z, predictive=Samples(draws) if ensembles else columns)


def first_target(rows):
    """Return the first target alone."""
    predictive = rows.predictive
    one = Samples(predictive.draws[..., 0]) if isinstance(predictive, Samples) else predictive.marginals[0]
    return Predictions(y=rows.y[:, 0], predictive=one)


def selected(metrics, names):
    """Return the named metrics; all if none is named."""
    return {name: metric for name, metric in metrics.items() if not names or name in names}


def rejected(rows, metrics, seed):
    """Return which metrics have a p-value of at most 0.05."""
    run = Run(replicates=39, resamples=0, seed=seed)
    if not metrics:
        return []
    return [each.p_value <= 0.05 for each in evaluate(InMemory(rows), list(metrics.values()), run=run).results]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--metrics", action="append", help="ranks by variogram; may be repeated")
    given = parser.parse_args()
    sets, joint, single = given.sets, selected(JOINT, given.metrics), selected(SINGLE, given.metrics)
    low, high = band(sets, 0.05)
    print(f"{sets} sets; a right test rejects in {low / sets:.3f} to {high / sets:.3f} at a correlation of 0")
    for ensembles in (False, True):
        for rho in (0.0, 0.5):
            rng = np.random.default_rng(21)
            counts = np.zeros(len(joint) + len(single))
            for seed in range(sets):
                rows = forecasts(rng, rho, ensembles=ensembles)
                counts += [*rejected(rows, joint, seed), *rejected(first_target(rows), single, seed)]
            shares = zip([*joint, *(f"{name} of one target" for name in single)], counts / sets, strict=True)
            print(f"{'ensembles' if ensembles else 'families'}, correlation {rho:g}:")
            print("\n".join(f"  {name:24} {share:.3f}" for name, share in shares), flush=True)


if __name__ == "__main__":
    main()
