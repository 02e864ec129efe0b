"""Maps and groups of rows: sums by hand, and limits that right models keep."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, chi2

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.continuous import Cauchy, StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.quantiles import Intervals
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.predictions import Predictions
from calcheck.regions import maps
from calcheck.regions.maps import (
    Variable,
    binomial_quantiles,
    column_groups,
    coverage_limits,
    default_variables,
    group_sums,
    histogram_limits,
    make_axis,
    make_map,
    mean_square_limits,
)
from calcheck.statistics.binning import Binning
from calcheck.statistics.groups import Groups
from calcheck.statistics.zscores import z_scores
from calcheck.studies.page.picture import group_picture
from tests.helpers import families

RUN = Run()
NO_NULL = Run(replicates=0)


def sums_of(rows, labels=None, run=RUN, **options):
    labels = np.zeros(len(rows), np.intp) if labels is None else np.asarray(labels)
    return group_sums(rows, Groups(labels, labels.max() + 1), run, **options)


def right_model(family, n, seed=0):
    """Return rows whose targets are drawn from their distributions."""
    rng = np.random.default_rng(seed)
    predictive = getattr(families, family)(rng, n)
    if family == "samples":  # The target is one more draw
        draws = predictive.draws
        return Predictions(y=draws[:, 0].copy(), predictive=Samples(draws[:, 1:12].copy()))
    return Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive)


def test_sums_of_two_groups_by_hand():
    """Standard normal predictions, targets 0, 2 and 1, -1.

    90 % intervals end at ±1.645, so one target of the first group is outside. PITs are 0.5, 0.977, 0.841 and 0.159, in
    the bins 9 (up to 0.5), 19, 16 and 3. A squared normal number has mean 1 and variance 2, and a count of n rows in a
    bin has variance n 0.05 0.95.
    """
    rows = Predictions(y=np.array([0.0, 2, 1, -1]), predictive=Gaussian(np.zeros(4), np.ones(4)))
    found = sums_of(rows, [0, 0, 1, 1])
    assert found.level == 0.9
    assert_array_equal(found.n, [2, 2])
    assert_array_equal(found.covered, [1, 2])
    assert_allclose(found.covered_expected, [1.8, 1.8], rtol=1e-12)
    assert_allclose(found.squares, [4, 2], rtol=1e-12)
    assert_allclose(found.squares_expected, [2, 2], rtol=1e-12)
    assert_allclose(found.squares_variance, [4, 4], rtol=1e-12)
    assert_array_equal(np.argwhere(found.pit), [[0, 9], [0, 19], [1, 3], [1, 16]])
    assert_allclose(found.pit_variance, 2 * 0.05 * 0.95, rtol=1e-12)


def test_ranks_of_ensembles_are_divided_among_bins():
    """A target above the only draw has a PIT from 1/2 to 1: a tenth of the row in each of the upper ten bins."""
    rows = Predictions(y=np.array([3.0]), predictive=Samples(np.array([[1.0]])))
    assert_allclose(sums_of(rows).pit[0], [0.0] * 10 + [0.1] * 10, atol=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "samples", "poisson"])
def test_histograms_of_cells_add_up_to_that_of_the_metric(family):
    rows = right_model(family, 500)
    found = sums_of(rows, np.arange(500) % 7)
    assert_allclose(found.pit.sum(axis=0), METRICS["pit"]().compute(rows).details["histogram"], rtol=1e-9)


def test_moments_of_squares_are_those_of_few_replicates():
    """The variance over R replicates has the divisor R - 1, and 1/R more if their mean is the expectation."""
    rng = np.random.default_rng(3)
    rows = Predictions(y=rng.normal(size=8), predictive=Samples(rng.normal(size=(8, 6))))
    labels, run = np.array([0] * 5 + [1] * 3), Run()
    few = min(maps.MAX_REPLICATES, max(maps.MIN_REPLICATES, maps.DRAWS // len(rows)))
    drawn = np.array([z_scores(each) ** 2 for each in NullSimulator(rows, run, numbers=range(few))])
    found = sums_of(rows, labels, run=run)
    sums = [
        [each[:, labels == group].sum() for group in (0, 1)]
        for each in (drawn.mean(axis=0)[None], drawn.var(axis=0, ddof=1)[None])
    ]
    assert_allclose(found.squares_expected, sums[0], rtol=1e-12)
    assert_allclose(found.squares_variance, np.array(sums[1]) * (1 + 1 / len(drawn)), rtol=1e-12)


def test_moments_of_squares_from_replicates_are_those_of_the_distribution():
    """z^2 of Student-t with 9 degrees of freedom has mean 1 and variance 3 (9 - 2) / (9 - 4) - 1 = 3.2."""
    n = 8000
    t = StudentT(loc=np.zeros(n), scale=np.ones(n), df=np.full(n, 9.0))
    found = sums_of(Predictions(y=np.zeros(n), predictive=t))
    assert_allclose(found.squares_expected, n, rtol=1e-12)
    assert_allclose(found.squares_variance / n, 3.2, rtol=0.1)


def test_limits_of_coverage_are_binomial_quantiles():
    """Of two rows with coverage 0.5, 0, 1 or 2 are covered with probability 1/4, 1/2, 1/4."""
    low, high = coverage_limits(np.array([2]), np.array([1.0]), 0.4)
    assert (low, high) == (0.5, 0.5)
    low, high = coverage_limits(np.array([2]), np.array([1.0]), 0.6)
    assert (low, high) == (0, 1)


@pytest.mark.parametrize("n", [5, 30, 1000])
def test_limits_of_squares_are_those_of_a_mean_of_chi_squares(n):
    limits = mean_square_limits(np.array([n]), np.array([n]), np.array([2.0 * n]), 0.95)
    assert_allclose(np.ravel(limits), chi2.ppf([0.025, 0.975], n) / n, atol=0.01)


def test_limits_of_histograms_are_simultaneous():
    """For 40 rows each of 20 bins leaves its limits with probability at most 0.05 / 20."""
    variance = np.full((1, 20), 40 * 0.05 * 0.95)
    low, high = histogram_limits(np.array([40]), variance, 0.95)
    assert (low[0, 0], high[0, 0]) == (binom.ppf(0.00125, 40, 0.05), binom.ppf(0.99875, 40, 0.05)) == (0, 7)


def test_limits_of_histograms_of_ranks_are_shares_of_binomial_quantiles():
    """With 9 draws each of ten ranks is half a row in two bins: a count is half of a binomial number, p = 1/10."""
    low, high = histogram_limits(np.array([40]), np.full((1, 20), 40 * 0.25 * 0.1 * 0.9), 0.95)
    assert_allclose((low[0, 0], high[0, 0]), binom.ppf([0.00125, 0.99875], 40, 0.1) / 2, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "samples", "poisson", "lognormal"])
def test_right_models_keep_the_limits(family):
    """Of 300 groups with 60 rows each, 5 % leave, with a standard error of 1.3 %; rounding adds to it for counts."""
    rows = right_model(family, 18_000)
    found = sums_of(rows, np.arange(18_000) % 300)
    n = found.n
    means = found.squares / n
    low, high = mean_square_limits(n, found.squares_expected, found.squares_variance, 0.95)
    assert np.mean((means < low) | (means > high)) < 0.09
    low, high = histogram_limits(n, found.pit_variance, 0.95)
    assert np.mean(((found.pit < low - 1e-9) | (found.pit > high + 1e-9)).any(axis=1)) < 0.125
    if found.covered_expected is not None:
        low, high = coverage_limits(n, found.covered_expected, 0.95)
        assert np.mean((found.covered / n < low) | (found.covered / n > high)) < 0.09


def test_intervals_have_a_coverage_only():
    rows = Predictions(
        y=np.array([0.0, 3]), predictive=Intervals(np.array([0.8]), np.array([[-1.0], [-1]]), np.array([[1.0], [1]]))
    )
    found = sums_of(rows)
    assert found.squares is None
    assert found.pit is None
    assert (found.level, found.covered[0]) == (0.8, 1)


def test_without_replicates_what_needs_them_is_absent():
    found = sums_of(right_model("poisson", 50), run=NO_NULL)
    assert found.squares_variance is None
    assert found.pit_variance is None
    assert sums_of(right_model("gaussian", 50), run=NO_NULL).pit_variance is not None


def test_an_error_of_draws_that_are_all_equal_has_the_spread_of_draws_and_target():
    rows = Predictions(y=np.array([0.0, 1]), predictive=Samples(np.array([[1.0, 1.0], [0.0, 2.0]])))
    assert_allclose(sums_of(rows).squares, [3])  # m + 1 of two draws, and 0
    assert sums_of(rows).pit is not None


def test_few_values_have_a_bin_each_and_a_constant_has_one():
    assert make_axis(Variable("a", np.array([3.0, 3])), 24).edges.tolist() == [2.5, 3.5]
    assert make_axis(Variable("a", np.array([1.0, 2, 2, 4])), 3).edges.tolist() == [0.5, 1.5, 3, 5]


def test_outliers_belong_to_the_outer_bins():
    values = np.append(np.linspace(0, 1, 999), 1e6)
    axis = make_axis(Variable("a", values), 4)
    assert axis.edges[-1] < 1.01
    assert Binning.edges(values, axis.edges).label[-1] == 3


def test_positive_values_over_orders_of_magnitude_have_a_logarithmic_axis():
    axis = make_axis(Variable("a", np.geomspace(0.01, 1000, 500)), 5)
    assert axis.is_log
    assert_allclose(axis.edges[1:] / axis.edges[:-1], axis.edges[1] / axis.edges[0], rtol=1e-9)
    assert not make_axis(Variable("a", np.geomspace(0.01, 1000, 500) - 1), 5).is_log
    assert not make_axis(Variable("a", np.linspace(0.01, 1000, 500)), 5).is_log


def test_a_map_counts_each_row_once_in_the_cell_of_its_values():
    rng = np.random.default_rng(1)
    n = 1000
    a, b = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    rows = Predictions(y=rng.normal(size=n), predictive=Gaussian(np.zeros(n), np.ones(n)))
    found = make_map(rows, Variable("a", a), Variable("b", b), RUN)
    assert (found.x.bins, found.y.bins) == (10, 3)
    for x_bin, y_bin, count in zip(found.x_bin, found.y_bin, found.sums.n, strict=True):
        low, high = found.x.edges[[x_bin, x_bin + 1]]
        inside = (a >= (-np.inf if x_bin == 0 else low)) & (a < (np.inf if x_bin == 9 else high)) & (b == y_bin)
        assert inside.sum() == count
    assert found.sums.n.sum() == n


def test_binomial_quantiles_are_those_of_scipy():
    n, share = np.meshgrid([1, 7, 60, 10_000], [0.0, 1e-6, 0.05, 0.5, 0.9, 1.0])
    for level in (1e-9, 0.00125, 0.3, 0.975, 0.99875):
        assert_array_equal(binomial_quantiles(level, n, share), binom.ppf(level, n, share))


def test_groups_are_texts_truths_and_few_whole_numbers():
    n = 60
    columns = {
        "site": np.array(["b", "a", None] * (n // 3), dtype=object),
        "night": np.arange(n) % 2 == 0,
        "kind": np.arange(n) % 8,
        "many": np.arange(n) % 9,
        "one": np.array(["x"] * n),
        "real": np.linspace(0, 1, n),
        "y": np.arange(n) % 2,
    }
    rows = Predictions(y=np.zeros(n), predictive=Gaussian(np.zeros(n), np.ones(n)), columns=columns)
    found = {each.column: each for each in column_groups(rows, RUN, without={"y"})}
    assert list(found) == ["site", "night", "kind"]
    assert found["site"].names == ("(absent)", "a", "b")
    assert found["night"].names == ("False", "True")
    assert_array_equal(found["kind"].sums.n, [8, 8, 8, 8, 7, 7, 7, 7])


def test_groups_are_drawn_with_the_values_and_limits_of_their_table():
    n = 40
    z = np.where(np.arange(n) % 2, 1.5, 0.5)
    site = np.where(np.arange(n) % 2, "b", "a").astype(object)
    rows = Predictions(y=z, predictive=Gaussian(np.zeros(n), np.ones(n)), columns={"site": site})
    (groups,) = column_groups(rows, RUN)
    inside, squares = group_picture(groups).panels
    limits, points = squares.marks
    assert squares.x.names == ("a", "b")
    assert_allclose(points.y, [0.25, 2.25])
    assert_allclose(limits.low, mean_square_limits(*np.array([[20, 20], [20, 20], [40, 40]]), RUN.confidence)[0])
    assert_allclose(inside.marks[1].y, [1, 1])


def test_the_variables_of_a_map_are_inputs_or_what_the_predictions_state():
    n = 30
    rng = np.random.default_rng(0)
    predictive = Gaussian(rng.normal(size=n), rng.uniform(1, 2, n))

    def names(x=None, *called, embedding=False):
        rows = Predictions(y=np.zeros(n), predictive=predictive, x=x, has_embedding=embedding)
        return [variable.name for variable in default_variables(rows, called)]

    assert names() == ["predicted mean", "predicted std"]
    assert names(rng.normal(size=(n, 3)), "a", "b", "c") == ["a", "b"]
    assert names(rng.normal(size=(n, 1)), "a") == ["a", "predicted std"]
    first, second = names(rng.normal(size=(n, 3)), "e", embedding=True)
    assert first.startswith("principal component 1, ")
    assert second.startswith("principal component 2, ")
    assert names(rng.normal(size=(n, 2)), "e", embedding=True) == ["input 1", "input 2"]


def test_distributions_without_moments_are_drawn_by_their_central_halves():
    """The quartiles of a Cauchy distribution are its location plus and minus its scale."""
    cauchy = Cauchy(np.array([0.0, 5]), np.array([1.0, 2]))
    x, y = default_variables(Predictions(y=np.zeros(2), predictive=cauchy), ())
    assert (x.name, y.name) == ("middle of the 50 % interval", "width of the 50 % interval")
    assert_allclose([x.values, y.values], [[0, 5], [2, 4]], atol=1e-12)


def test_limits_are_unknown_where_no_replicate_varies():
    """Of counts with a mean of 1e-9, all replicates are 0."""
    found = sums_of(Predictions(y=np.zeros(9), predictive=Poisson(np.full(9, 1e-9))))
    assert np.isnan(found.squares_variance).all()
    limits = mean_square_limits(found.n, found.squares_expected, found.squares_variance, 0.95)
    assert np.isnan(limits).all()


def test_variables_of_any_size_have_edges():
    values = np.array([-1e308, -1.0, 0, 1, 1e308])
    axis = make_axis(Variable("a", values), 4)
    assert np.isfinite(axis.edges).all()
    assert Binning.edges(values, axis.edges).label[[0, -1]].tolist() == [0, 3]
