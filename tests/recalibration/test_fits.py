"""Fits of corrections in extreme cases."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.signal import lfilter

from calcheck.dependence.clusters import Clusters
from calcheck.distributions import Gaussian, Quantiles
from calcheck.distributions.count_families import Poisson
from calcheck.errors import DataError
from calcheck.execution.run import RowDependence
from calcheck.predictions import Predictions
from calcheck.recalibration.corrections import assign_folds
from calcheck.recalibration.cross_validation import CrossValidation, cross_validate, require_other_rows
from calcheck.recalibration.methods import FitOptions, Method, apply_steps, fit_local, fit_pit

Z = np.array([0.5, -1.5, 0.8, 2.0, -1.0, 3.0, 0.2, -4.0, 2.0, -1.0, 5.0, 0.5])


def rows_of(z, **columns):
    return Predictions(y=z, predictive=Gaussian(np.zeros(len(z)), np.ones(len(z))), columns=columns)


@pytest.mark.parametrize("group", [np.full(12, "a"), np.array(["a"] * 11 + ["b"])])
def test_groups_that_do_not_vary_in_some_folds_can_be_fitted(group):
    """One group has the factor of all rows; folds without the only row of a group have a constant column."""
    step = fit_local(rows_of(Z, group=group), FitOptions(by=("group",)))
    factor = step.apply(rows_of(Z, group=group)).predictive.scale
    assert np.mean((Z / factor) ** 2) == pytest.approx(1, rel=1e-6)


def test_a_map_that_leaves_one_quantile_is_refused():
    levels = np.array([0.1, 0.5, 0.9])
    values = np.tile([-1.0, 0.0, 1.0], (12, 1))
    rows = Predictions(y=Z, predictive=Quantiles(levels, values))
    with pytest.raises(DataError, match=r"fewer than two of the quantiles 0.1 … 0.9 remain"):
        fit_pit(rows, FitOptions()).apply(rows)


@pytest.mark.parametrize("far", [-30.0, 30.0])
def test_quantiles_are_finite_where_errors_are_farther_than_probabilities_resolve(far):
    """By floats, F(30) is 1: the share 1 / (n + 1) of the last piece must not be at infinity."""
    rows = rows_of(np.append(Z, far))
    corrected = fit_pit(rows, FitOptions()).apply(rows).predictive
    assert np.isfinite([corrected.quantile(level) for level in (1e-9, 0.99, 1 - 1e-9)]).all()
    assert np.isfinite([corrected.mean(), corrected.std(), corrected.crps(rows.y), corrected.log_prob(rows.y)]).all()


def test_probabilities_of_uncertainties_that_are_ten_times_too_small_are_mapped_after_scaling():
    """A fifth of the targets is above the 8.3 deviations at which F rounds to 1; by hand, the 90 % quantile is 12.8."""
    rows = rows_of(10 * np.random.default_rng(1).normal(size=2000))
    with pytest.raises(DataError, match=r"targets are so far out .* as in local"):
        fit_pit(rows, FitOptions())
    steps = Method("scale+pit").fit(rows, FitOptions())
    assert apply_steps(steps, rows).predictive.quantile(0.9)[0] == pytest.approx(12.8, rel=0.05)


def test_folds_and_standard_errors_of_a_series_are_of_blocks_of_its_rows():
    rng = np.random.default_rng(5)
    y = rng.normal(size=60)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(60), np.full(60, 0.5)))
    dependence = RowDependence(block=10)
    validation, (none, scale) = cross_validate(
        rows, [Method("none"), Method("scale")], FitOptions(), folds=3, dependence=dependence
    )
    assert validation.fold.tolist() == [0] * 20 + [1] * 20 + [2] * 20
    differences = scale.scores - none.scores
    sums = (differences - differences.mean()).reshape(6, 10).sum(axis=1)
    assert validation.clusters.inflation == 1  # independent rows
    assert_allclose(validation.compare(scale.scores, none.scores).error, np.sqrt(6 / 5 * np.sum(sums**2)) / 60)


@pytest.mark.parametrize("seed", range(5))
def test_errors_that_last_do_not_look_like_a_bias(seed):
    """With a correlation of 0.95 from time to time, 200 errors of a right model have a mean far from 0."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=200) * np.sqrt(1 - 0.95**2)
    y = lfilter([1], [1, -0.95], noise)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(200), np.ones(200)), columns={"day": np.arange(200)})
    methods = [Method("none"), Method("bias")]
    validation, (none, bias) = cross_validate(rows, methods, FitOptions(), dependence=RowDependence(time="day"))
    differences = bias.scores - none.scores
    assert validation.compare(bias.scores, none.scores).error > 2.5 * differences.std() / np.sqrt(200)


def test_a_quarter_of_shared_rows_is_refused_unless_targets_are_counts():
    """Equal counts with equal predictions occur by chance, up to half of the rows; equal numbers do not."""
    rng = np.random.default_rng(3)
    fitted, others = rows_of(rng.normal(size=12)), rng.normal(size=9)
    with pytest.raises(DataError, match=r"3 rows are also among those .* the first is row 9\)"):
        require_other_rows(fitted, rows_of(np.append(others, fitted.y[:3])))
    require_other_rows(fitted, rows_of(others))

    def counts(y):
        return Predictions(y=np.asarray(y, dtype=float), predictive=Poisson(np.full(len(y), 50.0)))

    require_other_rows(counts(range(12)), counts(range(6, 18)))
    with pytest.raises(DataError, match=r"7 rows are also among those"):
        require_other_rows(counts(range(12)), counts(range(5, 17)))


def test_scores_of_the_same_rows_are_compared_by_a_paired_t_test_also_of_clusters():
    """Of six clusters of two rows: t with 5 degrees of freedom of the sums, whose variance has the factor 6 / 5."""
    scores, others = np.random.default_rng(1).normal(size=(2, 12))
    expected = stats.ttest_rel(scores, others, alternative="less")
    by_row = CrossValidation.compare(SimpleNamespace(clusters=None, _weights=None), scores, others)
    assert_allclose((by_row.value, by_row.p_below), (np.mean(scores - others), expected.pvalue), rtol=1e-12)
    assert_allclose(by_row.error, stats.sem(scores - others), rtol=1e-12)
    clusters = Clusters(np.repeat(np.arange(6), 2))
    by_cluster = CrossValidation.compare(SimpleNamespace(clusters=clusters, _weights=None), scores, others)
    sums = (scores - others).reshape(6, 2).sum(axis=1)
    expected = stats.ttest_1samp(sums, 0, alternative="less")
    assert_allclose((by_cluster.error, by_cluster.p_below), (stats.sem(sums) / 2, expected.pvalue), rtol=1e-12)


def test_folds_have_equal_sizes_and_do_not_depend_on_the_order_of_rows():
    rows, order = rows_of(np.random.default_rng(1).normal(size=53)), np.random.default_rng(2).permutation(53)
    found = assign_folds(rows, 5)
    assert sorted(np.bincount(found)) == [10, 10, 11, 11, 11]
    assert_array_equal(assign_folds(rows.take(order), 5), found[order])
    assert (assign_folds(rows, 5, seed=1) != found).any()
    with pytest.raises(DataError, match=r"^53 rows are too few for 60 folds. Pass a smaller --folds, or more rows$"):
        assign_folds(rows, 60)
    with pytest.raises(DataError, match=r"^1 row is too few for 5 folds. Pass more rows$"):
        assign_folds(rows.take([0]), 5)


def test_folds_hold_whole_clusters_and_blocks_of_time():
    """Clusters of one to eight rows give folds of 12 ± 4 rows; the days of a series are in ascending folds."""
    rng = np.random.default_rng(3)
    site, day = np.repeat(np.arange(8), np.arange(1, 9)), rng.permutation(np.repeat(np.arange(12), 3))
    rows = rows_of(rng.normal(size=36), site=site, day=day)
    by_site = assign_folds(rows, 3, dependence=RowDependence(cluster="site"))
    assert len(set(zip(site, by_site, strict=True))) == 8
    assert max(abs(np.bincount(by_site) - 12)) <= 4
    by_day = assign_folds(rows, 3, dependence=RowDependence(time="day"))
    assert_array_equal(by_day, day // 4)
    assert_array_equal(assign_folds(rows, 3, dependence=RowDependence(block=2)), np.arange(36) // 12)
    with pytest.raises(DataError, match="8 different values of 'site' are too few for 9 folds"):
        assign_folds(rows, 9, dependence=RowDependence(cluster="site"))
