"""Unbiased estimates of a right model are 0 on average over 2,000 data sets, and the others are not.

The naive sums compute all data sets at once; they equal the metrics on the first data sets.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.joint_cases import sampled_rows, value

SETS, BLOCK = 2000, 100
ESTIMATORS = ("unbiased", "v", "paper")


def right(rng, n, targets, draws):
    """Return inputs (b, n), targets (b, n, r) and draws (b, n, l) from the same distributions, for b data sets."""
    x = rng.normal(size=(BLOCK, n))
    values = np.sin(x)[..., None] + np.exp(0.4 * np.sin(2 * x))[..., None] * rng.normal(
        size=(BLOCK, n, targets + draws)
    )
    return x, values[..., :targets], values[..., targets:]


def estimates(x, y, draws):
    """Return every estimate of b data sets, (b,) each; the constant of JMMD is over pairs of different inputs."""
    (_, n, r), size = y.shape, draws.shape[2]
    k = np.exp(-0.5 * (x[:, :, None] - x[:, None]) ** 2)

    def sums(first, second):
        """Return sums of k_Y over the values of every pair of inputs, (b, n, n)."""
        return np.exp(-0.5 * (first[:, :, None, :, None] - second[:, None, :, None, :]) ** 2).sum(axis=(3, 4))

    data, cross, model = sums(y, y) / r**2, sums(y, draws) / (r * size), sums(draws, draws) / size**2
    delta = data - cross - np.swapaxes(cross, 1, 2) + model
    off = k * (1 - np.eye(n))
    own, between, within = (np.diagonal(each, axis1=1, axis2=2) for each in (data, cross, model))
    m = n * size
    found = {
        "jmmd unbiased": (off * delta).sum(axis=(1, 2)) / (n * (n - 1)),
        "jmmd v": (k * delta).sum(axis=(1, 2)) / n**2,
        "jmmd paper": -2 * (k * cross).sum(axis=(1, 2)) / n**2
        + ((size**2 * k * model).sum(axis=(1, 2)) - m) / (m * (m - 1)),
        "jmmd constant": (off * data).sum(axis=(1, 2)) / (n * (n - 1)),
        "ammd v": (within - 2 * between).mean(axis=1),
    }
    if size > 1:
        found["ammd unbiased"] = (-2 * between + (size**2 * within - size) / (size * (size - 1))).mean(axis=1)
    if r > 1:
        found["ammd constant"] = ((r**2 * own - r) / (r * (r - 1))).mean(axis=1)
    return found


def simulated(n, targets, draws):
    """Return the estimates of 2,000 data sets, (2000,) each."""
    rng = np.random.default_rng([n, targets, draws])
    blocks = [estimates(*right(rng, n, targets, draws)) for _ in range(SETS // BLOCK)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def t(values):
    """Return the mean in units of its standard error."""
    return values.mean() / values.std(ddof=1) * np.sqrt(len(values))


@pytest.mark.parametrize(("n", "targets", "draws"), [(20, 1, 2), (20, 3, 5), (40, 1, 2)])
def test_the_metrics_equal_the_averaged_estimates(n, targets, draws):
    x, y, model = right(np.random.default_rng([n, targets, draws]), n, targets, draws)
    found = estimates(x, y, model)
    for each in range(3):
        rows = sampled_rows(x[each][:, None], y[each][..., None], model[each][..., None])
        for statistic in ESTIMATORS:
            given = {"statistic": statistic, "standardize": "none"}
            assert_allclose(value("jmmd", rows, **given), found[f"jmmd {statistic}"][each], rtol=0, atol=1e-10)
        for statistic in ESTIMATORS[:2]:
            given = {"statistic": statistic, "standardize": "none"}
            assert_allclose(value("ammd", rows, **given), found[f"ammd {statistic}"][each], rtol=0, atol=1e-10)
        if targets > 1:
            whole = found["ammd unbiased"] + found["ammd constant"]
            assert_allclose(value("ammd", rows, constant=True, standardize="none"), whole[each], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("n", "targets", "draws"), [(20, 1, 1), (20, 1, 5), (20, 3, 2), (20, 3, 5), (40, 1, 2)])
def test_unbiased_estimates_are_zero_on_average_and_others_are_not(n, targets, draws):
    """The V-statistic includes pairs of a value with itself, so it is too large.

    The estimate of the paper is too small, even with its constant. Values at one input are similar; 1/n of the pairs of
    a target and a draw share their input, and are subtracted twice, but only (l - 1) / (n l - 1) of the pairs of two
    draws do.
    """
    found = simulated(n, targets, draws)
    assert abs(t(found["jmmd unbiased"])) < 4
    assert t(found["jmmd v"]) > 50
    assert t(found["jmmd paper"] + found["jmmd constant"]) < -20
    if targets > 1:
        assert abs(t(found["ammd unbiased"] + found["ammd constant"])) < 4


def test_the_estimate_of_the_paper_is_too_small_for_forty_inputs_of_two_draws():
    """MATH.md gives t = -50."""
    found = simulated(40, 1, 2)
    assert -60 < t(found["jmmd paper"] + found["jmmd constant"]) < -40


@pytest.mark.parametrize("draws", [2, 5])
def test_ammd_without_its_constant_has_the_expected_mean(draws):
    """-E k(Y, Y') = -(1 + 4 gamma std^2)^(-1/2) for N(., std^2), on average over inputs."""
    n, rng = 20, np.random.default_rng(draws)
    differences = []
    for _ in range(SETS // BLOCK):
        x, y, model = right(rng, n, 1, draws)
        expected = -((1 + 2 * np.exp(0.8 * np.sin(2 * x))) ** -0.5).mean(axis=1)
        differences.append(estimates(x, y, model)["ammd unbiased"] - expected)
    assert abs(t(np.concatenate(differences))) < 4
