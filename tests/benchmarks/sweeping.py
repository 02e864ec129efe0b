"""A sweep, which fits inputs once, against one computation per setting, in one process: prints seconds as JSON."""

import json
from time import perf_counter

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.metrics.cce import Cce
from calcheck.models.alignment import Model
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.sweep.study import parse, points, sweep
from tests.helpers.shorthand import gaussian_case, rows_of

SIZES, SWEPT = (
    ((2000, 512), (4000, 512)),
    (("lambda=0.001..1:7", 1), ("lambda=0.001..1:7", 4), ("gamma-y=0.1..10:7", 1)),
)


def compared(n, d, text, models):
    """Return the seconds of a sweep and of single computations, and the largest difference of their values."""
    x, y, predictive = gaussian_case(np.random.default_rng(0), n, d)
    rows = [
        Predictions(y=y, predictive=Gaussian(predictive.loc, by * predictive.scale), x=x.astype(np.float32))
        for by in (1.0, 0.7, 1.4, 2.0)[:models]
    ]
    varied = [parse(text, Cce)]
    started = perf_counter()
    named = [Model(f"m{place}", InMemory(each)) for place, each in enumerate(rows)]
    swept = [result.value for result in sweep(named, Cce(), varied).results]
    shared = perf_counter() - started
    started = perf_counter()
    metrics = [place.metric for place in points(Cce(), varied, all_combinations=False)]
    alone = [rows_of(metric, each).columns["cce"].mean() for metric in metrics for each in rows]
    apart = float(np.abs(np.array(swept) - alone).max())
    return {"mine": shared, "other": perf_counter() - started, "error": apart}


if __name__ == "__main__":
    print(
        json.dumps(
            {
                f"{text}, {models} model{'s' * (models > 1)}, {n:,} x {d}": compared(n, d, text, models)
                for n, d in SIZES
                for text, models in SWEPT
            }
        )
    )
