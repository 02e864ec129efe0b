"""Laws that every metric satisfies, and requirements on its entry in METRICS.

Laws (STYLE.md section 4.2), on every family that the metric supports:

1. permuting rows changes nothing;
2. weights are relative: w and 3 w give the same value;
3. batched weights agree with single ones; a weight of 2 equals a repeated row; weights of 1 change nothing;
4. the declared unit is correct ("unit");
5. shifting targets and predictions together changes nothing;
6. a calibrated model scores better than the same model with its spread halved or doubled ("spread");
7. name, class and file agree; summary, source and options are documented;
8. the options in the report rebuild the same metric.

A metric that a law does not apply to is in ``EXEMPT``, and then the law must fail.
"""

import functools
import json
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Quantiles, Samples
from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.count_families import DoublePoisson
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal, Weibull
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import statistic_of
from calcheck.metrics import METRICS
from calcheck.options import options_of
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import Result
from tests.helpers.families import FAMILIES, calibrated
from tests.helpers.shorthand import rows_of
from tests.helpers.simulations import pairs, slow

UNITS = {"1": 0, "y": 1, "y^2": 2}
OF_MOMENTS = {
    "zms",
    "rce",
    "lzms",
    "lrce",
    "ence",
    "uce",
    "rmse",
    "bias",
    "mean-miscalibration",
    "confidence-curve",
    "sharpness",
    "cv",
}
INAPPLICABLE = {
    *{("nll", "samples"), ("lzms", "samples"), ("lrce", "samples")},
    *{("nll", "quantiles"), ("lzms", "quantiles"), ("lrce", "quantiles")},  # neither density nor moments are available
    ("crps-miscalibration", "quantiles"),
    *{(metric, "cauchy") for metric in (*OF_MOMENTS, "fid")},  # no mean exists
}
EXEMPT = {
    "spread": {
        "mae": "depends on the median only",
        "rmse": "depends on the mean only",
        "bias": "depends on the mean only",
        "standardized-bias": "a wrong spread makes a mean of errors smaller or larger",
        "sharpness": "measures the width of predictions, not their calibration",
        "width": "measures the width of predictions, not their calibration",
        "cv": "measures the variation of uncertainties, not their calibration",
        "confidence-curve": "depends on the order of the uncertainties only",
        "mean-miscalibration": "depends on the mean only",
        "local-scale": "a factor that all rows share has no effect, so noise decides",
        "local-bias": "about 0 for any spread of symmetric distributions, so noise decides",
        "pit-bias": "about 0 for any spread of symmetric distributions, so noise decides",
        "pit-skew": "about 0 for any spread of symmetric distributions, so noise decides",
        "pit-independence": "correlations do not depend on the spread, so noise decides",
    },
    "unit": {"nll": "log of densities in 1/y: a change of the unit of y adds a constant"},
}  # Metrics for which a law is not meant to hold, with the reasons: then it must fail
NONE, FEW = Run(resamples=0, replicates=0), Run(resamples=100, replicates=0)
"""Values do not depend on the number of resamples, except those of lzms and lrce, whose bins do."""
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def every_pair(families):
    """Return the parameters of a law about metrics and families."""
    return pytest.mark.parametrize(
        ("metric", "family"),
        pairs(METRICS.values(), families, 6),
        ids=lambda each: each if isinstance(each, str) else each.info.name,
    )


def transform(rows, *, scale=1.0, shift=0.0, spread=1.0):
    """Scale and shift targets and predictions together; change the predicted spread."""
    predictive = rows.predictive
    match predictive:
        case LocationScale() | Mixture():
            made = replace(predictive, loc=predictive.loc * scale + shift, scale=predictive.scale * scale * spread)
        case Quantiles():
            center = predictive.median()[:, None]
            made = replace(predictive, values=(center + spread * (predictive.values - center)) * scale + shift)
        case Gamma() | Weibull():
            made = replace(predictive, scale=predictive.scale * scale)
        case LogNormal():
            made = replace(predictive, mu=predictive.mu + np.log(scale), sigma=predictive.sigma * spread)
        case Samples():
            center = predictive.draws.mean(axis=1, keepdims=True)
            made = Samples((center + spread * (predictive.draws - center)) * scale + shift)
        case DoublePoisson():
            made = DoublePoisson(predictive.mu, predictive.phi / spread**2)
    return Predictions(y=rows.y * scale + shift, predictive=made, x=rows.x, has_embedding=rows.has_embedding)


def result(metric, rows):
    """Evaluate one metric; skip the test exactly if the metric does not apply to the family."""
    report = evaluate(InMemory(rows), [metric], run=FEW if metric.info.interval == "own" else NONE)
    if (metric.info.name, rows.predictive.family) in INAPPLICABLE:
        assert report.skipped
        pytest.skip(report.skipped[0].reason)
    assert not report.skipped, report.skipped
    return report.results[0]


def value(metric, rows):
    return result(metric, rows).value


data = functools.cache(calibrated)


@functools.cache
def value_of_data(metric, family):
    return value(metric(), data(family))


@functools.cache
def statistic_of_data(metric, family):
    return statistic(metric(), data(family))


def weighted_value(statistic, weights):
    return statistic.of_means(statistic.weighted(np.asarray(weights, dtype=float)))


def statistic(metric, rows):
    """Return a metric as a function of means; skip the test if it is not one."""
    result(metric, rows)
    if metric.info.interval in ("own", "lower", "none"):
        pytest.skip("its value is not a function of weighted means")
    return statistic_of(metric, rows_of(metric, rows))


@every_pair(FAMILIES)
def test_permuting_rows_changes_nothing(metric, family):
    rows = data(family)
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    if metric.info.interval == "own":  # resamples depend on row positions: bins near the limit may change
        assert_allclose(value(metric(), shuffled), value_of_data(metric, family), atol=0.2)
    else:
        assert_allclose(value(metric(), shuffled), value_of_data(metric, family), rtol=1e-10)


@every_pair(FAMILIES)
def test_weights_are_relative_and_ones_change_nothing(metric, family):
    rows = data(family)
    found = statistic_of_data(metric, family)
    weights = np.random.default_rng(1).integers(1, 5, (1, len(rows)))
    assert_allclose(weighted_value(found, 3 * weights), weighted_value(found, weights), rtol=1e-11)
    assert_allclose(weighted_value(found, np.ones((1, len(rows)))), [found.estimate()], rtol=1e-11)


@every_pair(FAMILIES)
def test_batched_weights_agree_with_single_ones(metric, family):
    rows = data(family)
    found = statistic_of_data(metric, family)
    weights = np.random.default_rng(1).integers(0, 4, (5, len(rows)))
    assert_allclose(
        weighted_value(found, weights), [weighted_value(found, line[None])[0] for line in weights], rtol=1e-11
    )
    assert np.ptp(weighted_value(found, weights)) > 0


@every_pair(FAMILIES)
def test_a_weight_of_two_equals_a_repeated_row(metric, family):
    rows = data(family)
    found = statistic_of_data(metric, family)
    if metric.info.conditional_on:
        pytest.skip(f"{metric.info.conditional_on}: differs for repeated rows")
    if metric.info.name == "width-factor" and rows.predictive.is_discrete:
        pytest.skip("repeated rows of counts have random numbers of their own")
    weights = np.random.default_rng(1).integers(1, 3, len(rows))
    twice = rows.take(np.repeat(np.arange(len(rows)), weights))
    expected = statistic(metric(), twice)
    if metric.info.name == "cv":  # its n - 1 counts rows, not weights
        n = len(rows)
        expected = expected.estimate() / np.sqrt(weights.sum() / (weights.sum() - 1)) * np.sqrt(n / (n - 1))
    else:
        expected = expected.estimate()
    assert_allclose(weighted_value(found, weights[None]), [expected], rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, slow(7.0), slow(1e6)])
@every_pair(["gaussian", "samples", "student-t", "mixture", "quantiles", "gamma", "weibull", "lognormal"])
def test_the_declared_unit_is_correct(metric, scale, family):
    rows = data(family)
    expected = value_of_data(metric, family) * scale ** UNITS[metric.info.unit]
    found = value(metric(), transform(rows, scale=scale))
    if metric.info.name in EXEMPT["unit"]:
        assert abs(found - expected) > 1e-3
    else:
        assert_allclose(found, expected, rtol=1e-8)


@every_pair(["gaussian", "samples", "laplace", "cauchy", "mixture", "quantiles"])
def test_shifting_targets_and_predictions_together_changes_nothing(metric, family):
    rows = data(family)
    assert_allclose(value(metric(), transform(rows, shift=1000.0)), value_of_data(metric, family), rtol=1e-7)


@every_metric
def test_values_do_not_depend_on_the_units_of_inputs(metric):
    if "x" not in metric.info.needs:
        pytest.skip("it does not use inputs")
    rows = calibrated("gaussian")
    scaled = Predictions(y=rows.y, predictive=rows.predictive, x=rows.x * [1e-4, 1.0, 1e5], has_embedding=False)
    assert_allclose(value(metric(), scaled), value(metric(), rows), rtol=1e-8)
    for factor in (1e-4, 1e4):
        embedded = [Predictions(y=rows.y, predictive=rows.predictive, x=x) for x in (rows.x, rows.x * factor)]
        assert_allclose(value(metric(), embedded[1]), value(metric(), embedded[0]), rtol=1e-8)
        single = [Predictions(y=rows.y, predictive=rows.predictive, x=x[:, :1]) for x in (rows.x, rows.x * factor)]
        kernels = [
            {},
            *({"kernel_x": kernel} for kernel in ("rbf", "laplace", "polynomial") if metric.info.uses_kernels),
        ]
        for options in kernels:
            for pair in (embedded, single):
                first, second = (value(metric(**options), rows) for rows in pair)
                assert_allclose(second, first, rtol=1e-8)


def test_weights_equal_repeated_rows_for_a_fixed_scale_of_targets():
    rows = calibrated("gaussian")
    given = METRICS["ammd"](standardize="none")
    weights = np.random.default_rng(1).integers(1, 3, len(rows))
    twice = statistic(given, rows.take(np.repeat(np.arange(len(rows)), weights)))
    assert_allclose(weighted_value(statistic(given, rows), weights[None]), [twice.estimate()], rtol=1e-10)
    few = rows.take(slice(12))
    others = [statistic(given, few.take(np.delete(np.arange(12), row))).estimate() for row in range(12)]
    assert_allclose(statistic(given, few).leave_one_out(), others, rtol=1e-9)


@every_metric
def test_leave_one_out_values_are_those_of_the_other_rows(metric):
    if metric.info.interval != "bca":
        pytest.skip("its interval needs no acceleration")
    if metric.info.conditional_on:
        pytest.skip(f"{metric.info.conditional_on}: differs for the other rows")
    rows = calibrated("gaussian", n=12)
    others = [rows.take(np.delete(np.arange(12), row)) for row in range(12)]
    expected = [statistic(metric(), other).estimate() for other in others]
    assert_allclose(statistic(metric(), rows).leave_one_out(), expected, rtol=1e-9)


def misfit(metric, rows):
    """Return how far a value is from that of a perfect model; larger is worse."""
    found = result(metric, rows)
    if metric.info.alternative == "less":
        return -found.value
    known = {"zms": 1.0, "tail": 1.0, "bias": 0.0}.get(metric.info.name, found.reference)  # near it for draws
    return found.value if known is None else abs(found.value - known)


@every_pair(["gaussian", "samples", "double-poisson", "student-t", "laplace", "nig"])
def test_a_calibrated_model_scores_better_than_one_with_another_spread(metric, family):
    if metric.info.name in ("pit-bias", "pit-skew", "pit-independence", "local-scale", "local-bias"):
        pytest.skip(EXEMPT["spread"][metric.info.name])
    few = 4000 if family == "double-poisson" and metric.info.name == "jmmd" else 400  # small noise
    rows = data(family, n=few if metric.info.uses_kernels else 1000)
    right = misfit(metric(), rows)
    wrong = [misfit(metric(), transform(rows, spread=spread)) for spread in (0.5, 2.0)]
    if metric.info.name in EXEMPT["spread"]:
        assert right >= min(wrong) * (1 - 0.05)
    else:
        assert right < min(wrong)


@every_metric
def test_name_class_and_file_agree(metric):
    assert metric.__name__ == "".join(part.capitalize() for part in metric.info.name.split("-"))
    assert metric.__module__ == f"calcheck.metrics.{METRICS.modules[metric.info.name]}"
    assert METRICS[metric.info.name] is metric


@every_metric
def test_everything_is_documented(metric):
    assert metric.summary().endswith(".")
    assert len(metric.summary()) < 100
    assert metric.info.source
    assert metric.info.unit in UNITS
    assert {"Value", "Notes", "References"} <= set(metric.__doc__.replace(" ", "").splitlines())
    for option in options_of(metric):
        assert option.help.endswith((".", ")")), option
        assert option.placeholder or option.hint is bool, option
    assert [option.field for option in options_of(metric)] == [field.name for field in fields(metric)]


@every_metric
def test_options_in_the_report_rebuild_the_metric(metric):
    rows = calibrated("gaussian", n=50)
    found = result(metric(), rows)
    assert metric.from_options(json.loads(json.dumps(found.options))) == metric().with_defaults(rows)


@every_metric
def test_metrics_without_their_columns_are_skipped_with_the_reason(metric):
    rows = calibrated("gaussian", n=20)
    parts = {"y": "--target", "predictive": "--mean", "x": "--embedding"}
    for need in metric.info.needs:
        without = {name: getattr(rows, name) for name in parts if name != need}
        report = evaluate(InMemory(Predictions(**without)), [metric()])
        assert not report.results
        assert parts[need] in report.skipped[0].reason


@pytest.mark.parametrize("name", METRICS)
def test_metrics_without_an_alternative_have_no_orientation(name):
    metric = METRICS[name]
    assert (metric.info.orientation == "none") == (metric.info.alternative == "none")


@every_metric
def test_results_have_only_the_fields_that_the_metric_lists(metric):
    """Each field occurs for one of two families, except those that depend on other metrics, on data, or on --plot."""
    rows = [calibrated(family) for family in ("gaussian", "samples") if (metric.info.name, family) not in INAPPLICABLE]
    run = Run(resamples=100, replicates=19)
    found = [evaluate(InMemory(each), [metric()], run=run).results[0] for each in rows]
    there = {each.name for each in fields(Result) if any(getattr(one, each.name) is not None for one in found)}
    named = set(metric.info.result_fields())
    assert there - {"curves"} <= named
    assert named - there <= {"reference_low", "reference_high", "zeta_mc_error", "direction", "p_value_adjusted"}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_say_how_a_failing_model_is_wrong(name):
    info = METRICS[name].info
    sides = {"greater": (True, False), "less": (False, True), "two-sided": (True, True), "none": (False, False)}
    assert (info.above is not None, info.below is not None) == sides[info.alternative]
