"""Components of the PIT: values by hand, exactness for jumps, signs, and the level of the test."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.continuous import AssumedGaussian
from calcheck.distributions.count_families import Poisson
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import DECOMPOSITIONS, DEFAULT_METRICS, METRICS, PIT_COMPONENTS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.pit import mean_component

PLAIN = Run(resamples=0, replicates=0)
POLYNOMIALS = (  # Written out, as in Neyman (1937); the program makes them from Legendre polynomials
    lambda u: np.sqrt(3) * (2 * u - 1),
    lambda u: np.sqrt(5) * (6 * u**2 - 6 * u + 1),
    lambda u: np.sqrt(7) * (20 * u**3 - 30 * u**2 + 12 * u - 1),
    lambda u: 3 * (70 * u**4 - 140 * u**3 + 90 * u**2 - 20 * u + 1),
)
INTEGRALS = (  # Their antiderivatives, 0 at 0
    lambda u: np.sqrt(3) * (u**2 - u),
    lambda u: np.sqrt(5) * (2 * u**3 - 3 * u**2 + u),
    lambda u: np.sqrt(7) * (5 * u**4 - 10 * u**3 + 6 * u**2 - u),
    lambda u: 3 * (14 * u**5 - 35 * u**4 + 30 * u**3 - 10 * u**2 + u),
)


def normal(mean, std):
    return Gaussian(np.asarray(mean, dtype=float), np.asarray(std, dtype=float))


def results(y, predictive, run=PLAIN):
    rows = Predictions(y=np.asarray(y, dtype=float), predictive=predictive)
    return evaluate(InMemory(rows), [METRICS[name]() for name in PIT_COMPONENTS], run=run).results


def values(y, predictive):
    return np.array([each.value for each in results(y, predictive)])


def test_components_of_ten_rows():
    """METHODS 2.1, from the polynomials above: sqrt(n) times the means, for PIT values .691462, .933193, …"""
    y = [0.5, 2.5, 1.2, 3.1, 1.8, 9, 5, 7.6, 3, 12]
    found = values(y, normal(np.arange(10.0), [1.0] * 5 + [2.0] * 5))
    assert_allclose(np.sqrt(10) * found, [0.255615, 1.789110, -0.354718, 2.125464], atol=5e-7)
    assert_allclose(10 * np.square(found).sum(), 7.909676, atol=5e-7)
    assert_allclose(values([0.0], normal([0.0], [1.0])), [0, -np.sqrt(5) / 2, 0, 9 / 8], atol=1e-15)  # u = 1/2


@pytest.mark.parametrize("scale", [1.0, 1e-9], ids=["wide jumps", "narrow jumps"])
def test_a_jump_counts_with_the_mean_over_it(scale):
    """Against antiderivatives; narrow jumps against the polynomials, as differences of antiderivatives cancel."""
    left = np.array([0.0, 0.2, 0.5, 1 - 0.25 * scale])
    right = left + np.array([0.3, 0.1, 0.5, 0.25]) * scale
    for degree, (polynomial, integral) in enumerate(zip(POLYNOMIALS, INTEGRALS, strict=True), 1):
        wide = (integral(right) - integral(left)) / (right - left)
        expected = wide if scale == 1 else polynomial(left)
        assert_allclose(mean_component(left, right, degree), expected, rtol=1e-6 if scale < 1 else 1e-12, atol=1e-7)


def test_components_of_counts_have_the_expectation_zero():
    """The sum over the support of the probability times the value; a point in the jump other than its mean fails."""
    support, rate = np.arange(60.0), 3.7
    alone = [values([count], Poisson(np.array([rate]))) for count in support]
    assert_allclose(stats.poisson.pmf(support, rate) @ alone, 0, atol=1e-14)


def test_components_of_an_ensemble_have_the_expectation_zero():
    """Each rank of the target among 4 draws and itself is equally probable."""
    alone = [values([rank - 0.5], Samples(np.arange(4.0)[None])) for rank in range(5)]
    assert_allclose(np.mean(alone, axis=0), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("draw", "metric", "direction"),
    [
        (lambda rng: rng.normal(0.3, 1, 500), "pit-bias", "predictions-too-low"),
        (lambda rng: rng.normal(-0.3, 1, 500), "pit-bias", "predictions-too-high"),
        (lambda rng: rng.normal(0, 1.3, 500), "pit-dispersion", "too-narrow"),
        (lambda rng: rng.normal(0, 0.75, 500), "pit-dispersion", "too-wide"),
        (lambda rng: rng.exponential(1, 500) - 1, "pit-skew", "skewed-right"),
        (lambda rng: 1 - rng.exponential(1, 500), "pit-skew", "skewed-left"),
        (lambda rng: rng.standard_t(3, 500) / np.sqrt(3), "pit-tails", "heavy-tails"),
        (lambda rng: rng.uniform(-np.sqrt(3), np.sqrt(3), 500), "pit-tails", "light-tails"),
    ],
)
def test_each_fault_fails_its_component_with_its_direction(draw, metric, direction):
    y = draw(np.random.default_rng(4))
    found = {each.metric: each for each in results(y, normal(np.zeros(500), np.ones(500)), Run(resamples=0))}
    assert (found[metric].verdict, found[metric].direction) == ("fail", direction)


def test_without_a_stated_shape_there_is_neither_an_exact_reference_nor_a_verdict():
    found = results([0.0, 1.0, 2.0], AssumedGaussian(np.zeros(3), np.ones(3)), Run(replicates=19))
    assert {(each.reference_kind, each.verdict) for each in found} == {("simulated", "none")}


def test_parts_of_metrics_are_computed_by_name_only():
    of_the_answer = {"width-factor", "standardized-bias", "local-scale", "local-bias"}
    parts = {*PIT_COMPONENTS, "pit-independence", "tail", *DECOMPOSITIONS}
    assert set(METRICS) - set(DEFAULT_METRICS) == parts | of_the_answer
