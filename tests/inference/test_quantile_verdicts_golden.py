"""Verdicts on files of quantiles rest on counts of targets between the quantiles, and on nothing between them."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Quantiles
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.distributions.quantiles import Intervals
from calcheck.errors import AT_QUANTILES
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.streaming.state import accumulate, report_from_state
from tests.benchmarks.models import BY_QUANTILES, rows_of
from tests.benchmarks.significance import metric_of
from tests.helpers.simulations import band, sets, slow
from tests.helpers.streams import Batches

JUDGED = ("ece", "coverage", "stratified-coverage")
SETS = sets(120, 8)
FAST = Run(resamples=0, replicates=39)


def judge(levels, quantiles, y, names=("ece",), run=FAST, **options):
    """Return the result of each metric on targets and their quantiles."""
    rows = Predictions(y=np.asarray(y, float), predictive=Quantiles(np.asarray(levels), np.asarray(quantiles, float)))
    return evaluate(InMemory(rows), [METRICS[name](**options) for name in names], run=run).results


def test_targets_equal_to_quantiles_count_in_favor_of_the_model():
    """Levels 0.2, 0.6 and 0.9, quantiles 0, 2 and 2, of ten rows.

    Below 0: 4 of 10, at or below it 5, so the nearest to 0.2 is 0.4. Below 2: 6, at or below it all: 0.6 and 0.9 lie
    between. The error is 0.2 / 3. Shares strictly below would give (0.2 + 0 + 0.3) / 3.
    """
    y = [-1, -1, -1, -1, 0, 1, 2, 2, 2, 2]
    (found,) = judge([0.2, 0.6, 0.9], np.tile([0, 2, 2], (10, 1)), y)
    assert_allclose(found.value, 0.2 / 3, rtol=1e-12)
    assert [point["observed"] for point in found.details["curve"]] == [0.4, 0.6, 0.9]
    assert AT_QUANTILES in found.warnings
    (apart,) = judge([0.2, 0.6, 0.9], np.tile([0.5, 2.5, 2.5], (10, 1)), y)
    assert AT_QUANTILES not in apart.warnings
    (squared,) = judge([0.2, 0.6, 0.9], np.tile([0, 2, 2], (10, 1)), y, alpha=2)
    assert_allclose(squared.value, 0.04 / 3, rtol=1e-12)
    (weighted,) = judge([0.2, 0.6, 0.9], np.tile([0, 2, 2], (10, 1)), y, level_weights="frequency")
    assert_allclose(weighted.value, 0.2 * 0.4 / (0.4 + 0.6 + 0.9), rtol=1e-12)


def test_levels_of_the_file_can_be_selected():
    """As above at 0.2 and 0.9 only: gaps 0.2 and 0. A level between them is interpolated, and has no verdict."""
    y, quantiles = [-1, -1, -1, -1, 0, 1, 2, 2, 2, 2], np.tile([0, 2, 2], (10, 1))
    rows = Predictions(y=np.array(y, float), predictive=Quantiles(np.array([0.2, 0.6, 0.9]), quantiles.astype(float)))
    metrics = [METRICS["ece"](levels=levels) for levels in ((0.2, 0.9), (0.2, 0.5))]
    selected, interpolated = evaluate(InMemory(rows), metrics, run=FAST).results
    assert_allclose(selected.value, 0.1, rtol=1e-12)
    assert (selected.verdict, interpolated.verdict) == ("pass", "none")


def test_shares_at_quantiles_agree_with_a_loop():
    """Random quantiles with many ties, and targets among them, also at levels whose sums are rounded."""
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.3, 0.35, 0.7, 0.95])
    quantiles = np.sort(rng.integers(0, 5, (200, 5)), axis=1)
    y = rng.choice([0, 0.5, 1, 2, 3, 4, 5], 200)
    gaps = []
    for place, level in enumerate(levels):
        below, up_to = np.mean(y < quantiles[:, place]), np.mean(y <= quantiles[:, place])
        gaps.append(max(below - level, level - up_to, 0))
    (found,) = judge(levels, quantiles, y)
    assert_allclose(found.value, np.mean(gaps), rtol=1e-12)


@pytest.mark.parametrize("quantiles", [(0.0, 1.0), (-1e9, 3.0), (5.0, 5.0 + 1e-9)])
def test_p_values_are_multinomial_for_any_spacing_of_the_quantiles(quantiles):
    """Levels 0.2 and 0.7, twelve rows: all counts (a, b, 12 - a - b) with their multinomial probabilities.

    Observed: 5 below, 3 between, 4 above.
    """
    low, high = quantiles
    n, levels = 12, np.array([0.2, 0.7])
    counts = np.array([(a, b, n - a - b) for a, b in product(range(n + 1), repeat=2) if a + b <= n])
    shares = np.cumsum(counts, axis=1)[:, :2] / n
    error = np.abs(shares - levels).mean(axis=1)
    observed = np.abs(np.array([5, 8]) / n - levels).mean()
    p = stats.multinomial(n, [0.2, 0.5, 0.3]).pmf(counts)[error >= observed - 1e-12].sum()
    y = np.repeat([low - 1, (low + high) / 2, high + 1], [5, 3, 4])
    (found,) = judge(levels, np.tile(quantiles, (n, 1)), y, run=Run(resamples=0, replicates=499))
    assert_allclose(found.value, observed, rtol=1e-12)
    assert abs(found.p_value - p) < 4 * np.sqrt(p * (1 - p) / 500)


def fails(count, family, n):
    """Count the sets in which a right model given by quantiles fails, by metric."""
    maker = BY_QUANTILES[f"{family}, {count} quantiles"]
    found = dict.fromkeys(JUDGED, 0)
    for seed in range(SETS):
        rows = rows_of(maker, n, seed)
        metrics = [metric_of(name, rows.predictive) for name in JUDGED]
        for result in evaluate(InMemory(rows), metrics, run=Run(resamples=0, replicates=39, seed=seed)).results:
            found[result.metric] += result.verdict == "fail"
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "family"), [slow((2, "lognormal")), (3, "gaussian"), slow((9, "gamma")), (23, "lognormal")]
)
def test_right_models_given_by_quantiles_fail_at_the_level_of_the_test(count, family):
    high = band(SETS, 0.05, 0.001 / 4)[1]
    for name, failed in fails(count, family, 60).items():
        assert failed <= high, name


@pytest.mark.slow
@pytest.mark.parametrize(("count", "family"), [(2, "poisson"), slow((9, "poisson")), (23, "zero-inflated")])
def test_right_models_of_counts_and_atoms_given_by_quantiles_pass(count, family):
    """Their targets are equal to quantiles, so that counts at or below them exceed the levels.

    Counted like continuous targets, 40 of 40 sets of 300 rows failed by ece, and 28 by coverage.
    """
    for name, failed in fails(count, family, 200).items():
        assert failed <= band(SETS, 0.05, 0.001 / 2)[1], name


def test_coverage_is_judged_by_the_share_nearest_to_the_level():
    """Quantiles 0 and 2 at levels 0.25 and 0.75; 3 of 12 targets strictly inside, 10 inside: 0.5 is between.

    With the limits, 0.83 of the targets are inside, which half of such a model's targets would rarely be.
    """
    y = [0.0] * 4 + [1.0] * 3 + [2.0] * 3 + [5.0, -5.0]
    (found,) = judge([0.25, 0.75], np.tile([0, 2], (12, 1)), y, ("coverage",), level=0.5)
    assert_allclose(found.value, 10 / 12)
    assert (found.verdict, found.p_value) == ("pass", 1.0)
    assert AT_QUANTILES in found.warnings
    assert (found.reference, found.zeta) == (0.5, 0.0)
    apart = np.asarray(y) + 0.01 * np.array([1] * 7 + [-1] * 3 + [0, 0])  # now all ten are strictly inside
    (found,) = judge([0.25, 0.75], np.tile([0, 2], (12, 1)), apart, ("coverage",), level=0.5)
    assert_allclose(found.value, 10 / 12)
    assert found.verdict == "fail"
    assert AT_QUANTILES not in found.warnings


def test_bins_are_judged_by_the_share_nearest_to_the_level():
    """Two bins of six: 1 of 6 targets strictly inside [0, 2] and 5 inside, so 0.5 is between; and 6 of 6.

    The second bin has a gap of 0.5, the first none. With the limits its gap would be 1/3, and the mean 5/12.
    """
    y = np.array([0, 0, 1, 2, 2, 5, *[1.0] * 6])
    predictive = Quantiles(np.array([0.25, 0.75]), np.tile([0.0, 2], (12, 1)))
    rows = Predictions(y=y, predictive=predictive, columns={"c": np.repeat([0, 1], 6)})
    metric = METRICS["stratified-coverage"](level=0.5, bins=2, by="c")
    (found,) = evaluate(InMemory(rows), [metric], run=FAST).results
    assert_allclose(found.value, 0.25, rtol=1e-12)
    assert AT_QUANTILES in found.warnings


def test_intervals_between_tied_quantiles_are_expected_to_hold_their_level():
    """Quantiles 0, 0, 1 and 1: linear between them, 0 and 1 have all of their tails, and 80 % intervals 100 %.

    Counts with these quantiles have P(0 < Y < 1) = 0 and P(0 <= Y <= 1) >= 0.8, of which 0.8 is the nearest to 0.8.
    """
    levels, tied = np.array([0.1, 0.3, 0.7, 0.9]), np.tile([0.0, 0, 1, 1], (20, 1))
    assert_allclose(Quantiles(levels, tied).central_mass(0.8), 0.8, rtol=1e-12)
    assert_allclose(Quantiles(levels, tied).central_mass(0.6), 1.0, rtol=1e-12)  # limits that are not given
    y, options = np.tile([0.0, 1, 1, 0, 2], 4), {"level": 0.8, "bins": 2}
    rows = Predictions(y=y, predictive=Quantiles(levels, tied), columns={"c": np.arange(20) // 10})
    metrics = [METRICS["coverage"](level=0.8), METRICS["stratified-coverage"](by="c", **options)]
    coverage, binned = evaluate(InMemory(rows), metrics, run=FAST).results
    assert_allclose(binned.value, 0.0, atol=1e-12)
    shares = {"rows": 10, "coverage": 0.8, "expected": 0.8, "strictly_inside": 0.0}
    for number, each in enumerate(binned.details["bins"]):
        assert each == pytest.approx({"from": number, "to": number, **shares})
    assert coverage.value == pytest.approx(0.8)


class Grid:
    """Random numbers in the middle of cells of equal probability."""

    @staticmethod
    def random(shape):
        return np.broadcast_to((np.arange(shape[1]) + 0.5) / shape[1], shape)


def test_replicates_have_the_tails_beyond_tied_quantiles():
    """Quantiles 0, 0, 1 and 1: a fifth at each, and a tenth beyond each, so that 80 % intervals hold 80 % of them.

    With the tails at 0 and 1, they held all of them, and no replicate had a gap where right models have one.
    """
    drawn = Quantiles(np.array([0.1, 0.3, 0.7, 0.9]), np.array([[0.0, 0, 1, 1]])).sample(Grid(), 1000)[0]
    shares = [(drawn < 0), (drawn == 0), (drawn > 0) & (drawn < 1), (drawn == 1), (drawn > 1)]
    assert_allclose([share.mean() for share in shares], [0.1, 0.2, 0.4, 0.2, 0.1], rtol=1e-12)
    assert_allclose(drawn, np.clip(drawn, 0, 1), rtol=0, atol=1e-15)


def rounded_narrow(rng, n, factor=1.0, std=1.0):
    """Return rounded targets and quantiles of normal distributions so narrow that most quantiles are tied."""
    levels, mean = np.array([0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95]), 3 * rng.normal(size=n)
    quantiles = np.round(mean[:, None] + factor * std * stats.norm.ppf(levels))
    return Predictions(y=np.round(rng.normal(mean, std)), predictive=Quantiles(levels, quantiles))


def rare_counts(rng, n):
    """Return counts with means around 0.37, and their quantiles, most of which are 0."""
    levels, rate = np.arange(1, 10) / 10, np.exp(rng.normal(-1, 0.5, n))
    return Predictions(
        y=rng.poisson(rate).astype(float), predictive=Quantiles(levels, stats.poisson.ppf(levels, rate[:, None]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [rounded_narrow, rare_counts, partial(rounded_narrow, std=0.5)])
def test_right_quantiles_of_which_most_are_tied_pass(make):
    """Of such sets of 400 rows, 75 % of the rounded ones failed by stratified-coverage."""
    found, fails = answers(lambda rng: make(rng, 300), sets(12))
    assert "no" not in found
    assert set(fails.values()) == {0}


@pytest.mark.slow
def test_tied_quantiles_that_are_too_narrow_fail():
    found, _ = answers(lambda rng: rounded_narrow(rng, 400, 0.6), 4)
    assert found == ["no"] * 4


def test_shares_that_may_equal_the_level_are_at_no_distance_from_it():
    """Zeta was 1.00 here, from 0.9 to the mean of replicates, 0.894, relative to their limit, 0.9."""
    rows = rounded_narrow(np.random.default_rng(0), 400)
    (coverage,) = evaluate(InMemory(rows), [METRICS["coverage"]()], run=FAST).results
    assert (coverage.reference, coverage.zeta) == (0.9, 0.0)
    state = accumulate(Batches(rows), [METRICS["coverage"]()], FAST)
    (streamed,) = report_from_state(state, FAST).results
    assert (streamed.reference, streamed.zeta) == (0.9, 0.0)


def test_less_than_the_expected_gap_is_not_beyond_a_limit():
    """All targets are at limits of their intervals, so that no bin has a gap: zeta was -1.9, with p = 1."""
    limits = np.ones((200, 1)) * [[0.0, 2.0]]
    predictive = Intervals(np.array([0.9]), limits[:, :1], limits[:, 1:])
    rows = Predictions(y=np.tile([0.0, 2.0], 100), predictive=predictive, columns={"c": np.arange(200)})
    (found,) = evaluate(InMemory(rows), [METRICS["stratified-coverage"](by="c")], run=FAST).results
    assert (found.value, found.verdict, found.zeta) == (0.0, "pass", -1.0)


def rounded(rng, n, factor=1.0):
    """Return rounded targets, and rounded quantiles of normal distributions with spreads times a factor."""
    mean, std, levels = 5 * rng.normal(size=n), rng.uniform(1, 4, n), np.arange(1, 10) / 10
    quantiles = np.round(mean[:, None] + factor * std[:, None] * stats.norm.ppf(levels))
    return Predictions(y=np.round(rng.normal(mean, std)), predictive=Quantiles(levels, quantiles))


def answers(make, count):
    """Return the answers of the conclusion, and how often each metric fails."""
    found, fails = [], dict.fromkeys(JUDGED, 0)
    for seed in range(count):
        run = Run(resamples=0, replicates=99, seed=seed)
        metrics = [METRICS[name]() for name in JUDGED]
        report = evaluate(InMemory(make(np.random.default_rng(seed))), metrics, run=run, answer=Answer())
        found.append(report.conclusion.answer)
        for result in report.results:
            fails[result.metric] += result.verdict == "fail"
    return found, fails


@pytest.mark.slow
def test_rounded_targets_and_quantiles_of_right_models_pass():
    """16 % failed by stratified-coverage, and 30 % got the answer NO, as 80 % intervals hold 85 % with their limits."""
    found, fails = answers(lambda rng: rounded(rng, 200), sets(40))
    assert "no" not in found
    assert set(fails.values()) == {0}


@pytest.mark.slow
def test_rounded_quantiles_that_are_too_narrow_fail():
    found, fails = answers(lambda rng: rounded(rng, 400, 0.6), 4)
    assert found == ["no"] * 4
    assert fails["coverage"] == 4


@pytest.mark.slow
def test_right_quantiles_of_counts_never_get_the_answer_no():
    """Of such sets of 400 rows, 92 % were told NO, by the share inside with the limits."""
    maker = BY_QUANTILES["poisson, 9 quantiles"]
    found, _ = answers(lambda rng: rows_of(maker, 400, int(rng.integers(1 << 30))), sets(40))
    assert "no" not in found


@pytest.mark.slow
def test_batches_are_judged_in_the_same_way():
    rows = rows_of(BY_QUANTILES["poisson, 23 quantiles"], 400, 0)
    state = accumulate(Batches(rows), [METRICS[name]() for name in JUDGED], Run(replicates=39))
    for found in report_from_state(state, Run(replicates=39)).results:
        assert found.verdict == "pass", found.metric
        assert found.p_value > 0.1


def test_wrong_models_of_counts_given_by_quantiles_fail():
    rows = rows_of(BY_QUANTILES["poisson, 9 quantiles"], 300, 0)
    wrong = Predictions(y=np.floor(1.5 * rows.y), predictive=rows.predictive)
    for found in evaluate(InMemory(wrong), [METRICS["ece"](), METRICS["coverage"](level=0.8)], run=FAST).results:
        assert found.verdict == "fail", found.metric


@pytest.mark.parametrize("name", ["zms", "rce", "ence"])
def test_means_and_deviations_that_are_interpolated_have_no_verdict(name):
    """A right model with tails, by quantiles at 0.05, 0.5 and 0.95: its deviations are interpolated.

    The means and deviations of the same model, exact, are judged.
    """
    rng = np.random.default_rng(0)
    scale, levels = rng.uniform(0.5, 2, 600), np.array([0.05, 0.5, 0.95])
    y = scale * rng.standard_t(5, 600)
    (found,) = judge(levels, scale[:, None] * stats.t(5).ppf(levels), y, (name,), run=Run(replicates=39))
    assert (found.verdict, found.p_value, found.zeta, found.reference) == ("none", None, None, None)
    assert {"interpolated-distributions", "no-verdict"} <= {each.code for each in found.warnings}
    rows = Predictions(y=y, predictive=StudentT(loc=np.zeros(600), scale=scale, df=np.full(600, 5.0)))
    (exact,) = evaluate(InMemory(rows), [METRICS[name]()], run=Run(replicates=39)).results
    assert exact.verdict != "none"


def judge_clipped(stated, quantiles, y, low=-np.inf, high=np.inf, **options):
    """Return the result of ece on targets that were clipped at limits."""
    limits = Observation(low=np.full(len(y), float(low)), high=np.full(len(y), float(high)))
    predictive = limits.distributions(Quantiles(np.asarray(stated), np.asarray(quantiles, float)))
    rows = Predictions(y=np.asarray(y, float), predictive=predictive)
    return evaluate(InMemory(rows), [METRICS["ece"](**options)], run=FAST).results[0]


QUANTILES_BESIDE_A_CLIP = [[0, 4, 6], [0, 1, 9], [7, 8, 9], [-2, 1, 2], [5, 6, 7]]


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_whose_quantile_is_clipped_have_the_share_of_the_level(sign):
    """Levels 0.2, 0.6 and 0.9 of five rows, and targets -1, 5, 5, 1.5 and 5, clipped at 5 from above.

    At 0.2, quantiles 0, 0 and -2 are below 5, and one target is below these: (1 + 2 * 0.2) / 5 = 0.28. At 0.6,
    quantiles 4, 1 and 1: (1 + 2 * 0.6) / 5 = 0.44. At 0.9, only the quantile 2, and the target is below it:
    (1 + 4 * 0.9) / 5 = 0.92; of the rows beyond the limit, only the first has a target below it, fewer than stated. So
    the error is (0.08 + 0.16 + 0.02) / 3. Targets are equal to limits only, which is no reason for a caution. With
    opposite signs, targets are clipped from below, and one less these shares are at or below quantiles.
    """
    levels, y = np.array([0.2, 0.6, 0.9]), sign * np.array([-1, 5, 5, 1.5, 5])
    mirrored = levels if sign > 0 else 1 - levels[::-1]
    quantiles = sign * np.array(QUANTILES_BESIDE_A_CLIP)[:, ::sign]
    limit = {"high": 5} if sign > 0 else {"low": -5}
    found = judge_clipped(mirrored, quantiles, y, **limit)
    assert_allclose(found.value, 0.26 / 3, rtol=1e-12)
    shares = np.array([point["observed"] for point in found.details["curve"]])
    assert_allclose(shares if sign > 0 else 1 - shares[::-1], [0.28, 0.44, 0.92], rtol=1e-12)
    assert AT_QUANTILES not in found.warnings
    assert_allclose(judge_clipped(mirrored, quantiles, y, **limit, levels=(mirrored[1],)).value, 0.16, rtol=1e-12)


def test_targets_inside_limits_that_all_quantiles_are_beyond_count():
    """Four of five targets are below an upper limit, 5, and one is at a lower limit, 1, at levels 0.2 and 0.6.

    At most a share of 0.2 should be below the upper limit, and 0.8 is; at least 0.6 should be at the lower one, and 0.2
    is.
    """
    levels, y = [0.2, 0.6], [1, 2, 3, 4, 5]
    below = judge_clipped(levels, np.tile([50, 60], (5, 1)), y, high=5)
    assert [point["observed"] for point in below.details["curve"]] == pytest.approx([0.8, 0.8])
    above = judge_clipped(levels, np.tile([-60, -50], (5, 1)), y, low=1)
    assert [point["observed"] for point in above.details["curve"]] == pytest.approx([0.2, 0.2])


def observed_normal(seed, *, bias=0.0, factor=1.0, as_intervals=False, high=0.8, step=0.0, n=300):
    """Return quantiles or intervals of normal distributions, and their targets with a bias, clipped and rounded."""
    rng, levels = np.random.default_rng(seed), np.array([0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95])
    mean, std = 3 * rng.normal(size=n), 1.5 * np.exp(0.3 * rng.normal(size=n))
    y = mean + std * (rng.normal(size=n) + bias)
    values = mean[:, None] + factor * std[:, None] * stats.norm.ppf(levels)
    stated = Intervals(np.array([0.9]), values[:, :1], values[:, -1:]) if as_intervals else Quantiles(levels, values)
    limits = Observation(high=np.full(n, high), step=np.full(n, step) if step else None)
    y = np.minimum(y, high)
    recorded = np.floor(y / step + 0.5) * step + 0.0 if step else y
    return Predictions(y=recorded, predictive=limits.distributions(stated))


def failing(name, number, **how):
    """Return in how many sets a metric fails."""
    made = (InMemory(observed_normal(seed, **how)) for seed in range(number))
    return sum(evaluate(each, [METRICS[name]()], run=FAST).results[0].verdict == "fail" for each in made)


@pytest.mark.parametrize("bias", [0.3, -0.3])
def test_a_bias_is_found_in_rows_that_clips_leave(bias):
    """None of 20 sets failed while targets at the limit could be on any side of its quantiles."""
    assert failing("ece", 8, bias=bias) >= 6


@pytest.mark.parametrize("as_intervals", [False, True])
def test_narrow_intervals_are_found_in_targets_rounded_to_half_a_standard_deviation(as_intervals):
    """Less than half of the sets failed while targets equal to rounded limits could be on any side of them."""
    assert failing("coverage", 8, high=np.inf, step=0.75, factor=0.75, as_intervals=as_intervals) >= 7


def test_a_bias_is_found_in_targets_rounded_to_half_a_standard_deviation():
    """Less than half of the sets failed, as before."""
    assert failing("ece", 8, high=np.inf, step=0.75, bias=0.3) >= 7


def test_coverage_is_judged_by_the_limits_that_are_not_clipped():
    """As 43 % of the upper limits are, 300 rows are as those of a smaller file; before, 50 of 60 sets passed."""
    assert failing("coverage", 8, factor=0.75) >= 7


@pytest.mark.parametrize(("y", "verdict"), [(-1.0, "fail"), (0.5, "pass"), (1.0, "pass")])
def test_targets_outside_of_intervals_count_even_if_all_upper_limits_are_clipped(y, verdict):
    """All of 60 targets are below their intervals, or none is, which is at most expected."""
    intervals = Intervals(np.array([0.9]), np.zeros((60, 1)), np.full((60, 1), 2.0))
    predictive = Observation(high=np.ones(60)).distributions(intervals)
    rows = Predictions(y=np.full(60, y), predictive=predictive)
    for run in (FAST, Run(resamples=100, replicates=0)):
        (found,) = evaluate(InMemory(rows), [METRICS["coverage"]()], run=run).results
        assert found.verdict == verdict
        assert "no-reference" not in {each.code for each in found.warnings}


@pytest.mark.parametrize("name", ["ece", "coverage", "stratified-coverage"])
@pytest.mark.parametrize("step", [0.0, 0.5])
def test_batches_of_clipped_and_rounded_targets_give_the_same(name, step):
    rows, metric = observed_normal(0, bias=0.3, step=step, high=0.75), METRICS[name]()
    (whole,) = evaluate(InMemory(rows), [metric], run=FAST).results
    state = accumulate(Batches(rows), [metric], FAST)
    (streamed,) = report_from_state(state, FAST).results
    assert streamed.value == pytest.approx(whole.value, rel=1e-9)
    assert streamed.verdict == whole.verdict
    assert (AT_QUANTILES in streamed.warnings) == (AT_QUANTILES in whole.warnings) == (step > 0)


@pytest.mark.parametrize("as_intervals", [False, True])
def test_quantiles_on_the_grid_of_rounded_targets_are_found_in_any_unit(as_intervals):
    """Multiples of 0.1 are none in binary numbers; before, right models failed in tenths that passed in whole units."""
    rng = np.random.default_rng(0)
    mean, levels = np.rint(4 * rng.normal(size=500)), np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    y = np.rint(mean + 0.8 * rng.normal(size=500))
    values, found = np.rint(mean[:, None] + 0.8 * stats.norm.ppf(levels)), []
    for unit, scale in ((1.0, lambda each: each), (0.1, lambda each: np.round(each / 10, 1))):
        ends = scale(values)
        stated = Intervals(np.array([0.9]), ends[:, :1], ends[:, -1:]) if as_intervals else Quantiles(levels, ends)
        known = Observation(step=np.full(500, unit))
        rows = Predictions(y=known.targets(scale(y)), predictive=known.distributions(stated))
        (of_unit,) = evaluate(InMemory(rows), [METRICS["coverage"]()], run=FAST).results
        found.append((of_unit.value, of_unit.verdict))
    assert found[0] == found[1] == (found[0][0], "pass")


@pytest.mark.slow
@pytest.mark.parametrize("as_intervals", [False, True])
@pytest.mark.parametrize("step", [0.0, 0.75])
def test_right_models_of_clipped_and_rounded_targets_fail_at_the_level_of_the_test(step, as_intervals):
    for name in ("coverage",) if as_intervals else ("ece", "coverage"):
        found = failing(name, sets(100), high=0.75, step=step, as_intervals=as_intervals)
        assert found <= band(sets(100), 0.05, 0.001)[1], name
