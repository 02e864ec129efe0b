"""Differences of two models on the same rows: intervals and p-values by bootstrap and by permutations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import Laplace
from calcheck.distributions.positive import LogNormal
from calcheck.execution.run import Limits, Run
from calcheck.inference.bootstrap import Replicates, statistic_of
from calcheck.inference.paired_comparison import ModelPair, compare_pairs
from calcheck.metrics import METRICS
from calcheck.predictions import Predictions
from tests.helpers.families import calibrated
from tests.helpers.shorthand import rows_of, texts
from tests.helpers.simulations import band, sets, slow

FEW = Run(resamples=100)
RESAMPLED = [
    name
    for name, metric in METRICS.items()
    if metric.info.interval in ("bca", "percentile") and metric.info.alternative != "none"
]
PLAIN = [name for name in RESAMPLED if METRICS[name].info.interval == "bca" and not METRICS[name].info.conditional_on]
BIASED = [name for name in RESAMPLED if METRICS[name].info.interval == "percentile"]
PERMUTATIONS_ONLY = Run(resamples=0)


def model(n, *, seed=0, spread=1.0, shift=0.0, targets=0):
    """Return targets, the same for all models, with approximately calibrated Gaussian predictions."""
    y = np.random.default_rng(targets).normal(size=n)
    rng = np.random.default_rng(seed + 1)
    return Predictions(y=y, predictive=Gaussian(shift + 0.3 * rng.normal(size=n), spread * rng.uniform(0.8, 1.3, n)))


def pair_of(name, first, second, **options):
    metric = METRICS[name](**options)
    return ModelPair(metric, (first, second), (rows_of(metric, first, run=FEW), rows_of(metric, second, run=FEW)))


def difference(name, first, second, *, run=None, swaps=None, targets=None, **options):
    pair = replace(pair_of(name, first, second, **options), targets=targets)
    (found,) = compare_pairs([pair], run or Run(), swaps=swaps)
    return found


def value(name, rows):
    metric = METRICS[name]()
    return statistic_of(metric, rows_of(metric, rows, run=FEW)).estimate()


def exchange_models(first, second, swapped):
    """Return the predictions of two models, exchanged in some rows."""
    mean, std = (np.stack([getattr(each.predictive, part) for each in (first, second)]) for part in ("loc", "scale"))
    own, rows = swapped.astype(int), np.arange(len(first))
    made = ((Gaussian(mean[side, rows], std[side, rows])) for side in (own, 1 - own))
    return tuple(replace(first, predictive=predictive) for predictive in made)


@pytest.mark.parametrize(
    ("name", "column", "function"),
    [
        ("zms", "z2", lambda a, axis: np.mean(a, axis=axis)),
        ("rmse", "squared_error", lambda a, axis: np.sqrt(np.mean(a, axis=axis))),
        ("nll", "nll", lambda a, axis: np.mean(a, axis=axis)),
    ],
)
def test_intervals_agree_with_scipy(name, column, function):
    """Quantiles of two sets of 20,000 resamples differ by about 2 % of the interval's width."""
    pair = pair_of(name, model(80), model(80, seed=5, spread=0.7))
    columns = [rows.columns[column] for rows in pair.rows]

    def statistic(a, b, axis):
        return function(b, axis) - function(a, axis)

    (found,) = compare_pairs([pair], Run(resamples=20_000, confidence=0.9))
    scipy = stats.bootstrap(
        columns,
        statistic,
        paired=True,
        vectorized=True,
        method="BCa",
        confidence_level=0.9,
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = scipy.high - scipy.low
    assert found.interval == "bca"
    assert_allclose([found.low, found.high], [scipy.low, scipy.high], atol=0.02 * width)


def test_the_interval_uses_paired_differences():
    """The difference of two models with correlated errors is known much better than each value."""
    first = model(200)
    second = replace(first, predictive=Gaussian(first.predictive.loc, first.predictive.scale * 1.01))
    found = difference("crps", first, second)
    alone = np.std(rows_of(METRICS["crps"](), first).columns["crps"]) / np.sqrt(200) * 2 * 1.96
    assert found.high - found.low < 0.05 * alone


@pytest.mark.parametrize("name", [slow(name) if place % 3 else name for place, name in enumerate(PLAIN)])
def test_permutation_p_values_agree_with_all_permutations(name):
    """4,000 random permutations, 25 at a time, within four standard errors of all 256 for 8 rows."""
    first, second = model(8), model(8, seed=3, spread=0.6)
    metric = METRICS[name]()

    def gap(swapped):
        values = [
            statistic_of(metric, rows_of(metric, each)).estimate() for each in exchange_models(first, second, swapped)
        ]
        return values[1] - values[0]

    observed = gap(np.zeros(8, dtype=bool))
    every = [gap(np.array(swapped)) for swapped in product((False, True), repeat=8)]
    share = np.mean(np.abs(every) >= abs(observed) * (1 - 1e-9))
    run = replace(PERMUTATIONS_ONLY, limits=Limits(block_swaps=200))
    found = difference(name, first, second, run=run, swaps=4000)
    error = np.sqrt(share * (1 - share) / 4000)
    assert_allclose(found.p_value, share, atol=4 * error + 1 / 4001)


def test_bootstrap_p_values_agree_with_all_resamples():
    """Five rows have 3,125 resamples; T = mean / standard error of the centered differences.

    The permutation p-value of these models is smaller.
    """
    first, second = model(5), model(5, seed=27, spread=0.8)
    gaps = rows_of(METRICS["crps"](), second).columns["crps"] - rows_of(METRICS["crps"](), first).columns["crps"]

    def ratio(values):
        return values.mean() / (values.std() / np.sqrt(5)) if values.std() > 1e-12 else np.nan

    away = gaps - gaps.mean()
    own = gaps.mean() / (gaps.std() / np.sqrt(5))
    every = np.array([ratio(away[list(chosen)]) for chosen in product(range(5), repeat=5)])
    share = min(1, 2 * min(np.mean(~(every < own)), np.mean(~(every > own))))
    swapped = difference("crps", first, second, run=PERMUTATIONS_ONLY, swaps=4000).p_value
    assert share > swapped + 0.05
    found = difference("crps", first, second, run=Run(resamples=20_000), swaps=4000)
    assert_allclose(found.p_value, share, atol=8 * np.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("name", ["nll", "rce"])
def test_the_p_value_is_at_least_that_of_the_permutation_test(name):
    first, second = model(60), model(60, seed=5, spread=0.8)
    together = difference(name, first, second, run=Run(resamples=2_000), swaps=2_000)
    assert together.p_value >= difference(name, first, second, run=PERMUTATIONS_ONLY, swaps=2_000).p_value


@pytest.mark.parametrize("name", [name for name in BIASED if not METRICS[name].info.conditional_on])
def test_biased_metrics_are_centered_at_the_mean_of_their_resamples(name):
    """p is the share of resamples that are as far from their mean as the difference is from 0."""
    pair = pair_of(name, model(80), model(80, seed=3, spread=0.8))
    replicates = Replicates([pair.statistic()], Run(resamples=300), stage=name)
    replicates.draw(300)
    values, own = replicates.values[0], pair.statistic().estimate()
    (found,) = compare_pairs([pair], Run(resamples=300))
    share = np.mean(np.abs(values - values.mean()) >= abs(own))
    assert_allclose(found.p_value, (1 + 300 * share) / 301, rtol=1e-12)


@pytest.mark.parametrize("name", ["ence", "uce"])
def test_models_that_are_each_right_in_one_half_of_the_rows_do_not_differ(name):
    """The other half has std 0.9 and not 1: the gaps of both have kinks nearby. Recentered resamples reject 7 sets.

    At the level of 5 %, more than 5 of 40 are rejected with a probability of 1.4 %.
    """
    hits = 0
    for seed in range(40):
        y = np.random.default_rng([5, seed]).normal(size=100)
        first, second = (np.where(np.arange(100) % 2 == wrong, 0.9, 1.0) for wrong in (0, 1))
        made = (Predictions(y=y, predictive=Gaussian(np.zeros(100), std)) for std in (first, second))
        hits += difference(name, *made, run=Run(seed=seed, resamples=300)).p_value <= 0.05
    assert hits <= 5


@pytest.mark.parametrize("name", ["ence", "uce", "stratified-coverage"])
def test_clear_differences_in_bins_are_found(name):
    rng = np.random.default_rng(3)
    y, spread = rng.normal(size=300), rng.uniform(0.9, 1.1, 300)
    made = (Predictions(y=y, predictive=Gaussian(np.zeros(300), each * spread)) for each in (1, 0.5))
    assert difference(name, *made, run=FEW, bins=5).p_value == pytest.approx(1 / 101)


@pytest.mark.slow
def test_equal_expected_scores_with_skewed_differences_keep_the_level():
    """N(0, 0.6^2) and the wider normal of equal expected nll under N(0, 1), n = 50: permutations alone reject 13 %.

    At most the 99.9 % binomial quantile at 0.05 are rejected: 28 of 300. A quarter would not distinguish 13 % from it.
    """
    narrow = 0.6
    level = 0.5 / narrow**2 + np.log(narrow)
    wide = optimize.brentq(lambda std: 0.5 / std**2 + np.log(std) - level, 1, 20)
    hits = 0
    for seed in range(300):
        y = np.random.default_rng(seed).normal(size=50)
        first, second = (
            Predictions(y=y, predictive=Gaussian(np.zeros(50), np.full(50, std))) for std in (narrow, wide)
        )
        hits += difference("nll", first, second, run=Run(seed=seed, resamples=999), swaps=999).p_value <= 0.05
    assert hits <= band(300, 0.05, 0.002)[1]


WIDER = stats.norm.ppf([0.975, 0.925]) / stats.norm.ppf(0.95)  # 90 % intervals that contain 95 and 85 %
MIRRORED = {
    "zms": (1.0, [(0, 1.5**-0.5), (0, 0.5**-0.5)]),  # zms 1.5 and 0.5
    "rce": (0.0, [(0, 1 / 1.5), (0, 1 / 0.5)]),  # rce -0.5 and 0.5
    "coverage": (0.9, [(0, WIDER[0]), (0, WIDER[1])]),
    "bias": (0.0, [(0.3, 1), (-0.3, 1)]),
}
"""The ideal value of metrics, with means and deviations of two models for N(0, 1) that are equally far from it."""


def normals(y, mean, std):
    """Return the prediction N(mean, std) of all targets."""
    return Predictions(y=y, predictive=Gaussian(np.full(len(y), float(mean)), np.full(len(y), float(std))))


def rejections(name, made, ideal, count=25):
    """Return how many of a number of sets of 200 rows have a difference in the distance from an ideal value."""
    p = []
    for seed in range(count):
        first, second = made(np.random.default_rng([11, seed]))
        run = Run(seed=seed, resamples=199)
        p.append(difference(name, first, second, run=run, swaps=99, targets=(ideal, ideal)).p_value)
    return np.sum(np.array(p) <= 0.05)


@pytest.mark.parametrize("name", MIRRORED)
def test_models_equally_far_from_the_ideal_value_do_not_differ(name):
    """At most the 99.9 % quantile of 25 sets, as always if the values themselves were compared."""
    ideal, models = MIRRORED[name]

    def mirrored(rng):
        y = rng.normal(size=200)
        return [normals(y, *each) for each in models]

    assert rejections(name, mirrored, ideal) <= band(25, 0.05, 0.002)[1]


@pytest.mark.parametrize("name", MIRRORED)
def test_two_right_models_do_not_differ_in_their_distance_from_the_ideal_value(name):
    """y = a + b + noise, and each model knows one of a and b: both distances are 0, where they have no slope."""

    def right(rng):
        parts = rng.normal(size=(2, 200))
        y = parts.sum(axis=0) + rng.normal(size=200)
        return [Predictions(y=y, predictive=Gaussian(part, np.full(200, 2**0.5))) for part in parts]

    assert rejections(name, right, MIRRORED[name][0]) <= band(25, 0.05, 0.002)[1]


@pytest.mark.parametrize("name", MIRRORED)
def test_a_right_and_a_wrong_model_differ_in_their_distance_from_the_ideal_value(name):
    def one_wrong(rng):
        y = rng.normal(size=200)
        return [normals(y, 0, 1), normals(y, 0.8, 0.4)]

    assert rejections(name, one_wrong, MIRRORED[name][0]) >= 24


@pytest.mark.parametrize("place", [-0.3, -0.05, 0.0, 0.05, 0.3])
def test_the_interval_of_a_distance_is_that_of_the_difference_and_of_the_sum_of_biases(place):
    """The sum is the difference from a model with negated errors. |b| - |a| over the box of both, on a grid."""
    y = np.random.default_rng(5).normal(size=80)
    noise = 0.5 * np.random.default_rng(6).normal(size=(2, 80))
    first, second = (
        Predictions(y=y, predictive=Gaussian(mean, np.ones(80))) for mean in (place + noise[0], 0.05 + noise[1])
    )
    negated = replace(first, predictive=Gaussian(2 * y - first.predictive.loc, np.ones(80)))
    found = difference("bias", first, second, run=FEW, swaps=9, targets=(0.0, 0.0))
    apart, together = (difference("bias", each, second, run=FEW, swaps=9) for each in (first, negated))
    minus, total = np.meshgrid(*(np.linspace(each.low, each.high, 201) for each in (apart, together)))
    distances = np.abs(total + minus) / 2 - np.abs(total - minus) / 2
    assert_allclose([found.low, found.high], [distances.min(), distances.max()], atol=1e-12)
    assert found.p_value >= max(apart.p_value, together.p_value) - 1e-12
    assert (found.low <= 0 <= found.high) == any(each.low <= 0 <= each.high for each in (apart, together))


def test_opposite_constant_deviations_have_an_interval():
    """The biases, 0.35 and -0.25, differ by 0.6 in every resample, so only their sum varies."""
    y = np.random.default_rng(5).normal(size=80)
    y += 0.05 - y.mean()
    found = difference("bias", normals(y, -0.3, 1), normals(y, 0.3, 1), run=FEW, targets=(0.0, 0.0))
    assert found.low < 0 < found.high
    assert found.p_value > 0.05


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("family", ["gaussian", "poisson", "samples", "quantiles"])
def test_averaged_columns_depend_on_their_own_row_only(name, family):
    """Exchanging averaged columns is exchanging the models."""
    if (name, family) in {("nll", "samples"), ("nll", "quantiles")}:
        pytest.skip("there is no density")
    first, second = calibrated(family, n=30), calibrated(family, n=30, seed=7)
    second = replace(second, y=first.y)
    swapped = np.random.default_rng(0).random(30) < 0.5
    metric = METRICS[name]()
    mixed = replace(
        first, predictive=first.predictive.join([second.predictive]).take(np.arange(30) + 30 * swapped.astype(int))
    )
    found, own, other = (statistic_of(metric, rows_of(metric, each)) for each in (mixed, first, second))
    assert own.plain
    assert_allclose(found.columns, np.where(swapped[:, None], other.columns, own.columns), rtol=1e-12)


@pytest.mark.parametrize("name", ["zms", "crps"])
def test_permutation_p_values_are_exact_for_exchangeable_models(name):
    """The number of data sets with p <= 0.1 is within the 99.9 % binomial interval; with R = 99 the test is exact."""
    count = sets(1000)
    hits = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        first, second = model(25, seed=2 * seed + 10, targets=seed), model(25, seed=2 * seed + 11, targets=seed)
        better = rng.random(25) < 0.5  # models exchanged at random are exchangeable
        first, second = exchange_models(first, second, better)
        hits += difference(name, first, second, run=Run(seed=seed, resamples=0), swaps=99).p_value <= 0.1
    low, high = band(count, 0.1)
    assert low <= hits <= high


@pytest.mark.parametrize("name", RESAMPLED)
def test_equal_models_have_a_p_value_of_1_and_no_interval(name):
    rows = model(40)
    found = difference(name, rows, replace(rows, columns={}), run=FEW, swaps=50)
    assert found.p_value == 1
    assert (found.low, found.high) == (None, None)
    assert texts(found.warnings)[0] == "no interval: all resamples have the same value"


def test_a_difference_that_is_0_up_to_rounding_has_no_interval():
    """Spreads that are 1.3 times as large vary as much; means of resamples differ by rounding."""
    first = model(300)
    second = replace(first, predictive=Gaussian(first.predictive.loc, 1.3 * first.predictive.scale))
    found = difference("cv", first, second, run=FEW)
    assert (found.low, found.high) == (None, None)
    assert texts(found.warnings)[0] == "no interval: all resamples have the same value"


@pytest.mark.parametrize("name", ["zms", "crps", "nll", "ece", "ence", "pit"])
def test_a_clear_difference_has_the_smallest_possible_p_value(name):
    found = difference(name, model(300), model(300, seed=2, spread=0.3), run=Run(resamples=399), swaps=199)
    assert_allclose(found.p_value, 1 / 200 if name in PLAIN else 1 / 400, rtol=1e-12)
    assert found.low > 0


def test_percentile_intervals_are_reported_as_not_used_for_decisions():
    found = difference("ece", model(60), model(60, seed=2, spread=0.5), run=FEW, swaps=19)
    assert found.interval == "percentile"
    assert found.low < found.high
    assert any("not used for a decision" in note for note in texts(found.warnings))


def test_metrics_of_predictions_only_have_an_interval_and_no_p_value():
    found = difference("cv", model(60), model(60, seed=2))
    assert found.low < found.high
    assert found.p_value is None
    assert texts(found.warnings) == ("no p-value: the metric depends on the predictions only",)


@pytest.mark.parametrize(
    "second",
    [
        lambda y: Laplace(np.zeros(len(y)), np.ones(len(y))),
        lambda y: Samples(np.random.default_rng(0).normal(size=(len(y), 5))),
    ],
)
@pytest.mark.parametrize(("name", "options"), [("crps", {}), ("ence", {"bins": 3}), ("pit", {})])
def test_models_of_different_families_are_compared(name, options, second):
    first = model(50)
    found = difference(name, first, replace(first, predictive=second(first.y)), run=FEW, swaps=99, **options)
    assert found.p_value is not None
    assert found.low is not None


def test_quantiles_at_different_levels_are_compared():
    rng = np.random.default_rng(0)
    y = rng.normal(size=40)
    made = [
        Quantiles(np.array(levels), np.tile(stats.norm.ppf(levels), (40, 1)))
        for levels in ([0.1, 0.5, 0.9], [0.05, 0.5, 0.95])
    ]
    first, second = (Predictions(y=y, predictive=each) for each in made)
    assert difference("pit", first, second, run=FEW).p_value is not None


def test_metrics_of_bins_or_a_shared_fit_report_why_there_is_no_interval():
    first, second = calibrated("gaussian", n=60), calibrated("gaussian", n=60, seed=1)
    assert texts(difference("lzms", first, second, bins=2).warnings) == (
        "no interval and no p-value of the difference: the metric tests each bin separately",
    )
    x = np.random.default_rng(0).normal(size=(60, 2))
    found = difference("cce", replace(first, x=x), replace(second, x=x))
    assert found.low is None
    assert "all rows share one fit" in texts(found.warnings)[0]


def test_disabled_resampling_is_reported():
    found = difference("zms", model(40), model(40, seed=2), run=Run(resamples=0), swaps=0)
    assert (found.low, found.p_value) == (None, None)
    assert "--no-bootstrap" in texts(found.warnings)[0]
    assert "--permutations 0" in texts(found.warnings)[1]


def test_a_single_row_has_no_interval():
    found = difference("zms", model(1), model(1, seed=2))
    assert texts(found.warnings)[0] == "no interval: a single row cannot be resampled"
    assert found.p_value == 1  # |D| does not depend on the order of models


def test_few_rows_give_a_warning():
    assert "few" in texts(difference("zms", model(12), model(12, seed=2)).warnings)[0]


def test_infinite_values_have_no_difference():
    first = model(40)
    wrong = replace(first, predictive=LogNormal(np.zeros(40), np.ones(40)))  # half of the targets are negative
    found = difference("nll", first, wrong)
    assert texts(found.warnings) == ("no interval and no p-value of the difference: a value is not finite",)


def test_results_do_not_depend_on_other_comparisons():
    first, second, third = model(50), model(50, seed=2), model(50, seed=3)
    alone = difference("zms", first, second, swaps=500)
    among = compare_pairs(
        [pair_of("rmse", first, third), pair_of("zms", first, second), pair_of("zms", first, third)], Run(), swaps=500
    )
    assert among[1].p_value == alone.p_value
    assert_allclose([among[1].low, among[1].high], [alone.low, alone.high], rtol=1e-12)
    assert difference("zms", first, second, swaps=500, run=Run(seed=1)).p_value != alone.p_value


def test_differences_that_are_equal_up_to_rounding_are_ties():
    """The models differ in one row, so every permutation has the same absolute difference, up to rounding."""
    first = model(30)
    for row in range(30):
        scale = first.predictive.scale.copy()
        scale[row] *= 1.1
        second = replace(first, predictive=Gaussian(first.predictive.loc, scale))
        for name in ("zms", "crps", "rce"):
            assert difference(name, first, second, run=Run(resamples=0), swaps=50).p_value == 1


def test_undefined_resamples_count_against_a_difference():
    """Half of the resamples of two rows repeat one row, and T is undefined."""
    y = np.array([0.0, 1.0])
    first, second = (Predictions(y=y, predictive=Gaussian(np.zeros(2), np.full(2, std))) for std in (1.0, 1.1))
    assert difference("crps", first, second, run=Run(resamples=2_000), swaps=99).p_value == 1


def test_a_constant_difference_is_tested_by_permutations():
    """Each row's score is larger by 0.1: two of 1,024 permutations of ten rows are as extreme."""
    y = np.zeros(10)
    first, second = (Predictions(y=y, predictive=Gaussian(np.full(10, mean), np.ones(10))) for mean in (1.0, 1.1))
    found = difference("mae", first, second, run=Run(resamples=2_000), swaps=4_000)
    assert_allclose(found.p_value, 2 / 1024, atol=4 * np.sqrt(2 / 1024 / 4_000))


def test_without_resampling_only_permutations_are_used():
    found = difference("crps", model(40), model(40, seed=2), run=PERMUTATIONS_ONLY, swaps=99)
    assert any("assumes that the models are exchangeable" in message for message in texts(found.warnings))
    found = difference("ece", model(40), model(40, seed=2), run=PERMUTATIONS_ONLY, swaps=99)
    assert found.p_value is None
    assert any("no p-value: the bootstrap was turned off" in message for message in texts(found.warnings))
