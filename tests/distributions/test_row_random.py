"""Random streams of rows: their distributions, and their dependence on key and replicate only."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.row_random import RowRandom, hash_rows, mix
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator, batch_replicates
from calcheck.predictions import Predictions, batch_row_keys, row_keys
from tests.helpers.families import FAMILIES, calibrated

N = 50_000
KEYS = hash_rows([np.arange(N)], 7)
RARE = 1e-4  # p-values of right generators are smaller in one of ten thousand tests; seeds are fixed


def column(value):
    return np.full((N, 1), float(value))


def test_mix_agrees_with_splitmix64():
    """The first three numbers of SplitMix64 from seed 1234567, as its authors' code prints them."""
    step = 0x9E3779B97F4A7C15
    words = np.array([(1234567 + step * place) % 2**64 for place in (1, 2, 3)], dtype=np.uint64)
    assert mix(words).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.slow
def test_hashes_do_not_depend_on_the_last_digits():
    """Functions such as exp differ in them between machines."""
    values = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(2000) ** 0.7
    same = hash_rows([values], 7) == hash_rows([np.nextafter(values, np.inf)], 7)
    assert same.mean() > 0.999  # those at the edge between two rounded numbers differ
    assert (hash_rows([values], 7) != hash_rows([values * (1 + 1e-8)], 7)).all()
    whole = np.arange(2.0**20)
    assert len(np.unique(hash_rows([whole], 7))) == len(whole)


def test_rows_that_differ_in_the_last_digits_have_keys_of_their_own():
    loc = 1.7e9 + np.arange(100) * 1e-3
    rows = Predictions(y=loc, predictive=Gaussian(loc, np.ones(100)), columns={"a": np.arange(100)})
    order = np.random.default_rng(0).permutation(100)
    keys = row_keys(rows, 3)
    assert len(np.unique(keys)) == 100
    assert_array_equal(row_keys(rows.take(order), 3), keys[order])


LAWS = {
    "uniform": (lambda rng: rng.random((N, 2)), stats.uniform()),
    "normal": (lambda rng: rng.standard_normal((N, 2)), stats.norm()),
    "cauchy": (lambda rng: rng.standard_cauchy((N, 2)), stats.cauchy()),
    "laplace": (lambda rng: rng.laplace(size=(N, 2)), stats.laplace()),
    "lognormal": (lambda rng: rng.lognormal(column(1), column(0.5), (N, 2)), stats.lognorm(0.5, scale=np.e)),
    **{
        f"t {df:g}": (lambda rng, df=df: rng.standard_t(column(df), (N, 2)), stats.t(df))
        for df in (0.5, 3.0, 30.0, 1e6)
    },
    **{
        f"gamma {shape:g}": (
            lambda rng, shape=shape: rng.gamma(column(shape), 2.0, (N, 2)),
            stats.gamma(shape, scale=2),
        )
        for shape in (0.05, 0.5, 1.0, 2.5, 100.0, 1e8)
    },
}


@pytest.mark.parametrize("law", LAWS)
def test_numbers_follow_their_distribution_and_replicates_are_independent(law):
    """Kolmogorov's test of each, and Spearman's correlation of both."""
    draw, distribution = LAWS[law]
    found = draw(RowRandom(KEYS))
    for replicate in found.T:
        assert stats.kstest(replicate, distribution.cdf).pvalue > RARE
    assert stats.spearmanr(*found.T).pvalue > RARE


@pytest.mark.parametrize("rate", [0.01, 1.0, 6.0, 9.99, 10.0, 25.0, 400.0])
def test_poisson_numbers_follow_their_probabilities(rate):
    found = RowRandom(KEYS).poisson(column(rate), (N, 1))[:, 0]
    low, high = stats.poisson.ppf([1e-3, 1 - 1e-3], rate)
    values = np.arange(low, high + 1)
    counts = np.array([np.sum(found == value) for value in values])
    expected = N * stats.poisson.pmf(values, rate)
    assert np.sum((counts - expected) ** 2 / expected) < stats.chi2(len(values)).ppf(1 - RARE)


@pytest.mark.parametrize("rate", [1e5, 1e10, 1e15, 1e18, 1e300])
def test_poisson_numbers_of_large_rates_are_whole_and_nearly_normal(rate):
    """numpy refuses 1e18. Up to rounding the numbers are normal with standard deviation sqrt(rate)."""
    found = RowRandom(KEYS).poisson(column(rate), (N, 1))[:, 0]
    assert_array_equal(found, np.floor(found))
    if rate <= 1e18:
        away = (found - rate) / np.sqrt(rate)
        assert_allclose([away.mean(), away.std()], [0, 1], atol=5 / np.sqrt(N))
    assert_allclose(found, rate, rtol=max(1e-12, 8 / np.sqrt(rate)))


def test_integers_are_uniform():
    counts = np.bincount(RowRandom(KEYS).integers(0, 7, N), minlength=7)
    assert stats.chisquare(counts).pvalue > RARE


@pytest.mark.parametrize("draw", [draw for draw, _ in LAWS.values()], ids=LAWS)
def test_a_replicate_does_not_depend_on_earlier_ones(draw):
    """Replicate 1 of two, and replicate 1 alone."""
    assert_array_equal(draw(RowRandom(KEYS))[:, 1], draw(RowRandom(KEYS).for_replicate(1))[:, 0])


def test_a_row_does_not_depend_on_other_rows():
    rows = slice(40_000, 40_100)
    whole, part = RowRandom(KEYS), RowRandom(KEYS).take(rows)
    for draw in (
        lambda rng, n: rng.standard_normal((n, 3)),
        lambda rng, n: rng.random((n, 2)),
    ):  # one call, then another
        assert_array_equal(draw(whole, N)[rows], draw(part, 100))


def test_each_call_returns_new_numbers():
    rng = RowRandom(KEYS)
    first, second = rng.random(N), rng.random(N)
    assert stats.spearmanr(first, second).pvalue > RARE
    assert not np.any(first == second)


def test_zero_and_minus_zero_have_the_same_hash_and_other_numbers_do_not():
    found = hash_rows([np.array([0.0, -0.0, 5e-300, 1.0, 1.0])], 3)
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert len(set(found.tolist())) == 3
    assert not set(found.tolist()) & set(hash_rows([np.array([0.0, 1.0])], 4).tolist())


def test_the_hash_depends_on_the_order_of_columns():
    one, two = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    assert len({*hash_rows([one, two], 0).tolist(), *hash_rows([two, one], 0).tolist()}) == 2
    wide = np.column_stack([one, two])
    assert len(set(hash_rows([wide], 0).tolist())) == 2


@pytest.mark.parametrize("family", [*FAMILIES, "several targets"])
def test_replicates_do_not_depend_on_the_order_of_rows(family):
    """Each row has the same simulated targets as in the original order."""
    rows = calibrated("gaussian", n=40) if family == "several targets" else calibrated(family, n=40)
    order = np.random.default_rng(0).permutation(40)
    run = Run(replicates=19)
    found = np.array([each.y for each in NullSimulator(rows, run)])
    again = np.array([each.y for each in NullSimulator(rows.take(order), run)])
    assert_array_equal(found[:, order], again)


def test_equal_rows_have_independent_replicates():
    rows = Predictions(y=np.full(50, 3.0), predictive=Poisson(np.full(50, 4.0)))
    assert len(set(row_keys(rows, 1).tolist())) == 50
    assert len(set(batch_row_keys(rows, 1).tolist())) == 50
    found = np.array([each.y for each in NullSimulator(rows, Run(replicates=400))])
    assert abs(np.corrcoef(found.T) - np.eye(50)).max() < 0.3  # 5.7 standard errors of 1/20


def test_equal_predictions_are_distinguished_by_inputs_columns_and_ids():
    """Counts with one rate: simulated targets follow the inputs to any row of the file."""
    n, rng = 60, np.random.default_rng(1)
    order = rng.permutation(n)
    rows = Predictions(
        y=rng.integers(0, 3, n).astype(float),
        predictive=Poisson(np.full(n, 1.5)),
        x=rng.normal(size=(n, 2)),
        has_embedding=False,
    )
    named = [
        rows,
        Predictions(y=rows.y, predictive=rows.predictive, columns={"when": np.arange(n).astype("datetime64[D]")}),
        Predictions(y=rows.y, predictive=rows.predictive, id=np.array([f"row {place}" for place in range(n)], object)),
    ]
    for each in named:
        found, again = ([one.y for one in NullSimulator(one, Run(replicates=19))] for one in (each, each.take(order)))
        assert_array_equal(np.array(found)[:, order], again)


def test_replicates_of_distinct_rows_do_not_depend_on_batches():
    rows = calibrated("gaussian", n=40)
    parts = [rows.take(slice(0, 13)), rows.take(slice(13, 40))]
    whole = np.array([each.y for each in NullSimulator(rows, Run(replicates=19))])
    found = [np.array([each.y for each in batch_replicates(part, 19, Run())]) for part in parts]
    assert_array_equal(np.concatenate(found, axis=1), whole)


def test_targets_and_draws_of_a_row_are_exchanged_in_each_replicate():
    """Two targets and three draws a row: in 4,000 replicates each value is a target two times of five."""
    values = np.arange(10.0).reshape(2, 5, 1)
    rows = Predictions(y=values[:, :2], predictive=Samples(values[:, 2:, 0]))
    found = np.array([each.y for each in NullSimulator(rows, Run(replicates=4000))])[:, :, :, 0]
    shares = np.mean(found[:, :, :, None] == values[None, :, None, :, 0], axis=0).sum(axis=1)
    assert_allclose(shares, 0.4, atol=4.5 * np.sqrt(0.24 / 4000))
    steps = [np.mean(np.all(found[1:] == found[:-1], axis=(1, 2)))]  # no replicate repeats the last
    assert steps[0] < 0.02


def test_different_seeds_give_different_targets():
    rows = Predictions(y=np.zeros(5), predictive=Gaussian(np.zeros(5), np.ones(5)))
    found = [next(iter(NullSimulator(rows, Run(replicates=19, seed=seed)))).y for seed in (0, 1)]
    assert not set(found[0]) & set(found[1])
