"""Null distributions: replicates of the targets, p-values, limits and verdicts, by hand and by counting."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.distributions.base import Repeated
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.noise_clip_rounding import Clipped, Rounded
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.inference.bootstrap import null_statistic_of
from calcheck.inference.metric_protocol import Basis, FittedMetric, NullDistribution
from calcheck.inference.null_distribution import NullSimulator, needs_replicates, replicate_values
from calcheck.inference.p_values_and_verdicts import compare_with_null, is_open, p_value, p_value_error
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import Inference
from tests.helpers.families import FAMILIES, calibrated
from tests.helpers.shorthand import texts
from tests.helpers.simulations import sets, slow

NINE = np.arange(1.0, 10.0)  # nine replicates


@pytest.mark.parametrize(
    ("sided", "own", "expected"),
    [
        ("greater", 8.5, 2 / 10),  # one of nine at or above it, and itself
        ("greater", 9.5, 1 / 10),  # never 0
        ("greater", 0.5, 1.0),
        ("greater", 8.0, 3 / 10),  # a tie counts
        ("less", 1.5, 2 / 10),
        ("less", 0.5, 1 / 10),
        ("less", 2.0, 3 / 10),
        ("less", 9.5, 1.0),
        ("two-sided", 8.5, 4 / 10),
        ("two-sided", 1.5, 4 / 10),
        ("two-sided", 9.5, 2 / 10),
        ("two-sided", 5.0, 1.0),  # twice 6 / 10 is no p-value
    ],
)
def test_p_values_by_hand(sided, own, expected):
    """Replicates 1, ..., 9: (1 + #{T* at or beyond T}) / (9 + 1), twice the smaller one if two-sided."""
    assert_allclose(p_value(NINE, own, sided), expected, rtol=1e-14)


@pytest.mark.parametrize("sided", ["greater", "less", "two-sided"])
def test_replicates_without_a_value_count_as_more_extreme(sided):
    """Two of nine are not numbers: the smallest p-value is 3/10, and twice that if two-sided."""
    values = np.where(NINE > 7, np.nan, NINE)
    own = -1.0 if sided == "less" else 10.0
    assert_allclose(p_value(values, own, sided), {"greater": 0.3, "less": 0.3, "two-sided": 0.6}[sided], rtol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9, -1.0])
def test_values_that_differ_by_rounding_are_ties(scale):
    """0.1 + 0.2 against 0.3, in either order, is a tie on both sides; a difference of a millionth is not."""
    own = 0.3 * scale
    assert p_value(np.full(9, (0.1 + 0.2) * scale), own, "two-sided") == 1.0
    assert p_value(np.full(9, own), (0.1 + 0.2) * scale, "two-sided") == 1.0
    assert_allclose(p_value(np.full(9, own * (1 + 1e-6)), own, "two-sided"), 0.2)


def judged(
    values,
    estimate,
    *,
    metric="ece",
    confidence=0.95,
    inferred=None,
    own=None,
    details=None,
    basis="p",
    sequential=False,
):
    """Compare a value with replicates."""
    simulated = NullDistribution(np.asarray(values, float), data_value=own, details=details or {})
    basis = Basis(basis, "" if basis == "p" else "for a reason")
    computed = FittedMetric(METRICS[metric](), None, None, estimate, basis, simulated, sequential)
    run = Run(confidence=confidence, replicates=max(len(values), 19))
    return compare_with_null(computed, inferred or Inference(), run)


REPLICATES = np.arange(101.0)  # 0, ..., 100: mean 50, quantile p at 100 p


def test_a_one_sided_reference_has_one_limit():
    """ece, one-sided: mean 50, limit at 95 %: 95; zeta = (68 - 50) / (95 - 50) = 0.4, below the mean (32 - 50) / 45."""
    found = judged(REPLICATES, 68.0)
    assert (found.reference, found.reference_low, found.reference_kind) == (50.0, None, "simulated")
    assert_allclose(found.reference_high, 95.0, rtol=1e-12)
    assert_allclose(found.zeta, 0.4, rtol=1e-12)
    assert_allclose(judged(REPLICATES, 32.0).zeta, -0.4, rtol=1e-12)
    assert_allclose(judged(REPLICATES, 68.0, confidence=0.8).reference_high, 80.0, rtol=1e-12)


def test_a_two_sided_reference_has_two_limits():
    """crps: limits at 2.5 and 97.5 %; of 0, 1, 4, 9, … the mean is 3350; zeta uses the limit on the value's side."""
    squares = REPLICATES**2
    found = judged(squares, 8000.0, metric="crps")
    low, high = 2.5 * 2.5 + 0.25, 97.5 * 97.5 + 0.25  # between 2² and 3², and between 97² and 98², half way
    assert_allclose([found.reference, found.reference_low, found.reference_high], [3350.0, low, high], rtol=1e-12)
    assert_allclose(found.zeta, (8000 - 3350) / (high - 3350), rtol=1e-12)
    assert_allclose(judged(squares, 100.0, metric="crps").zeta, (100 - 3350) / (3350 - low), rtol=1e-12)


def test_replicates_without_a_value_are_counted_and_not_averaged():
    found = judged([*REPLICATES, np.nan, np.inf], 68.0)
    assert found.reference == 50.0
    assert found.details["null"] == {"replicates": 103, "undefined": 2}
    assert_allclose(found.p_value, (1 + 33 + 2) / 104, rtol=1e-14)


def test_nothing_is_rejected_without_valid_replicates():
    found = judged([np.nan] * 39, 68.0)
    assert (found.p_value, found.reference, found.zeta, found.verdict) == (1.0, None, None, "pass")


def test_equal_replicates_give_no_zeta():
    found = judged([2.0] * 39, 2.0)
    assert (found.reference, found.reference_high, found.zeta, found.p_value) == (2.0, 2.0, None, 1.0)
    assert judged([2.0] * 39, 3.0).verdict == "fail"


def test_the_p_value_uses_the_value_that_is_computed_like_the_replicates():
    """The value is 99, but computed like the replicates it is 68: 34 of 102."""
    assert_allclose(judged(REPLICATES, 99.0, own=68.0).p_value, 34 / 102, rtol=1e-14)
    assert_allclose(judged(REPLICATES, 99.0).p_value, 3 / 102, rtol=1e-14)


@pytest.mark.parametrize(
    ("metric", "replicates", "above", "verdict"),
    [
        ("ece", 39, 1, "fail"),  # 2 / 40 = 0.05: not above 1 - confidence
        ("ece", 39, 2, "pass"),
        ("ece", 19, 0, "fail"),  # 1 / 20
        ("crps", 39, 0, "fail"),  # 2 / 40
        ("crps", 39, 1, "pass"),
        ("crps", 38, 0, "none"),  # 2 / 39 is the smallest possible
        ("ece", 18, 0, "none"),
    ],
)
def test_verdicts_are_based_on_the_p_value(metric, replicates, above, verdict):
    values = np.where(np.arange(replicates) < above, 2.0, 0.0)
    found = judged(values, 1.0, metric=metric)
    assert found.verdict == verdict
    refused = [
        warning for warning in texts(found.warnings) if "cannot reject" in warning and "larger --replicates" in warning
    ]
    assert bool(refused) == (verdict == "none")


def test_verdicts_based_on_p_values_depend_on_the_confidence():
    """p = 9 / 102 = 0.088."""
    assert judged(REPLICATES, 92.5).verdict == "pass"
    assert judged(REPLICATES, 92.5, confidence=0.9).verdict == "fail"


@pytest.mark.parametrize("name", ["zms", "rce", "coverage", "bias"])
def test_metrics_with_an_exact_reference_keep_their_zeta_and_are_tested_by_p(name):
    exact = Inference(reference=0.9, reference_kind="exact", zeta=0.3)
    found = judged(REPLICATES, 150.0, metric=name, inferred=exact)
    assert (found.verdict, found.reference, found.reference_kind, found.zeta) == ("fail", 0.9, "exact", 0.3)
    assert_allclose(found.p_value, 2 / 102, rtol=1e-14)
    assert found.details["null"]["mean"] == 50.0


@pytest.mark.parametrize("name", ["lzms", "lrce"])
def test_the_share_of_valid_bins_is_compared_with_replicates_and_not_with_the_confidence(name):
    """The binomial test passes with p = 0.7; the mean of the replicates is 50, and none of them is as small."""
    binomial = Inference(reference=0.95, reference_kind="exact", verdict="pass", p_value=0.7)
    found = judged(REPLICATES, -1.0, metric=name, inferred=binomial)
    assert (found.verdict, found.reference, found.reference_kind) == ("fail", 50.0, "simulated")
    assert_allclose(found.p_value, 1 / 102, rtol=1e-14)


@pytest.mark.parametrize("verdict", ["pass", "fail", "undecided"])
def test_verdicts_based_on_the_interval_report_p_and_the_reason(verdict):
    exact = Inference(reference=1.0, reference_kind="exact", zeta=0.3, verdict=verdict)
    found = judged(REPLICATES, 150.0, metric="zms", inferred=exact, basis="interval")
    assert (found.verdict, found.zeta) == (verdict, 0.3)
    assert_allclose(found.p_value, 2 / 102, rtol=1e-14)
    assert texts(found.warnings) == ("the verdict is based on zeta: for a reason",)


def test_p_is_reported_if_there_is_no_basis_for_a_verdict():
    found = judged(REPLICATES, 150.0, metric="ence", basis="none")
    assert (found.verdict, found.p_value, texts(found.warnings)) == ("none", 1 / 102, ("no verdict: for a reason",))


def test_the_monte_carlo_error_of_p_is_binomial():
    """p = 0.05 of 199: sqrt(0.05 0.95 / 199) = 0.01545; two-sided, twice sqrt(0.025 0.975 / 199) = 0.02213."""
    assert_allclose(p_value_error(0.05, 199, "greater"), 0.01545, rtol=1e-3)
    assert_allclose(p_value_error(0.05, 199, "two-sided"), 0.02213, rtol=1e-3)
    assert p_value_error(1.0, 199, "greater") == 0.0
    assert_allclose(judged(REPLICATES, 68.0).p_value_mc_error, np.sqrt(1 / 3 * 2 / 3 / 101), rtol=1e-14)


@pytest.mark.parametrize(
    ("p", "replicates", "open_"),
    [
        *[(0.005, 199, False), (0.015, 199, False), (0.03, 199, True), (0.1, 199, True), (0.13, 199, False)],
        *[(0.04, 9_999, False), (0.045, 9_999, True), (0.056, 9_999, True), (0.06, 9_999, False)],
    ],
)
def test_a_verdict_is_open_within_three_standard_errors(p, replicates, open_):
    assert is_open(p, p_value_error(p, replicates, "greater"), 0.95) == open_


def test_more_replicates_are_drawn_until_the_threshold_is_at_an_atom():
    """1,600 replicates of which 85 are as small as the value: p = 86 / 1601 = 0.054 ± 0.006, which includes 5 %.

    If three quarters of them have the very value, p is its probability: more replicates leave it near the threshold.
    """

    def waits(smaller, equal, larger):
        values = np.repeat([0.7, 0.8, 1.0], [smaller, equal, larger])
        computed = FittedMetric(METRICS["lzms"](), None, None, 0.8, Basis("p"), NullDistribution(values))
        return needs_replicates(computed, Run())

    assert not waits(10, 75, 1_515)
    assert waits(50, 35, 1_515)
    assert waits(1, 10, 189)  # too few to see an atom
    assert not waits(10, 200, 1_390)  # p = 0.13 is far from the threshold


@pytest.mark.parametrize(("sequential", "verdict"), [(True, "undecided"), (False, "fail")])
def test_an_open_verdict_is_undecided_unless_the_number_of_replicates_is_fixed(sequential, verdict):
    """p = 5 / 102 = 0.049 ± 0.021."""
    found = judged(REPLICATES, 97.0, sequential=sequential)
    assert found.verdict == verdict
    assert any("undecided: p is 0.049 ± 0.021" in warning for warning in texts(found.warnings)) == sequential


def test_metrics_that_depend_on_predictions_alone_have_no_verdict():
    (found,) = evaluate(InMemory(calibrated("gaussian")), [METRICS["sharpness"]()], run=Run(replicates=19)).results
    assert (found.verdict, found.p_value, found.reference) == ("none", None, None)
    assert any("depends on the predictions only" in warning for warning in texts(found.warnings))


def test_without_a_null_distribution_there_is_no_verdict_but_a_reason():
    (found,) = evaluate(InMemory(calibrated("gaussian")), [METRICS["ece"]()], run=Run(replicates=0)).results
    assert (found.verdict, found.p_value, found.reference, found.zeta) == ("none", None, None, None)
    assert any("--no-null" in warning for warning in texts(found.warnings))


@pytest.mark.parametrize("wrong", [-1, 1, 18])
def test_too_few_replicates_to_reject_are_refused(wrong):
    with pytest.raises(OptionError, match="--replicates must be at least 19"):
        Run(replicates=wrong)
    assert Run(replicates=19).replicates == 19


def simulation(y, predictive, count, seed=0):
    y = np.asarray(y, float)
    return NullSimulator(Predictions(y=y, predictive=predictive), Run(replicates=count, seed=seed))


@pytest.mark.slow
def test_replicates_are_drawn_from_the_distributions():
    """4,000 replicates of N(1, 2²) and of Poisson(3), for any targets: Kolmogorov-Smirnov and χ² tests."""
    of_normal = [rows.y for rows in simulation([50.0, 60], Gaussian(np.array([1.0, 5]), np.array([2.0, 1])), 4000)]
    assert stats.kstest(np.array(of_normal)[:, 0], stats.norm(1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(np.array(of_normal)[:, 1], stats.norm(5, 1).cdf).pvalue > 1e-3
    counts = np.array([rows.y for rows in simulation([50.0], Poisson(np.array([3.0])), 4000)])[:, 0]
    found = np.bincount(counts.astype(int), minlength=12)[:8]
    expected = 4000 * stats.poisson(3).pmf(np.arange(8))
    assert np.sum((found - expected) ** 2 / expected) < stats.chi2(8).ppf(0.999)


def test_replicates_keep_inputs_and_distributions():
    rows = calibrated("gaussian", n=20)
    for each in NullSimulator(rows, Run(replicates=19)):
        assert each.x is rows.x
        assert each.predictive is rows.predictive
        assert not set(each.y) & set(rows.y)


def test_replicates_are_distinct_and_reproducible():
    rows = calibrated("gaussian", n=20)
    first, again = (np.array([each.y for each in NullSimulator(rows, Run(replicates=50))]) for _ in range(2))
    assert_array_equal(first, again)
    assert len(np.unique(first)) == first.size
    other = np.array([each.y for each in NullSimulator(rows, Run(replicates=50, seed=1))])
    assert not set(other.ravel()) & set(first.ravel())


def test_replicates_in_blocks_are_complete_and_distinct():
    run = Run(replicates=20, limits=Limits(block_targets=60))  # three replicates per block
    found = np.array([each.y for each in NullSimulator(calibrated("gaussian", n=20), run)])
    assert len(np.unique(found)) == found.size == 400


@pytest.mark.parametrize(("rows", "replicates"), [(999, 199), (1000, 59)])
def test_many_rows_start_with_few_replicates(rows, replicates):
    """Each costs as much as all replicates of a thousandth of the rows."""
    data, run = calibrated("gaussian", n=rows), Run(limits=Limits(many_rows=1000))
    assert len(NullSimulator(data, run)) == len(NullSimulator(data, run).with_predictive(data.predictive)) == replicates
    assert len(NullSimulator(data, replace(run, replicates=50))) == 50
    assert NullSimulator(data, run).max_replicates(costly=False) >= 199  # enough to distinguish p = 0.01 from 0.05


@pytest.mark.parametrize("name", ["jmmd", "cmmd"])
def test_joint_metrics_of_many_rows_start_with_few_replicates(name):
    """The p-value of a right model is far from the threshold; of 30 rows, there would be 199 replicates."""
    rng = np.random.default_rng(4)
    rows = Predictions(
        y=rng.normal(size=30), predictive=Gaussian(np.zeros(30), np.ones(30)), x=rng.normal(size=(30, 1))
    )
    (result,) = evaluate(InMemory(rows), [METRICS[name]()], run=Run(limits=Limits(several_rows=30))).results
    assert result.p_value > 0.3
    assert result.details["null"]["replicates"] == 59


def test_several_targets_are_drawn_independently():
    both = Independent((Gaussian(np.zeros(3), np.ones(3)), Gaussian(np.full(3, 100.0), np.ones(3))))
    found = np.array([rows.y for rows in simulation(np.zeros((3, 2)), both, 2000)])
    assert found.shape == (2000, 3, 2)
    assert_allclose(found.mean(axis=0), [[0, 100]] * 3, atol=0.1)
    assert_allclose(found.std(axis=0), 1.0, atol=0.1)
    assert np.abs(np.corrcoef(found.reshape(2000, 6).T) - np.eye(6)).max() < 0.1


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("in_memory", [True, False])
def test_samples_are_swapped_and_never_drawn(draws, in_memory):
    """Each row keeps its set of values, and each of them is the target in one of draws + 1 replicates."""
    values = np.arange(3 * (draws + 1), dtype=float).reshape(3, draws + 1)
    y, predictive = values[:, 0], Samples(values[:, 1:])
    if not in_memory:
        parts = [predictive.take(slice(0, 2)), predictive.take(slice(2, 3))]
        predictive = LazyPredictive(lambda: iter(parts), parts[0], 3)
    chosen, count = [], sets(3000)
    for rows in simulation(y, predictive, count):
        draws_now = rows.predictive.load().draws
        assert_array_equal(np.sort(np.column_stack([rows.y, draws_now]), axis=1), values)
        unchanged = draws_now == values[:, 1:]
        assert_array_equal(unchanged.sum(axis=1), draws - (rows.y != y))  # one draw is exchanged with the target
        chosen.append(rows.y)
    shares = np.mean(np.array(chosen)[:, :, None] == values, axis=0)
    assert_allclose(shares, 1 / (draws + 1), atol=4.5 * np.sqrt(0.25 / count))
    together = np.mean(np.all(np.array(chosen) == y, axis=1))  # rows are swapped independently
    share = (draws + 1) ** -3
    assert_allclose(together, share, atol=4.5 * np.sqrt(share * (1 - share) / count))


def test_vectors_are_swapped_as_a_whole():
    values = np.arange(24.0).reshape(2, 4, 3)  # rows, the target and three draws, columns
    predictive = Samples(values[:, 1:])
    for rows in simulation(values[:, 0], predictive, 50):
        now = np.concatenate([rows.y[:, None], rows.predictive.draws], axis=1)
        order = now[:, :, 0].argsort(axis=1)
        assert_array_equal(np.take_along_axis(now, order[:, :, None], axis=1), values)
    assert_array_equal(predictive.draws, values[:, 1:])  # not changed in place


METRICS_OF_MEANS = [
    name
    for name, metric in METRICS.items()
    if metric.info.alternative != "none" and name not in ("lzms", "lrce", "cce", "jmmd", "ammd", "cmmd", "fid")
]


def by_counting(replicates, value, sided):
    """Return the p-value; sums of counts are tied except for rounding."""
    tied = 1e-10 * abs(value)
    above, below = np.sum(replicates >= value - tied), np.sum(replicates <= value + tied)
    farther = above if sided == "greater" else min(above, below)
    return min(1.0, (2 if sided == "two-sided" else 1) * (1 + farther) / (1 + len(replicates)))


@pytest.mark.slow
@pytest.mark.parametrize("family", [slow("gaussian"), "samples", "poisson", slow("student-t")])
def test_replicates_are_evaluated_like_data(family):
    """p-values and references equal those of a loop that evaluates one replicate after the other as data."""
    run, rows = Run(replicates=39, resamples=0), calibrated(family, n=40)
    metrics = [METRICS[name]() for name in METRICS_OF_MEANS]
    report = evaluate(InMemory(rows), metrics, run=run)
    loop = [
        {
            result.metric: result.value
            for result in evaluate(InMemory(each), metrics, run=Run(replicates=0, resamples=0)).results
        }
        for each in NullSimulator(rows, run)
    ]
    assert len(report.results) >= len(METRICS_OF_MEANS) - 1
    for result in report.results:
        replicates, sided = (
            np.array([values[result.metric] for values in loop]),
            METRICS[result.metric].info.alternative,
        )
        if result.metric == "width-factor" and family in ("samples", "poisson"):
            continue  # what draws have in common, and random numbers of counts, are those of the data
        assert_allclose(result.p_value, by_counting(replicates, result.value, sided), rtol=1e-12, err_msg=result.metric)
        if result.reference_kind == "simulated" and not result.metric.startswith("local-"):  # whose reference is 0
            assert_allclose(result.reference, replicates.mean(), rtol=1e-10)
            assert_allclose(result.reference_high, np.quantile(replicates, 0.975 if sided == "two-sided" else 0.95))


METRICS_OF_QUANTILES = [METRICS["ece"](), METRICS["coverage"](level=0.8), METRICS["coverage"](level=0.9)]


def test_quantiles_give_verdicts_only_for_metrics_of_their_levels():
    """Levels 0.1 and 0.9, 0.05 and 0.95 are given; 0.15 is not, and neither is a mean or a density."""
    rows = calibrated("quantiles", n=60)
    metrics = [
        *METRICS_OF_QUANTILES,
        METRICS["coverage"](level=0.7),
        *(METRICS[name]() for name in METRICS_OF_MEANS if name != "ece"),
    ]
    results = evaluate(InMemory(rows), metrics, run=Run(replicates=39, resamples=0)).results
    judged, others = results[: len(METRICS_OF_QUANTILES)], results[len(METRICS_OF_QUANTILES) :]
    assert all(each.verdict in ("pass", "fail") and each.p_value is not None for each in judged)
    for each in others:
        if each.metric in ("standardized-bias", "local-scale", "local-bias"):
            continue
        if each.metric in ("coverage", "stratified-coverage", "width-factor") and each.options["level"] == 0.9:
            continue
        assert (each.verdict, each.p_value, each.reference) == ("none", None, None)
        assert any("depends on interpolation" in warning for warning in texts(each.warnings))


@pytest.mark.parametrize("family", FAMILIES)
def test_replicates_of_every_family_have_values(family):
    others = [METRICS["crps"](), *([METRICS["cce"]()] if family != "cauchy" else [])]  # which is slow
    metrics = [METRICS["ece"](), *(others if family != "quantiles" else [])]
    results = evaluate(InMemory(calibrated(family, n=15)), metrics, run=Run(replicates=19)).results
    assert len(results) == len(metrics)
    for result in results:
        assert result.reference is not None
        assert result.details["null"]["replicates"] == 19
        assert "undefined" not in result.details["null"]


OF_ROWS = (
    "nll",
    "crps",
    "wis",
    "pinball",
    "interval-score",
    "coverage",
    "zms",
    "rce",
    "mae",
    "rmse",
    "bias",
    "pit-skew",
)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ammd", {}),
        ("ammd", {"standardize": "none"}),
        ("confidence-curve", {}),
        ("confidence-curve", {"score": "rmse"}),
        *((name, {}) for name in OF_ROWS),
    ],
)
def test_replicates_together_have_the_values_of_each_alone(monkeypatch, name, options):
    """Three blocks of replicates, of which the last is smaller; some standard deviations are equal."""
    monkeypatch.setattr("calcheck.inference.null_distribution.BLOCK_ROWS", 320)
    rng = np.random.default_rng(0)
    std = rng.gamma(4, 0.3, 40).round(1) + 0.1
    rows = Predictions(y=rng.standard_normal(40), predictive=Gaussian(rng.standard_normal(40), std))
    run = Run(replicates=19, limits=Limits(block_targets=320))
    metric, simulation = METRICS[name](**options), NullSimulator(rows, run)
    computed = FittedMetric(metric, metric.fit(InMemory(rows), run), None, 0.0, Basis("p"))
    (found,) = replicate_values([computed], simulation, run, "")
    alone = [
        null_statistic_of(metric, metric.evaluate(metric.fit(each, run), each, run)).estimate()
        for each in map(InMemory, simulation)
    ]
    assert simulation.block_size == 8
    assert_allclose(found.values, alone, rtol=1e-12)


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("name", ["width-factor", "ence", "uce", "stratified-coverage"])
def test_replicates_together_have_the_values_that_each_has_alone(name, observed):
    rng, n, count = np.random.default_rng(4), 60, 3
    predictive = Gaussian(rng.normal(size=n), rng.uniform(0.5, 2, n))
    if observed:
        predictive = Rounded(Clipped(predictive, np.full(n, -1.5), np.full(n, 2.0)), np.full(n, 0.5))
    y = [np.round(np.clip(rng.normal(size=n), -1.5, 2.0) / 0.5) * 0.5 for _ in range(count)]
    alone = [InMemory(Predictions(y=each, predictive=predictive)) for each in y]
    metric, run = METRICS[name](), Run()
    fit = metric.fit(alone[0], run)
    stacked = Predictions(y=np.concatenate(y), predictive=Repeated(predictive, count))
    found = metric.stacked_statistics(fit, stacked, count)
    assert_allclose(found, [metric.quick_statistic(fit, each, run) for each in alone], rtol=1e-13)
    assert_allclose(found, [null_statistic_of(metric, metric.evaluate(fit, each, run)).estimate() for each in alone])
