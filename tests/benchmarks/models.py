"""Models that are right, models that are wrong in a known way, and pairs of equally good models."""

from functools import partial

import numpy as np

from calcheck.distributions import Gaussian, Intervals, Quantiles, Samples
from calcheck.distributions.continuous import AssumedGaussian, StudentT
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal
from calcheck.predictions import Predictions

FEW_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
HUB_LEVELS = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99])
LEVELS_BY_COUNT = {
    2: FEW_LEVELS[[0, -1]],
    3: FEW_LEVELS[[0, 2, -1]],
    5: FEW_LEVELS,
    9: np.arange(1, 10) / 10,
    19: np.arange(1, 20) / 20,
    23: HUB_LEVELS,
}
ZEROS = 0.4  # mass at zero of zero-inflated distributions


def gaussian(rng, n):
    """Return inputs and normal distributions: means and spreads vary with the inputs."""
    x = rng.normal(size=(n, 1))
    return x, Gaussian(x[:, 0], np.exp(0.4 * np.sin(2 * x[:, 0])))


def student_t(df, rng, n):
    x, normal = gaussian(rng, n)
    return x, StudentT(loc=normal.loc, scale=normal.scale, df=np.full(n, float(df)))


def lognormal(rng, n):
    x, normal = gaussian(rng, n)
    return x, LogNormal(mu=normal.loc / 2, sigma=normal.scale)


def gamma(rng, n):
    x, normal = gaussian(rng, n)
    return x, Gamma(shape=2 * normal.scale, scale=np.exp(normal.loc / 2))


def poisson(rng, n):
    x, normal = gaussian(rng, n)
    return x, Poisson(4 * np.exp(normal.loc / 2))


def nbinom(rng, n):
    x, normal = gaussian(rng, n)
    return x, NegativeBinomial(mu=4 * np.exp(normal.loc / 2), size=np.full(n, 3.0))


def double_poisson(rng, n):
    x, normal = gaussian(rng, n)
    return x, DoublePoisson(mu=8 * np.exp(normal.loc / 2), phi=np.full(n, 2.0))


def mixture(rng, n):
    x, normal = gaussian(rng, n)
    loc = normal.loc[:, None] + normal.scale[:, None] * np.array([-1.0, 1.5])
    return x, Mixture(loc=loc, scale=np.tile(normal.scale[:, None], 2), weight=np.tile([0.7, 0.3], (n, 1)))


def samples(draws, rng, n):
    x, normal = gaussian(rng, n)
    return x, Samples(normal.sample(rng, draws)), normal


def zero_inflated(rng, n):
    """Return inputs, and the quantile function and draws of distributions with the mass 0.4 at zero."""
    x, positive = gamma(rng, n)
    y = np.where(rng.random(n) < ZEROS, 0.0, positive.sample(rng, 1)[:, 0])

    def quantile(level):
        return positive.quantile((level - ZEROS) / (1 - ZEROS)) if level > ZEROS else np.zeros(n)

    return x, quantile, y


def by_quantiles(family, levels, rng, n):
    """Return inputs, the quantiles of right distributions of a family, and the truth."""
    if family == "zero-inflated":
        x, quantile, truth = zero_inflated(rng, n)
    else:
        x, truth = RIGHT[family](rng, n)
        quantile = truth.quantile
    return x, Quantiles(levels, np.stack([quantile(level) for level in levels], axis=1)), truth


def intervals(levels, rng, n):
    """Predict the central intervals of normal distributions at some levels, and the means."""
    x, normal = gaussian(rng, n)
    lower, upper = (
        np.stack(side, axis=1) for side in zip(*(normal.central_interval(level) for level in levels), strict=True)
    )
    return x, Intervals(np.array(levels), lower, upper, normal.loc), normal


def errors(draw, rng, n):
    """Predict standard deviations only; the standardized errors have a distribution that the file does not state."""
    x, normal = gaussian(rng, n)
    return x, AssumedGaussian(np.zeros(n), normal.scale), normal.scale * draw(rng, n)


def unit_normal(rng, n):
    return rng.normal(size=n)


def unit_skew(rng, n):
    return (rng.gamma(2, size=n) - 2) / np.sqrt(2)


def unit_t(df, rng, n):
    return rng.standard_t(df, n) * np.sqrt((df - 2) / df)


RIGHT = {
    "gaussian": gaussian,
    "t4": partial(student_t, 4),
    "lognormal": lognormal,
    "gamma": gamma,
    "poisson": poisson,
    "nbinom": nbinom,
    "double poisson": double_poisson,
    "mixture": mixture,
    **{f"samples {draws}": partial(samples, draws) for draws in (1, 5, 50)},
    "1 interval": partial(intervals, (0.9,)),
    "2 intervals": partial(intervals, (0.5, 0.9)),
    "3 intervals": partial(intervals, (0.5, 0.8, 0.95)),
    "errors normal": partial(errors, unit_normal),
    "errors t3": partial(errors, partial(unit_t, 3)),
    "errors t4": partial(errors, partial(unit_t, 4)),
    "errors skew": partial(errors, unit_skew),
}


BY_QUANTILES = {
    f"{family}, {count} quantiles": partial(by_quantiles, family, levels)
    for family in ("gaussian", "lognormal", "gamma", "poisson", "zero-inflated")
    for count, levels in LEVELS_BY_COUNT.items()
}


def spread(factor, rng, n):
    """Predict normal distributions whose spread is off by a factor."""
    x, normal = gaussian(rng, n)
    return x, Gaussian(normal.loc, factor * normal.scale), normal


def shifted(rng, n):
    x, normal = gaussian(rng, n)
    return x, Gaussian(normal.loc + 0.3 * normal.scale, normal.scale), normal


def marginal(rng, n):
    """Predict the marginal distribution everywhere: y = 0.9 x + noise is standard normal over all inputs."""
    x = rng.normal(size=(n, 1))
    truth = Gaussian(0.9 * x[:, 0], np.full(n, np.sqrt(1 - 0.81)))
    return x, Gaussian(np.zeros(n), np.ones(n)), truth


def light_tails(rng, n):
    """Predict normal distributions with the spread of Student-t data."""
    x, truth = student_t(5, rng, n)
    return x, Gaussian(truth.loc, truth.std()), truth


WRONG = {
    **{f"std x {factor:g}": partial(spread, factor) for factor in (0.7, 0.85, 1.2, 1.4)},
    "mean + 0.3 std": shifted,
    "marginal": marginal,
    "normal for t": light_tails,
}


def rows_of(maker, n, seed, targets=1):
    """Return predictions with targets drawn from the truth, which is the prediction unless it is given."""
    rng = np.random.default_rng([seed, n])
    x, predictive, *truth = maker(rng, n)
    which = np.repeat(np.arange(n), targets)
    if truth and isinstance(truth[0], np.ndarray):
        y = truth[0]
    else:
        y = (truth[0] if truth else predictive).take(which).sample(rng, 1)[:, 0]
    key = which if targets > 1 else None
    return Predictions(y=y, predictive=predictive.take(which), x=x[which], has_embedding=False, id=key)


def mirrored(rng, n):
    """Return two models that are too high and too low by 0.3: equal by symmetry."""
    y = rng.normal(size=n)
    return y, [Gaussian(np.full(n, sign * 0.3), np.ones(n)) for sign in (1, -1)]


def noisy(rng, n):
    """Return two models with independent errors of the mean, and spreads that include them: exchangeable."""
    y = rng.normal(size=n)
    return y, [Gaussian(0.2 * rng.normal(size=n), np.full(n, np.sqrt(1.04))) for _ in range(2)]


def narrow(rng, n):
    """Return the same with spreads that are too small."""
    y = rng.normal(size=n)
    return y, [Gaussian(0.2 * rng.normal(size=n), np.full(n, 0.7)) for _ in range(2)]


def skewed(rng, n):
    """Return a model that is too narrow and one that is too wide, with equal expected nll: for nll only."""
    y, low = rng.normal(size=n), 0.6
    level = 0.5 / low**2 + np.log(low)
    grid = np.linspace(1, 5, 400_001)
    high = grid[np.argmin(np.abs(0.5 / grid**2 + np.log(grid) - level))]
    return y, [Gaussian(np.zeros(n), np.full(n, std)) for std in (low, high)]


EQUAL = {"mirrored": mirrored, "noisy": noisy, "narrow": narrow, "skewed": skewed}


def equal_pair(maker, n, seed):
    """Return the predictions of two models for the same targets, with uninformative inputs."""
    rng = np.random.default_rng([seed, n])
    y, models = maker(rng, n)
    x = rng.normal(size=(n, 1))
    return [Predictions(y=y, predictive=each, x=x, has_embedding=False) for each in models]
