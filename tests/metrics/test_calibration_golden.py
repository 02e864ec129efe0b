"""Average and binned calibration: values derived by hand, in the docstring of each test."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.positive import Gamma, LogNormal
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.pit import components, direction, levels_of
from tests.helpers.families import LEVELS, calibrated
from tests.helpers.shorthand import texts

PLAIN = Run(resamples=0, replicates=0)


def result(name, y, predictive, *, run=PLAIN, columns=None, **options):
    rows = Predictions(y=np.asarray(y, dtype=float), predictive=predictive, columns=columns or {})
    (found,) = evaluate(InMemory(rows), [METRICS[name](**options)], run=run).results
    return found


def value(name, y, predictive, **options):
    return result(name, y, predictive, **options).value


def normal(mean, std):
    return Gaussian(np.asarray(mean, dtype=float), np.asarray(std, dtype=float))


def with_pit(values):
    """Return targets and standard normals whose PIT has these values."""
    from scipy.special import ndtri

    return ndtri(values), normal(np.zeros(len(values)), np.ones(len(values)))


def test_moments_by_hand():
    """Errors 1, -2, 3, 0 with std 1, 1, 2, 2.

    z^2 = 1, 4, 9/4, 0: ZMS = 7.25/4; z has the mean 1/8 and the variance (7.25 - 4/64)/3. RMV^2 = 10/4 and
    RMSE^2 = 14/4: RCE = 1 - sqrt(1.4). Bias = 2/4. std has mean 1.5, deviations of 0.5: C_v = sqrt(4 * 0.25 / 3) / 1.5.
    """
    y, predictive = [11.0, 8.0, 13.0, 10.0], normal([10.0] * 4, [1.0, 1.0, 2.0, 2.0])
    assert_allclose(value("zms", y, predictive), 7.25 / 4, rtol=1e-15)
    z = result("zms", y, predictive).details
    assert_allclose([z["mean_z"], z["variance_z"]], [1 / 8, (7.25 - 1 / 16) / 3], rtol=1e-14)
    assert_allclose(value("rce", y, predictive), 1 - math.sqrt(1.4), rtol=1e-14)
    parts = result("rce", y, predictive).details
    expected = [math.sqrt(2.5), math.sqrt(3.5), 0.5]
    assert_allclose([parts[name] for name in ("rmv", "rmse", "mean_error")], expected, rtol=1e-14)
    assert_allclose(value("rmse", y, predictive), math.sqrt(3.5), rtol=1e-15)
    assert_allclose(value("bias", y, predictive), 0.5, rtol=1e-15)
    assert_allclose(value("mae", y, predictive), 1.5, rtol=1e-15)
    assert_allclose(value("sharpness", y, predictive), math.sqrt(2.5), rtol=1e-15)
    assert_allclose(value("cv", y, predictive), math.sqrt(1 / 3) / 1.5, rtol=1e-14)


def test_bins_by_hand():
    """The same rows in two bins: std 1, 1 with E^2 = 1, 4 (RMSE^2 = 2.5), and std 2, 2 with E^2 = 9, 0 (4.5).

    ENCE = (|1 - sqrt(2.5)| / 1 + |2 - sqrt(4.5)| / 2) / 2, or the first term by the maximum.
    UCE = (|1 - 2.5| + |4 - 4.5|) / 2 = 1.
    """
    y, predictive = [11.0, 8.0, 13.0, 10.0], normal([10.0] * 4, [1.0, 1.0, 2.0, 2.0])
    ence = ((math.sqrt(2.5) - 1) + (math.sqrt(4.5) - 2) / 2) / 2
    assert_allclose(value("ence", y, predictive, bins=2), ence, rtol=1e-14)
    assert_allclose(value("ence", y, predictive, bins=2, norm="max"), math.sqrt(2.5) - 1, rtol=1e-14)
    assert_allclose(value("uce", y, predictive, bins=2), 1.0, rtol=1e-14)


def test_bins_of_unequal_counts_are_weighted_equally_or_by_count():
    """Five rows in two bins: edges at round-half-even(0, 2.5, 5) = 0, 2, 5. std 1; E^2 = 0, 0 and 4, 4, 4.

    The gaps |MV - MSE| are 1 and 3: UCE = 2 if bins count alike, (2 * 1 + 3 * 3) / 5 if rows do.
    """
    std = [1.0, 1.0 + 1e-9, 1.0 + 2e-9, 1.0 + 3e-9, 1.0 + 4e-9]
    predictive = normal([0.0] * 5, std)
    y = [0.0, 0.0, 2.0, 2.0, 2.0]
    assert_allclose(value("uce", y, predictive, bins=2, bin_weights="uniform"), 2.0, rtol=1e-7)
    assert_allclose(value("uce", y, predictive, bins=2), 11 / 5, rtol=1e-7)


def test_rows_tied_across_an_edge_are_split():
    """All four std are equal: each row is half in either of two bins, which have the same RMSE in any order.

    RMSE^2 = (1 + 9 + 1 + 1) / 4 = 3 in both: ENCE = sqrt(3) - 1. In file order it would be (sqrt(5) - 1 + 0) / 2.
    """
    predictive = normal([0.0] * 4, [1.0] * 4)
    for y in ([1.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 3.0]):
        assert_allclose(value("ence", y, predictive, bins=2), math.sqrt(3) - 1, rtol=1e-14)


def test_bins_by_a_column():
    """By the column, rows 0 and 2 are a bin (E^2 = 1, 9), rows 1 and 3 another (4, 4); std is 1: UCE = (4 + 3) / 2."""
    columns = {"group": np.array([1, 5, 1, 5])}
    y, predictive = [1.0, 2.0, 3.0, -2.0], normal([0.0] * 4, [1.0] * 4)
    assert_allclose(value("uce", y, predictive, bins=2, by="group", columns=columns), 3.5, rtol=1e-14)


def test_ece_by_hand():
    """PIT 0.1, 0.2, 0.3, 0.9 at levels 1/4, 1/2, 3/4: shares 2/4, 3/4, 3/4, gaps 1/4, 1/4, 0.

    alpha 1: 1/6; alpha 2: (1/16 + 1/16)/3; frequency weights 2/8, 3/8, 3/8: 5/32.
    """
    y, predictive = with_pit([0.1, 0.2, 0.3, 0.9])
    assert_allclose(value("ece", y, predictive, n_levels=3), 1 / 6, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, n_levels=3, alpha=2), 1 / 24, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, n_levels=3, level_weights="frequency"), 5 / 32, rtol=1e-14)


def test_ece_at_any_levels_with_any_weights_by_hand():
    """PIT 0.1, 0.2, 0.3, 0.9 at levels 0, 0.25, 0.6 and 1: shares 0, 2/4, 3/4, 1, gaps 0, 1/4, 0.15, 0.

    Uniform: 0.1; weights 3, 2, 4, 1: 1.1, squared 2/16 + 4 * 0.0225; frequencies 0, 2/9, 3/9, 4/9; the maximum 1/4.
    """
    y, predictive = with_pit([0.1, 0.2, 0.3, 0.9])
    at, weights = (0, 0.25, 0.6, 1), (3, 2, 4, 1)
    assert_allclose(value("ece", y, predictive, levels=at), 0.1, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, levels=at, level_weights=weights), 1.1, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, levels=at, level_weights=weights, alpha=2), 0.215, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, levels=at, level_weights="frequency"), 0.95 / 9, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, levels=at, norm="max"), 1 / 4, rtol=1e-14)
    assert_allclose(value("ece", y, predictive, levels=at, norm="max", alpha=2), 1 / 16, rtol=1e-14)


def test_ece_of_counts_at_the_ends_has_no_gaps():
    """F- = 0 or F = 1 at levels 0 and 1: a target of 0 has F- = 0, and every F is at most 1."""
    y, rate = [0.0, 40.0], Poisson(np.full(2, math.log(2)))
    for pit in ("plain", "nonrandomized"):
        assert value("ece", y, rate, levels=(0, 1), pit=pit) == 0


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("ece", {}, "Mean difference between quantile levels and"),
        ("ece", {"alpha": 2}, "Mean squared difference between quantile levels and"),
        ("ece", {"norm": "max"}, "Largest difference between quantile levels and"),
        ("ece", {"norm": "max", "alpha": 2}, "Largest squared difference between quantile levels and"),
        ("ence", {}, "Mean relative difference between predicted and"),
        ("ence", {"norm": "max"}, "Largest relative difference between predicted and"),
    ],
)
def test_the_description_is_that_of_the_statistic(name, options, begins):
    described = METRICS[name](**options).description()
    assert described.startswith(begins)
    assert described.endswith(METRICS[name].info.interpretation)
    assert METRICS[name]().description() == f"{METRICS[name].summary()} {METRICS[name].info.interpretation}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": (0.5, 0.1)}, "--levels must increase, got 0.5, 0.1"),
        ({"levels": (0.5, 1.1)}, "--levels must lie between 0 and 1, got 1.1: did you mean 0.011?"),
        ({"level_weights": (1, -1)}, "--level-weights must be numbers from 0 on, and not all 0, got 1, -1"),
        ({"level_weights": ()}, "--level-weights must be numbers from 0 on, and not all 0, got none"),
        ({"level_weights": "frequency", "norm": "max"}, "--norm max has no weights. Remove --level-weights"),
        ({"level_weights": (1, 1)}, "--level-weights must have a number for each of the 99 levels, got 2"),
    ],
)
def test_levels_and_weights_that_do_not_match_are_refused(options, message):
    rows = Predictions(y=np.zeros(1), predictive=normal([0.0], [1.0]))
    with pytest.raises((OptionError, DataError), match=re.escape(message)):
        METRICS["ece"](**options).compute(rows)


def test_a_pit_equal_to_a_level_counts_as_below_it():
    """F(y) <= p: a PIT of exactly 1/2 at the only level 1/2 gives a share of 1: ECE 1/2; just above it 0: ECE 1/2 too.

    With two rows at 1/2 and above, the share is 1/2: ECE 0.
    """
    y = [0.0, 1.0]
    assert value("ece", y, normal([0.0, 0.0], [1.0, 1.0]), n_levels=1) == 0


def test_ece_of_counts_by_hand():
    """Poisson with rate log 2: P(0) = 1/2. y = 0 has F- = 0, F = 1/2: at levels 1/4, 1/2, 3/4 it counts 1/2, 1, 1.

    Gaps 1/4, 1/2, 1/4: ECE = 1/3. Plain: F = 1/2 <= p gives 0, 1, 1: gaps 1/4, 1/2, 1/4 as well; with y = 1,
    F- = 1/2 and F = (1 + log 2)/2 = 0.847: 0, 0, 0.25/0.347 against plain 0, 0, 0.
    """
    rate = Poisson(np.array([math.log(2)]))
    assert_allclose(value("ece", [0.0], rate, n_levels=3), 1 / 3, rtol=1e-12)
    assert_allclose(value("ece", [0.0], rate, n_levels=3, pit="plain"), 1 / 3, rtol=1e-12)
    share = 0.25 / (math.log(2) / 2)
    assert_allclose(value("ece", [1.0], rate, n_levels=3), (1 / 4 + 1 / 2 + abs(3 / 4 - share)) / 3, rtol=1e-12)
    assert_allclose(value("ece", [1.0], rate, n_levels=3, pit="plain"), (1 / 4 + 1 / 2 + 3 / 4) / 3, rtol=1e-12)


def test_pit_by_hand():
    """One PIT value u: the integral of (1{u <= t} - t)^2 is (u^3 + (1 - u)^3) / 3. 0.3 counts in bin 6 of 20."""
    y, predictive = with_pit([0.3])
    found = result("pit", y, predictive)
    assert_allclose(found.value, (0.3**3 + 0.7**3) / 3, rtol=1e-12)
    assert found.details["histogram"] == [0.0] * 5 + [1.0] + [0.0] * 14


def test_pit_of_counts_by_hand():
    """Poisson with rate log 2 and y = 0: F(t) = 2t up to 1/2, then 1; (F - t)^2 is t^2 up to 1/2, then (1 - t)^2.

    Its integral is 1/24 + 1/24 = 1/12. Its histogram with four bins is 1/2, 1/2, 0, 0.
    """
    found = result("pit", [0.0], Poisson(np.array([math.log(2)])), bins=4)
    assert_allclose(found.value, 1 / 12, rtol=1e-12)
    assert_allclose(found.details["histogram"], [0.5, 0.5, 0, 0], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_pit_of_counts_equals_numerical_integration(seed):
    """The exact integral against a sum over 400,000 points."""
    from calcheck.statistics.groups import Averages
    from calcheck.statistics.pit import anderson_darling, cramer_von_mises, distribution

    rng = np.random.default_rng(seed)
    left = rng.random(30)
    right = np.minimum(left + rng.choice([0.0, 1e-9, 0.01, 0.4], 30), 1)
    terms, places = distribution(left, right)
    u = (np.arange(400_000) + 0.5) / 400_000
    wide = np.maximum(right - left, 1e-12)
    f = np.mean([np.clip((u - low) / width, 0, 1) for low, width in zip(left, wide, strict=True)], axis=0)
    means = Averages(terms, 30).means()
    assert_allclose(cramer_von_mises(means, places), np.mean((f - u) ** 2), rtol=1e-5)
    assert_allclose(anderson_darling(means, places), np.mean((f - u) ** 2 / (u * (1 - u))), rtol=1e-5)


def test_anderson_darling_by_hand():
    """One PIT value u: -1 - log u - log(1 - u). Counts as above: t / (1 - t) up to 1/2, then its inverse."""
    y, predictive = with_pit([0.3])
    options = {"statistic": "anderson-darling"}
    assert_allclose(value("pit", y, predictive, **options), -1 - math.log(0.3) - math.log(0.7), rtol=1e-12)
    assert_allclose(value("pit", [0.0], Poisson(np.array([math.log(2)])), **options), 2 * math.log(2) - 1, rtol=1e-12)


def test_anderson_darling_agrees_with_the_formula_of_order_statistics():
    """Anderson and Darling (1954): n times the value is -n - sum (2 i - 1) (log u_i + log(1 - u_(n + 1 - i))) / n."""
    u = np.sort(np.random.default_rng(8).beta(0.7, 1.2, 500))
    y, predictive = with_pit(u)
    weights = 2 * np.arange(1, 501) - 1
    expected = -500 - weights @ (np.log(u) + np.log1p(-u[::-1])) / 500
    assert_allclose(500 * value("pit", y, predictive, statistic="anderson-darling"), expected, rtol=1e-9)


def test_anderson_darling_is_finite_for_targets_beyond_all_predictions():
    """F is 1/2 from 2^-53 to 1 - 2^-53, and 1/4 (1/u + 1/(1 - u)) - 1 is the integrand: 53 log 2 / 2 - 1."""
    y, predictive = np.array([-60.0, 60.0]), normal([0.0, 0.0], [1.0, 1.0])
    found = result("pit", y, predictive, statistic="anderson-darling")
    assert_allclose(found.value, 53 * math.log(2) / 2 - 1, rtol=1e-12)


def test_nll_by_hand():
    """-log N(1; 0, 2^2) = 1/8 + log 2 + log(2 pi)/2; -log Poisson(3; 2) = 2 - 3 log 2 + log 6."""
    assert_allclose(value("nll", [1.0], normal([0.0], [2.0])), 1 / 8 + math.log(2) + math.log(2 * math.pi) / 2)
    assert_allclose(value("nll", [3.0], Poisson(np.array([2.0]))), 2 - 3 * math.log(2) + math.log(6), rtol=1e-13)


def test_the_terms_of_a_gaussian_nll_add_up():
    """NLL = (ZMS + mean log std^2 + log 2 pi) / 2 [ZMS Eq. 12]."""
    rng = np.random.default_rng(0)
    found = result("nll", rng.normal(size=50), normal(rng.normal(size=50), rng.uniform(0.5, 2, 50)))
    parts = found.details["zms"] + found.details["mean_log_variance"] + math.log(2 * math.pi)
    assert_allclose(found.value, parts / 2, rtol=1e-13)


def test_an_impossible_target_has_no_nll_is_counted_and_fails_with_the_smallest_p_value():
    """No log-normal variable is negative. With 99 replicates, p is 2 / 100, and 1 / 100 for all metrics together."""
    rng = np.random.default_rng(0)
    predictive = LogNormal(np.zeros(60), np.ones(60))
    rows = Predictions(y=np.r_[-1.0, np.exp(rng.normal(size=59))], predictive=predictive)
    metrics = [METRICS[name]() for name in ("nll", "crps", "mae")]
    report = evaluate(InMemory(rows), metrics, run=Run(replicates=99, resamples=0))
    found = report.results[0]
    assert (found.value, found.verdict, found.p_value, found.zeta) == (None, "fail", 0.02, None)
    assert found.direction == "worse-than-promised"
    assert any("1 target has probability 0" in warning for warning in texts(found.warnings))
    assert (report.overall.verdict, report.overall.p_value, report.overall.leading) == ("fail", 0.01, "nll")


def test_an_infinite_density_neither_fails_nor_hides_an_impossible_target():
    """The density of a gamma distribution with shape 1/2 is infinite at 0; no target below 0 is possible."""
    predictive = Gamma(np.full(60, 0.5), np.ones(60))
    y = predictive.sample(np.random.default_rng(0), 1)[:, 0]
    y[0] = 0.0
    run = Run(replicates=99, resamples=0)
    assert result("nll", y, predictive, run=run).verdict == "none"
    y[1] = -1.0
    assert result("nll", y, predictive, run=run).verdict == "fail"


def test_crps_by_hand():
    """Standard normal at 0: (sqrt 2 - 1)/sqrt pi. Draws 0 and 2 at 1: E|Y - y| = 1 less half of E|Y - Y'|.

    E|Y - Y'| is 1 over the four pairs (biased: 1/2), 2 over the two different ones (fair: 0).
    Poisson with rate log 2 at 0: the sum of (1 - F(k))^2 over k = 0, 1, ..., by hand to 1e-15.
    """
    assert_allclose(value("crps", [0.0], normal([0.0], [1.0])), (math.sqrt(2) - 1) / math.sqrt(math.pi), rtol=1e-14)
    draws = Samples(np.array([[0.0, 2.0]]))
    assert_allclose(value("crps", [1.0], draws, ensemble="biased"), 0.5, rtol=1e-14)
    assert_allclose(value("crps", [1.0], draws), 0.0, atol=1e-15)
    rate = math.log(2)
    masses = [0.5 * rate**k / math.factorial(k) for k in range(40)]
    expected = sum((1 - sum(masses[: k + 1])) ** 2 for k in range(40))
    assert_allclose(value("crps", [0.0], Poisson(np.array([rate]))), expected, rtol=1e-13)


def test_crps_of_one_draw_is_biased_with_a_warning():
    found = result("crps", [1.0], Samples(np.array([[3.0]])))
    assert found.value == 2.0
    assert found.details["estimator"] == "biased"
    assert any("fair" in warning for warning in texts(found.warnings))


def test_intervals_by_hand():
    """N(0, 1) and N(0, 2^2), level 1/2: quartiles at 0.6744897501960817 std. y = 0 is inside, y = 3 above u = 1.349.

    Coverage 1/2, width 0.6745 * 2 * 1.5, interval score 0.6745 * 3 + (2 / 0.5) (3 - 1.349) / 2.
    """
    quartile = 0.6744897501960817
    y, predictive = [0.0, 3.0], normal([0.0, 0.0], [1.0, 2.0])
    assert value("coverage", y, predictive, level=0.5) == 0.5
    others = result("coverage", y, predictive, level=0.5).details["at_other_levels"]
    assert [line["level"] for line in others] == [0.8, 0.9, 0.95, 0.99]
    assert_allclose([line["expected"] for line in others], [0.8, 0.9, 0.95, 0.99])
    assert_allclose(result("coverage", y, predictive, level=0.5).reference, 0.5, rtol=1e-14)
    assert_allclose(value("width", y, predictive, level=0.5), 3 * quartile, rtol=1e-14)
    expected = 3 * quartile + 4 * (3 - 2 * quartile) / 2
    assert_allclose(value("interval-score", y, predictive, level=0.5), expected, rtol=1e-14)
    ninth = 1.6448536269514722
    outside = 2 / 0.1 * (4 - 2 * ninth)
    assert_allclose(value("interval-score", [4.0], normal([0.0], [2.0])), 4 * ninth + outside, rtol=1e-13)


def test_pinball_by_hand():
    """N(0, 1), levels 0.1 and 0.9: quantiles -q and q with q = 1.2815515655446004.

    y = 1: 0.1 (1 + q) and (1 - 0.9) (q - 1), on average q / 10. y = 2: 0.1 (2 + q) and 0.9 (2 - q), 1 - 0.4 q.
    N(0, 2^2), level 0.1, y = -3: (1 - 0.1) (-2 q + 3).
    """
    q = 1.2815515655446004
    outer = {"levels": (0.1, 0.9)}
    assert_allclose(value("pinball", [1.0], normal([0.0], [1.0]), **outer), q / 10, rtol=1e-14)
    found = result("pinball", [1.0, 2.0], normal([0.0, 0.0], [1.0, 1.0]), **outer)
    assert_allclose(found.value, (q / 10 + 1 - 0.4 * q) / 2, rtol=1e-14)
    low, high = found.details["by_level"]
    assert (low["level"], high["level"]) == (0.1, 0.9)
    assert_allclose(low["score"], 0.1 * (1.5 + q), rtol=1e-14)
    assert_allclose(high["score"], (0.1 * (q - 1) + 0.9 * (2 - q)) / 2, rtol=1e-14)
    assert_allclose(value("pinball", [-3.0], normal([0.0], [2.0]), levels=(0.1,)), 0.9 * (3 - 2 * q), rtol=1e-13)


@pytest.mark.parametrize("family", ["gaussian", "samples", "quantiles", "poisson", "weibull"])
def test_pinball_agrees_with_a_loop(family):
    """Koenker and Bassett: p (y - q) above the quantile, (1 - p) (q - y) below, at the default levels."""
    rows = calibrated(family, n=50)
    levels = LEVELS if family == "quantiles" else (0.1, 0.25, 0.5, 0.75, 0.9)
    scores = []
    for p in levels:
        for y, q in zip(rows.y, rows.predictive.quantile(p), strict=True):
            scores.append(p * (y - q) if y >= q else (1 - p) * (q - y))
    assert_allclose(value("pinball", rows.y, rows.predictive), math.fsum(scores) / len(scores), rtol=1e-13)


@pytest.mark.parametrize("family", ["gaussian", "samples", "gamma"])
def test_pinball_agrees_with_the_interval_score_the_median_error_and_the_crps(family):
    """S = (2 / alpha) (sum at alpha / 2 and 1 - alpha / 2); half of the median error; half of the CRPS.

    The mean over levels (j - 1/2) / 500 is an integral to about 1 / 500 of the last interval.
    """
    rows = calibrated(family, n=50)
    y, predictive = rows.y, rows.predictive
    interval_score = value("interval-score", y, predictive, level=0.8)
    assert_allclose(20 * value("pinball", y, predictive, levels=(0.1, 0.9)), interval_score, rtol=1e-12)
    assert_allclose(2 * value("pinball", y, predictive, levels=(0.5,)), value("mae", y, predictive), rtol=1e-13)
    levels = tuple((np.arange(500) + 0.5) / 500)
    crps = value("crps", y, predictive, **({"ensemble": "biased"} if family == "samples" else {}))
    assert_allclose(2 * value("pinball", y, predictive, levels=levels), crps, rtol=5e-3)


def test_pinball_uses_the_quantiles_of_a_file_as_they_are_without_a_verdict():
    """y = 1, quantiles 0 and 4 at levels 0.2 and 0.8: (0.2 + 0.6) / 2.

    A perfect model's score depends on the distribution beyond the quantiles. In simulations with interpolated
    distributions, 14 of 20 sets of 20,000 rows of right normal models failed.
    """
    predictive = Quantiles(np.array([0.2, 0.8]), np.tile([[0.0, 4.0]], (60, 1)))
    found = result("pinball", np.ones(60), predictive, run=Run(resamples=0, replicates=19), levels=(0.2, 0.8))
    assert_allclose(found.value, 0.4, rtol=1e-14)
    assert found.verdict == "none"
    assert found.reference is None
    assert any("depends on interpolation" in warning for warning in texts(found.warnings))
    assert_allclose(value("pinball", [1.0], predictive.take([0]), levels=(0.5,)), 0.5, rtol=1e-14)
    rows = Predictions(y=np.ones(1), predictive=predictive.take([0]))
    (skipped,) = evaluate(InMemory(rows), [METRICS["pinball"](levels=(0.1,))], run=PLAIN).skipped
    assert "nothing is known beyond the quantiles 0.2 … 0.8" in skipped.reason


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), r"--levels takes 1 to 1,000 levels, got 0"),
        (tuple(np.arange(1, 1002) / 1002), r"--levels takes 1 to 1,000 levels, got 1,001"),
        ((0.5, 1.0), r"--levels must lie strictly between 0 and 1, got 1$"),
        ((0.0,), r"--levels must lie strictly between 0 and 1, got 0$"),
        ((math.nan,), r"--levels must lie strictly between 0 and 1, got nan"),
        ((0.5, 0.1, 0.5), r"--levels must differ, got 0.5 twice"),
    ],
)
def test_levels_of_pinball_are_checked(levels, message):
    with pytest.raises(OptionError, match=message):
        METRICS["pinball"](levels=levels)


def test_the_reference_coverage_of_counts_is_the_probability_of_the_interval():
    """Poisson with rate log 2: masses 0.5, 0.347, 0.120, … The 5 % quantile is 0, the 95 % one 2: 0.966 inside."""
    rate = math.log(2)
    expected = 0.5 * (1 + rate + rate**2 / 2)
    assert_allclose(result("coverage", [0.0], Poisson(np.array([rate]))).reference, expected, rtol=1e-13)


def test_the_reference_coverage_of_an_ensemble_is_the_share_of_gaps():
    """10 of 12 gaps around 11 draws lie between the smallest and the largest, which are the 5 and 95 % quantiles."""
    draws = Samples(np.arange(11.0)[None, :])
    assert_allclose(result("coverage", [3.5], draws).reference, 10 / 12, rtol=1e-14)


def test_tied_draws_have_no_reference_coverage():
    found = result("coverage", [3.5], Samples(np.array([[1.0, 3.0, 4.0, 4.0]])))
    assert found.reference is None
    assert any("no exact reference" in warning for warning in texts(found.warnings))


def test_the_confidence_curve_by_hand():
    """Errors 3 and 1 with std 1 and 2: the worst order. With t the retained share, c - o is 2 up to t = 1/2.

    Above it is (1 + t)/t - (3t - 1)/t = 2/t - 2. By the trapezoidal rule over 0, 1, ..., 99 %.
    Errors 1 and 3 have their oracle's order: 0.
    """
    predictive = normal([0.0, 0.0], [1.0, 2.0])
    retained = 1 - np.arange(100) / 100
    gaps = np.where(retained > 0.5, 2 / retained - 2, 2.0)
    area = (gaps[0] / 2 + gaps[1:-1].sum() + gaps[-1] / 2) / 100
    assert_allclose(value("confidence-curve", [3.0, 1.0], predictive), area, rtol=1e-12)
    assert_allclose(value("confidence-curve", [1.0, 3.0], predictive), 0.0, atol=1e-14)
    above = np.maximum(retained - 0.5, 0)
    squares = np.sqrt((9 * np.minimum(retained, 0.5) + above) / retained)
    squares -= np.sqrt((np.minimum(retained, 0.5) + 9 * above) / retained)
    area = (squares[0] / 2 + squares[1:-1].sum() + squares[-1] / 2) / 100
    assert_allclose(value("confidence-curve", [3.0, 1.0], predictive, score="rmse"), area, rtol=1e-12)


def test_a_perfect_ensemble_does_not_have_rce_0_or_zms_1():
    """The mean of m draws misses y by a variance of 1 + 1/m: RCE is 1 - sqrt(1 + 1/m), ZMS (1 + 1/m)(m - 1)/(m - 3)."""
    rng = np.random.default_rng(0)
    m = 5
    values = rng.normal(size=(40_000, m + 1))
    y, draws = values[:, 0], Samples(values[:, 1:])
    rce, zms = result("rce", y, draws), result("zms", y, draws)
    assert_allclose(rce.reference, 1 - math.sqrt(1.2), rtol=1e-14)
    assert abs(rce.value - rce.reference) < 0.02
    assert zms.reference is None
    assert abs(zms.value - 1.2 * 4 / 2) < 0.1  # heavy tails: s^2 of five draws may be near 0


def test_the_share_of_valid_bins_is_tested_against_the_confidence():
    """Ten bins, well calibrated but for the last three, whose errors are four times too large: 7 valid.

    P(Bin(10, 0.95) <= 7) = 1 - 0.95^10 (1 + 10/19 + 45/361) = 0.01150; Clopper and Pearson's limits of 7 in 10.
    """
    rng = np.random.default_rng(3)
    std = np.linspace(1, 2, 2000)
    y = std * rng.choice([-1.0, 1.0], 2000) * np.sqrt(rng.choice([0.5, 1.5], 2000))  # z^2 has mean 1, and light tails
    y[1400:] *= 4
    found = result("lzms", y, normal(np.zeros(2000), std), run=Run(resamples=500, replicates=0))
    assert [line["valid"] for line in found.details["bins"]][7:] == [False] * 3
    assert found.value == 0.7
    expected = 1 - 0.95**10 * (1 + 10 / 19 + 45 / 361)
    assert_allclose(found.p_value, expected, rtol=1e-12)
    assert found.verdict == "fail"
    assert_allclose([found.low, found.high], [0.3475471, 0.9332605], rtol=1e-6)  # published tables: 0.348, 0.933


@pytest.mark.parametrize("name", ["lzms", "lrce"])
def test_the_zeta_of_a_bin_is_within_one_if_its_interval_contains_the_reference(name):
    rng = np.random.default_rng(4)
    std = np.linspace(1, 2, 400)
    y = std * rng.normal(size=400) * np.repeat([1.0, 1.3], 200)
    found = result(name, y, normal(np.zeros(400), std), run=Run(resamples=300, replicates=0))
    lines = found.details["bins"]
    assert {line["valid"] for line in lines} == {True, False}
    for line in lines:
        assert (abs(line["zeta"]) <= 1) == line["valid"]
        low, high, reference = line["low"], line["high"], float(name == "lzms")
        reach = high - line["value"] if line["value"] <= reference else line["value"] - low
        assert_allclose(line["zeta"] * reach, line["value"] - reference, rtol=1e-12)


def test_rows_partly_tied_across_an_edge_are_split():
    """std 1, 2, 2, 3 in two bins: the two in the middle are half in either. E^2 = 1, 4, 8, 9.

    MV = (1 + 2 + 2)/2, (2 + 2 + 9)/2; MSE = (1 + 2 + 4)/2, (2 + 4 + 9)/2: both gaps are 1.
    z^2 = 1, 1, 2, 1: the bins of lzms have means (1 + 1/2 + 1)/2 and (1/2 + 1 + 1)/2.
    """
    y, predictive = [1.0, 2.0, -math.sqrt(8), 3.0], normal([0.0] * 4, [1.0, 2.0, 2.0, 3.0])
    assert_allclose(value("uce", y, predictive, bins=2), 1.0, rtol=1e-14)
    expected = (
        (math.sqrt(3.5) - math.sqrt(2.5)) / math.sqrt(2.5) + (math.sqrt(7.5) - math.sqrt(6.5)) / math.sqrt(6.5)
    ) / 2
    assert_allclose(value("ence", y, predictive, bins=2), expected, rtol=1e-13)
    found = result("lzms", y, predictive, bins=2, run=Run(resamples=200, replicates=0))
    assert_allclose([line["value"] for line in found.details["bins"]], [1.25, 1.25], rtol=1e-14)
    assert [line["rows"] for line in found.details["bins"]] == [2.0, 2.0]
    mean = (1.5 - math.sqrt(0.5)) / 2  # of z = 1, 1, -sqrt(2), 1
    assert_allclose([line["variance"] for line in found.details["bins"]], [1.25 - mean**2] * 2, rtol=1e-13)
    assert found.verdict == "none"


def test_edges_are_rounded_half_to_even():
    """Seven rows in four bins: 1.75, 3.5 and 5.25 become 2, 4 and 5."""
    found = result("ence", [1.0] * 7, normal([0.0] * 7, np.arange(1.0, 8.0)), bins=4)
    assert [line["rows"] for line in found.details["bins"]] == [2, 2, 1, 2]
    assert [(line["from"], line["to"]) for line in found.details["bins"]] == [(1, 2), (3, 4), (5, 5), (6, 7)]
    assert any(warning.startswith("1 row per bin is few") for warning in texts(found.warnings))


def test_underconfident_models_fail():
    """zeta is negative for ZMS and positive for RCE; twice the right spread is far from both references."""
    rng = np.random.default_rng(0)
    y, predictive = rng.normal(size=400), normal(np.zeros(400), np.full(400, 2.0))
    zms, rce = (result(name, y, predictive, run=Run(resamples=500, replicates=0)) for name in ("zms", "rce"))
    assert zms.zeta < -1
    assert rce.zeta > 1
    assert zms.verdict == rce.verdict == "fail"


def scattered(rows):
    """Return errors in units of their std whose squares alternate between 1/2 and 3/2: mean 1, light tails."""
    return np.sqrt(np.resize([0.5, 1.5], rows))


def test_the_confidence_of_bins_can_be_set():
    """At 80 % confidence: 6 of 10 valid has P(Bin(10, 0.8) <= 6) = 0.1209, which is at most 0.2."""
    std = np.linspace(1, 2, 2000)
    z = scattered(2000)
    for bad in (1, 3, 5, 7):
        z[bad * 200 : (bad + 1) * 200] *= 3
    found = result("lzms", std * z, normal(np.zeros(2000), std), run=Run(resamples=2000, replicates=0, confidence=0.8))
    assert found.reference == 0.8
    assert found.value == 0.6
    assert_allclose(found.p_value, 0.1208739, rtol=1e-6)
    assert found.verdict == "fail"


def test_the_upper_limit_is_one_if_all_bins_are_valid():
    """Clopper and Pearson: 0.025^(1/10) = 0.6915 to 1; P(Bin <= 10) = 1."""
    found = result(
        "lzms",
        scattered(1000),
        normal(np.zeros(1000), 1 + np.arange(1000) * 1e-9),
        run=Run(resamples=300, replicates=0),
    )
    assert (found.value, found.high, found.p_value, found.verdict) == (1.0, 1.0, 1.0, "pass")
    assert_allclose(found.low, 0.025**0.1, rtol=1e-12)


def test_bins_are_resampled_independently():
    """Two bins with the same z-scores have limits that differ by chance."""
    z = np.sqrt(np.random.default_rng(0).exponential(size=100))
    std = np.repeat([1.0, 2.0], 100)
    found = result(
        "lzms",
        std * np.tile(z, 2),
        normal(np.zeros(200), std),
        bins=2,
        run=Run(resamples=300, replicates=0),
    )
    first, second = found.details["bins"]
    assert first["value"] == pytest.approx(second["value"])
    assert first["low"] != second["low"]


@pytest.mark.parametrize(("rows", "bins", "reason"), [(10, 10, "no bin has an interval"), (40, 10, "effective rows")])
def test_few_rows_give_no_verdict(rows, bins, reason):
    rng = np.random.default_rng(0)
    predictive = normal(np.zeros(rows), rng.uniform(1, 2, rows))
    rows_ = Predictions(y=rng.normal(size=rows), predictive=predictive)
    report = evaluate(InMemory(rows_), [METRICS["lzms"](bins=bins)], run=Run(resamples=200, replicates=0))
    messages = [skipped.reason for skipped in report.skipped] + [w for r in report.results for w in texts(r.warnings)]
    assert any(reason in each or "bins have no interval" in each for each in messages)
    assert all(found.verdict == "none" for found in report.results)


def test_bins_that_share_their_rows_give_no_verdict():
    """Two uncertainties in ten bins: the bins repeat each other."""
    rng = np.random.default_rng(0)
    found = result(
        "lzms",
        rng.normal(size=600),
        normal(np.zeros(600), np.repeat([1.0, 1.001], 300)),
        run=Run(resamples=200, replicates=0),
    )
    assert found.verdict == "none"
    assert any("not independent" in warning for warning in texts(found.warnings))


def test_metrics_in_bins_of_the_std_of_draws_are_skipped():
    """Bins of a perfect ensemble disagree: where draws happen to be close, their mean errs by more than their std."""
    values = np.random.default_rng(0).normal(size=(600, 12))
    rows = Predictions(y=values[:, 0], predictive=Samples(values[:, 1:]), columns={"x": np.arange(600)})
    report = evaluate(
        InMemory(rows),
        [METRICS["lrce"](), METRICS["lzms"](), METRICS["lrce"](by="x")],
        run=Run(resamples=300, replicates=39),
    )
    assert [skipped.metric for skipped in report.skipped] == ["lrce", "lzms"]
    assert report.results[0].verdict == "pass"


def test_heavy_tails_are_reported_by_column():
    """Squares of normal numbers have a skewness of 0.63: too much for variances (0.6), not for squared errors (0.8)."""
    rng = np.random.default_rng(0)
    y, std = rng.normal(size=3000), np.abs(rng.normal(size=3000))
    found = result("rce", y, normal(np.zeros(3000), std))
    assert_allclose(list(found.details["skewness"].values()), 0.63, atol=0.02)
    (message,) = (warning for warning in texts(found.warnings) if "heavy tail" in warning)
    assert message.startswith("heavy tail: the skewness of variance is above 0.6")
    light = result("zms", y, normal(np.zeros(3000), np.ones(3000)))
    heavy = result("zms", y**3, normal(np.zeros(3000), np.ones(3000)))
    assert not any("heavy tail" in warning for warning in texts(light.warnings))
    assert any("heavy tail: the skewness of z2" in warning for warning in texts(heavy.warnings))


def test_mae_uses_medians():
    """Poisson with rate log 2: the median is 0, the mean 0.69. Draws 1, 2, 4, 8: the median is 3, by either sign."""
    assert value("mae", [0.0], Poisson(np.array([math.log(2)]))) == 0.0
    draws = np.array([[1.0, 2.0, 4.0, 8.0]])
    assert value("mae", [3.5], Samples(draws)) == 0.5
    assert value("mae", [-3.5], Samples(-draws)) == 0.5


def test_central_intervals_of_draws_are_symmetric():
    """The first and last of 20 draws enclose 19 of 21 gaps, at least 0.9; the 2nd and 19th would enclose 17."""
    draws = np.arange(20.0)[None, :]
    found = result("coverage", [0.5], Samples(draws))
    assert_allclose(found.reference, 19 / 21)
    assert value("width", [0.5], Samples(draws)) == 19.0
    assert value("width", [0.5], Samples(draws), level=0.5) == 11.0  # int(5.25) gaps outside: the 5th and the 16th
    assert value("interval-score", [0.5], Samples(draws)) == value("interval-score", [-0.5], Samples(-draws))


def test_targets_equal_to_a_draw_have_no_reference_coverage():
    found = result("coverage", [3.0, 2.0], Samples(np.array([[3.0], [4.0]])))
    assert found.reference is None


def test_equal_draws_have_no_spread():
    """Seven times 0.1: rounding alone would give a standard deviation of 1e-17, and a huge z-score."""
    assert Samples(np.full((1, 7), 0.1)).std().tolist() == [0.0]
    rows = Predictions(y=np.zeros(2), predictive=Samples(np.stack([np.full(7, 0.1), np.arange(7.0)])))
    assert Samples(np.full((1, 7), 0.1)).mean().tolist() == [0.1]
    (found,) = evaluate(InMemory(rows), [METRICS["zms"]()]).results
    assert_allclose(found.value, (8 + 9 / (14 / 3)) / 2, rtol=1e-14)  # sqrt(8) for a target unlike 7 equal draws
    assert "equal-draws" in [each.code for each in found.warnings]


def test_ence_of_equal_draws():
    """Bins of equal draws: all targets are equal to them (no gap), or some are not (RMSE / RMV = sqrt(m + 1) = 2)."""
    draws = np.array([[1.0, 1, 1], [1, 1, 1], [2, 4, 6], [2, 4, 6]])
    gap = 1 - 0.5**0.5  # RMV 2, RMSE sqrt(2)
    assert_allclose(value("ence", [1, 1, 6, 4], Samples(draws), bins=2), gap / 2, rtol=1e-14)
    assert_allclose(value("ence", [1, 3, 6, 4], Samples(draws), bins=2), (1 + gap) / 2, rtol=1e-14)


def test_coverage_of_all_or_no_rows_is_tested_by_its_probability():
    """All of 60 rows inside their 90 % intervals: 2 * 0.9^60 = 0.0036; of 10: 2 * 0.9^10 = 0.70; none of 2: 0.02."""
    for rows, y, p_value, verdict in (
        (60, 0.0, 0.0035941, "fail"),
        (10, 0.0, 0.6973569, "pass"),
        (2, 9.0, 0.02, "fail"),
    ):
        found = result("coverage", np.full(rows, y), normal(np.zeros(rows), np.ones(rows)))
        assert_allclose(found.p_value, p_value, rtol=1e-4)
        assert found.verdict == verdict
        assert found.low is None


def test_rounding_errors_give_no_interval():
    """Equal rows have no interval, though their sums differ in the last digit."""
    same = normal([0.0] * 30, [0.3] * 30)
    for name in ("zms", "rce", "rmse", "sharpness", "width", "mae"):
        found = result(name, [0.7] * 30, same, run=Run(resamples=200, replicates=0))
        assert found.low is None, name
        assert found.verdict == "none"
        assert any("all resamples have the same value" in warning for warning in texts(found.warnings)), name


@pytest.mark.parametrize("sigma", [20.0, 1e-76])
def test_standard_deviations_that_cannot_be_squared_refuse_the_data_and_skip_no_metric(sigma):
    """A log-normal distribution with sigma 20 has the standard deviation e^400, about 5e173."""

    def evaluated():
        rows = Predictions(y=np.ones(3), predictive=LogNormal(np.zeros(3), np.array([1, 1, sigma])))
        return evaluate(InMemory(rows), [METRICS["zms"](), METRICS["mae"]()], run=PLAIN)

    with pytest.raises(DataError, match=r"to be squared, but 1 of 3 rows is not \(row 2, counted from 0\)"):
        evaluated()


def test_z_scores_that_cannot_be_averaged_refuse_the_data_and_skip_no_metric():
    rows = Predictions(y=np.ones(3), predictive=normal(np.zeros(3), [1.0, 1e-60, 1.0]))
    with pytest.raises(DataError, match=r"\(y - mean\) / std must be at most 1e\+50 .* \(row 1, counted from 0\)"):
        evaluate(InMemory(rows), [METRICS["nll"](), METRICS["mae"]()], run=PLAIN)


def test_frequency_weights_need_targets_below_some_quantile():
    rows = Predictions(y=np.full(3, 9.0), predictive=normal(np.zeros(3), np.ones(3)))
    report = evaluate(InMemory(rows), [METRICS["ece"](level_weights="frequency")], run=PLAIN)
    assert "no target is below any quantile" in report.skipped[0].reason


def test_the_bias_of_resampling_is_reported():
    """Resampling adds noise: the ECE of resamples is larger than that of the rows. With empty bins it is undefined."""
    rng = np.random.default_rng(0)
    perfect = normal(np.zeros(2000), np.exp(0.1 * rng.normal(size=2000)))
    y = perfect.sample(rng, 1)[:, 0]
    found = result("ece", y, perfect, run=Run(resamples=500, replicates=0))
    assert found.details["bootstrap"]["bias"] > 0
    ence = result("ence", y, perfect, bins=100, run=Run(resamples=500, replicates=0))
    assert ence.low > ence.value
    assert any(warning.startswith("resampling adds noise") for warning in texts(ence.warnings))
    assert ence.details["bootstrap"]["held_fixed"] == "bin edges"
    for bins in (7, 10):  # one resample in twenty has rows in all of 7 bins, none in all of 10
        few = result(
            "ence",
            y[:10],
            normal(np.zeros(10), np.arange(1.0, 11.0)),
            bins=bins,
            run=Run(resamples=500, replicates=0),
        )
        assert few.low is None
        assert any("most resamples have no finite value" in warning for warning in texts(few.warnings))


def test_few_rows_and_few_resamples_cause_warnings():
    rng = np.random.default_rng(0)
    few = result("zms", rng.normal(size=20), normal(np.zeros(20), np.ones(20)), run=Run(resamples=300, replicates=0))
    assert any("20 rows are few" in warning for warning in texts(few.warnings))
    sure = result(
        "rmse",
        rng.normal(size=90),
        normal(np.zeros(90), np.ones(90)),
        run=Run(resamples=300, replicates=0, confidence=0.999),
    )
    assert any("300 resamples are too few" in warning for warning in texts(sure.warnings))
    assert not any("rows are few" in warning for warning in texts(sure.warnings))


def test_a_large_offset_does_not_change_crps():
    rng = np.random.default_rng(0)
    draws = rng.integers(-1000, 1000, (50, 10)) / 64
    y = rng.integers(-1000, 1000, 50) / 64
    assert value("crps", y + 2.0**33, Samples(draws + 2.0**33)) == value("crps", y, Samples(draws))


def test_the_components_of_the_pit_agree_with_the_means_of_legendre_polynomials():
    """sqrt(n) times the means of four polynomials of these ten PIT values, by R."""
    values = np.array(
        [0.691462, 0.933193, 0.211855, 0.539828, 0.013903, 0.97725, 0.308538, 0.617911, 0.00621, 0.933193]
    )
    levels = levels_of(100_000)  # fine, because components() takes the distribution function to be linear in between
    below = (values <= levels[:, None]).mean(axis=1)
    expected = np.array([0.255615, 1.789110, -0.354718, 2.125464]) / math.sqrt(10)
    assert_allclose(components(levels, below), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda u: u**1.5, "predictions-too-high"),
        (lambda u: u ** (1 / 1.5), "predictions-too-low"),
        (lambda u: 0.5 + np.cbrt(u - 0.5) * 0.5 ** (2 / 3), "too-narrow"),
        (lambda u: 0.5 + 4 * (u - 0.5) ** 3, "too-wide"),
        (lambda u: np.where(u > 0.5, 1.0, 0.0), "too-narrow"),
        (np.ones_like, "predictions-too-low"),
        (lambda u: u + 0.1 * np.sin(6 * np.pi * u) / np.pi, "wrong-shape"),
    ],
)
def test_the_direction_is_the_largest_component_of_the_pit(transform, expected):
    """PIT values of uniform ranks u: moved to one side, to both ends, to the middle, all at the ends, or in a wave."""
    values = np.sort(transform(levels_of(500)))
    assert direction(levels_of(99), (values <= levels_of(99)[:, None]).mean(axis=1)) == expected
