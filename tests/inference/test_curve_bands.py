"""Curves of metrics, compared with their values by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import bootstrap

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Bernoulli
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.inference.curve_bands import curves_at_inputs
from calcheck.linalg.gram import principal_components
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.coverage import LEVELS, coverage_by_level
from calcheck.statistics.curves import bins_along, cells_along, spread_histogram
from calcheck.statistics.zscores import covered
from tests.helpers.families import FAMILIES, calibrated

NO_NULL = Run(curves=True, replicates=0, resamples=0)


def normal_rows(z, std, **columns):
    """Return normal predictions with mean 0, and targets with the given z-scores."""
    z, std = np.asarray(z, float), np.asarray(std, float)
    columns = {name: np.asarray(values) for name, values in columns.items()}
    return Predictions(y=z * std, predictive=Gaussian(np.zeros(len(z)), std), columns=columns)


def curves_of(name, rows, run=NO_NULL, **options):
    result = evaluate(InMemory(rows), [METRICS[name](**options)], run=run).results[0]
    return result.curves


FOUR = normal_rows(ndtri([0.12, 0.3, 0.8, 0.92]), np.ones(4))  # their PIT is 0.12, 0.3, 0.8 and 0.92


def test_quantile_reliability_by_hand():
    (curve,) = curves_of("ece", FOUR, n_levels=3)
    assert curve.x == (0.25, 0.5, 0.75)
    assert curve.y == (0.25, 0.5, 0.5)


def test_pit_histogram_and_difference_by_hand():
    """Of 4 rows in 4 bins, a density is the count; at level 0.3 two of four values are at most 0.3."""
    bars, difference = curves_of("pit", FOUR, bins=4)
    assert bars.y == (1, 1, 0, 2)
    assert (bars.x, bars.stop) == ((0, 0.25, 0.5, 0.75), (0.25, 0.5, 0.75, 1))
    at = dict(zip(np.round(difference.x, 2).tolist(), difference.y, strict=True))
    assert_allclose([at[0.1], at[0.2], at[0.31], at[0.95]], [-0.1, 0.05, 0.19, 0.05], atol=1e-12)


def test_coverage_by_level_by_hand():
    """The interval at 0.5 has the PIT from 0.25 to 0.75, that at 0.8 from 0.1 to 0.9, that at 0.78 from 0.11."""
    (curve,) = curves_of("coverage", FOUR)
    at = dict(zip(np.round(curve.x, 2).tolist(), curve.y, strict=True))
    assert [at[0.02], at[0.5], at[0.78], at[0.8], at[0.86]] == [0, 0.25, 0.75, 0.75, 1]


def test_coverage_by_level_of_three_draws_by_hand():
    """A target between the first two of three draws has a PIT between 1/4 and 1/2, inside the interval at 0.5."""
    rows = Predictions(y=np.array([1.5]), predictive=Samples(np.array([[1.0, 2.0, 3.0]])))
    levels, shares = coverage_by_level(rows, ())
    at = dict(zip(np.round(levels, 2).tolist(), shares, strict=True))
    assert_allclose([at[0.5], at[0.2], at[0.98]], [1, 0.4, 1], atol=1e-12)


def test_a_quantile_is_inside_its_interval():
    """With P(Y = 0) = 1/4, the quantile at 1/4 is 0, so the interval at the level 1/2 contains 0 and 1."""
    rows = Predictions(y=np.array([0.0, 1.0]), predictive=Bernoulli(np.array([0.75, 0.75])))
    levels, shares = coverage_by_level(rows, ())
    assert shares[levels == 0.5] == covered(rows, 0.5).mean() == 1


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("samples", "quantiles")])
def test_coverage_by_level_is_that_of_the_intervals(family):
    rows = calibrated(family, n=200)
    levels, shares = coverage_by_level(rows, ())
    for level, share in list(zip(levels.tolist(), shares, strict=True))[::7]:
        assert_allclose(share, covered(rows, level).mean(), atol=1e-12)
    assert levels is LEVELS


def test_coverage_of_a_quantile_file_is_at_its_levels():
    (curve,) = curves_of("coverage", calibrated("quantiles", n=50))
    assert_allclose(curve.x, [0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98], atol=1e-12)


BINS = normal_rows([1, 3, 0, 2, 1, 1, 2, 2], [1, 1, 2, 2, 3, 3, 4, 4])


def test_spread_and_its_histogram_by_hand():
    """Four bins of two rows; in the first, the errors 1 and 3 have the root mean square sqrt(5)."""
    spread, intervals, bars = curves_of("ence", BINS, bins=4)
    assert intervals.low[2] is None  # equal errors have no interval
    assert_allclose(spread.x, [1, 2, 3, 4], rtol=1e-12)
    assert_allclose(spread.y, [np.sqrt(5), np.sqrt(8), 3, 8], rtol=1e-12)
    assert spread.rows == (2, 2, 2, 2)
    assert sum(bars.y) == 8
    assert (bars.x[0], bars.stop[-1]) == (1, 4)


def test_corrected_means_and_the_histogram_of_means_by_hand():
    """Predicted 1, 2, 3, 4 with targets 0, 3, 1, 5: those of 2 and 3 are pooled to 2."""
    rows = Predictions(y=np.array([3.0, 0, 5, 1]), predictive=Gaussian(np.array([2.0, 1, 4, 3]), np.ones(4)))
    corrected, bars = curves_of("mean-miscalibration", rows)
    assert corrected.x == corrected.expected == (1, 2, 3, 4)
    assert_allclose(corrected.y, [0, 2, 2, 5], rtol=1e-12)
    assert (bars.x[0], bars.stop[-1], sum(bars.y)) == (1, 4, 4)


def test_intervals_of_the_observed_spread_are_those_of_the_bootstrap():
    rng = np.random.default_rng(5)
    z = rng.standard_t(5, size=800)
    rows = normal_rows(z, np.repeat([1.0, 3.0], 400))
    _, intervals, _ = curves_of("ence", rows, bins=2)
    for place, (part, std) in enumerate([(z[:400], 1), (z[400:], 3)]):
        found = bootstrap((part,), lambda x, axis: std * np.sqrt(np.mean(x**2, axis)), method="BCa", rng=rng)  # noqa: B023 - called at once
        width = found.confidence_interval.high - found.confidence_interval.low
        own = intervals.low[place], intervals.high[place]
        assert_allclose(own, found.confidence_interval, atol=0.05 * width)  # 9,999 resamples: 2 %


def test_bins_and_rows_along_their_uncertainty_by_hand():
    """Mean squared z-scores of two rows each: (1 + 9) / 2, 4 / 2, 1, 4."""
    (curve,) = curves_of("zms", BINS)
    assert curve.name == "along"
    assert (curve.x, curve.x_name) == ((1, 2, 3, 4), "predicted standard deviation")
    assert_allclose(curve.y, [5, 2, 1, 4], rtol=1e-12)
    assert curve.expected == (1, 1, 1, 1)
    (same,) = curves_of("lzms", BINS, Run(curves=True, replicates=0), bins=4)
    assert_allclose(same.y, curve.y, rtol=1e-12)


def test_bins_of_a_column_of_categories_have_their_names():
    rows = normal_rows([1, 3, 0, 2], [1, 1, 2, 2], kind=["b", "a", "b", "a"])
    (curve,) = curves_of("zms", rows, Run(curves=True, replicates=0, curves_by=("kind",)))
    assert curve.x == ("a", "b")
    assert_allclose(curve.y, [6.5, 0.5], rtol=1e-12)


def test_a_map_of_two_columns_by_hand():
    """Two rows in each of two cells on the diagonal; the other two cells have no rows."""
    rows = normal_rows([1, 3, 0, 2], [1, 1, 1, 1], a=[0.0, 0.1, 1.0, 0.9], b=[5.0, 5.1, 6.0, 5.9])
    (curve,) = curves_of("zms", rows, Run(curves=True, replicates=0, curves_by=("a", "b")))
    assert (curve.name, curve.x_name, curve.x2_name) == ("map", "a", "b")
    assert_allclose(curve.y, [5, 2], rtol=1e-12)
    assert_allclose([curve.x[0], curve.stop[1], curve.x2[0], curve.stop2[1]], [0, 1, 5, 6], rtol=1e-12)
    assert_allclose([curve.stop[0], curve.x[1]], [0.5, 0.5], rtol=1e-12)
    assert curve.rows == (2, 2)


def test_a_map_needs_two_columns_of_numbers():
    rows = normal_rows([1, 3], [1, 1], a=[0.0, 1.0], b=["u", "v"])
    with pytest.raises(DataError, match="'b' has none"):
        bins_along(rows, ("a", "b"))


def test_every_row_is_in_one_cell_of_a_map():
    rng = np.random.default_rng(0)
    for values in (rng.standard_cauchy(500), np.ones(500), rng.integers(0, 2, 500).astype(float)):
        cells = cells_along(values, rng.normal(size=500), ("a", "b"), 5)
        assert cells.rows.sum() == 500
        assert (np.array(cells.position.x) < np.array(cells.position.stop)).all()
        assert cells.position.x2[0] < cells.position.stop2[0]
        inside = (values >= min(cells.position.x)) & (values <= max(cells.position.stop))
        assert inside.all()


def test_the_confidence_curve_and_its_oracle_by_hand():
    """Absolute errors 1, 6, 6, 4 in the order of uncertainty: without the last, their mean is 13/3."""
    rows = normal_rows([1, 3, 2, 1], [1, 2, 3, 4])
    curve, oracle = curves_of("confidence-curve", rows)
    at = curve.x.index(0.25)
    assert_allclose([curve.y[0], curve.y[at], oracle.y[0], oracle.y[at]], [17 / 4, 13 / 3, 17 / 4, 11 / 3], rtol=1e-12)


def test_equal_uncertainties_make_one_bar():
    curve = spread_histogram(np.full(5, 2.0))
    assert curve.y == (5,)
    assert curve.x[0] < 2 < curve.stop[0]


def test_cce_along_one_input_is_the_mean_of_its_values_and_the_worst_inputs_are_marked():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=40))
    rows = Predictions(y=rng.normal(size=40), predictive=Gaussian(np.zeros(40), np.ones(40)), x=x[:, None])
    kept = []
    evaluate(InMemory(rows), [METRICS["cce"]()], run=NO_NULL, sink=lambda *found: kept.append(found[2].columns["cce"]))
    curve, worst = curves_of("cce", rows)
    assert_allclose(curve.y, kept[0].reshape(8, 5).mean(axis=1), rtol=1e-10)
    assert_allclose(curve.x, x.reshape(8, 5).mean(axis=1), rtol=1e-10)
    assert_allclose(worst.y, np.sort(kept[0])[::-1][:5], rtol=1e-10)
    assert set(worst.x) <= set(x.tolist())


@pytest.mark.parametrize("evaluated", [600, 200])
def test_cce_on_landmarks_is_shown_at_the_inputs_that_are_evaluated(evaluated):
    """The mean over the cells, weighted by rows, is the value; the band has the replicates of the same inputs."""
    limits = Limits(
        evaluated_rows=evaluated, full_validation_rows=100, validation_rows=60, min_landmarks=32, pilot_rows=150
    )
    rows = calibrated("gaussian", n=600)
    run = Run(curves=True, replicates=39, limits=limits)
    result = evaluate(InMemory(rows), [METRICS["cce"](solver="nystroem")], run=run).results[0]
    cells, worst = result.curves
    assert sum(cells.rows) == evaluated
    assert_allclose(np.average(cells.y, weights=cells.rows), result.value, rtol=0.02)
    assert cells.replicates == 39
    assert len(cells.low) == len(cells.y)
    assert max(worst.y) >= max(cells.y)


def test_small_distances_at_inputs_are_no_evidence_against_a_model():
    """Distances that are smaller than those of all replicates have the p-value 1, larger ones 1/20."""
    rows = normal_rows(np.zeros(20), np.ones(20), a=np.arange(20.0))
    replicates = 2 + np.random.default_rng(0).uniform(size=(19, 20))
    for distance, p_value in ((1.0, 1.0), (4.0, 0.05)):
        own = np.full(20, distance)
        curve, _ = curves_at_inputs(rows, own, np.vstack([own, replicates]), ("a",)).with_bands(0.95)
        assert_allclose(curve.p_value, p_value, rtol=1e-12)


def test_many_inputs_are_shown_by_their_first_two_principal_components():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)) * [1, 3, 0.1, 0.1]
    rows = Predictions(y=rng.normal(size=60), predictive=Gaussian(np.zeros(60), np.ones(60)), x=x)
    cells, _ = curves_of("cce", rows)
    assert cells.name == "map"
    assert cells.x_name.startswith("principal component 1, ")
    scores, shares = principal_components(x, 2)
    assert_allclose(min(cells.x), scores[:, 0].min(), rtol=1e-12)
    assert cells.x_name.endswith(f"{shares[0]:.0%}")


def test_principal_components_are_those_of_the_singular_value_decomposition():
    x = np.random.default_rng(1).normal(size=(50, 5)) * [5, 4, 3, 2, 1] + 7
    scores, shares = principal_components(x, 2)
    left, values, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    assert_allclose(np.abs(scores), np.abs(left * values)[:, :2], rtol=1e-9)
    assert_allclose(shares, (values**2 / (values**2).sum())[:2], rtol=1e-12)


def test_principal_components_have_a_defined_sign():
    """The largest entry of a direction is positive, so the scores grow with the feature that dominates."""
    rng = np.random.default_rng(2)
    for column in range(3):
        x = rng.normal(size=(50, 3))
        x[:, column] *= 9
        scores, _ = principal_components(x, 1)
        assert np.corrcoef(scores[:, 0], x[:, column])[0, 1] > 0.9
