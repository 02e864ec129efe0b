"""Perfect predictions of counts and ensembles pass (Figure 13 of [CCE], Figure 1 of [MCMD])."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.pit import levels_of, share_below

ROWS, SETS, LEVELS = 2000, 200, 99


def sine(rng):
    """Rates of the papers' discrete data: a sine between 2 and 18 on (0, 2 pi)."""
    return 8 * np.sin(rng.uniform(0, 2 * np.pi, ROWS)) + 10


FAMILIES = {
    "poisson": Poisson,
    "nbinom": lambda mu: NegativeBinomial(mu=mu, size=np.full_like(mu, 4.0)),
    "double-poisson": lambda mu: DoublePoisson(mu=mu, phi=np.full_like(mu, 3.0)),
}


def shares(predictive, y):
    """Return the share of PIT values up to each level, non-randomized and plain, (2, 99)."""
    left, right = predictive.cdf_limits(y)
    return np.array([share_below(low, right, levels_of(LEVELS)).sums(None) for low in (left, right)]) / len(y)


def ece(share):
    return np.abs(share - levels_of(LEVELS)).mean(axis=-1)


@pytest.fixture(scope="module")
def continuous():
    """Return the mean ECE of perfect Gaussians."""
    rng = np.random.default_rng(0)
    normal = Gaussian(np.zeros(ROWS), np.ones(ROWS))
    return np.mean([ece(shares(normal, rng.normal(size=ROWS))) for _ in range(10 * SETS)])


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_perfect_counts_have_no_calibration_error_beyond_noise(family, continuous):
    """The mean of p-hat - p is within four standard errors of 0 at every level; with the plain PIT it is biased."""
    rng = np.random.default_rng(1)
    predictive = FAMILIES[family](sine(rng))
    targets = predictive.sample(rng, SETS).T
    fair, plain = np.array([shares(predictive, y) for y in targets]).swapaxes(0, 1)
    error = fair.std(axis=0, ddof=1) / np.sqrt(SETS)
    assert (np.abs(fair.mean(axis=0) - levels_of(LEVELS)) <= 4 * error).all()
    assert not (np.abs(plain.mean(axis=0) - levels_of(LEVELS)) <= 4 * error).any()
    noise = ece(fair).std(ddof=1) / np.sqrt(SETS)
    assert ece(fair).mean() <= continuous + 2 * noise
    assert ece(plain).mean() > 4 * ece(fair).mean()


def test_an_ensemble_of_exchangeable_members_is_calibrated():
    """Over 200,000 rows its ECE is 3e-4, consistent with uniform; ranks over m would give 0.027 for any rows."""
    rng = np.random.default_rng(0)
    members = rng.normal(size=(200_000, 12))
    y, draws = members[:, 0], members[:, 1:]
    source = InMemory(Predictions(y=y, predictive=Samples(draws)))
    found = {
        result.metric: result
        for result in evaluate(source, [METRICS["ece"](), METRICS["pit"]()], run=Run(resamples=0, replicates=0)).results
    }
    assert found["ece"].value < 1e-3
    assert len(y) * found["pit"].value < 0.743  # the 1 % point of the statistic for continuous PIT
    ranks = np.sum(draws <= y[:, None], axis=1) / 11
    plain = np.array([np.mean(ranks <= level) for level in levels_of(LEVELS)])
    assert_allclose(ece(plain), 0.027, atol=0.002)


@pytest.mark.slow
def test_the_coverage_of_a_perfect_poisson_model_passes():
    """Its 90 % interval contains more than 90 %; the reference is the exact probability."""
    rng = np.random.default_rng(0)
    predictive = Poisson(sine(rng))
    y = predictive.sample(rng, 1)[:, 0]
    (result,) = evaluate(InMemory(Predictions(y=y, predictive=predictive)), [METRICS["coverage"]()]).results
    assert 0.91 < result.reference < 0.98
    assert result.verdict == "pass"
    assert abs(result.value - 0.9) / (result.value - result.low) > 1  # compared with the level it would fail
