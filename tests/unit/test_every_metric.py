"""Laws that every metric obeys, and what its entry in METRICS must say."""

import json
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.evaluation import evaluate
from calcheck.metrics import METRICS
from calcheck.options import options_of
from calcheck.predictions import InMemory, Predictions
from calcheck.predictive import Gaussian

UNITS = {"1": 0, "y": 1, "y^2": 2}
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def case(seed=0, n=300):
    """A calibrated model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    mean, std = np.sin(2 * x[:, 0]) + x[:, 1], np.exp(0.3 * x[:, 2])
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, std), x=x, embedded=False)


def changed(rows, *, scale=1.0, shift=0.0, spread=1.0):
    """Scale and shift targets and predictions together; change the predicted spread."""
    predictive = Gaussian(rows.predictive.loc * scale + shift, rows.predictive.scale * scale * spread)
    return Predictions(y=rows.y * scale + shift, predictive=predictive, x=rows.x, embedded=rows.embedded)


def value(metric, rows):
    (result,) = evaluate(InMemory(rows), [metric]).results
    return result.value


@every_metric
def test_permuting_rows_changes_nothing(metric):
    rows = case()
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    assert_allclose(value(metric(), shuffled), value(metric(), rows), rtol=1e-10)


@every_metric
@pytest.mark.parametrize("scale", [1e-6, 7.0, 1e6])
def test_the_declared_unit_is_true(metric, scale):
    rows = case()
    expected = value(metric(), rows) * scale ** UNITS[metric.unit]
    assert_allclose(value(metric(), changed(rows, scale=scale)), expected, rtol=1e-8)


@every_metric
def test_shifting_targets_and_predictions_together_changes_nothing(metric):
    rows = case()
    assert_allclose(value(metric(), changed(rows, shift=1000.0)), value(metric(), rows), rtol=1e-8)


@every_metric
def test_the_units_of_the_inputs_change_nothing(metric):
    rows = case()
    scaled = Predictions(y=rows.y, predictive=rows.predictive, x=rows.x * [1e-4, 1.0, 1e5], embedded=False)
    assert_allclose(value(metric(), scaled), value(metric(), rows), rtol=1e-8)
    for factor in (1e-4, 1e4):
        embedded = [Predictions(y=rows.y, predictive=rows.predictive, x=x) for x in (rows.x, rows.x * factor)]
        assert_allclose(value(metric(), embedded[1]), value(metric(), embedded[0]), rtol=1e-8)
        single = [Predictions(y=rows.y, predictive=rows.predictive, x=x[:, :1]) for x in (rows.x, rows.x * factor)]
        kernels = [{}, *({"kernel_x": kernel} for kernel in ("rbf", "laplace", "polynomial") if metric.engine)]
        for options in kernels:
            for pair in (embedded, single):
                first, second = (value(metric(**options), rows) for rows in pair)
                assert_allclose(second, first, rtol=1e-8)


@every_metric
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_a_calibrated_model_scores_better_than_one_with_another_spread(metric, spread):
    rows = case()
    assert value(metric(), rows) < value(metric(), changed(rows, spread=spread))


@every_metric
def test_name_class_and_file_agree(metric):
    assert metric.__name__ == "".join(part.capitalize() for part in metric.name.split("-"))
    assert metric.__module__ == f"calcheck.metrics.{metric.name.replace('-', '_')}"
    assert METRICS[metric.name] is metric


@every_metric
def test_everything_is_documented(metric):
    assert metric.summary().endswith(".")
    assert len(metric.summary()) < 100
    assert metric.source
    assert metric.unit in UNITS
    assert {"Needs", "Value", "Raises", "Notes", "References"} <= set(metric.__doc__.replace(" ", "").splitlines())
    for option in options_of(metric):
        assert option.help.endswith((".", ")")), option
        assert option.metavar, option
    assert [option.field for option in options_of(metric)] == [field.name for field in fields(metric)]


@every_metric
def test_options_in_the_report_rebuild_the_metric(metric):
    (result,) = evaluate(InMemory(case(n=50)), [metric()]).results
    assert metric.from_options(json.loads(json.dumps(result.options))) == metric()


@every_metric
def test_what_is_missing_is_skipped_with_the_reason(metric):
    rows = case(n=20)
    parts = {"y": "--target", "predictive": "--mean", "x": "--embedding"}
    for need in metric.needs:
        without = {name: getattr(rows, name) for name in parts if name != need}
        report = evaluate(InMemory(Predictions(**without)), [metric()])
        assert not report.results
        assert parts[need] in report.skipped[0].reason
