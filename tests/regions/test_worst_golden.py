"""The worst region: its statistic one region at a time, where it lies, and how often right models have one."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from calcheck.distributions import Gaussian
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.predictions import Predictions
from calcheck.regions import worst
from calcheck.regions.scan import BIAS, DISPERSION
from calcheck.regions.worst import Balls, Boxes, Directions, Search, describe_region, worst_region
from calcheck.reports.conclusion import WorstRegion
from tests.helpers.simulations import band, sets

SETS = sets(80)
N = 60
LEVELS = np.arange(1, 10) / 10


def scores(rng, n=N, data_sets=3):
    return rng.normal(loc=0.3, size=(n, data_sets, 2))


def excess(score, inside):
    """Return the excess of a region of a data set, by its definition; None where the rest is worse."""
    n, rows = len(score), inside.sum()
    least = max(20, int(np.ceil(0.05 * n)))
    if min(rows, n - rows) < least or abs(score[inside].mean()) < abs(score[~inside].mean()) - 1e-12:
        return -np.inf
    difference = score[inside].mean() - score[~inside].mean()
    z = difference * np.sqrt(rows * (n - rows) / n) / score.std()
    return abs(z) - np.sqrt(2 * np.log(np.e * n / min(rows, n - rows)))


def largest_by_definition(values, regions):
    return [
        max(excess(values[:, data_set, score], inside) for inside in regions for score in (BIAS, DISPERSION))
        for data_set in range(values.shape[1])
    ]


def partitions(x, bins):
    names = [f"x{number}" for number in range(x.shape[1])]
    return tuple(worst._bins(Predictions(x=x, has_embedding=False), x, names, bins))


def test_runs_of_a_column_one_by_one():
    rng = np.random.default_rng(0)
    x, values = rng.normal(size=(N, 1)), scores(rng)
    bins = partitions(x, 6)
    label = bins[0].label
    runs = [(label >= low) & (label <= high) for low in range(6) for high in range(low, 6)]
    found, (part, number, score), _ = Search(values).largest(family := Boxes((bins,), np.arange(N)))
    assert_allclose(found, largest_by_definition(values, runs))
    assert (
        excess(values[:, 0, score], family.place(part, number, values[:, 0, score]).inside) >= found[0]
    )  # Limits move


def test_corners_of_two_columns_one_by_one():
    rng = np.random.default_rng(1)
    x, values = rng.normal(size=(N, 3)), scores(rng)
    bins = partitions(x, 4)
    sides = [
        [np.ones(N, bool), *(each.label <= cut for cut in range(3)), *(each.label > cut for cut in range(3))]
        for each in bins
    ]
    corners = [one & other for first, second in combinations(sides, 2) for one in first for other in second]
    found, (part, number, score), _ = Search(values).largest(family := Boxes((bins,), np.arange(N), one_sided=True))
    assert_allclose(found, largest_by_definition(values, corners))
    assert_allclose(excess(values[:, 0, score], family.place(part, number, values[:, 0, score]).inside), found[0])


def test_balls_one_by_one():
    rng = np.random.default_rng(2)
    x, values = rng.normal(size=(N, 5)), scores(rng)
    rows = Predictions(x=x)
    distances = np.linalg.norm(x[:, None] - x, axis=2)
    family = Balls(rows, np.arange(N), np.arange(N))
    assert (family.sizes[0], family.sizes[-1]) == (20, 30)
    limits = np.sort(distances, axis=1)[:, family.sizes - 1]
    balls = [distances[center] <= limit for center in range(N) for limit in limits[center]]
    found, (part, number, score), _ = Search(values).largest(family)
    assert_allclose(found, largest_by_definition(values, balls), rtol=1e-5)
    assert_allclose(excess(values[:, 0, score], family.place(part, number, values[:, 0, score]).inside), found[0], 1e-5)


def test_rows_far_in_the_direction_of_a_regression_one_by_one():
    rng = np.random.default_rng(3)
    x, values = rng.normal(size=(N, 3)), scores(rng)
    rows = Predictions(x=x, has_embedding=False)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    penalized = np.vstack([z, np.sqrt(0.05 * N) * np.eye(3)])
    found, _, _ = Search(values).largest(family := Directions(rows, ["a", "b", "c"], np.arange(N)))
    for data_set in range(3):
        regions = []
        for score in (BIAS, DISPERSION):
            centered = values[:, data_set, score] - values[:, data_set, score].mean()
            slopes, *_ = np.linalg.lstsq(penalized, np.append(centered, np.zeros(3)))
            fitted = z @ slopes
            own = [fitted >= np.sort(fitted)[-size] for size in family.sizes]
            own += [fitted <= np.sort(fitted)[size - 1] for size in family.sizes]
            regions += [excess(values[:, data_set, score], each) for each in own]
        assert_allclose(found[data_set], max(regions))


def forecasts(x, wrong, seed=0, *, embedding=False, factor=2.0, shift=0.0):
    rng = np.random.default_rng(seed)
    n = len(x)
    y = rng.normal(size=n) * np.where(wrong, factor, 1) + shift * wrong
    return Predictions(y=y, predictive=Gaussian(np.zeros(n), np.ones(n)), x=x, has_embedding=embedding)


def searched(rows, seed=0, replicates=39):
    names = [f"x{number}" for number in range(rows.width)]
    return worst_region(rows, NullSimulator(rows, Run(seed=seed, replicates=replicates)), names, 0.95)


def shares(found, wrong):
    both = (found.place.inside & wrong).sum()
    return both / found.place.inside.sum(), both / wrong.sum()


def inputs(d, n=600):
    return np.random.default_rng(10).normal(size=(n, d))


PLACES = {
    "beyond a value": (inputs(3), lambda x: x[:, 0] > 0.6, 0.9),
    "between two values": (inputs(3), lambda x: abs(x[:, 1]) < 0.3, 0.9),
    "in a corner": (inputs(3), lambda x: (x[:, 0] > 0) & (x[:, 2] < 0.2), 0.8),
    "in a direction": (inputs(3), lambda x: x @ [1, 1, 0.5] > 1, 0.7),
    "on a side": (inputs(8), lambda x: x[:, 0] + x[:, 1] > 0.9, 0.7),
    "in a ball": (inputs(64), lambda x: np.linalg.norm(x - x[7], axis=1) < 10.7, 0.75),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_region_has_the_wrong_rows(name):
    x, condition, least = PLACES[name]
    wrong = condition(x)
    found = searched(forecasts(x, wrong, embedding=x.shape[1] > 3))
    assert found is not None
    assert min(shares(found, wrong)) >= least
    assert (found.score, found.is_positive) == (DISPERSION, True)


def test_a_region_of_most_rows_is_named_by_these_and_not_by_the_others():
    x = inputs(1)
    wrong = x[:, 0] > -0.6
    found = searched(forecasts(x, wrong))
    assert found is not None
    assert min(shares(found, wrong)) > 0.9


def test_a_model_that_is_wrong_everywhere_has_no_worst_region():
    x = inputs(2)
    p_values = [searched(forecasts(x, np.ones(len(x), bool), seed)) for seed in range(8)]
    assert sum(found is not None for found in p_values) <= 2


def test_a_region_can_be_biased():
    x = inputs(1)
    found = searched(forecasts(x, x[:, 0] < -0.6, factor=1.0, shift=-1.0))
    assert found is not None
    assert (found.score, found.is_positive) == (BIAS, False)
    assert found.place.filter.startswith("--filter 'x0<=-0.")


@pytest.mark.parametrize(
    ("direction", "sign", "there", "elsewhere"),
    [("predictions-too-high", -1, "below", "above"), ("predictions-too-low", 1, "above", "below")],
)
def test_the_sentence_about_biased_rows_has_the_side_of_both(direction, sign, there, elsewhere):
    spans = {"value": 0.49, "low": 0.34, "high": 0.65, "other_value": -0.11, "other_low": -0.17, "other_high": -0.05}
    if sign < 0:
        flipped = {"low": "high", "high": "low", "other_low": "other_high", "other_high": "other_low"}
        spans = {name: -spans[flipped.get(name, name)] for name in spans}
    place = {"where": "a>7", "filter": "", "rows": 9, "direction": direction, "p_value": 0.01, "text": ""}
    assert describe_region(WorstRegion(**place, **spans, level=None), 99) == (
        f"a>7 (9 of 99 rows): targets are 0.49 (0.34 to 0.65) predicted standard deviations {there} the predictions,"
        f" elsewhere 0.11 (0.05 to 0.17) {elsewhere}; p 0.01"
    )


def test_of_many_rows_a_sample_is_searched_that_does_not_depend_on_their_order(monkeypatch):
    monkeypatch.setattr(worst, "MOST_ROWS", 300)
    x = inputs(2, 900)
    rows = forecasts(x, x[:, 0] > 0.6)
    found = searched(rows)
    order = np.random.default_rng(5).permutation(900)
    other = searched(rows.take(order))
    assert found is not None
    assert other is not None
    assert (found.place.text, found.p_value) == (other.place.text, other.p_value)
    assert (found.place.inside[order] == other.place.inside).all()
    assert min(shares(found, x[:, 0] > 0.6)) > 0.85


def test_quantiles_have_a_worst_region_and_intervals_have_none():
    x, n = inputs(1), 600
    there = x[:, 0] > 0.6
    y = np.random.default_rng(3).normal(size=n) * np.where(there, 2, 1)
    rows = Predictions(y=y, predictive=Quantiles(LEVELS, np.tile(norm.ppf(LEVELS), (n, 1))), x=x, has_embedding=False)
    found = searched(rows)
    assert found is not None
    assert found.direction == "too-narrow"
    assert min(shares(found, there)) > 0.8
    stated = Intervals(np.array([0.8]), np.full((n, 1), -1.3), np.full((n, 1), 1.3))
    assert searched(Predictions(y=y, predictive=stated, x=x)) is None


@pytest.mark.slow
@pytest.mark.parametrize("family", ["normal", "counts", "quantiles"])
def test_right_models_have_a_worst_region_as_often_as_promised(family):
    count = 0
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        x = np.round(rng.normal(size=(100, 2)), 1)
        predictive = Poisson(np.exp(x[:, 0])) if family == "counts" else Gaussian(x[:, 0], np.exp(x[:, 1]))
        y = predictive.sample(rng, 1)[:, 0]
        if family == "quantiles":
            predictive = Quantiles(LEVELS, norm.ppf(LEVELS, x[:, :1], np.exp(x[:, 1:])))
        rows = Predictions(y=y, predictive=predictive, x=x, has_embedding=False)
        count += searched(rows, seed, replicates=19) is not None
    low, high = band(SETS, 0.05)
    assert low <= count <= high
