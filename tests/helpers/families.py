"""Calibrated models of every family, for laws that all of them satisfy."""

import numpy as np

from calcheck.distributions import CONVENTIONS, Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import Cauchy, Laplace, StudentT
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal, Weibull
from calcheck.predictions import Predictions

LEVELS = np.array([0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99])


def gaussian(rng, n):
    """Normal distributions with random means and standard deviations."""
    return Gaussian(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))


def samples(rng, n, m=40):
    """Draws from normal distributions."""
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


def laplace(rng, n):
    """Laplace distributions with random locations and scales."""
    return Laplace(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))


def student_t(rng, n):
    """Student-t distributions with at least four moments."""
    return StudentT(loc=rng.normal(size=n), scale=np.exp(0.3 * rng.normal(size=n)), df=rng.uniform(5, 9, n))


def cauchy(rng, n):
    """Cauchy distributions with random locations and scales."""
    return Cauchy(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))


def lognormal(rng, n):
    """Log-normal distributions, moderately skewed."""
    return LogNormal(mu=rng.normal(size=n), sigma=rng.uniform(0.2, 0.6, n))


def gamma(rng, n):
    """Gamma distributions with coefficients of variation of about a half."""
    return Gamma(shape=rng.uniform(2, 8, n), scale=np.exp(0.3 * rng.normal(size=n)))


def weibull(rng, n):
    """Weibull distributions with coefficients of variation from 0.2 to 0.7."""
    return Weibull(c=rng.uniform(1.5, 6, n), scale=np.exp(0.3 * rng.normal(size=n)))


def mixture(rng, n):
    """Mixtures of three normal distributions."""
    return Mixture(rng.normal(0, 2, (n, 3)), np.exp(0.3 * rng.normal(size=(n, 3))), rng.dirichlet([2, 2, 2], n))


def nig(rng, n):
    """Evidential regression: Student-t distributions with df 6 to 10."""
    parameters = {"v": rng.uniform(1, 3, n), "alpha": rng.uniform(3, 5, n), "beta": rng.uniform(1, 3, n)}
    return CONVENTIONS["nig"](gamma=rng.normal(size=n), **parameters)


def quantiles(rng, n):
    """Quantiles of normal distributions, interpolated linearly."""
    normal = gaussian(rng, n)
    return Quantiles(LEVELS, np.stack([normal.quantile(level) for level in LEVELS], axis=1))


FAMILIES = {
    "gaussian": gaussian,
    "laplace": laplace,
    "student-t": student_t,
    "nig": nig,
    "cauchy": cauchy,
    "lognormal": lognormal,
    "gamma": gamma,
    "weibull": weibull,
    "mixture": mixture,
    "quantiles": quantiles,
    "samples": samples,
    "poisson": poisson,
    "nbinom": nbinom,
    "double-poisson": double_poisson,
}


def calibrated(family, *, n=300, seed=0):
    """Return predictions whose targets are drawn from them (for samples: from the distribution of the draws)."""
    rng = np.random.default_rng(seed)
    predictive = FAMILIES[family](rng, n)
    if family == "samples":  # y is one more draw
        y, predictive = predictive.draws[:, 0], Samples(predictive.draws[:, 1:])
    else:
        y = predictive.sample(rng, 1)[:, 0]
    return Predictions(y=y, predictive=predictive, x=rng.normal(size=(n, 3)), has_embedding=False)


def example_parameters(convention, values):
    """Return parameters of two rows: the given ones, and 1 for others; joint families have two targets."""
    if convention.joint:
        loc, spread = convention.parameters
        return {loc: np.ones((2, 2)), spread: np.tile([1.1, 0.37, 1.3], (2, 1))}
    shape = (2, 1) if convention.grouped else (2,)
    return {name: np.full(shape, values.get(name, 1.0)) for name in convention.parameters}
