"""Significance at every input: against scipy's procedures, by hand, and on two clusters of inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.p_values_and_verdicts import benjamini_hochberg, pointwise_p_values
from calcheck.metrics import METRICS
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers.simulations import sets, slow


@pytest.mark.parametrize("fdr", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_discoveries_agree_with_scipy(fdr, seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.uniform(size=40), rng.uniform(size=20) ** 4, [0.01, 0.01, 0.01]])
    rng.shuffle(p)
    assert_array_equal(benjamini_hochberg(p, fdr), stats.false_discovery_control(p) <= fdr)


def test_discoveries_by_hand():
    """fdr 0.1 of four: limits 0.025, 0.05, 0.075, 0.1. 0.07 is the last below its limit, so 0.06 goes too."""
    assert_array_equal(benjamini_hochberg(np.array([0.2, 0.06, 0.01, 0.07]), 0.1), [False, True, True, True])
    assert_array_equal(benjamini_hochberg(np.array([0.026, 0.2, 0.3, 0.4]), 0.1), [False] * 4)
    assert_array_equal(benjamini_hochberg(np.array([0.025, 0.2, 0.3, 0.4]), 0.1), [True, False, False, False])
    assert_array_equal(benjamini_hochberg(np.array([0.1]), 0.1), [True])


def replicates(columns, count=199, seed=0):
    return np.sqrt(np.random.default_rng(seed).gamma(3.0, 2.0, (count, columns)))


def p_values_of(own, others, *, floor=None, fdr=0.05):
    at_inputs = np.concatenate([np.atleast_2d(own), others])
    return pointwise_p_values(at_inputs, floor, fdr)


def test_p_values_are_counts_if_ten_replicates_reach_the_value():
    """199 replicates 1, ..., 199: 190 is reached by ten, so p = 11/200; 191 by nine, so p is that of the tail."""
    others = np.repeat(np.arange(1.0, 200)[:, None], 3, axis=1)
    columns, _ = p_values_of([100.0, 190, 191], others)
    assert_allclose(columns["p_value"][:2], [101 / 200, 11 / 200], rtol=1e-14)
    assert_array_equal(columns["p_approximate"], [False, False, True])
    assert columns["p_value"][2] <= 11 / 200


def test_tail_p_values_do_not_exceed_those_of_ten_replicates():
    """Four of 199 replicates are outliers: four reach 1.5, but the gamma distribution has p = 0.15 there."""
    others = np.where(np.arange(199) < 4, 100.0, 1.0)[:, None]
    assert_allclose(p_values_of(np.array([1.5]), others)[0]["p_value"], [11 / 200], rtol=1e-14)


def expected_tail(squares, value, skewness):
    """Return the mean tail of Pearson's type III over the errors of its mean and std, to second order, by scipy.

    E F(t + e) = F(t) + f'(t) Var(e) / 2: the same as the tail at t + f'/f Var(e) / 2 to this order.
    """
    z = (value - squares.mean()) / squares.std(ddof=1)
    kurtosis = 3 + stats.pearson3.stats(skewness, moments="k")
    covariances = np.array([[1, skewness / 2], [skewness / 2, (kurtosis - 1) / 4]]) / len(squares)
    step = 1e-5
    slope = np.diff(stats.pearson3.logpdf([z - step, z + step], skewness))[0] / (2 * step)
    return stats.pearson3.sf(z + slope * np.array([1, z]) @ covariances @ np.array([1, z]) / 2, skewness)


def test_tail_p_values_follow_pearsons_type_3_fitted_to_the_squares():
    """The ratio of skewness to that of a gamma distribution is common to all inputs, and at least 1."""
    rng = np.random.default_rng(3)
    squares = rng.chisquare(1, (199, 4, 3)) @ np.array([5.0, 2.0, 1.0])
    own = np.sqrt(np.array([35.0, 40.0, 45.0, 50.0]))
    columns, _ = p_values_of(own, np.sqrt(squares))
    mean, variance = squares.mean(axis=0), squares.var(axis=0, ddof=1)
    third = stats.kstat(squares[:, 0], 3), *(stats.kstat(squares[:, place], 3) for place in (1, 2, 3))
    ratio = np.sum(third / mean**3) / np.sum(2 * variance**2 / mean**4)
    assert ratio > 1
    skewness = ratio * 2 * np.sqrt(variance) / mean
    expected = [expected_tail(squares[:, k], own[k] ** 2, skewness[k]) for k in range(4)]
    assert columns["p_approximate"].all()
    assert_allclose(columns["p_value"], np.minimum(expected, 11 / 200), rtol=1e-6)
    assert columns["p_value"][-1] < 1 / 200


def test_tail_p_values_fall_with_the_value():
    others = replicates(4)
    p = np.array([p_values_of(np.full(4, own), others)[0]["p_value"] for own in (5.0, 6.0, 8.0, 12.0, 50.0, 1e6)])
    assert (np.diff(p, axis=0) <= 0).all()
    assert (p[-3] < 1e-6).all()
    assert (p[-1] == 0).all()


def test_tails_of_unbiased_squares_start_at_their_floor():
    """Squares less 2, with a floor of -2, have the p-values of the squares."""
    others, own = replicates(4), np.array([3.0, 5.0, 6.0, 8.0])
    plain, _ = p_values_of(own, others)
    less, _ = p_values_of(own**2 - 2, others**2 - 2, floor=np.full(4, -2.0))
    assert_allclose(less["p_value"], plain["p_value"], rtol=1e-9)
    below, _ = p_values_of(np.full(4, -3.0), others**2 - 2, floor=np.full(4, -2.0))
    assert_array_equal(below["p_value"], 1.0)


def test_columns_summarize_the_replicates_at_each_input():
    others = replicates(3)
    columns, details = p_values_of(np.array([0.1, 2.0, 20.0]), others, fdr=0.07)
    assert_allclose(columns["reference_mean"], others.mean(axis=0), rtol=1e-14)
    for level in (5, 50, 95):
        assert_allclose(columns[f"reference_q{level:02}"], np.quantile(others, level / 100, axis=0), rtol=1e-14)
    assert_array_equal(columns["significant"], benjamini_hochberg(columns["p_value"], 0.07))
    rejected = details["rejected"]
    assert (rejected["count"], rejected["inputs"], rejected["fdr"]) == (1, 3, 0.07)
    assert "approximate" in rejected["p_value_method"]


def test_a_smaller_false_discovery_rate_rejects_fewer_inputs():
    others = replicates(400)
    own = np.sqrt(np.random.default_rng(1).gamma(3.0, 4.0, 400))
    counts = [p_values_of(own, others, fdr=fdr)[1]["rejected"]["count"] for fdr in (0.01, 0.05, 0.2)]
    assert 0 < counts[0] < counts[1] < counts[2]


def test_undefined_replicates_count_as_more_extreme():
    """Twelve of 199 are undefined and count as reaching every value, so p is at least 13/200."""
    others = replicates(2)
    others[:12] = np.nan
    columns, _ = p_values_of(np.array([2.0, 50.0]), others)
    known = others[12:]
    assert_allclose(columns["p_value"], [(13 + np.sum(known[:, 0] >= 2)) / 200, 13 / 200], rtol=1e-14)
    assert_allclose(columns["reference_mean"], known.mean(axis=0), rtol=1e-14)


def test_without_defined_replicates_there_are_no_p_values():
    assert p_values_of(np.ones(3), np.full((199, 3), np.nan)) == ({}, {})
    assert pointwise_p_values(None, None, 0.05) == ({}, {})


@pytest.mark.parametrize("value", [0.0, 1e-200, 0.3, 1e6])
def test_equal_replicates_have_no_tail(value):
    """Equal up to rounding: p is by counting, 1/200 above them and 1 at or below."""
    others = np.full((199, 3), value) * (1 + 1e-15 * np.arange(199)[:, None])
    columns, _ = p_values_of(np.array([value * 1.5 + 1e-9, value, value / 2]), others)
    assert_allclose(columns["p_value"], [1 / 200, 1, 1], rtol=1e-14)
    assert not columns["p_approximate"].any()


@pytest.mark.parametrize("floor", [None, np.full(5, -2.0)])
def test_rejected_inputs_with_small_errors_are_not_called(floor):
    """Squared errors are relative to the median 1, so the limit is 0.7 squared, 0.49; all five are rejected."""
    others = replicates(5)
    squares = (others**2).mean(axis=0) + 1000 * np.array([0.5, 1.3, 1, 0.48, 1])
    own, null = (np.sqrt(squares), others) if floor is None else (squares - 2, others**2 - 2)
    columns, details = p_values_of(own, null, floor=floor)
    assert benjamini_hochberg(columns["p_value"], 0.05).all()
    assert_array_equal(columns["significant"], [True, True, True, False, True])
    assert details["rejected"]["count"] == 4


def two_clusters(seed, n=400):
    """Inputs around 0 and around 12 length scales; the model is right at the first and has std × 0.5 at the second."""
    rng = np.random.default_rng(seed)
    wrong = np.arange(n) % 2 == 1
    x = rng.uniform(-0.5, 0.5, (n, 1)) + 12.0 * wrong[:, None]
    mean, std = np.sin(3 * x[:, 0]), np.full(n, 0.5)
    y = mean + std * rng.normal(size=n)
    return Predictions(y=y, predictive=Gaussian(mean, std * np.where(wrong, 0.5, 1)), x=x, has_embedding=False), wrong


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["plugin", slow("unbiased")])
def test_wrong_inputs_are_rejected_and_few_right_ones_are(estimator):
    """rbf with gamma 1/2, whose length scale is 1. Up to twelve data sets: the mean share of right inputs among the

    rejected is at most 0.05 plus three standard errors; at least 80 % of wrong inputs are rejected.
    """
    false, found = [], []
    for seed in range(sets(12, 3)):
        rows, wrong = two_clusters(seed)
        kept = []
        metric = Cce(kernel_x="rbf", gamma_x=0.5, normalize="none", estimator=estimator)
        report = evaluate(
            InMemory(rows),
            [metric],
            run=Run(seed=seed, replicates=199),
            sink=lambda _, __, results, kept=kept: kept.append(results),
        )
        flagged = kept[0].columns["significant"]
        false.append(np.sum(flagged & ~wrong) / max(1, flagged.sum()))
        found.append(np.mean(flagged[wrong]))
        assert report.results[0].details["rejected"]["count"] == flagged.sum()
    error = np.std(false, ddof=1) / np.sqrt(len(false))
    assert np.mean(false) <= 0.05 + 3 * error
    assert np.mean(found) >= 0.8


def test_inputs_of_another_file_are_tested_without_targets():
    rows, _ = two_clusters(1)
    at = Predictions(x=np.array([[0.0], [12.0]]), has_embedding=False)
    kept = []
    evaluate(
        InMemory(rows),
        [Cce(kernel_x="rbf", gamma_x=0.5, normalize="none")],
        at=InMemory(at),
        run=Run(replicates=199),
        sink=lambda _, shown, results: kept.append((shown, results)),
    )
    shown, found = kept[0]
    assert shown is at
    assert_array_equal(found.columns["significant"], [False, True])
    assert found.columns["p_value"][1] < 1e-3


def test_the_most_significant_inputs_are_listed_with_their_p_values():
    rows, wrong = two_clusters(1, n=100)
    cce, run = Cce(kernel_x="rbf", gamma_x=0.5), Run(replicates=199)
    (result,) = evaluate(InMemory(rows), [cce], run=run, worst=7).results
    clearest = result.details["most_significant"]
    assert 0 < len(clearest) <= 7
    p = [each["p_value"] for each in clearest]
    assert p == sorted(p)
    assert all(wrong[each["row"]] for each in clearest)
    (all_of_them,) = evaluate(InMemory(rows), [cce], run=run, worst=100).results
    assert len(all_of_them.details["most_significant"]) == all_of_them.details["rejected"]["count"] < 100
    (none,) = evaluate(InMemory(rows), [METRICS["cce"]()], run=Run(replicates=0), worst=7).results
    assert "most_significant" not in none.details
    assert "rejected" not in none.details


def test_tails_of_few_replicates_have_their_level():
    """150 sets at 40 inputs: 0.8 to 1.3 % of right p-values are at most 0.01, and at most 0.2 % at most 0.001."""
    rng, p = np.random.default_rng(11), []
    for _ in range(150):
        squares = rng.chisquare(1, (200, 40, 4)) @ np.array([8.0, 4.0, 2.0, 1.0])
        p.append(p_values_of(np.sqrt(squares[0]), np.sqrt(squares[1:]))[0]["p_value"])
    assert 0.008 <= np.mean(np.array(p) <= 0.01) <= 0.013
    assert np.mean(np.array(p) <= 0.001) <= 0.002
