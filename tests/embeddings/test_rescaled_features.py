"""Features shared by many data sets: |f C|² is the squared distance of embeddings under each data set's own kernel."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.embeddings import rbf
from calcheck.embeddings.rbf import SharedFeatures
from calcheck.embeddings.target_kernels import DataSet, SwappedDraw
from calcheck.execution.run import RandomStream, Run
from tests.helpers.naive import target_kernel

N = 40


def shared_features(data, covered=None, **options):
    covered = data.model[0] if covered is None else covered
    return SharedFeatures(data, covered, lambda: Run().rng(RandomStream.FEATURES), **options)


def distances(features, each, trial=0):
    """Return |psi(y_i) - E psi(Y'_i)|², (n,), and the products of these differences between rows, (n, n)."""
    observed, model, norm, _ = features.rescaled(each)
    apart = (observed - model[trial]) @ norm
    return apart @ apart.T


def by_draws(y, draws, gamma):
    """The same by kernel values of all targets and draws: y (n, t), draws (n, m, t)."""
    n, size, t = draws.shape
    k, flat = target_kernel(gamma), draws.reshape(-1, t)
    cross = k(y, flat).reshape(n, n, size).mean(axis=2)
    model = k(flat, flat).reshape(n, size, n, size).mean(axis=(1, 3))
    return k(y, y) - cross - cross.T + model


def by_normal(y, mean, std, gamma):
    """The same for normal distributions, in closed form; y, mean and std (n, t)."""

    def product(u, v, variance):
        spread = 1 + 2 * gamma * variance
        return np.prod(np.exp(-gamma * (u[:, None] - v) ** 2 / spread) / np.sqrt(spread), axis=2)

    cross = product(y, mean, np.broadcast_to(std**2, (N, *std.shape)))
    return (
        product(y, y, np.zeros((N, N, y.shape[1]))) - cross - cross.T + product(mean, mean, std[:, None] ** 2 + std**2)
    )


def normal_case(columns=1):
    rng = np.random.default_rng(columns)
    mean, std = rng.normal(size=(N, columns)), rng.uniform(0.3, 0.8, (N, columns))
    one = [Gaussian(mean[:, t], std[:, t]) for t in range(columns)]
    return rng, mean, std, (one[0] if columns == 1 else Independent(tuple(one)))


@pytest.mark.parametrize("factor", [1.0, 1.3, 0.75, 1.42, 1.9, 0.3, 8.0, 40.0, 1e-3])
def test_distances_are_accurate_for_kernels_of_any_width(factor):
    """Features are shared within half an octave of the data's bandwidth, and new beyond."""
    rng, mean, std, predictive = normal_case()
    data = DataSet(mean + std, np.array([0.5]), [predictive])
    features = shared_features(data)
    for targets in (data.y, mean + std * rng.normal(size=(N, 1))):
        gamma = 0.5 * np.array([factor])
        found = distances(features, DataSet(targets, gamma, [predictive]))
        assert_allclose(found, by_normal(targets, mean, std, gamma), rtol=0, atol=3e-6)


@pytest.mark.parametrize("factor", [1.0, 1.3, 0.6])
@pytest.mark.parametrize("size", [None, 1, 5])
def test_differences_along_few_directions_are_accurate(monkeypatch, size, factor):
    """Directions of the data and of four other data sets, and interpolated features; a far target needs others."""
    monkeypatch.setattr(rbf, "FEWEST_ROWS", N)
    rng, mean, std, predictive = normal_case()
    gamma, values = factor * np.array([0.02]), mean[:, :, None] + std[:, :, None] * rng.normal(size=(N, 1, 6))
    y = mean + std * rng.normal(size=(N, 1))
    model = predictive if size is None else Samples(values[:, 0, :size])
    features = shared_features(DataSet(y, gamma / factor, [model]), differences=True)
    columns = features.rescaled(DataSet(y, gamma, [model]))[0].shape[1]
    for targets, few in ((values[:, :, 5], True), (np.where(np.arange(N)[:, None] == 3, 1e4, y), False)):
        each = DataSet(targets, gamma, [model])
        expected = (
            by_normal(targets, mean, std, gamma)
            if size is None
            else by_draws(targets, values[:, 0, :size, None], gamma)
        )
        assert_allclose(distances(features, each), expected, rtol=0, atol=3e-6)
        assert (features.rescaled(each)[0].shape[1] == columns) == few


@pytest.mark.parametrize("columns", [2, 3])
def test_distances_are_accurate_for_vectors(columns):
    """Bandwidths of columns change independently; targets outside the pool become elements."""
    rng, mean, std, predictive = normal_case(columns)
    gamma = np.full(columns, 0.5 / columns)
    features = shared_features(DataSet(mean + std * rng.normal(size=std.shape), gamma, [predictive]))
    for factor in (np.ones(columns), np.linspace(0.6, 1.6, columns)):
        targets = mean + std * rng.normal(size=std.shape)
        found = distances(features, DataSet(targets, gamma * factor, [predictive]))
        assert_allclose(found, by_normal(targets, mean, std, gamma * factor), rtol=0, atol=2e-4)


@pytest.mark.parametrize("far", [30.0, -1e4, 1e12])
def test_distant_targets_are_represented(far):
    """A target hundreds of length scales from all others is orthogonal to them: |psi(y)|² = 1, other products 0."""
    rng, mean, std, predictive = normal_case()
    features = shared_features(DataSet(mean + std, np.array([0.5]), [predictive]))
    targets = mean + std * rng.normal(size=(N, 1))
    targets[[3, 17], 0] = far, 2 * far
    for _ in range(2):  # elements added by one data set are not used for the next
        found = distances(features, DataSet(targets, np.array([0.5]), [predictive]))
        assert_allclose(found, by_normal(targets, mean, std, np.array([0.5])), rtol=0, atol=3e-6)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_distances_are_accurate_for_exchanged_draws(columns, size):
    rng = np.random.default_rng(size)
    values = rng.normal(size=(N, size + 1, columns))
    values[:, :, -1] *= 30
    predictive = Samples(values[:, 1:] if columns > 1 else values[:, 1:, 0])
    gamma = 1 / (2 * columns * values[:, 0].var(axis=0, ddof=1))
    features = shared_features(DataSet(values[:, 0], gamma, [predictive]))
    for seed in range(3):
        place = np.random.default_rng(seed).integers(0, size + 1, N)
        exchanged = values.copy()
        exchanged[np.arange(N), 0], exchanged[np.arange(N), place] = values[np.arange(N), place], values[:, 0]
        for factor in (1.0, 1.3, 3.0):
            each = DataSet(exchanged[:, 0], factor * gamma, [SwappedDraw(predictive)])
            expected = by_draws(exchanged[:, 0], exchanged[:, 1:], factor * gamma)
            assert_allclose(distances(features, each), expected, rtol=0, atol=1e-5)


def test_draws_of_all_trials_are_represented():
    """In the first trial all draws are near 0; in the second one is at 50, far from all targets."""
    rng = np.random.default_rng(0)
    y, first, second = rng.normal(size=(3, N, 1))
    second[7] = 50.0
    data = DataSet(y, np.array([0.5]), [Samples(first), Samples(second)])
    features = shared_features(data, Samples(np.concatenate([first, second], axis=1)))
    for trial, draws in enumerate((first, second)):
        expected = by_draws(y, draws[:, :, None], np.array([0.5]))
        assert_allclose(distances(features, data, trial), expected, rtol=0, atol=1e-6)


def test_distances_are_accurate_for_counts():
    """Poisson(3): masses on 0, ..., 59, as the rows' distributions."""
    from scipy import stats

    predictive, k = Poisson(np.full(N, 3.0)), np.arange(60.0)[:, None]
    y = np.random.default_rng(0).poisson(3, (N, 1)).astype(float)
    features = shared_features(DataSet(y, np.array([0.4]), [predictive]))
    mass = np.zeros((N, 60)) + stats.poisson(3).pmf(k[:, 0])
    for gamma in (0.4, 0.5, 5.0):
        both = np.eye(60)[y[:, 0].astype(int)] - mass
        expected = both @ target_kernel(np.array([gamma]))(k, k) @ both.T
        assert_allclose(distances(features, DataSet(y, np.array([gamma]), [predictive])), expected, rtol=0, atol=3e-6)


def cross_products(features, each):
    """Return E k(y_i, Y'_j), (n, n)."""
    observed, model, norm, _ = features.rescaled(each)
    return observed @ norm @ (model[0] @ norm).T


def test_elements_added_by_a_data_set_represent_its_distributions():
    """The pool is made for narrow distributions, and targets of wide ones are added.

    Products are exact for the kernel of the features, half an octave above that of the data.
    """
    rng, mean, _, narrow = normal_case()
    wide, gamma, own = Gaussian(mean[:, 0], np.full(N, 9.0)), np.array([0.5]), 0.5 * 1.4142
    features = shared_features(DataSet(mean, gamma, [wide]), narrow)
    targets = mean + 9 * rng.normal(size=(N, 1))
    spread = 1 + 2 * own * 81
    expected = np.exp(-own * (targets - mean[:, 0]) ** 2 / spread) / np.sqrt(spread)
    assert_allclose(cross_products(features, DataSet(targets, np.array([own]), [wide])), expected, rtol=0, atol=2e-4)


def test_elements_added_by_a_data_set_represent_exchanged_draws():
    """The pool is made for the first draws, near 0; the second ones, near 20, become targets."""
    rng = np.random.default_rng(0)
    values, gamma = rng.normal((0, 0, 20), 1, (N, 3)), np.array([0.5])
    draws = Samples(values[:, 1:])
    features = shared_features(DataSet(values[:, :1], gamma, [draws]), Samples(values[:, 1:2]))
    place, rows = rng.integers(0, 3, N), np.arange(N)
    exchanged = values.copy()
    exchanged[rows, 0], exchanged[rows, place] = values[rows, place], values[:, 0]
    found = cross_products(features, DataSet(exchanged[:, :1], gamma, [SwappedDraw(draws)]))
    expected = target_kernel(gamma)(exchanged[:, :1], exchanged[:, 1:].reshape(-1, 1)).reshape(N, N, 2).mean(axis=2)
    assert_allclose(found, expected, rtol=0, atol=2e-3)


def test_memory_holds_features_of_further_rows_along_few_directions_only():
    """Less than one float64 array of all features of these rows, once the directions are known."""

    def held(n):
        rng = np.random.default_rng(0)
        mean = rng.normal(size=n)
        data = DataSet(rng.normal(mean)[:, None], np.array([2.0]), [Gaussian(mean, np.ones(n))])
        features = shared_features(data, differences=True)
        tracemalloc.start()
        try:
            features.rescaled(data)
            return tracemalloc.get_traced_memory()[0], features._octaves[0].features.rank
        finally:
            tracemalloc.stop()

    (fewer, rank), (more, _) = held(5_000), held(15_000)
    assert more - fewer < 8 * 10_000 * rank
