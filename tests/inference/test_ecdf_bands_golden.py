"""Bands of PIT distributions from replicates are those in closed form, where these exist: for continuous distributions.

Säilynoja, Bürkner, Vehtari (2022): the band at level 1 - gamma at each point contains whole distribution functions of n
uniform numbers with a probability that is a sum over paths.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from calcheck.inference.curve_bands import global_envelope

PUBLISHED = [(50, 50, 0.006419, 0.9514), (100, 100, 0.004110, 0.9505), (250, 250, 0.002472, 0.9501)]
"""Number of values, of points + 1, gamma, and the probability of whole curves."""
ROUNDED = 5e-7
"""Of published gammas, which are the largest of their band: the limits jump there."""


def limits(n, k, gamma):
    """Return the limits of the number of values below i / k, (k - 1,) each."""
    share = np.arange(1, k) / k
    return binom.ppf((gamma - ROUNDED) / 2, n, share), binom.ppf(1 - (gamma - ROUNDED) / 2, n, share)


def probability(n, k, low, high):
    """Return the probability that all counts are within limits, by the transitions of a binomial process."""
    paths = np.zeros(n + 1)
    paths[0] = 1.0
    counts = np.arange(n + 1)
    for place in range(k - 1):
        step = 1 / (k - place)
        moved = np.array([binom.pmf(counts - count, n - count, step) for count in np.flatnonzero(paths)])
        paths = paths[np.flatnonzero(paths)] @ moved
        paths[(counts < low[place]) | (counts > high[place])] = 0
    return paths.sum()


@pytest.mark.parametrize(("n", "k", "gamma", "expected"), PUBLISHED)
def test_published_levels_contain_whole_curves(n, k, gamma, expected):
    assert_allclose(probability(n, k, *limits(n, k, gamma)), expected, atol=5e-5)


@pytest.mark.parametrize(("n", "k", "gamma"), [case[:3] for case in PUBLISHED])
def test_the_band_of_replicates_is_that_of_the_published_level(n, k, gamma):
    rng = np.random.default_rng(1)
    counts = rng.multinomial(n, np.full(k, 1 / k), size=2000).cumsum(axis=1)[:, :-1].T
    band = global_envelope(counts.astype(float), 0.95)
    low, high = limits(n, k, gamma)
    width = (high - low).mean()
    assert abs(np.mean(band.low - low)) < 0.04 * width  # 2,000 curves: the ends of the band vary by about 2 %
    assert abs(np.mean(band.high - high)) < 0.04 * width
