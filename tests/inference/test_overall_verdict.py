"""One verdict for several metrics: common replicates, p-values by hand, and the level."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import Basis, NullDistribution
from calcheck.inference.p_values_and_verdicts import (
    Compared,
    adjusted_p_values,
    common_statistics,
    extremes,
    judged_statistics,
    overall_verdict,
    step_down_p_values,
)
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from tests.helpers.families import calibrated

NAN, JUDGED = np.nan, Basis("p")


@dataclass
class Computed:
    """What the overall verdict uses of a computed metric."""

    metric: object
    compared_value: float
    null: NullDistribution | None
    basis: Basis = JUDGED
    shares_replicates: bool = True


def computed(name, value, replicates, **further):
    null = None if replicates is None else NullDistribution(np.array(replicates, dtype=float))
    return Computed(METRICS[name](), value, null, **further)


ECE, ZMS, MAE = computed("ece", 3.0, [1, 2, 0]), computed("zms", 0.5, [1, 2, 3, 9, 9]), computed("mae", 1, [1, 2, 0])


def test_the_first_replicates_are_used_which_all_metrics_have():
    found = [judged_statistics(ECE), judged_statistics(ZMS)]
    assert [each.alternative for each in found] == ["greater", "two-sided"]
    assert common_statistics(found).tolist() == [[3, 1, 2, 0], [0.5, 1, 2, 3]]
    assert overall_verdict([ECE, ZMS], 0.95).metrics == ("ece", "zms")


@pytest.mark.parametrize(
    "other",
    [
        computed("sharpness", 1.0, None, basis=Basis("none")),
        computed("ece", 1.0, None),
        replace(ECE, basis=Basis("interval")),
        replace(ECE, compared_value=NAN),
        replace(ECE, shares_replicates=False),
        replace(ECE, null=replace(ECE.null, no_verdict="no")),
    ],
)
def test_metrics_without_a_p_value_from_common_replicates_have_no_part(other):
    assert judged_statistics(other) is None
    assert [p is None for p in adjusted_p_values([ECE, other, ZMS])] == [False, True, False]
    assert overall_verdict([other, ZMS], 0.95) is None


def test_step_down_p_values_by_hand():
    """Maxima of all, of the last two, and of the last: 5 2 4 3 4, 3 2 4 1 2, 1 2 0 0 0; 1, 2 and 2 of 5 reach the data.

    Without steps, the second would be compared with 5 2 4 3 4, of which 4 reach 3.
    """
    statistics = np.array([[3.0, 0, 4, 1, 2], [5, 1, 2, 3, 4], [1, 2, 0, 0, 0]])
    assert_allclose(step_down_p_values(statistics), [0.4, 0.2, 0.4], rtol=1e-15)


def test_adjusted_p_values_do_not_decrease_with_weaker_evidence():
    """1 of 4 reaches 3 in the second line; the first has a larger p-value, 2 of 4, and comes first."""
    assert_allclose(step_down_p_values(np.array([[4.0, 5, 0, 0], [3.0, 0, 0, 0]])), [0.5, 0.5], rtol=1e-15)


def test_statistics_are_distances_from_the_median_relative_to_limits():
    """0 to 100: the median is 50, and the limits are 95 or 5 of one-sided tests, 2.5 and 97.5 of two-sided ones."""
    line = np.arange(101.0)
    found = [Compared(line[0], line[1:], side) for side in ("greater", "less", "two-sided")]
    away = line - 50
    expected = [away / 45, -away / 45, np.abs(away) / 47.5]
    assert_allclose(extremes(found), expected, rtol=1e-12, atol=1e-15)


def test_each_side_of_a_skewed_statistic_has_its_own_limit():
    line = np.concatenate([np.arange(50.0), [50], 50 + 3 * np.arange(1.0, 51)])
    (found,) = extremes([Compared(line[0], line[1:], "two-sided")])
    assert_allclose(found, np.abs(np.arange(101.0) - 50) / 47.5, rtol=1e-12, atol=1e-15)


def test_a_statistic_that_is_nearly_always_the_same_is_no_evidence_beyond_its_maximum():
    """Where the limit is the median, the maximum is the limit; undefined values count as the median."""
    lines = np.zeros((2, 100))
    lines[0, :3] = [2, 1, np.nan]
    found = [Compared(line[0], line[1:], side) for line, side in zip(lines, ("greater", "two-sided"), strict=True)]
    assert_allclose(extremes(found)[:, :4], [[1, 0.5, 0, 0], [0, 0, 0, 0]], rtol=1e-15)


def test_the_overall_p_value_is_the_smallest_adjusted_one_and_leads():
    rng = np.random.default_rng(3)
    found = [computed(name, 2.5, rng.normal(size=99)) for name in ("ece", "zms", "mae")]
    found[1].compared_value = -3.5
    overall = overall_verdict(found, 0.95)
    assert overall.p_value == min(adjusted_p_values(found))
    assert (overall.leading, overall.verdict, overall.replicates) == ("zms", "fail", 99)
    assert overall.metrics == ("ece", "zms", "mae")
    assert overall_verdict([replace(each, compared_value=0.0) for each in found], 0.95).verdict == "pass"
    assert overall_verdict(found, 0.999).verdict == "none"  # 99 replicates cannot reject


def test_exactly_five_percent_of_exchangeable_columns_fail():
    """Each of 100 columns in the place of the data: 5 have an overall p-value of at most 0.05."""
    lines = np.random.default_rng(1).normal(size=(6, 100)).cumsum(axis=0)
    names = ("ece", "zms", "mae", "crps", "pit", "bias")
    fails = 0
    for place in range(100):
        order = np.roll(np.arange(100), -place)
        found = [computed(name, line[order][0], line[order][1:]) for name, line in zip(names, lines, strict=True)]
        fails += overall_verdict(found, 0.95).verdict == "fail"
    assert fails == 5


def test_a_report_of_one_metric_has_no_overall_verdict():
    report = evaluate(InMemory(calibrated("gaussian", n=40)), [METRICS["zms"]()], run=Run(resamples=0))
    assert report.overall is None
    assert report.results[0].p_value_adjusted is None


def test_a_metric_of_another_outcome_than_the_targets_is_not_judged_with_the_others():
    """cce of intervals compares whether targets are inside, so that its replicates are other data sets."""
    path, names = "examples/diabetes_intervals.parquet", ["coverage", "stratified-coverage", "cce"]
    few = {"subsample": 120, "replicates": 39, "resamples": 0}
    report = calcheck.evaluate(path, names, level=0.9, inputs=["bmi", "bp"], **few)
    assert [each.metric for each in report.results] == names
    assert report.results[-1].p_value is not None
    assert report.overall.metrics == ("coverage", "stratified-coverage")
