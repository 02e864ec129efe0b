"""Metrics of prediction intervals: values by hand, null distributions by counts, and levels of right intervals."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, norm, poisson, t

import calcheck
from calcheck.distributions import Gaussian, Intervals, Quantiles
from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.errors import AT_QUANTILES, DataError
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.inference.metric_protocol import CurveData
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.metrics._weights import weighted
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut
from calcheck.statistics import coverage
from calcheck.streaming.state import accumulate, report_from_state
from calcheck.studies.slices.groups import by_groups
from tests.benchmarks.models import RIGHT, rows_of
from tests.helpers.simulations import band, sets, slow
from tests.helpers.streams import Batches

NO_NULL = Run(replicates=0, resamples=0)
LIMITS = {"lower": [0.0, 0, 0, 0, 0, 0], "upper": [1.0, 2, 3, 4, 5, 6]}
Y = np.array([1.0, 2.5, -1, 4, 2, 8])  # inside, above, below, inside, inside, above


def six(**parts):
    """Return six rows with intervals at the level 0.8, and point predictions 1."""
    lower, upper = (np.array(LIMITS[side])[:, None] for side in ("lower", "upper"))
    return Predictions(y=Y, predictive=Intervals(np.array([0.8]), lower, upper, np.ones(6)), **parts)


def result(name, rows, run=NO_NULL, **options):
    (found,) = evaluate(InMemory(rows), [METRICS[name](**options)], run=run).results
    return found


def inside_rows(inside, level=0.9, **parts):
    """Return rows whose targets are inside or outside one interval."""
    n = len(inside)
    predictive = Intervals(np.array([level]), np.zeros((n, 1)), np.ones((n, 1)))
    return Predictions(y=np.where(inside, 0.5, 2.0), predictive=predictive, **parts)


def test_coverage_counts_limits_as_inside_and_misses_by_side():
    """Inside: 1 of [0, 1], 4 of [0, 4], 2 of [0, 5]. Below: -1. Above: 2.5 of [0, 2], 8 of [0, 6]."""
    found = result("coverage", six())
    assert found.value == 0.5
    assert_allclose([found.details["below"], found.details["above"]], [1 / 6, 2 / 6])
    assert found.options["level"] == 0.8


def test_targets_equal_to_limits_have_no_exact_reference():
    """1 of [0, 1] and 4 of [0, 4] are at their limits, so that only 2 of [0, 5] is strictly inside."""
    found = result("coverage", six())
    assert_allclose(found.details["strictly_inside"], 1 / 6)
    assert (found.reference, found.verdict) == (None, "none")
    assert AT_QUANTILES in found.warnings
    apart = result("coverage", inside_rows(np.array([True, False])))
    assert_allclose(apart.reference, 0.9)
    assert "strictly_inside" not in apart.details
    assert AT_QUANTILES not in apart.warnings


def test_coverage_of_intervals_is_judged_by_the_share_nearest_to_the_level():
    """Of 12 targets, 3 are strictly inside [0, 2] and 10 inside: the level 0.5 is between 0.25 and 0.83."""
    y = np.array([0.0] * 4 + [1.0] * 3 + [2.0] * 3 + [5.0, -5.0])
    limits = np.zeros((12, 1)), np.full((12, 1), 2.0)
    counts = Predictions(y=y, predictive=Intervals(np.array([0.5]), *limits))
    found = result("coverage", counts, Run(replicates=39))
    assert (found.verdict, found.p_value) == ("pass", 1.0)
    apart = counts.with_targets(y + 0.01 * np.array([1] * 7 + [-1] * 3 + [0, 0]), counts.predictive)
    found = result("coverage", apart, Run(replicates=999))  # now all ten are strictly inside: p = 0.039
    assert_allclose(found.value, 10 / 12)
    assert_allclose(found.p_value, binomtest(10, 12).pvalue, atol=0.03)


def test_width_and_interval_score_follow_from_the_limits():
    """Widths 1 … 6 have the mean 3.5; the penalties 2 / 0.2 times 0.5 + 1 + 2 add 35 to their sum of 21."""
    assert_allclose(result("width", six()).value, 3.5)
    assert_allclose(result("interval-score", six()).value, (21 + 35) / 6)


def test_point_predictions_give_errors():
    """Errors y - 1: 0, 1.5, -2, 3, 1, 7."""
    assert_allclose(result("bias", six()).value, 10.5 / 6)
    assert_allclose(result("mae", six()).value, 14.5 / 6)
    assert_allclose(result("rmse", six()).value, np.sqrt((2.25 + 4 + 9 + 1 + 49) / 6))


def test_stratified_coverage_compares_bins_of_the_width():
    """Three bins of two rows by width cover 1/2, 1/2, 1/2 of the targets; two bins of three cover 1/3 and 2/3."""
    assert_allclose(result("stratified-coverage", six(), bins=3).value, 0.3)
    assert_allclose(result("stratified-coverage", six(), bins=2).value, (0.8 - 1 / 3 + 0.8 - 2 / 3) / 2)
    assert_allclose(result("stratified-coverage", six(), bins=2, statistic="max").value, 0.8 - 1 / 3)


def test_stratified_coverage_needs_a_column_if_all_intervals_are_of_equal_width():
    rows = replace(six(), predictive=Intervals(np.array([0.8]), np.zeros((6, 1)), np.full((6, 1), 2.0)))
    (skipped,) = evaluate(InMemory(rows), [METRICS["stratified-coverage"](bins=2)], run=NO_NULL).skipped
    assert skipped.reason == "all intervals are of equal width, which forms no bins: name a column with --by"


def test_stratified_coverage_by_a_column_counts_only_low_coverage_if_at_least_is_promised():
    """By the column: rows 0, 3, 4 are all inside, 1 - 0.8 = 0.2 above the level; rows 1, 2, 5 are all outside.

    Rows 0 and 3 are at their limits, which are widened by little here.
    """
    rows = six(columns={"c": np.array([0, 5, 6, 1, 2, 7])})
    wider = Intervals(np.array([0.8]), rows.predictive.lower, rows.predictive.upper + 0.01, np.ones(6))
    rows = rows.with_targets(rows.y, wider)
    assert_allclose(result("stratified-coverage", rows, bins=2, by="c").value, (0.2 + 0.8) / 2)
    assert_allclose(result("stratified-coverage", rows, bins=2, by="c", at_least=True).value, (0 + 0.8) / 2)
    bins = result("stratified-coverage", rows, bins=2, by="c").details["bins"]
    assert [(each["from"], each["to"], each["rows"]) for each in bins] == [(0, 2, 3), (5, 7, 3)]
    assert_allclose([(each["coverage"], each["expected"]) for each in bins], [(1, 0.8), (0, 0.8)], rtol=1e-14)
    metric, source = METRICS["stratified-coverage"](bins=2, by="c"), InMemory(rows)
    (curve,) = metric.curves(CurveData(metric.fit(source, NO_NULL), source, NO_NULL))
    assert (curve.x, curve.y) == ((1, 6), (1, 0))
    assert_allclose(curve.expected, 0.8, rtol=1e-14)


def test_each_bin_has_the_coverage_nearest_to_the_level():
    """Rows 0, 3, 4: 1/3 strictly inside and 1 inside, so 0.8 is between; rows 1, 2, 5 are outside: (0 + 0.8) / 2."""
    rows = six(columns={"c": np.array([0, 5, 6, 1, 2, 7])})
    found = result("stratified-coverage", rows, bins=2, by="c")
    assert_allclose(found.value, 0.4)
    assert_allclose([each["coverage"] for each in found.details["bins"]], [1, 0])
    assert_allclose([each["strictly_inside"] for each in found.details["bins"]], [1 / 3, 0])
    assert AT_QUANTILES in found.warnings
    metric, source = METRICS["stratified-coverage"](bins=2, by="c"), InMemory(rows)
    (curve,) = metric.curves(CurveData(metric.fit(source, NO_NULL), source, NO_NULL))
    assert_allclose(curve.y, [0.8, 0])


@pytest.mark.slow
@pytest.mark.parametrize("covered", [84, 94])
def test_p_values_of_coverage_are_those_of_the_binomial_test(covered):
    """Two-sided: twice the smaller tail; 1,999 replicates have a standard error of 0.013 at p = 0.1."""
    rows = inside_rows(np.arange(100) < covered)
    p = result("coverage", rows, Run(replicates=1_999, resamples=0)).p_value
    tails = [binomtest(covered, 100, 0.9, side).pvalue for side in ("less", "greater")]
    assert_allclose(p, min(1, 2 * min(tails)), atol=0.04)
    p = result("coverage", rows, Run(replicates=1_999, resamples=0), at_least=True).p_value
    assert_allclose(p, tails[0], atol=0.04)


def test_all_targets_inside_have_the_exact_probability_of_that():
    """0.9^20 = 0.12, twice for two sides; a promise of at least 90 % is kept."""
    rows, run = inside_rows(np.ones(20, bool)), Run(replicates=0)
    assert_allclose(result("coverage", rows, run).p_value, 2 * 0.9**20)
    assert result("coverage", rows, run, at_least=True).p_value == 1
    assert_allclose(result("coverage", inside_rows(np.zeros(2, bool)), run, at_least=True).p_value, 0.1**2)


def test_replicates_have_the_stated_share_in_each_shell():
    """Of 40 x 500 targets, 0.5, 0.3 and 0.15 are inside the shells of three intervals, and 0.05 outside."""
    levels = np.array([0.5, 0.8, 0.95])
    predictive = Intervals(levels, np.tile([-1.0, -2, -3], (500, 1)), np.tile([1.0, 2, 3], (500, 1)))
    rows, run = Predictions(y=np.zeros(500), predictive=predictive), Run(replicates=40)
    counts = np.zeros(4)
    for replicate in NullSimulator(rows, run):
        inside = np.stack([np.less(*replicate.predictive.central_interval(level)) for level in levels])
        assert (np.diff(inside.astype(int), axis=0) >= 0).all()
        counts += np.bincount(3 - inside.sum(axis=0), minlength=4)
    assert_allclose(counts / counts.sum(), [0.5, 0.3, 0.15, 0.05], atol=0.015)


@pytest.mark.slow
def test_the_null_distribution_of_stratified_coverage_draws_only_whether_targets_are_inside():
    """Independent: 4,000 draws of 4 binomial counts of 25 rows; the mean of |share - 0.9| over the bins."""
    rng = np.random.default_rng(0)
    expected = np.abs(rng.binomial(25, 0.9, (4_000, 4)) / 25 - 0.9).mean()
    rows = inside_rows(rng.random(100) < 0.9, columns={"c": np.arange(100)})
    found = result("stratified-coverage", rows, Run(replicates=999, resamples=0), bins=4, by="c")
    assert_allclose(found.reference, expected, rtol=0.03)


def test_cce_of_intervals_is_the_difference_of_smoothed_coverage_from_the_level():
    """CCE(x) = |sum_i a_i (b_i - 0.9)| with a = (K + n lambda I)^-1 k(x), b the indicator: k_Y has distance 1."""
    rng = np.random.default_rng(1)
    x, inside = rng.normal(size=(50, 1)), rng.random(50) < 0.7
    rows = inside_rows(inside, x=x, has_embedding=False)
    found = result("cce", rows, kernel_x="rbf", gamma_x=0.5, normalize="none", lambda_=0.02)
    gram = np.exp(-0.5 * (x - x.T) ** 2)
    smoothed = gram @ np.linalg.solve(gram + 50 * 0.02 * np.eye(50), inside - 0.9)
    assert_allclose(found.value, np.abs(smoothed).mean(), rtol=1e-9)
    assert "the level 0.9" in found.warnings[0].text


@pytest.mark.parametrize("shape", [{}, {"degree": 2, "coef0": 0.5}])
def test_cce_of_intervals_is_the_same_for_every_kernel_on_targets(shape):
    """The kernel distance between inside and outside is 1 for all of them."""
    rng = np.random.default_rng(8)
    rows = inside_rows(rng.random(60) < 0.8, x=rng.normal(size=(60, 1)))
    options = {"kernel_x": "rbf", "gamma_x": 0.5, "normalize": "none", **shape}
    expected = result("cce", rows, **options).value
    for kernel in ("laplace", "polynomial"):
        assert_allclose(result("cce", rows, kernel_y=kernel, **options).value, expected, rtol=1e-10)


def test_cce_of_intervals_detects_coverage_that_depends_on_inputs():
    """The coverage is 1 and 0.8 in two halves of the inputs, and 0.9 over all rows: only cce fails."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 1))
    inside = (x[:, 0] <= 0) | (rng.random(400) < 0.8)
    rows = inside_rows(inside, x=x, has_embedding=False)
    run = Run(replicates=99, resamples=0)
    assert [result(name, rows, run).verdict for name in ("coverage", "cce")] == ["pass", "fail"]


def test_cce_has_no_verdict_where_targets_are_at_limits():
    """Half of the targets are equal to the upper limit: whether they are inside is open at each input."""
    x = np.random.default_rng(0).normal(size=(60, 1))
    rows = inside_rows(np.arange(60) < 30, x=x, has_embedding=False)
    assert result("cce", rows, Run(replicates=19)).verdict == "fail"
    found = result("cce", rows.with_targets(np.where(rows.y > 1, 1.0, rows.y), rows.predictive), Run(replicates=19))
    assert (found.verdict, found.p_value) == ("none", None)
    assert any("targets are equal to limits" in each.text for each in found.warnings)


def counts(n, seed, levels=(0.9,), **parts):
    """Return right intervals of Poisson counts, whose limits are quantiles."""
    rng = np.random.default_rng(seed)
    rate = 4 * np.exp(rng.normal(size=n) / 2)
    lower, upper = (np.stack([poisson(rate).ppf((1 + side * p) / 2) for p in levels], axis=1) for side in (-1, 1))
    return Predictions(y=rng.poisson(rate).astype(float), predictive=Intervals(np.array(levels), lower, upper), **parts)


def judged(rows, run, metrics=None):
    metrics = metrics or [METRICS["coverage"](), METRICS["stratified-coverage"]()]
    return [found.verdict for found in evaluate(InMemory(rows), metrics, run=run).results]


@pytest.mark.slow
def test_right_intervals_of_counts_pass():
    """Half of such sets failed by coverage, as intervals of counts hold more than their level.

    Targets below and above are not equally many by chance, in at most 5 % of sets.
    """
    answers = []
    for seed in range(sets(40)):
        rows, run = counts(200, seed, (0.9, 0.5)), Run(replicates=39, resamples=0, seed=seed)
        report = evaluate(
            InMemory(rows), [METRICS["coverage"](), METRICS["stratified-coverage"]()], run=run, answer=Answer()
        )
        assert [found.verdict for found in report.results] == ["pass", "pass"]
        assert {each.topic for each in report.conclusion.effects if each.within is False} <= {"bias"}
        answers.append(report.conclusion.answer)
    assert answers.count("no") <= band(sets(40), 0.05, 0.1)[1]


@pytest.mark.slow
def test_right_intervals_of_counts_pass_in_every_way():
    """3,000 counts, of which 94.6 % are inside intervals at 90 %: four standard errors too many, without ties."""
    groups, clusters, weights = np.arange(3000) % 2, np.arange(3000) // 3, 1.0 + np.arange(3000) % 3
    rows = counts(3000, 0, columns={"c": clusters, "w": weights, "g": groups})
    run = Run(replicates=39, resamples=200)
    assert judged(rows, run) == ["pass", "pass"]
    assert judged(rows, replace(run, dependence=RowDependence(cluster="c"))) == ["pass", "pass"]
    metrics = [weighted(METRICS[name](), "w") for name in ("coverage", "stratified-coverage")]
    assert judged(rows, run, metrics) == ["pass", "pass"]
    metrics = [METRICS["coverage"](), METRICS["stratified-coverage"]()]
    streamed = report_from_state(accumulate(Batches(rows), metrics, run), run)
    assert [found.verdict for found in streamed.results] == ["pass", "pass"]
    sliced = by_groups(InMemory(rows), [Cut("g")], metrics=metrics[:1], run=run)
    assert [found.verdict for found in sliced.results] == ["pass"] * 3


def test_counts_beyond_intervals_that_are_too_narrow_fail():
    for seed in range(3):
        rows = counts(400, seed)
        middle = (rows.predictive.lower + rows.predictive.upper) / 2
        narrow = Intervals(
            rows.predictive.levels,
            np.ceil(middle - 0.375 * (rows.predictive.upper - rows.predictive.lower)),
            np.floor(middle + 0.375 * (rows.predictive.upper - rows.predictive.lower)),
        )
        assert judged(rows.with_targets(rows.y, narrow), Run(replicates=39, resamples=0)) == ["fail", "fail"]


def test_metrics_that_intervals_do_not_state_are_skipped_or_have_no_verdict():
    report = evaluate(InMemory(six()), [metric() for metric in METRICS.values()], run=Run(replicates=19))
    names = {found.metric for found in report.results}
    of_points = {"mae", "rmse", "bias", "mean-miscalibration"}
    judged = {"coverage", "width-factor", "standardized-bias"}
    assert names == {*judged, "interval-score", "width", *of_points}  # too few rows for 10 bins
    undecided = {found.metric for found in report.results if found.verdict == "none" and found.p_value is None}
    assert undecided == {"interval-score", "width", *of_points}
    assert "prediction intervals only" in next(each.reason for each in report.skipped if each.metric == "crps")


def test_targets_below_and_above_intervals_are_normal_scores():
    """At the level 0.8, a tail of 0.1 has the mean score 0.1755 / 0.1, so that the mean square is 0.2 · 1.755² = 0.616.

    Targets equal to an upper limit are between the levels 0.5 and 0.95: (0.39894 - 0.10314) / 0.45 = 0.65735.
    """
    out, tied = 1.75498 / 0.61600, 0.65735 / 0.61600
    z = METRICS["standardized-bias"]().compute(six()).columns["z"]
    assert_allclose(z, [tied, out, -out, tied, 0, out], rtol=2e-5, atol=1e-12)
    assert_allclose(out, 1 / (2 * 0.175498), rtol=1e-4)  # over the density at the limit, twice
    several = Predictions(
        y=np.array([-3.0, -1.5, 0.0, 1.5, 3.0]),
        predictive=Intervals(np.array([0.9, 0.5]), *(side * np.tile([2.0, 1.0], (5, 1)) for side in (-1, 1))),
    )
    tail, middle = 0.103136 / 0.05, (0.317777 - 0.103136) / 0.2
    square = 2 * (0.05 * tail**2 + 0.2 * middle**2)
    expected = np.array([-tail, -middle, 0, middle, tail]) / square
    found = METRICS["standardized-bias"]().compute(several).columns["z"]
    assert_allclose(found, expected, rtol=1e-5, atol=1e-12)


def clipped(rows, high):
    """Return rows whose targets end at limits, (n,), and are predicted so."""
    known = Observation(high=np.asarray(high, dtype=float))
    return replace(rows, y=np.minimum(rows.y, high), observation=known).observed()


def test_limits_that_are_clipped_state_no_bias():
    """As targets cannot be above a clipped limit, targets below it count no more, and the others for these.

    At the level 0.9, tails have the mean score 2.06271, whose mean square is 2 · 0.05 · 2.06271² = 0.42548, and 0 of
    rows that are clipped. If the outer limit is, the inner interval has the tails 0.25.
    """
    limits = [side * np.full((4, 1), 2.0) for side in (-1, 1)]
    rows = Predictions(y=np.array([3.0, 3, 0, -3]), predictive=Intervals(np.array([0.9]), *limits))
    bias = METRICS["standardized-bias"]()
    columns = bias.compute(clipped(rows, [9, 1, 9, 1])).columns
    assert_allclose(columns["z"], [2.06271 / 0.42548, 0, 0, 0], rtol=1e-4, atol=1e-12)
    assert_allclose(columns["unit"], [1, 0, 1, 0])
    assert_allclose(result("standardized-bias", clipped(rows, [9, 1, 9, 1])).value, 2.06271 / 0.42548 / 2, rtol=1e-4)
    unseen = result("standardized-bias", clipped(rows, [1, 1, 1, 1]))
    assert unseen.value is None
    assert any("all intervals have a limit at --clip" in each.text for each in unseen.warnings)
    both = [side * np.tile([2.0, 1.0], (3, 1)) for side in (-1, 1)]
    rows = Predictions(y=np.array([3.0, 0, -1.5]), predictive=Intervals(np.array([0.9, 0.5]), *both))
    inner = 0.317777 / 0.25
    columns = bias.compute(clipped(rows, [1.5, 1.5, 1.5])).columns
    assert_allclose(columns["z"] / columns["unit"], np.array([1, 0, -1]) / (0.5 * inner), rtol=1e-5)


def test_quantiles_that_are_clipped_state_no_bias():
    """Of the levels 0.25 and 0.75, the second is clipped in the first two rows, and both are in the third.

    Mean scores of three pieces are -1.27111, 0 and 1.27111, with the mean square 0.80785; of two, -1.27111 and 0.42370,
    with 0.53857, which is two thirds of it.
    """
    stated = Quantiles(np.array([0.25, 0.75]), np.array([[-1.0, 1], [-1, 1], [0.5, 2], [-9, -8]]))
    rows = clipped(Predictions(y=np.array([-2.0, 5, 5, -8.5]), predictive=stated), np.full(4, 0.5))
    columns = METRICS["standardized-bias"]().compute(rows).columns
    assert_allclose(columns["z"] * 0.80785, [-1.27111, 0.42370, 0, 0], atol=2e-5)
    assert_allclose(columns["unit"], [2 / 3, 2 / 3, 0, 1], atol=1e-5)


@pytest.mark.parametrize(("as_quantiles", "below", "nearest"), [(True, 1, 0.65), (False, 2, 0.6), (False, 0, 0.7)])
def test_coverage_is_judged_by_limits_that_are_not_clipped(as_quantiles, below, nearest):
    """Three of five targets are inside intervals at 0.8; of five more, whose upper limit is clipped, some are below.

    A quantile at 0.1 states that 0.5 of the five are below on average: if one is, 4 of 4.5 are inside, and 4 are
    expected, so they count as 3.5. Intervals state that at least 4 are inside, and count as 4 unless fewer are.
    """
    ends = [np.full((10, 1), side * 2.0) for side in (-1, 1)]
    stated = Quantiles(np.array([0.1, 0.9]), np.hstack(ends)) if as_quantiles else Intervals(np.array([0.8]), *ends)
    y = np.array([0.0, 0, 0, 3, -3, *[-3] * below, *[1] * (5 - below)])
    shares = coverage.inside(clipped(Predictions(y=y, predictive=stated), np.repeat([9, 1], 5)), 0.8)
    means = {name: np.asarray(each.mean()) for name, each in shares.items()}
    assert means["covered"] == pytest.approx((8 - below) / 10)
    assert coverage.nearest_share(means, np.asarray(0.8)) == pytest.approx(nearest)


@pytest.mark.parametrize("as_quantiles", [True, False])
def test_rows_whose_limits_are_clipped_show_no_factor(as_quantiles):
    """Ratios 0.5, 1.5 and 2.5 of three rows, and three targets at the limit of the others: the second of three."""
    limits = np.array([2.0, 2, 2, 9, 9, 9])[:, None]
    stated = Intervals(np.array([0.5]), -limits, limits)
    if as_quantiles:
        stated = Quantiles(np.array([0.25, 0.5, 0.75]), limits * [-1, 0, 1])
    rows = clipped(Predictions(y=np.array([1.0, 3, -5, 4, 5, 6]), predictive=stated), np.full(6, 4.0))
    found = result("width-factor", rows, level=0.5)
    assert (found.value, found.details["conformal_factor"]) == (1.5, 1.5)
    assert found.details["factors"][0]["ranks"][1] <= 4
    many = Batches(rows.take(np.repeat(np.arange(6), 9)))
    state = accumulate(many, [METRICS["width-factor"](level=0.5)], NO_NULL)
    (streamed,) = report_from_state(state, NO_NULL).results
    assert streamed.value == 1.5
    unseen = result("width-factor", clipped(rows, np.full(6, 1.5)), level=0.5)
    assert unseen.value is None
    assert any("all intervals have a limit at --clip" in each.text for each in unseen.warnings)


def test_a_factor_that_few_rows_show_has_no_upper_limit():
    """Of 100 rows, the intervals of 10 are not clipped, which are too few at 90 %, and all their ratios are equal."""
    limits = np.where(np.arange(100) < 10, 2.0, 9)[:, None]
    rows = Predictions(y=np.ones(100), predictive=Intervals(np.array([0.9]), -limits, limits))
    found = result("width-factor", clipped(rows, np.full(100, 4.0)))
    assert (found.value, found.high) == (0.5, None)


@pytest.mark.parametrize("as_quantiles", [True, False])
def test_no_answer_is_yes_because_most_targets_are_clipped(as_quantiles):
    """Before, 15 of 15 data sets like this one said YES: deviations are 25 % too small, and 80 % are clipped."""
    rng, levels = np.random.default_rng(0), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    mean = rng.normal(size=400)
    values = mean[:, None] + 0.75 * norm.ppf(levels)
    stated = Quantiles(levels, values) if as_quantiles else Intervals(np.array([0.9]), values[:, :1], values[:, -1:])
    rows = clipped(Predictions(y=mean + rng.normal(size=400), predictive=stated), np.full(400, -1.2))
    report = calcheck.evaluate(rows, metrics=["coverage"], replicates=39, resamples=0)
    assert report.conclusion.answer != "yes"


def test_the_bias_of_clipped_intervals_is_the_same_in_batches_and_its_limits_are_those_of_a_ratio():
    """With u the unit of rows, the squared error of z̄ / ū is that of the mean of z - (z̄ / ū) u, over ū²."""
    rows = clipped(shifted(400, 5, 0.2, lambda values: values), np.where(np.arange(400) < 300, 9.0, -1.0))
    found, columns = result("standardized-bias", rows), METRICS["standardized-bias"]().compute(rows).columns
    parts = [METRICS["standardized-bias"]().compute(rows.take(part)).columns for part in np.split(np.arange(400), 2)]
    for name, values in columns.items():
        assert_allclose(np.concatenate([part[name] for part in parts]), values)
    away = columns["z"] - found.value * columns["unit"]
    error = np.sqrt(away.var(ddof=1) / 400 + 2 * (columns["outermost"][0] / 400) ** 2) / columns["unit"].mean()
    assert_allclose(found.high - found.value, t.ppf(0.95, 299) * error, rtol=1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_the_bias_of_clipped_intervals_is_that_of_the_others(shift):
    rows = shifted(40_000, 5, shift, lambda values: values, levels=(0.5, 0.9))
    found = result("standardized-bias", clipped(rows, np.full(40_000, 0.3)))
    assert_allclose(found.value, shift, atol=0.03)


def test_intervals_without_lower_limits_state_no_bias_if_targets_are_clipped():
    """Their lower limits are those of the targets, which says nothing about the others."""
    rng = np.random.default_rng(0)
    stated = Intervals(np.array([0.9]), np.full((400, 1), -np.inf), np.full((400, 1), norm.ppf(0.9)))
    rows = Predictions(y=np.maximum(rng.normal(size=400), -0.5), predictive=stated)
    rows = replace(rows, observation=Observation(low=np.full(400, -0.5))).observed()
    with pytest.raises(DataError, match="some have one limit only"):
        METRICS["standardized-bias"]().compute(rows)


@pytest.mark.parametrize("high", [np.inf, 0.5])
@pytest.mark.parametrize("step", [0.0, 0.5])
def test_intervals_of_clipped_and_rounded_targets_are_judged_with_clusters(high, step):
    """Replicates, which draw what is inside, have the same terms."""
    rows = shifted(300, 2, 0.0, lambda values: values, (0.5, 0.9), columns={"c": np.arange(300) % 30})
    y = np.minimum(rows.y, high)
    known = Observation(high=np.full(300, high), step=np.full(300, step) if step else None)
    y = np.floor(y / step + 0.5) * step if step else y
    found = calcheck.evaluate(replace(rows, y=y, observation=known).observed(), cluster="c", replicates=39)
    assert found.conclusion.answer != "no"


@pytest.mark.parametrize("shape", [lambda score: score, np.exp])
def test_a_shift_of_intervals_is_in_half_widths_of_normal_distributions_of_any_transformation(shape):
    scores = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    limits = [np.full((20_000, 1), shape(side * 1.6448536)) for side in (-1, 1)]
    for shift in (0.0, 0.02):
        rows = Predictions(y=shape(scores + shift), predictive=Intervals(np.array([0.9]), *limits))
        assert_allclose(result("standardized-bias", rows).value, shift, atol=1e-3)


def test_the_bias_of_intervals_that_hold_all_targets_is_uncertain():
    """One target beyond each limit would add 2 · 4.848² to the squares; Student's t with 49 degrees is 1.67655."""
    for run in (NO_NULL, replace(NO_NULL, dependence=RowDependence(cluster="c"))):
        rows = inside_rows(np.ones(50, bool), columns={"c": np.arange(50), "w": np.full(50, 3.0)})
        found = result("standardized-bias", rows, run)
        assert_allclose([found.low, found.value, found.high], [-0.22989, 0, 0.22989], rtol=2e-4, atol=1e-12)
    (found,) = evaluate(InMemory(rows), [weighted(METRICS["standardized-bias"](), "w")], run=NO_NULL).results
    assert_allclose(found.high, 0.22989, rtol=2e-4)


def shifted(n, seed, shift, shape=np.exp, levels=(0.9,), **parts):
    """Return rows whose intervals are those of normal or log-normal distributions that are too low."""
    rng = np.random.default_rng([n, seed])
    mean, std = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    reach = norm.ppf((1 + np.array(levels)) / 2)
    limits = [shape(mean[:, None] + side * std[:, None] * reach) for side in (-1, 1)]
    y = shape(mean + std * (rng.normal(size=n) + shift))
    return Predictions(y=y, predictive=Intervals(np.array(levels), *limits), **parts)


def test_the_answer_about_intervals_depends_on_their_bias():
    answers = {}
    for shift in (0.0, 0.5):
        found = evaluate(InMemory(shifted(1_000, 1, shift)), [], run=Run(replicates=39, resamples=0), answer=Answer())
        answers[shift] = found.conclusion
    (bias,) = (each for each in answers[0.5].effects if each.topic == "bias")
    assert (answers[0.0].answer, answers[0.5].answer, bias.within) == ("yes", "no", False)
    assert bias.text.endswith("above the predictions on average, if the intervals are central (p 0.025)")


def test_replicates_of_intervals_have_as_many_targets_below_as_above():
    metric, rows = METRICS["standardized-bias"](), shifted(200, 2, 0.0, levels=(0.5, 0.9))
    simulation = NullSimulator(rows, Run(replicates=400))
    z = np.array([metric.compute(each).columns["z"] for each in simulation])
    assert_allclose(np.sort(np.unique(z)), np.unique(metric.compute(rows).columns["z"]))
    assert_allclose([(z > 0).mean(), (z < 0).mean(), (z == z.max()).mean()], [0.25, 0.25, 0.05], atol=0.006)
    assert_allclose(z.mean(axis=1).std(), z.std() / np.sqrt(200), rtol=0.1)


def test_batches_and_groups_of_intervals_have_the_limits_of_all_their_rows():
    rows, metric = shifted(600, 3, 0.2, columns={"g": np.arange(600) // 300}), METRICS["standardized-bias"]()
    whole = result("standardized-bias", rows)
    (streamed,) = report_from_state(accumulate(Batches(rows), [metric], NO_NULL), NO_NULL).results
    assert_allclose([streamed.value, streamed.low, streamed.high], [whole.value, whole.low, whole.high])
    sliced = by_groups(InMemory(rows), [Cut("g")], metrics=[metric], run=NO_NULL).results
    for part, each in enumerate(sliced[1:]):
        own = result("standardized-bias", rows.take(np.arange(300) + 300 * part))
        assert_allclose([each.value, each.low, each.high], [own.value, own.low, own.high])


@pytest.mark.slow
@pytest.mark.parametrize("levels", [(0.5,), (0.9,), (0.99,), (0.5, 0.9)])
@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5])
def test_limits_of_the_bias_of_intervals_hold_the_truth(levels, shift):
    metric = METRICS["standardized-bias"]()
    true = metric.compute(shifted(300_000, 0, shift, levels=levels)).columns["z"].mean()
    for n in (30, 100, 300, 1_000):
        count, held = sets(400), 0
        for seed in range(count):
            found = metric.limits(metric.compute(shifted(n, seed, shift, levels=levels)), NO_NULL, None)
            held += found.low <= true <= found.high
        assert held / count >= 0.885 - 2 * np.sqrt(0.1 * 0.9 / count)


def test_intervals_with_one_limit_show_no_bias():
    limits = np.full((6, 1), -np.inf), np.arange(6.0)[:, None]
    rows = Predictions(y=Y, predictive=Intervals(np.array([0.8]), *limits))
    (skipped,) = evaluate(InMemory(rows), [METRICS["standardized-bias"]()], run=NO_NULL).skipped
    assert skipped.reason.endswith("some have one limit only")


def test_intervals_without_point_predictions_state_no_mean():
    rows = inside_rows(np.ones(3, bool))
    with pytest.raises(DataError, match="prediction intervals state nothing"):
        rows.predictive.mean()
    with pytest.raises(DataError, match="prediction intervals state nothing"):
        rows.predictive.std()


FAMILIES = ("1 interval", "2 intervals", "3 intervals")
ROWS, SETS, LEVEL = 40, sets(200), 0.1


@pytest.mark.slow
@pytest.mark.parametrize("family", [slow("1 interval"), "2 intervals", slow("3 intervals")])
def test_right_intervals_fail_at_most_at_the_level_of_the_test(family):
    """Counts are discrete, so p-values are conservative: 0.1 or less of the sets have p <= 0.1."""
    metrics = [METRICS["coverage"](), METRICS["stratified-coverage"](bins=4), METRICS["cce"]()]
    counts = dict.fromkeys((metric.info.name for metric in metrics), 0)
    for seed in range(SETS):
        rows = rows_of(RIGHT[family], ROWS, seed)
        report = evaluate(InMemory(rows), metrics, run=Run(replicates=19, resamples=0, seed=seed))
        for found in report.results:
            counts[found.metric] += found.p_value <= LEVEL
    _, high = band(SETS, LEVEL, 0.001 / 9)
    assert all(count <= high for count in counts.values()), counts
    assert any(counts.values())


def test_intervals_that_cover_more_fail_unless_at_least_is_promised():
    """Coverage 0.98 for a level of 0.9, n = 300: two-sided tests fail, those of a promise pass in every set."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mean = rng.normal(size=300)
        predictive = Intervals(np.array([0.9]), mean[:, None] - 2.33, mean[:, None] + 2.33)
        rows = Predictions(y=Gaussian(mean, np.ones(300)).sample(rng, 1)[:, 0], predictive=predictive)
        run = Run(replicates=99, resamples=0)
        assert result("coverage", rows, run).verdict == "fail"
        assert result("coverage", rows, run, at_least=True).verdict == "pass"
        by_id = Predictions(y=rows.y, predictive=predictive, columns={"c": mean})
        assert result("stratified-coverage", by_id, run, by="c", at_least=True).verdict == "pass"
