"""What local errors are computed along, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.embeddings.local_error import MOST_ROWS
from calcheck.evaluation import evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics.local_error import LocalBias, LocalScale
from calcheck.predictions import InMemory, Predictions

FEW = Run(replicates=39)


def rows_of(n=400, *, seed=0, factor=1.0, columns=None):
    rng = np.random.default_rng(seed)
    scale = np.exp(0.4 * rng.normal(size=n))
    y = factor * scale * rng.normal(size=n)
    return Predictions(y=y, predictive=Gaussian(np.zeros(n), scale), columns=columns or {})


def result_of(rows, metric, run=FEW):
    report = evaluate(InMemory(rows), [metric], run=run)
    assert not report.skipped, report.skipped
    return report.results[0]


def reason_of(rows, along, run=FEW):
    return evaluate(InMemory(rows), [LocalScale(along=along)], run=run).skipped[0].reason


@pytest.mark.parametrize("kind", ["texts", "booleans", "numbers", "dates"])
def test_a_column_of_any_kind_shows_the_error_that_follows_it(kind):
    group = np.random.default_rng(1).integers(0, 2, 600)
    values = {
        "texts": np.array(["north", "south"])[group],
        "booleans": group == 1,
        "numbers": 10.0**group,
        "dates": np.array(["2026-01-01", "2026-07-01"], "datetime64[D]")[group],
    }[kind]
    rows = rows_of(600, factor=np.where(group == 1, 1.5, 1.0), columns={"group": values})
    found = result_of(rows, LocalScale(along="group"))
    assert_allclose(found.value, np.log(1.5) / 2, atol=0.08)
    assert found.verdict == "fail"
    assert found.direction == "conditional-scale"
    assert result_of(rows, LocalBias(along="group")).value < 0.15


def test_columns_are_compared_by_ranks():
    values = np.random.default_rng(2).normal(size=400)
    first = result_of(rows_of(columns={"a": values}), LocalScale(along="a"))
    second = result_of(rows_of(columns={"a": np.exp(5 * values)}), LocalScale(along="a"))
    assert_allclose(second.value, first.value, rtol=1e-10)


def test_what_cannot_vary_is_skipped_with_the_reason():
    rows = rows_of(columns={"one": np.ones(400), "name": np.arange(400).astype(str), "same": np.repeat("a", 400)})
    same = Predictions(y=rows.y, predictive=Gaussian(np.zeros(400), np.ones(400)))
    assert "all predicted standard deviations are equal" in reason_of(same, "std")
    assert "all values of 'one' are equal" in reason_of(rows, "one")
    assert "2 to 300 different categories (--along), got 400" in reason_of(rows, "name")
    assert "got 1" in reason_of(rows, "same")
    assert "--time" in reason_of(rows, "time")
    assert "--inputs" in reason_of(rows, "inputs")
    assert "there is no column 'other' for local errors (--along)" in reason_of(rows, "other")


def test_times_are_those_of_the_series():
    time = np.random.default_rng(3).permutation(400)
    rows = rows_of(factor=np.where(time < 200, 1.6, 1.0), columns={"t": time})
    found = result_of(rows, LocalScale(along="time"), Run(replicates=39, dependence=RowDependence(time="t")))
    assert 0.07 < found.low < found.value < 0.35
    assert found.verdict == "fail"


def test_a_right_ensemble_of_few_draws_has_no_error_along_its_spread():
    """The target is more often outside of draws that are close to each other by chance."""
    rng = np.random.default_rng(4)
    rows = Predictions(y=rng.normal(size=2000), predictive=Samples(rng.normal(size=(2000, 5))))
    found = result_of(rows, LocalScale(along="std"))
    assert abs(found.value) < 0.1
    assert found.verdict == "pass"


def test_quantiles_without_tails_have_a_verdict():
    rng, levels = np.random.default_rng(5), np.array([0.1, 0.5, 0.9])
    scale = np.exp(0.4 * rng.normal(size=500))
    values = scale[:, None] * np.array([-1.2816, 0, 1.2816])
    rows = Predictions(y=scale**0.2 * rng.normal(size=500), predictive=Quantiles(levels=levels, values=values))
    found = result_of(rows, LocalScale(along="std"))
    assert_allclose(found.value, 0.32, atol=0.1)
    assert found.verdict == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_many_rows_are_sampled_and_all_of_them_have_a_local_error(several):
    n = MOST_ROWS + 5_000
    x = np.random.default_rng(6).normal(size=n)
    rows, kept = rows_of(n, factor=np.exp(0.2 * x), columns={"x": x}), {}
    rows = replace(rows, x=np.stack([x, x**2], axis=1), has_embedding=False) if several else rows
    metric = LocalScale(along="inputs" if several else "x")
    run = Run(replicates=19)
    sampled = result_of(rows, metric, run)
    assert sampled.details["rows"] == MOST_ROWS
    assert_allclose(sampled.value, 0.2, atol=0.04)
    order = np.random.default_rng(7).permutation(n)
    assert_allclose(result_of(rows.take(order), metric, run).value, sampled.value, rtol=1e-8)
    evaluate(InMemory(rows), [metric], run=run, sink=lambda *found: kept.update(found[2].columns))
    factors = pd.Series(kept["local_factor"])
    assert len(factors) == n
    middle = np.abs(x) < 1.5
    assert_allclose(factors[middle], np.exp(0.2 * x[middle]), rtol=0.1)


def test_one_draw_per_row_shows_no_local_scale():
    """The second component of the PIT is the same for both ranks of a target and a draw."""
    rng = np.random.default_rng(1)
    rows = Predictions(y=rng.normal(size=60), predictive=Samples(rng.normal(size=(60, 1))), x=rng.normal(size=(60, 1)))
    assert reason_of(rows, "inputs") == "one draw per row shows no uncertainty: two are needed"
    assert result_of(rows, LocalBias(along="inputs")).value is not None


@pytest.mark.parametrize("metric", [LocalScale, LocalBias])
def test_draws_that_are_mostly_equal_have_a_curve_without_band(metric):
    """Bins along the spread of draws are others once a target is among them."""
    rng = np.random.default_rng(0)
    draws = np.repeat(rng.normal(size=(60, 1)), 4, axis=1)
    rows = Predictions(
        y=rng.normal(size=60), predictive=Samples(draws), x=rng.normal(size=(60, 1)), has_embedding=False
    )
    found = result_of(rows, metric(along="inputs"), replace(FEW, curves=True))
    assert [len(each.y) > 0 and not each.low for each in found.curves] == [True]


@pytest.mark.parametrize("metric", [LocalScale(), LocalBias()])
def test_few_rows_have_no_local_error(metric):
    """Of two rows, all random signs have the same bounds, and so would be a limit."""
    few, enough = (evaluate(InMemory(rows_of(n)), [metric], run=FEW) for n in (4, 5))
    assert few.skipped[0].reason == "4 rows are too few for local errors: 5 are needed"
    assert not enough.skipped
