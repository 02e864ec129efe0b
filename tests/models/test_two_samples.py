"""Two samples as one source: evaluation inputs, reports and warnings."""

import json
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.metrics.mcmd import Mcmd
from calcheck.models.two_samples import two_samples
from calcheck.options import options_of
from calcheck.predictions import InMemory, Predictions
from tests.helpers.shorthand import texts

PLAIN, QUICK = Run(replicates=0), Run(replicates=19)
every_metric = pytest.mark.parametrize("metric", TWO_SAMPLE_METRICS.values(), ids=TWO_SAMPLE_METRICS)


def sample(seed, n=40, d=1, *, shift=0.0, scale=1.0, stretch=1.0, moved=0.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (n, d))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=n) + shift
    return InMemory(Predictions(x=stretch * (x + moved), y=scale * y, has_embedding=False))


def result(first, second, run=PLAIN, **options):
    where = {name: options.pop(name) for name in ("grid", "at", "sink") if name in options}
    (found,) = two_samples(first, second, Mcmd(**options), run=run, **where).results
    return found


def evaluated(first, second, **options):
    """Return the evaluation inputs and the results at them."""
    shown = []
    result(first, second, sink=lambda _, rows, found: shown.append((rows, found)), **options)
    return shown[0]


def test_single_inputs_are_compared_on_a_grid_over_the_range_of_both():
    first, second = sample(0), sample(1, moved=2.0)
    both = np.concatenate([first.rows.x, second.rows.x])
    for size, options in ((200, {}), (5, {"grid": 5}), (1, {"grid": 1})):
        rows, found = evaluated(first, second, **options)
        assert_allclose(rows.x[:, 0], np.linspace(both.min(), both.max(), size))
        assert_array_equal(rows.columns["x"], rows.x[:, 0])
        assert found.columns["mcmd"].shape == (size,)
    assert two_samples(first, second, Mcmd(), run=PLAIN).settings["grid"] == 200


def test_several_inputs_are_compared_at_those_of_the_first_sample():
    first, second = sample(0, d=3), sample(1, d=3)
    rows, _ = evaluated(first, second)
    assert_array_equal(rows.x, first.rows.x)
    assert two_samples(first, second, Mcmd(), run=PLAIN).settings["grid"] is None
    elsewhere, _ = evaluated(first, second, at=second)
    assert_array_equal(elsewhere.x, second.rows.x)


def test_the_value_is_the_mean_over_these_inputs():
    _, rows = evaluated(sample(0), sample(1))
    assert result(sample(0), sample(1)).value == pytest.approx(rows.columns["mcmd"].mean(), rel=1e-12)


def test_contradictory_evaluation_inputs_are_refused():
    single, several = sample(0), sample(0, d=2)
    with pytest.raises(OptionError, match="--grid and --at contradict"):
        result(single, single, grid=5, at=single)
    with pytest.raises(OptionError, match="--grid needs one-dimensional inputs, and these have 2"):
        result(several, several, grid=5)
    with pytest.raises(OptionError, match="--grid must be between 1"):
        result(single, single, grid=0)


def test_samples_of_different_columns_are_refused():
    with pytest.raises(DataError, match="the inputs of the two samples have 1 and 2 columns"):
        result(sample(0), sample(0, d=2))
    rows = sample(0).rows
    both = InMemory(Predictions(x=rows.x, y=np.stack([rows.y, rows.y], axis=1), has_embedding=False))
    with pytest.raises(DataError, match="the targets of the two samples have 2 and 1 columns"):
        result(both, sample(0))


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (Predictions(x=np.ones((4, 1)), has_embedding=False), "needs targets"),
        (Predictions(y=np.ones(4)), "needs inputs to condition on"),
        (Predictions(x=np.ones((4, 1)), y=np.ones(4), has_embedding=False), "the targets are constant"),
        (Predictions(x=np.ones((1, 1)), y=np.ones(1), has_embedding=False), "at least 2 rows, but one has 1"),
    ],
)
def test_missing_columns_are_reported(first, message):
    report = two_samples(InMemory(first), sample(1), Mcmd(), run=PLAIN)
    assert message in report.skipped[0].reason


def test_rows_without_a_sample_are_refused():
    report = evaluate(sample(0), [Mcmd()], run=PLAIN)
    assert "column 'sample' is missing" in report.skipped[0].reason


def test_a_zero_input_is_reported_by_its_row_in_its_own_sample():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10, 3))
    x[7] = 0
    bad = InMemory(Predictions(x=x, y=rng.normal(size=10), row=np.arange(100, 110)))
    good = InMemory(Predictions(x=rng.normal(size=(12, 3)), y=rng.normal(size=12)))
    for first, second in ((bad, good), (good, bad)):
        report = two_samples(first, second, Mcmd(), run=PLAIN)
        assert "1 of 10 rows is not (row 107, counted from 0)" in report.skipped[0].reason


def test_the_value_does_not_depend_on_row_order_and_units_of_targets():
    first, second = sample(0), sample(1, n=50, shift=0.3)
    expected = result(first, second).value
    shuffled = InMemory(second.rows.take(np.random.default_rng(0).permutation(50)))
    assert result(first, shuffled).value == pytest.approx(expected, rel=1e-10)
    for scale in (1e-6, 1e6):
        scaled = sample(0, scale=scale), sample(1, n=50, shift=0.3, scale=scale)
        assert result(*scaled).value == pytest.approx(expected, rel=1e-8)


def test_the_value_does_not_depend_on_units_of_inputs_for_scaled_kernels():
    for d, options in ((1, {"gamma_x": "variance"}), (1, {"gamma_x": "median"}), (3, {}), (2, {"kernel_x": "rbf"})):
        found = [
            result(sample(0, d=d, stretch=stretch), sample(1, d=d, stretch=stretch), **options).value
            for stretch in (1.0, 1e4)
        ]
        assert found[1] == pytest.approx(found[0], rel=1e-8)


def test_a_kernel_that_is_too_narrow_for_the_inputs_gives_a_warning():
    wide = [sample(seed, stretch=1000.0) for seed in (0, 1)]
    found = result(*wide)
    assert found.details["neighbors"] < 1
    assert any("--gamma-x variance" in warning for warning in texts(found.warnings))
    assert not any("--gamma-x variance" in warning for warning in texts(result(*wide, gamma_x="variance").warnings))
    assert "neighbors" not in result(sample(0, d=2), sample(1, d=2)).details


def test_effective_neighbors_by_hand():
    """Rows of the first sample have neighbors with weights 1 and exp(-1): (1 + e^-1 + 1 + e^-1 + 2 e^-1) / 3."""
    rows = [
        Predictions(x=np.array([[0.0], [0], [1]]), y=np.array([0.0, 1, 2]), has_embedding=False),
        Predictions(x=np.zeros((5, 1)), y=np.arange(5.0), has_embedding=False),
    ]
    found = result(*map(InMemory, rows))
    assert_allclose(found.details["neighbors"], (2 + 4 * np.exp(-1)) / 3)


def test_the_report_describes_each_sample():
    details = result(sample(0, n=30), sample(1, n=50), lambda_=0.2).details
    assert details["samples"] == {"rows": 30, "rows_b": 50, "lambda": 0.2, "lambda_b": 0.2}
    assert details["inputs"]["gamma"] == 1.0
    assert details["dof"] != details["dof_b"]
    assert result(sample(0), sample(1), lambda_b=0.3).details["samples"]["lambda_b"] == 0.3


def test_equal_samples_have_distance_0():
    found = result(sample(0), sample(0), QUICK)
    assert (found.value, found.p_value, found.verdict) == (0, 1, "pass")
    assert not any("rounding" in warning for warning in texts(found.warnings))


def test_permutations_are_exact_for_samples_at_the_same_inputs_in_any_order():
    first, other = sample(0), sample(1, shift=0.5)
    order = np.random.default_rng(0).permutation(40)
    second = InMemory(Predictions(x=first.rows.x[order], y=other.rows.y[order], has_embedding=False))
    found = result(first, second, QUICK)
    assert found.details["null"]["labels"] == "permuted by equal inputs"
    assert not any("exact" in warning for warning in texts(found.warnings))


@pytest.mark.parametrize(("d", "message"), [(1, "are exact if the inputs have the same"), (3, "is approximate")])
def test_warnings_say_why_p_values_are_not_exact(d, message):
    warnings = texts(result(sample(0, d=d), sample(1, d=d), QUICK).warnings)
    assert any(message in warning for warning in warnings)


def test_samples_that_do_not_overlap_have_no_verdict():
    found = result(sample(0, n=42), sample(1, n=42, moved=10.0), QUICK)
    assert (found.verdict, found.p_value, found.reference) == ("none", None, None)
    assert any("do not overlap" in warning for warning in texts(found.warnings))
    assert found.details["null"]["exchangeable"] == 0


def test_samples_that_hardly_overlap_give_a_warning():
    found = result(sample(0), sample(1, moved=5.5), QUICK)
    assert any("have neighbors in both files" in warning for warning in texts(found.warnings))


def test_permutations_with_constant_targets_count_as_more_extreme():
    """After a permutation, the targets of the first sample may be constant, and the kernel undefined."""
    x = np.arange(4.0)[:, None]
    first = InMemory(Predictions(x=x, y=np.array([0.0, 0, 0, 1]), has_embedding=False))
    second = InMemory(Predictions(x=x, y=np.array([1.0, 1, 1, 0]), has_embedding=False))
    found = result(first, second, Run(replicates=99))
    assert 0 < found.details["null"]["undefined"] < 30
    assert found.p_value > 0.1


@every_metric
def test_name_class_and_file_agree(metric):
    assert metric.__module__ == f"calcheck.metrics.{metric.info.name}"
    assert metric.__name__ == metric.info.name.capitalize()
    assert metric.info.name not in METRICS


@every_metric
def test_everything_is_documented(metric):
    assert metric.summary().endswith(".")
    assert len(metric.summary()) < 105
    assert {"Value", "Notes", "References"} <= set(metric.__doc__.replace(" ", "").splitlines())
    for option in options_of(metric):
        assert option.help.endswith((".", ")")), option
        assert option.placeholder or option.hint is bool, option
    assert [option.field for option in options_of(metric)] == [field.name for field in fields(metric)]


def test_options_in_the_report_rebuild_the_metric():
    found = result(sample(0), sample(1), lambda_b=0.3)
    assert Mcmd.from_options(json.loads(json.dumps(found.options))) == Mcmd(lambda_b=0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lambda_": 0}, "--lambda must be a positive number, got 0"),
        ({"lambda_b": -1}, "--lambda-b must be a positive number, got -1"),
        ({"gamma_x": 0.0}, "--gamma-x must be a positive number, got 0.0"),
        ({"gamma_y": -2}, "--gamma-y must be a positive number, got -2"),
        ({"degree": 0}, "--degree must be at least 1, got 0"),
        ({"coef0": -1}, "--coef0 must be a number >= 0, got -1"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Mcmd(**options)
