"""Calibrated models of every family, for laws that all of them obey."""

import numpy as np

from calcheck.predictions import Predictions
from calcheck.predictive import Gaussian, Samples
from calcheck.predictive.double_poisson import DoublePoisson
from calcheck.predictive.nbinom import NegativeBinomial
from calcheck.predictive.poisson import Poisson


def gaussian(rng, n):
    """Normal distributions with means and spreads of their own."""
    return Gaussian(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))


def samples(rng, n, m=40):
    """Draws from such distributions."""
    return Samples(gaussian(rng, n).sample(rng, m))


def poisson(rng, n):
    """Counts around 6."""
    return Poisson(rng.gamma(3, 2, n))


def nbinom(rng, n):
    """Counts around 6, with a larger spread."""
    return NegativeBinomial(mu=rng.gamma(3, 2, n), size=rng.uniform(2, 5, n))


def double_poisson(rng, n):
    """Counts around 12, with a smaller spread."""
    return DoublePoisson(mu=rng.gamma(6, 2, n), phi=rng.uniform(1.5, 3, n))


FAMILIES = {
    "gaussian": gaussian,
    "samples": samples,
    "poisson": poisson,
    "nbinom": nbinom,
    "double-poisson": double_poisson,
}


def calibrated(family, *, n=300, seed=0):
    """Return predictions whose targets are drawn from them (for samples: from what the draws are from)."""
    rng = np.random.default_rng(seed)
    predictive = FAMILIES[family](rng, n)
    if family == "samples":  # y is one more draw
        y, predictive = predictive.draws[:, 0], Samples(predictive.draws[:, 1:])
    else:
        y = predictive.sample(rng, 1)[:, 0]
    return Predictions(y=y, predictive=predictive, x=rng.normal(size=(n, 3)), embedded=False)
