"""Sweeps: parsing of settings, values, shared fits, subsets and rankings."""

import itertools
import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kendalltau

from calcheck.distributions import Gaussian
from calcheck.embeddings.ridge import KernelRidge
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import Limits, Run
from calcheck.kernels.kernel_functions import KERNELS
from calcheck.metrics import METRICS
from calcheck.metrics.cce import Cce
from calcheck.models.alignment import Model
from calcheck.models.comparison import kendall, ranks, score
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.groups import Means
from calcheck.studies.sweep.study import SweepCell, parse, points, sweep
from tests.helpers.shorthand import gaussian_case, rows_of, texts


def rows_of_model(n=40, *, spread=1.0, seed=0):
    """Return rows shared by several models with different spreads."""
    x, y, predictive = gaussian_case(np.random.default_rng(seed), n, 3)
    return Predictions(y=y, predictive=Gaussian(predictive.loc, spread * predictive.scale), x=x, id=np.arange(n))


def model(name="m", **about):
    return Model(name, InMemory(rows_of_model(**about)))


def value(rows, metric, run=None):
    """Compute a metric on its own."""
    found = rows_of(metric, rows, run=run)
    return float(metric.value(Means({name: column.mean() for name, column in found.columns.items()}, len(rows))))


def swept(*texts, models=None, metric=None, **options):
    metric = metric or Cce()
    return sweep(models or [model()], metric, [parse(text, type(metric)) for text in texts], **options)


@pytest.mark.parametrize(
    ("text", "name", "values", "description"),
    [
        ("draws=1,2, 5", "draws", (1, 2, 5), ("1", "2", "5")),
        ("draws=exact,1", "draws", ("exact", 1), ("exact", "1")),
        ("lambda=0.001..1:4", "lambda", (0.001, 0.01, 0.1, 1.0), ("0.001", "0.01", "0.1", "1")),
        ("lambda=0.5,0.001..0.1:3", "lambda", (0.5, 0.001, 0.01, 0.1), ("0.5", "0.001", "0.01", "0.1")),
        ("gamma_x=median,0.5", "gamma-x", ("median", 0.5), ("median", "0.5")),
        ("--kernel-x=rbf,laplace", "kernel-x", ("rbf", "laplace"), ("rbf", "laplace")),
        ("draws=1..100:3", "draws", (1, 10, 100), ("1", "10", "100")),
        ("draws=1..3:9", "draws", (1, 2, 3), ("1", "2", "3")),
        ("subsample=25%,50 %,7", "subsample", (0.25, 0.5, 7), ("25 %", "50 %", "7")),
        ("subsample=25%..100%:3", "subsample", (0.25, 0.5, 1.0), ("25 %", "50 %", "100 %")),
        ("subsample=10..1000:3", "subsample", (10, 100, 1000), ("10", "100", "1000")),
        ("lambda=1,1,1.0", "lambda", (1.0,), ("1",)),
        ("gamma_x+gamma-y=0.1,5", "gamma-x+gamma-y", (0.1, 5.0), ("0.1", "5")),
    ],
)
def test_settings_are_parsed(text, name, values, description):
    found = parse(text, Cce)
    assert (found.name, found.description) == (name, description)
    assert [type(each) for each in found.values] == [type(each) for each in values]
    assert found.values == values


def test_tied_settings_have_equal_values():
    rows = rows_of_model()
    report = swept("gamma-x+gamma-y=0.5,2", models=[Model("m", InMemory(rows))])
    for gamma, result in zip((0.5, 2.0), report.results[1:], strict=True):
        assert result.slice == {"gamma-x+gamma-y": f"{gamma:g}"}
        assert_allclose(result.value, value(rows, Cce(gamma_x=gamma, gamma_y=gamma)), rtol=1e-10)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["gamma-x+gamma-y=median"], "--vary gamma-x+gamma-y takes a number, got 'median'"),
        (["gamma-x+subsample=2"], "--vary takes NAME=VALUES"),
        (["gamma-x+gamma-y=1", "gamma-y=2"], "--vary gamma-y is given twice"),
    ],
)
def test_settings_that_cannot_be_tied_are_refused(texts, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        swept(*texts)


def test_a_sweep_reports_the_deviation_over_trials():
    report = swept("draws=1,2", metric=Cce(draws=1, trials=3))
    rows = rows_of_model()
    for draws, result in zip((1, 2), report.results[1:], strict=True):
        expected = rows_of(Cce(draws=draws, trials=3), rows).details["trials"]["std"]
        assert_allclose(result.details["deviation"], expected, rtol=1e-10)
        assert_allclose(expected, np.std(rows_of(Cce(draws=draws, trials=3), rows).details["trials"]["values"], ddof=1))
        assert "subsets" not in result.details


def test_a_range_has_seven_values_at_equal_ratios():
    values = np.array(parse("lambda=0.001..1", Cce).values)
    assert len(values) == 7
    assert_allclose(values[1:] / values[:-1], 10**0.5, rtol=1e-3)  # to the four digits that are shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambda", "NAME=VALUES"),
        ("lambda=", "NAME=VALUES"),
        ("bins=5", "Names for cce: kernel-x"),
        ("=1", "NAME=VALUES"),
        ("lambda=a", "--vary lambda takes a number, got 'a'"),
        ("lambda=1,,2", "--vary lambda takes a number, got ''"),
        ("lambda=0..1", "ranges of positive numbers"),
        ("lambda=1..0.1", "ranges of positive numbers"),
        ("lambda=0.1..1:1", "ranges of positive numbers"),
        ("lambda=0.1..1:99999", "ranges of positive numbers"),
        ("lambda=a..b", "ranges of positive numbers"),
        ("lambda=1..inf", "ranges of positive numbers"),
        ("draws=1.5", "--vary draws takes a whole number"),
        ("lambda=5%", "--vary lambda takes a number, got '5%'"),
        ("subsample=0", "percentages of the rows"),
        ("subsample=101%", "percentages of the rows"),
        ("subsample=1.5", "percentages of the rows"),
        ("subsample=nan%", "percentages of the rows"),
    ],
)
def test_invalid_settings_are_refused(text, message):
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        parse(text, Cce)


def test_settings_are_varied_one_by_one_or_all_together():
    varied = [parse("lambda=0.1,1", Cce), parse("draws=1,2,3", Cce)]
    alone = points(Cce(degree=2), varied, all_combinations=False)
    assert [place.description for place in alone[:3]] == [{}, {"lambda": "0.1"}, {"lambda": "1"}]
    assert len(alone) == 1 + 2 + 3
    assert alone[5].metric == Cce(degree=2, draws=3)
    grid = points(Cce(), varied, all_combinations=True)
    assert len(grid) == 1 + 2 * 3
    assert grid[-1].description == {"lambda": "1", "draws": "3"}
    assert grid[-1].metric == Cce(lambda_=1.0, draws=3)
    with pytest.raises(OptionError, match="given twice"):
        points(Cce(), [varied[0], varied[0]], all_combinations=False)
    with pytest.raises(OptionError, match="gives 9,000 points"):
        points(Cce(), [parse("lambda=0.1..1:90", Cce), parse("gamma-y=0.1..1:100", Cce)], all_combinations=True)
    with pytest.raises(OptionError, match="--lambda must be"):
        points(Cce(), [parse("lambda=-1", Cce)], all_combinations=False)


@pytest.mark.parametrize("memory", [1 << 30, 1 << 14, 1000])
def test_values_agree_with_single_computations(memory):
    """With cached factors or products with K: equal up to rounding, in any order of settings."""
    run = Run(memory=memory)
    rows = rows_of_model()
    texts = ("lambda=0.001..1", "gamma-y=0.1,1,10", "draws=1,2", "degree=1,2", "lambda-model=0.5")
    report = swept(*texts, run=run)
    places = points(Cce(), [parse(text, Cce) for text in texts], all_combinations=False)
    assert len(report.results) == len(places) == 1 + 7 + 3 + 2 + 2 + 1
    for result, place in zip(report.results, places, strict=True):
        assert result.slice == place.description
        assert result.options == place.metric.options()
        assert_allclose(result.value, value(rows, place.metric), rtol=1e-9)


def test_a_grid_is_every_combination():
    report = swept("lambda=0.1,0.2,0.3", "gamma-y=0.5,1", all_combinations=True)
    rows = rows_of_model()
    assert len(report.results) == 7
    for result in report.results[1:]:
        metric = Cce(lambda_=float(result.slice["lambda"]), gamma_y=float(result.slice["gamma-y"]))
        assert_allclose(result.value, value(rows, metric), rtol=1e-10)


def test_inputs_are_fitted_once_for_all_settings_and_models_that_share_them(monkeypatch):
    made, fit = [], KernelRidge.__init__

    def counted(self, *args, **options):
        made.append(1)
        fit(self, *args, **options)

    monkeypatch.setattr(KernelRidge, "__init__", counted)
    models = [model("a"), model("b", spread=2.0)]
    swept("lambda=0.001..1", "gamma-y=0.1..1", models=models)
    assert len(made) == 1
    made.clear()
    swept("degree=1,2", models=models)
    assert len(made) == 3
    made.clear()
    other = Model("c", InMemory(Predictions(y=rows_of_model().y, predictive=rows_of_model().predictive, x=np.eye(40))))
    swept("lambda=0.1,0.2", models=[models[0], other])
    assert len(made) == 2


def test_models_with_other_inputs_keep_their_own_values():
    rows = rows_of_model()
    other = Predictions(y=rows.y, predictive=rows.predictive, x=rows.x**3, id=rows.id)
    report = swept("lambda=0.2", models=[Model("a", InMemory(rows)), Model("b", InMemory(other))])
    for result, own in zip(report.results[2:], (rows, other), strict=True):
        assert_allclose(result.value, value(own, Cce(lambda_=0.2)), rtol=1e-10)


def test_the_deviation_over_subsets_has_the_divisor_of_a_sample():
    cell = SweepCell(values=[1.0, 2.0, 6.0])
    assert (cell.value, cell.deviation) == (3, pytest.approx(7**0.5))  # (4 + 1 + 9) / 2
    assert SweepCell(values=[1.0], trial_deviation=0.5).deviation == 0.5


def test_random_subsets_have_a_mean_and_a_deviation():
    report = swept("subsample=25%,20,100%", subsets=4)
    whole, quarter, half, all_ = report.results
    assert quarter.details["subsets"] == half.details["subsets"] == 4
    assert quarter.details["deviation"] > 0
    assert "subsets" not in all_.details
    assert all_.value == whole.value
    assert quarter.value > half.value > whole.value  # fewer rows, more noise
    assert swept("subsample=25%", subsets=1).results[1].details == {}
    assert swept("subsample=25%", subsets=4).results[1].value == quarter.value
    assert swept("subsample=25%", subsets=4, run=Run(seed=1)).results[1].value != quarter.value
    with pytest.raises(OptionError, match="subsample=41 gives 41 rows: expected between 1 and 40"):
        swept("subsample=41")


def test_all_models_have_the_same_subsets_of_rows():
    """Two copies of a model, one with another order of rows."""
    rows = rows_of_model()
    turned = rows.take(np.random.default_rng(0).permutation(40))
    report = swept("subsample=50%", models=[Model("a", InMemory(rows)), Model("b", InMemory(turned))])
    assert_allclose(report.results[2].value, report.results[3].value, rtol=1e-12)


def test_any_metric_is_swept_with_its_options():
    rows = rows_of_model()
    report = swept("bins=2,5", "bin-weights=uniform,count", metric=METRICS["uce"]())
    for result in report.results[1:3]:
        bins = int(result.slice["bins"])
        alone = METRICS["uce"](bins=bins)
        fit = alone.fit(InMemory(rows), Run())
        from calcheck.inference.bootstrap import statistic_of

        found = alone.evaluate(fit, InMemory(rows), Run())
        assert_allclose(result.value, statistic_of(alone, found).estimate(), rtol=1e-12)


def test_a_point_without_a_value_reports_the_reason():
    report = swept("bins=5,50", metric=METRICS["ence"]())
    assert [each.value is None for each in report.results] == [False, False, True]
    assert any("50 bins need at least 50 rows" in note for note in texts(report.results[2].warnings))
    with pytest.raises(DataError, match="cce needs predictive distributions"):
        swept(
            "lambda=1", models=[Model("m", InMemory(Predictions(y=np.arange(3.0), predictive=None, id=np.arange(3))))]
        )


def test_warnings_name_their_setting():
    """With a strong regularizer the kernel distinguishes nothing: dof is near 0."""
    base, strong = swept("lambda=100").results
    assert texts(base.warnings) == ()
    assert [note[:22] for note in texts(strong.warnings)] == ["at lambda 100: dof 0.0"]


def test_the_ranking_is_compared_with_that_of_the_base_setting():
    models = [model(name, spread=spread) for name, spread in (("a", 1.0), ("b", 2.0), ("c", 4.0))]
    report = swept("gamma-y=1e-4,1", models=models)
    first = [each.details["rank"] for each in report.results[:3]]
    assert sorted(first) == [1, 2, 3]
    for start in range(0, 9, 3):
        group = report.results[start : start + 3]
        expected = kendalltau([each.value for each in report.results[:3]], [each.value for each in group]).statistic
        assert_allclose([each.details["tau"] for each in group], [expected] * 3)
        assert [each.details["rank"] for each in group] == ranks([each.value for each in group])
    changed = [each.slice["gamma-y"] for each in report.results[3::3] if each.details["tau"] < 1]
    noted = [note for note in texts(report.results[0].warnings) if "ranking" in note]
    assert noted == ([f"the ranking of the models changes at gamma-y {'; '.join(changed)}"] if changed else [])


def test_settings_that_change_the_ranking_are_listed():
    """The ranking by interval scores depends on the level."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=400), 8 * rng.normal(size=100)])
    models = [
        Model(
            name, InMemory(Predictions(y=y, predictive=Gaussian(np.zeros(500), np.full(500, std)), id=np.arange(500)))
        )
        for name, std in (("narrow", 1.05), ("wide", 3.6))
    ]
    report = swept("level=0.3,0.5,0.99", models=models, metric=METRICS["interval-score"]())
    best = [
        next(each.slice["model"] for each in report.results[start : start + 2] if each.details["rank"] == 1)
        for start in range(0, 8, 2)
    ]
    assert best == ["wide", "narrow", "narrow", "wide"]
    assert texts(report.results[0].warnings)[0] == "the ranking of the models changes at level 0.3; 0.5"
    assert [report.results[start].details["tau"] for start in range(0, 8, 2)] == [1.0, -1.0, -1.0, 1.0]


def test_kendalls_tau_agrees_with_scipy():
    rng = np.random.default_rng(0)
    for _ in range(200):
        first, second = rng.integers(0, 4, (2, 6)).astype(float)
        expected = kendalltau(first, second).statistic
        found = kendall(first.tolist(), second.tolist())
        assert (found is None) == math.isnan(expected)
        if found is not None:
            assert_allclose(found, expected, atol=1e-12)
    assert kendall([1.0, None, 2.0], [1.0, 5.0, 2.0]) == 1.0
    assert all(kendall(list(order), list(order)) == 1.0 for order in itertools.permutations(range(3)))


def test_better_values_have_smaller_scores():
    assert score("reference", 0.9, 1.0) == score("reference", 1.1, 1.0) == 0.1
    assert score("larger", 0.9, 0.95) == -0.9
    assert score("zero", -2.0, None) == 2.0
    assert score("none", 1.0, None) is None
    assert score("smaller", None, None) is None


def kernel_ridge(n=30, **options):
    rng = np.random.default_rng(0)
    run = Run(**options)
    return KernelRidge(KERNELS["rbf"](gamma=0.5), rng.normal(size=(n, 2)), run), rng.normal(size=(n, 3))


def test_factors_are_cached_up_to_the_memory_limit():
    n = 30
    for matrices, kept in ((1.5, 1), (2.5, 2), (3.5, 3)):
        ridge, outputs = kernel_ridge(memory=int(matrices * n**2 * 8))
        ridge.plan(lambdas=4, solves=8)
        for penalty in (0.1, 0.2, 0.3, 0.4):
            ridge.solve(outputs, penalty)
        assert len(ridge._factors) == kept
    ridge, outputs = kernel_ridge()
    for penalty in (0.1, 0.2):
        ridge.solve(outputs, penalty)
    assert list(ridge._factors) == [n * 0.2]  # one matrix at a time without a plan


def test_many_regressions_with_one_lambda_use_a_factor_unless_a_solver_is_set():
    limits = Limits(cholesky_rows=10)
    for solves, solver in ((3, "cholesky"), (2, "cg")):
        ridge, outputs = kernel_ridge(limits=limits)
        assert ridge.solver == "cg"
        ridge.plan(lambdas=1, solves=solves)
        assert ridge.solver == solver
        assert_allclose(
            ridge.solve(outputs, 0.1).coefficients,
            kernel_ridge(limits=limits)[0].solve(outputs, 0.1).coefficients,
            atol=1e-9,
        )
    chosen = KernelRidge(KERNELS["rbf"](gamma=0.5), np.random.default_rng(0).normal(size=(30, 2)), Run(), solver="cg")
    chosen.plan(lambdas=1, solves=99)
    assert chosen.solver == "cg"
