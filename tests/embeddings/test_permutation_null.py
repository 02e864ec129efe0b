"""Strata in which the labels of two samples are permuted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.embeddings.permutations import GROUP, propensity, strata


def never():
    pytest.fail("no chance needs to be estimated")


def labels_of(n, m):
    return np.repeat([True, False], [n, m])


def test_equal_inputs_in_both_samples_are_strata():
    """Also if an input is more frequent in one sample."""
    x = np.array([[1.0, 0], [2, 0], [3, 0], [3, 0], [2, 0], [1, 0], [3, 0]])
    found = strata(x, labels_of(4, 3), never)
    assert found.by == "equal inputs"
    assert_array_equal(found.group, [0, 1, 2, 2, 1, 0, 2])
    assert found.exchangeable == 7


def test_one_dimensional_inputs_are_grouped_in_their_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1))
    found = strata(x, labels_of(20, 30), never)
    assert found.by == "input"
    order = np.argsort(x[:, 0])
    assert (np.diff(found.group[order]) >= 0).all()
    assert_array_equal(np.bincount(found.group), [GROUP] * 8 + [2])


def test_equal_inputs_are_in_one_stratum():
    """Otherwise the order of the file would separate the samples."""
    x = np.repeat([0.0, 1, 2, 3], [20, 4, 5, 20])[:, None]
    x[0] = -1.0  # in one sample only
    labels = np.arange(49) % 2 == 0
    found = strata(x, labels, never)
    assert found.by == "input"
    for value in np.unique(x):
        assert len(np.unique(found.group[x[:, 0] == value])) == 1
    assert found.exchangeable == 49


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(1)
    x, order = rng.normal(size=(40, 1)), rng.permutation(40)
    found, other = strata(x, labels_of(20, 20), never), strata(x[order], labels_of(20, 20)[order], never)
    assert_array_equal(other.group, found.group[order])


def test_several_inputs_are_grouped_by_propensity():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 3))
    labels = rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 1]))
    found = strata(x, labels, lambda: x)
    assert found.by == "propensity"
    assert np.corrcoef(found.group, x[:, 1])[0, 1] > 0.95


def test_propensities_agree_with_logistic_regression():
    """The gradient of the penalized likelihood is 0: mean loss plus |w|^2 / 2n, for features of any scale."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(200, 4)) * [3.0, 1, 1, 0.2]
    labels = rng.random(200) < 1 / (1 + np.exp(-features[:, 0]))
    found = propensity(features, labels)
    assert_allclose(propensity(10 * features, labels), found, rtol=1e-8)
    known = features / np.sqrt(np.mean(np.sum(features**2, axis=1)))
    weights = np.linalg.lstsq(np.c_[np.ones(200), known], found, rcond=None)[0]
    missed = labels - 1 / (1 + np.exp(-found))
    assert_allclose(missed.sum(), 0, atol=1e-7)
    assert_allclose(known.T @ missed, weights[1:], atol=1e-7)


def test_permutations_keep_the_number_of_labels_in_each_stratum():
    rng = np.random.default_rng(4)
    labels = labels_of(20, 28)
    found = strata(rng.normal(size=(48, 1)), labels, never)
    permuted = np.array(list(found.permuted(rng, 400)))
    for group in range(found.group.max() + 1):
        rows = found.group == group
        assert (permuted[:, rows].sum(axis=1) == labels[rows].sum()).all()
        assert_allclose(permuted[:, rows].mean(axis=0), labels[rows].mean(), atol=0.12)


def test_rows_without_neighbors_in_the_other_sample_are_not_permuted():
    x = np.concatenate([np.arange(12.0), 100 + np.arange(18.0)])[:, None]
    found = strata(x, labels_of(12, 18), never)
    assert found.exchangeable == 0
    (permuted,) = found.permuted(np.random.default_rng(0), 1)
    assert_array_equal(permuted, labels_of(12, 18))
