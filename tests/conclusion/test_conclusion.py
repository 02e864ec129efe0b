"""The conclusion of a report: each rule by a report made by hand, and simulated faults."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest

from calcheck.conclusion import conclude
from calcheck.conclusion.answer import _are_more_than_chance
from calcheck.conclusion.evidence import ErrorBins, Evidence, Level, are_uneven
from calcheck.distributions import Gaussian, Samples
from calcheck.errors import Message
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.report import Input, Overall, Report, Result, Skipped
from calcheck.studies.gate.evaluate import verdict_gates
from tests.benchmarks.models import gaussian
from tests.helpers.simulations import band, examples, sets

N = 2000
NULL = {"null": {"replicates": 199}}
CURVE = [{"removed": 0.0, "error": 0.8, "oracle": 0.8}, {"removed": 0.2, "error": 0.7, "oracle": 0.5}]
COVERAGE = {0.5: 0.5, 0.8: 0.8, 0.95: 0.95, 0.99: 0.99}
BINS = [(0.5, 0.51), (0.8, 0.78), (1.1, 1.13), (1.6, 1.59)]


def result(metric, value, reference=None, **fields):
    """Return a result with the verdict pass, if it has a reference."""
    info = METRICS[metric].info
    given = {"verdict": "none" if reference is None else "pass", "p_value": None if reference is None else 0.5} | fields
    details = {**NULL, **given.pop("details", {})}
    return Result(
        metric=metric,
        summary="",
        options=METRICS[metric]().options() | ({"level": 0.9} if "level" in METRICS[metric]().options() else {}),
        unit="1",
        alternative=info.alternative,
        value=value,
        reference=reference,
        details=details,
        **given,
    )


def fail(metric, value, reference, direction, p=0.005, **fields):
    return result(metric, value, reference, verdict="fail", direction=direction, p_value=p, **fields)


def coverage(value=0.9, direction=None, at=COVERAGE):
    others = [{"level": level, "coverage": held, "expected": level} for level, held in at.items()]
    details = {"at_other_levels": others}
    if direction is None:
        return result("coverage", value, 0.9, details=details)
    return fail("coverage", value, 0.9, direction, details=details)


def ence(direction=None, pairs=BINS):
    details = {"bins": [{"rmv": rmv, "rmse": rmse} for rmv, rmse in pairs]}
    if direction is None:
        return result("ence", 0.02, 0.02, details=details)
    return fail("ence", 0.2, 0.02, direction, details=details)


def histogram(first=100.0, last=100.0):
    return {"details": {"histogram": [first, *[(N - first - last) / 18] * 18, last]}}


RIGHT = (
    coverage(),
    result("zms", 1.01, 1.0, low=0.95, high=1.07),
    result("pit", 1e-4, 8e-5, **histogram()),
    ence(),
    result("bias", 0.01, 0.0),
    result("rmse", 1.0, 1.0, reference_low=0.97, reference_high=1.03),
    result("sharpness", 1.0),
    result("confidence-curve", 0.25, 0.25, details={"curve": CURVE}),
)


def report_of(*changed, skipped=(), without=()):
    """Return a report of a right model, with some results changed."""
    results = {each.metric: each for each in (*RIGHT, *changed) if each.metric not in without}
    read = Input(files=(), n=N, dropped=0, predictive="gaussian", columns={})
    return Report(calcheck="0", input=read, settings={}, results=tuple(results.values()), skipped=skipped)


def found(*changed, **settings):
    """Return the answer, and the findings by topic."""
    conclusion = conclude(report_of(*changed, **settings)).conclusion
    return conclusion.answer, {finding.topic: finding for finding in conclusion.findings}


def test_a_right_model_can_be_trusted():
    answer, findings = found()
    assert answer == "yes"
    assert {finding.state for finding in findings.values()} == {"right"}
    assert findings["size"].text == "90 % intervals hold 90 %: right on average"
    assert findings["shape"].text == "50 % intervals hold 50 %, 99 % hold 99 %: right"
    assert findings["ranking"].text.endswith("mean larger errors (without the largest 20 %: mae 0.8 → 0.7)")


def test_a_report_without_verdicts_has_no_conclusion():
    assert conclude(replace(report_of(), results=(result("width", 3.0),))).conclusion is None


def test_intervals_that_hold_too_few_targets_are_too_narrow_by_a_factor():
    narrow = {0.5: 0.41, 0.8: 0.694, 0.95: 0.883, 0.99: 0.961}  # normal intervals, 0.8 times as wide as they should be
    answer, findings = found(coverage(0.812, "too-narrow", narrow), fail("pit", 2e-3, 8e-5, "too-narrow"))
    assert answer == "no"
    assert findings["size"].fault == "too-narrow"
    assert findings["size"].text == "90 % intervals hold 81.2 %: too narrow; 1.25 times as wide would be right"
    assert findings["shape"].state == "right"


def test_intervals_that_hold_too_many_targets_are_too_wide():
    wide = {0.5: 0.601, 0.8: 0.891, 0.95: 0.9857, 0.99: 0.9987}
    _, findings = found(coverage(0.9602, "too-wide", wide))
    assert findings["size"].text == "90 % intervals hold 96 %: too wide; 0.80 times as wide would be right"


def test_wide_in_the_middle_and_short_in_the_tails_are_heavy_tails():
    heavy = {0.5: 0.65, 0.8: 0.85, 0.95: 0.95, 0.99: 0.96}
    answer, findings = found(coverage(0.9, at=heavy), fail("pit", 2e-3, 8e-5, "too-wide"))
    assert answer == "no"
    assert findings["shape"].fault == "heavy-tails"
    text = "50 % intervals hold 65 %, 99 % hold 96 %: heavier tails than predicted (p 0.005)"
    assert findings["shape"].text == text
    assert findings["size"].state == "right"


def test_few_outliers_are_heavy_tails_not_small_uncertainties():
    _, findings = found(fail("zms", 1.7, 1.0, "too-narrow", low=1.4, high=2.1))
    assert findings["shape"].fault == "heavy-tails"
    assert findings["size"].state == "right"


def test_short_in_the_middle_and_wide_in_the_tails_are_light_tails():
    light = {0.5: 0.39, 0.8: 0.74, 0.95: 1.0, 0.99: 1.0}
    _, findings = found(coverage(0.95, "too-wide", light), fail("pit", 2e-3, 8e-5, "too-narrow"))
    assert findings["shape"].fault == "light-tails"


def test_unequal_tails_are_skewness():
    _, findings = found(fail("pit", 2e-3, 8e-5, "wrong-shape", **histogram(20.0, 130.0)))
    assert findings["shape"].fault == "skewed"
    assert findings["shape"].text.startswith(
        "1 % of targets are below the 5 % quantile, 6.5 % above the 95 % quantile: more skewed to the right than"
    )


def test_another_shape_is_named_by_its_largest_gap():
    curve = {"curve": [{"level": 0.5, "observed": 0.56}, {"level": 0.9, "observed": 0.91}]}
    shape = fail("pit", 2e-3, 8e-5, "wrong-shape", **histogram())
    _, findings = found(shape, result("ece", 0.02, 0.01, details=curve))
    assert findings["shape"].fault == "wrong-shape"
    assert findings["shape"].text == "predicted shares are off by up to 6 %: the shape is wrong (p 0.005)"


def test_a_bias_is_given_in_units_of_the_error_and_explains_larger_squares():
    rmse = fail("rmse", 1.05, 1.0, "worse-than-promised", reference_low=0.97, reference_high=1.03)
    narrow = fail("zms", 1.1, 1.0, "too-narrow", low=1.03, high=1.17)
    answer, findings = found(fail("bias", 0.3, 0.0, "predictions-too-low"), rmse, narrow)
    assert answer == "no"
    assert findings["bias"].fault == "predictions-too-low"
    assert findings["bias"].text == ("targets are 0.3 above the predicted means on average, 0.29 of the typical error")
    assert findings["size"].text == "90 % intervals hold 90 %: right, apart from the bias"


def test_equal_errors_are_a_bias():
    rmse = fail("rmse", 2.0, 1.0, "worse-than-promised", reference_low=0.97, reference_high=1.03)
    _, findings = found(fail("bias", 2.0, 0.0, "predictions-too-low"), rmse, fail("zms", 4.0, 1.0, "too-narrow"))
    assert findings["bias"].fault == "predictions-too-low"
    assert findings["size"].fault == "too-narrow"


def test_a_bias_within_the_noise_of_larger_errors_is_no_fault():
    rmse = fail("rmse", 3.0, 1.0, "worse-than-promised", reference_low=0.97, reference_high=1.03)
    _, findings = found(fail("bias", 0.1, 0.0, "predictions-too-low"), rmse, fail("zms", 9.0, 1.0, "too-narrow"))
    assert "bias" not in findings
    assert findings["size"].fault == "too-narrow"


LOST = [(0.5, 1.01), (0.8, 0.98), (1.1, 1.02), (1.6, 0.99)]
FLAT = [(0.5, 0.7), (0.8, 0.9), (1.1, 1.05), (1.6, 1.27)]
STEEP = [(0.5, 0.25), (0.8, 0.64), (1.1, 1.21), (1.6, 2.56)]


@pytest.mark.parametrize(
    ("pairs", "fault", "words"),
    [
        (LOST, "ranking-lost", "larger uncertainties do not mean larger errors"),
        (FLAT, "wrong-in-bins", "uncertainties are too large where they are large, too small where they are small"),
        (STEEP, "wrong-in-bins", "uncertainties are too small where they are large, too large where they are small"),
    ],
)
def test_errors_that_do_not_grow_with_uncertainties_are_a_fault_of_the_ranking(pairs, fault, words):
    _, findings = found(ence("wrong-in-bins", pairs))
    assert findings["ranking"].fault == fault
    assert findings["ranking"].text.startswith(words)


def test_bins_that_are_wrong_by_the_same_factor_are_no_fault_of_the_ranking():
    wider = ence("wrong-in-bins", [(rmv, 1.5 * rmse) for rmv, rmse in BINS])
    narrow = coverage(0.812, "too-narrow", {0.5: 0.41, 0.8: 0.694, 0.95: 0.883, 0.99: 0.961})
    assert found(wider, narrow)[1]["ranking"].state == "right"


def test_bins_that_are_wrong_without_another_fault_are_a_fault():
    _, findings = found(ence("wrong-in-bins", [(0.5, 0.5), (0.8, 1.6), (1.1, 1.1), (1.6, 3.0)]))
    assert findings["ranking"].fault == "wrong-in-bins"


def test_few_rows_do_not_show_a_ranking():
    _, findings = found(ence(pairs=[(0.5, 0.9), (0.8, 1.2), (1.1, 0.8), (1.6, 1.1)]))
    assert findings["ranking"].state == "untested"


def test_clear_failures_of_other_metrics_are_a_fault():
    answer, findings = found(fail("lzms", 0.3, 0.95, "wrong-in-bins"))
    assert (answer, findings["others"].fault) == ("no", "wrong-in-bins")
    assert findings["others"].text == "lzms (wrong in bins) fails clearly, and nothing above explains it"


def test_many_failures_that_are_not_clear_leave_the_answer_open():
    changed = [fail(name, 1.07, 1.0, "too-narrow", p=0.03) for name in ("zms", "pit", "lzms", "mae", "crps")]
    answer, findings = found(*changed)
    assert answer == "unclear"
    assert findings["others"].text.endswith("fail at 5 %, more than by chance")


def test_a_failure_of_all_metrics_together_is_a_fault_also_if_none_fails_clearly():
    """The gate of the overall verdict fails then, and the answer is that of the gate."""
    joined = [fail(name, 1.07, 1.0, "too-narrow", p=0.06) for name in ("zms", "pit")]
    report = report_of(*(replace(each, p_value_adjusted=0.06) for each in joined))
    overall = Overall(
        verdict="fail",
        p_value=0.05,
        method="maximum relative to limits",
        replicates=99,
        metrics=("zms",),
        leading="zms",
    )
    found = conclude(replace(report, overall=overall)).conclusion
    assert (found.answer, found.findings[-1].topic, found.findings[-1].state) == ("no", "others", "fault")
    assert not all(gate.passed for gate in verdict_gates(replace(report, overall=overall)))


def test_every_level_of_a_file_of_intervals_is_tested():
    wrong = coverage(0.9, at={0.5: 0.18, 0.99: 0.99})
    answer, findings = found(wrong, intervals(0.9, 0.9, 0.9), without=WITHOUT_MOMENTS)
    assert answer == "no"
    assert findings["size"].text == "50 % intervals hold 18 %: too narrow"


def at_limits(main, others, **fields):
    """Return coverage with shares (strictly inside, inside) at 90 % and at other levels, as of counts."""
    listed = [
        {"level": level, "strictly_inside": strict, "coverage": closed, "expected": level}
        for level, (strict, closed) in others.items()
    ]
    details = {"strictly_inside": main[0], "at_other_levels": listed, **fields.pop("details", {})}
    return result("coverage", main[1], 0.9, details=details, **fields)


def test_targets_at_limits_count_on_the_side_that_favors_the_model():
    """Of counts, 62 % are inside intervals at 50 %, and 96 % at 90 %: right, as 41 % and 84 % are without limits."""
    counts = at_limits((0.84, 0.96), {0.5: (0.41, 0.62)})
    answer, findings = found(counts, intervals(0.9, 0.9), without=WITHOUT_MOMENTS)
    assert answer == "yes"
    text = "90 % intervals hold 84 % to 96 %, without and with targets at their limits: consistent with 90 %"
    assert findings["size"].text == text
    wide = at_limits((0.84, 0.96), {0.5: (0.56, 0.7)})
    answer, findings = found(wide, intervals(0.9, 0.9), without=WITHOUT_MOMENTS)
    assert answer == "no"
    assert (
        findings["size"].text == "50 % intervals hold 56 % to 70 %, without and with targets at their limits: too wide"
    )


def test_both_shares_of_the_outer_levels_are_stated_for_the_shape():
    counts = at_limits((0.84, 0.96), {0.5: (0.41, 0.62), 0.99: (0.97, 0.995)})
    text = found(counts)[1]["shape"].text
    assert text.startswith("50 % intervals hold 41 % to 62 %, 99 % hold 97 % to 99.5 %, without and with targets at")


def test_bins_with_targets_at_limits_are_compared_by_the_nearest_shares():
    """Narrow intervals of counts hold more with their limits: 0.99 and 0.91 inside, 0.7 and 0.88 strictly."""
    bins = [
        {"from": width, "to": width + 1, "rows": 400.0, "coverage": closed, "strictly_inside": strict, "expected": 0.9}
        for width, (strict, closed) in enumerate([(0.7, 0.99), (0.88, 0.91)])
    ]
    even = result("stratified-coverage", 0.0, 0.02, verdict="fail", p_value=0.005, details={"bins": bins})
    _, findings = found(even, without=WITHOUT_MOMENTS)
    assert findings["ranking"].text == "narrow and wide intervals hold alike, apart from targets at their limits"


def test_p_values_of_levels_are_binomial():
    for inside in (0, 83, 94, 100):
        tails = [binomtest(inside, 100, 0.9, side).pvalue for side in ("less", "greater")]
        level = Level.from_coverage(0.9, inside / 100, 0.9, 100)
        assert level.p_value(100) == pytest.approx(min(1, 2 * min(tails)), rel=1e-9)
    assert Level.from_coverage(0.9, 0.96, 0.9, 100, 0.84).p_value(100) > 0.9


def wrong_at(*shares):
    """Return the answer on intervals whose share at 90 % is right, at other levels as given; n = 2000."""
    return found(coverage(0.9, at=dict(shares)), intervals(0.9, 0.9), without=WITHOUT_MOMENTS)[0]


def test_other_levels_are_tested_at_one_percent_together():
    """At 50 %, 1060 of 2000 have p = 0.0078: clear alone, and not among four levels."""
    assert wrong_at((0.5, 0.53)) == "no"
    assert wrong_at((0.5, 0.53), (0.8, 0.8), (0.95, 0.95), (0.99, 0.99)) == "yes"
    assert wrong_at((0.5, 0.54), (0.8, 0.8), (0.95, 0.95), (0.99, 0.99)) == "no"


def test_the_level_of_coverage_is_left_to_its_verdict():
    """93 % of 2000 independent rows has p < 1e-4, but coverage passes, as it may if rows depend on each other."""
    answer, _ = found(coverage(0.93), intervals(0.9, 0.9), without=WITHOUT_MOMENTS)
    assert answer == "yes"


def test_other_levels_of_dependent_rows_are_tested_with_the_effective_number_of_rows():
    """Null limits three times as far apart as those of 2000 rows leave 2000 / 9 rows: 54 % of 222 is no evidence."""
    error = 1.96 * 3 * np.sqrt(0.9 * 0.1 / N)
    null = {"clusters": 100, "low": 0.9 - error, "high": 0.9 + error}
    listed = [{"level": 0.5, "coverage": 0.54, "expected": 0.5}]
    for details, answer in (({"null": null}, "yes"), ({}, "no")):
        dependent = result("coverage", 0.9, 0.9, details={"at_other_levels": listed, **details})
        assert found(dependent, intervals(0.9, 0.9), without=WITHOUT_MOMENTS)[0] == answer


def test_intervals_that_hold_everything_are_too_wide_without_heavy_tails():
    wide = {0.5: 0.972, 0.8: 1.0, 0.95: 1.0, 0.99: 1.0}
    zms = fail("zms", 0.09, 1.0, "too-wide", low=0.085, high=0.095)
    _, findings = found(coverage(1.0, "too-wide", wide), zms, fail("pit", 2e-3, 8e-5, "too-wide"))
    assert findings["size"].text == "90 % intervals hold 100 %: too wide; 0.30 times as wide would be right"
    assert findings["shape"].text == "no fault besides those above"


def test_a_large_bias_hides_the_shape_and_the_ranking():
    rmse = fail("rmse", 1.9, 1.0, "worse-than-promised", reference_low=0.97, reference_high=1.03)
    shifted = coverage(0.5, "too-narrow", {0.5: 0.17, 0.8: 0.4, 0.95: 0.62, 0.99: 0.76})
    bias = fail("bias", 1.5, 0.0, "predictions-too-low")
    _, findings = found(
        bias, rmse, shifted, ence("wrong-in-bins", STEEP), fail("pit", 0.1, 8e-5, "predictions-too-low")
    )
    hidden = "cannot be judged with such a bias"
    assert (findings["shape"].text, findings["ranking"].text) == (hidden, hidden)


def test_a_small_bias_does_not_explain_wide_intervals():
    wide = {0.5: 0.601, 0.8: 0.891, 0.95: 0.9857, 0.99: 0.9987}
    small = fail("bias", 0.08, 0.0, "predictions-too-low")
    assert found(coverage(0.9602, "too-wide", wide), small)[1]["size"].fault == "too-wide"


def test_the_direction_of_the_pit_names_a_shift_that_no_bias_shows():
    curve = {"curve": [{"level": 0.5, "observed": 0.43}]}
    low = fail("pit", 2e-3, 8e-5, "predictions-too-low", **histogram())
    _, findings = found(low, result("ece", 0.03, 0.01, details=curve))
    assert findings["shape"].fault == "predictions-too-low"
    assert findings["shape"].text == "predicted shares are off by up to 7 %: predictions too low (p 0.005)"


def test_a_failure_at_five_percent_is_not_called_right():
    _, findings = found(fail("pit", 2e-4, 8e-5, "too-wide", p=0.03, **histogram()))
    assert findings["shape"].text.endswith("not clearly wrong")


def test_few_rows_never_give_the_answer_yes():
    few = report_of()
    assert conclude(replace(few, input=replace(few.input, n=29))).conclusion.answer == "unclear"


def test_counts_are_compared_with_what_their_intervals_should_hold():
    counted = fail("coverage", 0.955, 0.979, "too-narrow", details={"at_other_levels": []})
    _, findings = found(counted)
    assert findings["size"].text.startswith("90 % intervals hold 95.5 % instead of 97.9 %: too narrow")


def test_no_factor_follows_from_intervals_that_hold_nothing():
    _, findings = found(coverage(0.0, "too-narrow", {}), without=("zms",))
    assert findings["size"].text == "90 % intervals hold 0 %: too narrow"


def test_a_bias_needs_no_other_metric():
    _, findings = found(fail("bias", 0.3, 0.0, "predictions-too-low"), without=("rmse",))
    assert findings["bias"].text == "targets are 0.3 above the predicted means on average"


def intervals(*held, verdict="pass"):
    """Return a report's only results for a file of intervals: coverage by width, of equally many rows."""
    bins = [{"from": width, "to": width + 1, "rows": 400.0, "coverage": share} for width, share in enumerate(held)]
    given = {"verdict": verdict, "p_value": 0.005 if verdict == "fail" else 0.5, "details": {"bins": bins}}
    return result("stratified-coverage", 0.05, 0.02, **given)


WITHOUT_MOMENTS = ("zms", "pit", "ence", "bias", "rmse", "sharpness", "confidence-curve")


def test_intervals_are_judged_by_their_coverage_along_the_width():
    _, findings = found(intervals(0.7, 0.85, 0.95, 0.99, 1.0, verdict="fail"), without=WITHOUT_MOMENTS)
    assert findings["ranking"].fault == "wrong-in-bins"
    assert findings["ranking"].text == "70 % to 100 % of targets are inside, depending on the width of the intervals"
    _, findings = found(intervals(0.9, 0.91, 0.89, 0.9, 0.9), without=WITHOUT_MOMENTS)
    assert findings["ranking"].text == "narrow and wide intervals hold alike, 89 % to 91 %"


def test_the_same_deviation_at_all_widths_is_no_fault_of_the_ranking():
    _, findings = found(intervals(0.7, 0.71, 0.69, 0.7, 0.7, verdict="fail"), without=WITHOUT_MOMENTS)
    assert findings["ranking"].state == "right"


def test_the_test_of_shares_agrees_with_chi_square():
    # 4 degrees of freedom: the limit at 1 % is 13.277, here reached by 400 * 2 * d^2 / 0.09 with d = 0.03865
    assert not are_uneven([(0.9, 400), (0.9, 400), (0.9, 400), (0.9 - 0.038, 400), (0.9 + 0.038, 400)])
    assert are_uneven([(0.9, 400), (0.9, 400), (0.9, 400), (0.9 - 0.0392, 400), (0.9 + 0.0392, 400)])


def test_equal_uncertainties_rank_nothing():
    _, findings = found(ence(pairs=[(1.0, 1.01), (1.01, 0.98), (1.02, 1.13)]))
    assert findings["ranking"].text == "uncertainties are nearly equal, so they do not rank errors"


def test_inputs_are_untested_without_inputs():
    skipped = (Skipped(metric="cce", code="inapplicable", reason="needs inputs"),)
    answer, findings = found(skipped=skipped)
    assert (answer, findings["inputs"].state) == ("yes", "untested")
    assert findings["inputs"].text == "not tested: pass --inputs or --embedding"


def test_rejected_inputs_are_those_of_some_neighborhoods_and_are_not_counted():
    # a test at an input is one of its neighborhood: right inputs near a wrong region are rejected too
    details = {"rejected": {"count": 31, "inputs": 2000}}
    _, findings = found(fail("cce", 0.2, 0.1, "wrong-distribution", details=details))
    assert findings["inputs"].text == "distributions differ from the data in some neighborhoods (p 0.005)"


def test_failures_that_are_not_clear_are_listed_and_do_not_change_the_answer():
    answer, findings = found(fail("zms", 1.07, 1.0, "too-narrow", p=0.03))
    assert answer == "yes"
    assert findings["others"].text == (
        "zms (too narrow) fails at 5 %, none clearly; among 7 verdicts that happens by chance"
    )


def test_the_p_value_adjusted_for_all_metrics_decides_for_few_replicates_too():
    """39 replicates: the smallest adjusted p-value is 1/40, and the smallest two-sided one of a metric is 2/40."""
    few = {"details": {"null": {"replicates": 39}}, "p": 2 / 40, "zeta": 2.5}
    narrow = partial(fail, "zms", 1.5, 1.0, "too-narrow", low=1.4, high=1.6, **few)
    others = [replace(each, p_value_adjusted=1.0) for each in RIGHT if each.verdict != "none"]
    assert found(*others, narrow(p_value_adjusted=1 / 40))[0] == "no"
    assert found(*others, narrow(p_value_adjusted=2 / 40))[0] == "no"
    assert found(*others, narrow(p_value_adjusted=3 / 40))[0] == "yes"


def by_zeta(metric, value, reference, zeta, **fields):
    """Return a result without replicates, with the verdict of its interval."""
    wrong = {"verdict": "fail", "direction": "too-narrow"} if abs(zeta) > 1 else {"verdict": "pass"}
    return result(metric, value, reference, p_value=None, zeta=zeta, **wrong, **fields)


@pytest.mark.parametrize(("zeta", "answer"), [(1.13, "yes"), (1.16, "no"), (-1.16, "no")])
def test_verdicts_of_intervals_share_the_level_of_five_percent(zeta, answer):
    """Two of them have 2.5 % each: 2.2414 standard errors, which is 1.1436 times 1.9600."""
    without = {each.metric for each in RIGHT} - {"zms"}
    given = (by_zeta("zms", 1.1, 1.0, zeta), by_zeta("rce", 0.0, 0.0, 0.1))
    assert found(*given, without=without)[0] == answer


def test_an_exact_test_shares_the_level_with_its_p_value():
    basis = (Message("verdict-basis", "the verdict is based on an exact test: no replicates"),)
    without = {each.metric for each in RIGHT} - {"zms"}
    for p, answer in ((0.02, "no"), (0.03, "yes")):
        lzms = fail("lzms", 0.8, 0.95, "wrong-in-bins", p=p, warnings=basis)
        assert found(by_zeta("zms", 1.0, 1.0, 0.1), lzms, without=without)[0] == answer


def test_the_confidence_of_the_report_sets_the_level_of_the_answer():
    narrow = fail("zms", 1.5, 1.0, "too-narrow", p=0.005, p_value_adjusted=0.03)
    others = [replace(each, p_value_adjusted=1.0) for each in RIGHT if each.verdict != "none"]
    report = report_of(*others, narrow)
    answers = [conclude(replace(report, settings={"confidence": c})).conclusion.answer for c in (0.95, 0.99)]
    assert answers == ["no", "yes"]


def test_without_a_verdict_on_the_size_the_answer_is_unclear():
    reason = Message("no-verdict", "no verdict: the file does not state the error distribution")
    unknown = [result(name, 0.9, warnings=(reason,)) for name in ("coverage", "zms", "pit")]
    answer, findings = found(*unknown)
    assert answer == "unclear"
    assert findings["shape"].text == "not tested: the file does not state the error distribution"


def test_squared_errors_replace_coverage_for_files_of_errors():
    squares = result("zms", 1.2, 1.0, p_value=None, verdict="fail", direction="too-narrow", zeta=2.0)
    _, findings = found(squares, without=("coverage",))
    expected = "squared errors are 1.2 times as large as predicted: too narrow; 1.10 times as wide would be right"
    assert findings["size"].text == expected


def test_the_relative_calibration_error_replaces_zms_where_that_is_absent():
    # RMV 1 and RMSE 1.2: rce = (1 - 1.2) / 1, and squared errors are 1.44 times as large as predicted
    wide = result("rce", -0.2, 0.0, p_value=None, verdict="fail", direction="too-narrow", zeta=-2.0)
    _, findings = found(wide, without=("coverage", "zms"))
    assert findings["size"].text.startswith("squared errors are 1.44 times as large as predicted: too narrow")


def test_the_sentence_about_the_size_has_the_numbers_of_the_metric_that_failed():
    # wide where errors are large, narrow where they are small: mean z^2 1.04, but MSE only 0.81 of the mean variance
    right = result("zms", 1.04, 1.0, low=0.95, high=1.1)
    _, findings = found(fail("rce", 0.1, 0.0, "too-wide"), right)
    expected = "squared errors are 0.81 times as large as predicted: too wide; 0.90 times as wide would be right"
    assert findings["size"].text == expected


def test_no_factor_contradicts_the_direction():
    wide = {0.5: 0.972, 0.8: 1.0, 0.95: 1.0, 0.99: 1.0}  # all targets are inside, and a few outliers make zms large
    _, findings = found(coverage(1.0, "too-wide", wide), result("zms", 1.04, 1.0))
    assert findings["size"].text == "90 % intervals hold 100 %: too wide"


VECTORS = (
    result("crps", 1.1, 1.1),
    result("nll", 2.8, 2.8),
    replace(RIGHT[2], options={"pre_rank": "variogram"}),
)


def of_vectors(*changed, n=N):
    """Return the answer, and the findings by topic, of several targets."""
    results = {each.metric: each for each in (*VECTORS, *changed)}
    report = replace(report_of(), results=tuple(results.values()))
    conclusion = conclude(replace(report, input=replace(report.input, n=n))).conclusion
    return conclusion.answer, {finding.topic: finding for finding in conclusion.findings}


def test_a_right_model_of_several_targets_can_be_trusted():
    answer, findings = of_vectors()
    assert answer == "yes"
    assert findings["size"].text == "crps, nll of the vectors: as the predicted joint distributions promise"
    assert of_vectors(n=29)[0] == "unclear"


def test_a_wrong_model_of_several_targets_cannot_be_trusted():
    answer, findings = of_vectors(fail("crps", 1.4, 1.1, "worse-than-promised"))
    assert (answer, findings["others"].fault) == ("no", "worse-than-promised")
    assert "size" not in findings
    wrong = fail("pit", 2e-3, 8e-5, "wrong-shape")
    assert of_vectors(replace(wrong, options={"pre_rank": "variogram"}))[0] == "no"


def test_several_targets_without_a_joint_score_are_not_judged_by_their_ranks_alone():
    ranks = {"results": (VECTORS[2], result("cce", 0.1, 0.1))}
    assert conclude(replace(report_of(), **ranks)).conclusion.answer == "unclear"


NUMBERS = st.none() | st.floats(0, 1e300) | st.sampled_from([0.0, 1.0, 1e-300])
SIGNED = NUMBERS | st.floats(-1e300, 0)
SHARES = st.floats(0, 1)
JUDGED = ("coverage", "zms", "rce", "pit", "ence", "bias", "rmse", "cce", "stratified-coverage")


def range_of(name):
    """Return a strategy for the values of a metric."""
    return {"coverage": SHARES, "bias": SIGNED, "rce": SIGNED}.get(name, NUMBERS)


@examples(100)
@given(st.data())
def test_no_numbers_of_a_report_stop_the_conclusion(data):
    draw = data.draw
    verdicts = st.sampled_from(["pass", "fail", "undecided", "none"])
    bins = [
        {"from": draw(SHARES), "to": 1.0, "rows": float(draw(st.integers(1, 9))), "coverage": draw(SHARES)}
        | {"rmv": draw(SHARES), "rmse": draw(SHARES)}
        for _ in range(draw(st.integers(0, 4)))
    ]
    others = [{"level": 0.5, "coverage": draw(SHARES), "expected": draw(SHARES)}]
    details = {"bins": bins, "at_other_levels": others, "histogram": draw(st.lists(st.floats(0, 9), max_size=3))}
    fields = ("reference", "low", "high", "reference_low", "reference_high", "zeta", "p_value")
    changed = [
        result(name, draw(range_of(name)), **dict.fromkeys(fields), details=details)
        if draw(st.booleans())
        else result(
            name,
            draw(range_of(name)),
            **{field: draw(range_of(name)) for field in fields},
            verdict=draw(verdicts),
            details=details,
        )
        for name in JUDGED
    ]
    report = conclude(report_of(*changed, result("sharpness", draw(NUMBERS))))
    assert report.conclusion is None or report.conclusion.answer in ("yes", "no", "unclear")


def test_the_scale_of_a_level_is_the_factor_of_normal_intervals():
    # 81.2 % is what N(0, 1) holds of intervals 1.6449 * 0.8 wide: 2 Phi(1.3159) - 1 = 0.8118
    assert np.exp(Level.from_coverage(0.9, 0.8118, 0.9, 10**9).scale.log) == pytest.approx(1.25, rel=1e-3)


# ------------------------------------------------------------------ simulations

METRIC_NAMES = ("bias", "rmse", "sharpness", "coverage", "zms", "rce", "ece", "pit", "ence", "confidence-curve")


def simulated(scale, errors, seed, n=N):
    """Return the faults of normal predictions with spreads scaled by a function, and errors drawn by another."""
    rng = np.random.default_rng([seed, n])
    _, truth = gaussian(rng, n)
    std = scale(rng, truth.scale)
    y = truth.loc + truth.scale * errors(rng, n)
    report = evaluate(
        InMemory(Predictions(y=y, predictive=Gaussian(truth.loc, std))),
        [METRICS[name]() for name in METRIC_NAMES],
        run=Run(resamples=200, replicates=199),
    )
    conclusion = conclude(report).conclusion
    return conclusion.answer, {finding.fault for finding in conclusion.findings}


def unscaled(_, std):
    return std


def normal(rng, n):
    return rng.normal(size=n)


def shuffled(rng, std):
    other = rng.permutation(std)
    return other * np.sqrt(np.mean(std**2 / other**2))


FAULTS = {
    "too-narrow": (lambda _, std: 0.8 * std, normal),
    "too-wide": (lambda _, std: 1.25 * std, normal),
    "predictions-too-low": (unscaled, lambda rng, n: rng.normal(0.3, size=n)),
    "skewed": (unscaled, lambda rng, n: (rng.gamma(2, size=n) - 2) / np.sqrt(2)),
    "heavy-tails": (unscaled, lambda rng, n: rng.standard_t(3, n) / np.sqrt(3)),
    "light-tails": (unscaled, lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n)),
    "ranking-lost": (shuffled, normal),
    "wrong-in-bins": (lambda _, std: std**2 * np.sqrt(np.mean(std**-2.0)), normal),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_simulated_faults_are_named(fault):
    number = sets(8, 8)
    named = sum(fault in simulated(*FAULTS[fault], seed)[1] for seed in range(number))
    assert named >= max(1, band(number, 0.95)[0])


def test_right_models_can_be_trusted_in_nine_of_ten_data_sets():
    number = sets(24)
    trusted = sum(simulated(unscaled, normal, seed)[0] == "yes" for seed in range(number))
    assert trusted >= band(number, 0.9)[0]


# ------------------------------------------------------------------ chance and small numbers


@pytest.mark.parametrize(
    ("failures", "verdicts", "expected"), [(4, 20, False), (7, 20, True), (2, 5, False), (3, 5, False), (4, 5, True)]
)
def test_many_verdicts_allow_more_failures_by_chance(failures, verdicts, expected):
    """Of 20 verdicts at 5 %, six failures are plausible, and of five two, without an overall verdict."""
    assert _are_more_than_chance(Evidence(report_of()), failures, verdicts) == expected


def test_the_exponent_of_errors_and_its_standard_error_are_those_of_least_squares():
    rmv, rmse = [1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 2.2, 3.7, 8.4, 15.0]
    expected = stats.linregress(np.log(rmv), np.log(rmse))
    found = ErrorBins.from_bins([{"rmv": x, "rmse": y} for x, y in zip(rmv, rmse, strict=True)])
    assert (found.exponent, found.error) == pytest.approx((expected.slope, expected.stderr))
    assert found.spread == pytest.approx(np.std(np.log(rmv)))


def test_a_p_value_that_does_not_decide_is_no_clear_failure():
    """The verdict rests on |zeta| = 1.1; a p-value of 1e-4 beside it decides nothing."""
    basis = Message("verdict-basis", "the verdict is that of the interval")
    beside = fail("pit", 1.2, 1.0, "too-narrow", p=1e-4, zeta=1.1)
    assert found(beside)[0] == "no"
    assert found(replace(beside, warnings=(basis,)))[0] != "no"


def test_the_answer_is_no_where_the_overall_verdict_fails_and_nowhere_else():
    """So right models get it in at most 5 % of data sets, with 39 replicates too: the metrics are exchangeable."""
    answers = set()
    for seed in range(sets(12)):
        rng = np.random.default_rng([seed, 39])
        _, truth = gaussian(rng, 100)
        y = truth.loc + truth.scale * rng.normal(0, 1.15, 100)
        data = InMemory(Predictions(y=y, predictive=truth))
        report = conclude(
            evaluate(data, [METRICS[name]() for name in METRIC_NAMES], run=Run(resamples=0, replicates=39))
        )
        assert (report.conclusion.answer == "no") == (report.overall.verdict == "fail")
        answers.add(report.conclusion.answer)
    assert answers == {"yes", "no"}


@pytest.mark.parametrize("factor", [1, 5])
def test_one_draw_a_row_has_no_intervals_that_could_be_trusted(factor):
    """Its interval has no width and holds 0 % of the targets of any model; its crps is symmetric in draw and target."""
    rng = np.random.default_rng(0)
    rows = Predictions(y=rng.normal(size=200), predictive=Samples(factor * rng.normal(size=(200, 1))))
    metrics = [METRICS[name]() for name in ("coverage", "crps", "pit")]
    run = Run(resamples=0, replicates=99)
    report = conclude(evaluate(InMemory(rows), metrics, run=run))
    assert report.conclusion.answer == "unclear"
    assert [each.text for each in report.conclusion.findings if each.topic == "size"] == [
        "not tested: one draw per row has no spread; save several"
    ]
    x = np.linspace(0, 1, 200)[:, None]
    with_inputs = Predictions(y=rows.y, predictive=rows.predictive, x=x, has_embedding=False)
    compared = conclude(evaluate(InMemory(with_inputs), [*metrics, METRICS["jmmd"]()], run=run)).conclusion
    assert compared.answer == ("yes" if factor == 1 else "no")
    sizes = [each.text for each in compared.findings if each.topic == "size"]
    assert sizes == (["jmmd: as the predicted distributions promise"] if factor == 1 else [])
