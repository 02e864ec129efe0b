"""Clusters of an embedding depend on its rows only, and each row is in the nearest one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

from calcheck.core.lazy_inputs import LazyInputs
from calcheck.regions.partition import cluster_embedding, filter_options, label_of


def blobs(sizes=(50, 120, 80), seed=0):
    """Return an embedding of groups that are far from each other, in random order, and the group of each row."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = 20 * np.eye(len(sizes), 5)
    return centers[group] + rng.normal(size=(len(group), 5)), group


def clustered(x, count, seed=1, **sizes):
    return cluster_embedding(x, count, np.random.default_rng(seed), **sizes)


def test_groups_far_from_each_other_are_clusters_by_size():
    x, group = blobs()
    found = clustered(x, 3)
    assert_array_equal(found.partition.label, np.array([2, 0, 1])[group])
    assert [label_of(each) for each in found.partition.bins] == [f"cluster {k} of embedding" for k in (1, 2, 3)]


def test_each_row_is_in_the_cluster_with_the_nearest_center_of_the_final_means():
    x = np.random.default_rng(3).normal(size=(400, 2))
    found = clustered(x, 6)
    centers = np.array([x[found.partition.label == k].mean(axis=0) for k in range(6)])
    assert np.mean(cdist(x, centers).argmin(axis=1) == found.partition.label) > 0.97  # the last step moves few rows
    sizes = np.bincount(found.partition.label)
    assert_array_equal(sizes, np.sort(sizes)[::-1])


def test_the_central_row_of_a_cluster_is_nearest_to_its_center():
    x, _ = blobs()
    found = clustered(x, 3)
    for number, row in enumerate(found.central):
        inside = np.flatnonzero(found.partition.label == number)
        assert row == inside[np.linalg.norm(x[inside] - x[inside].mean(axis=0), axis=1).argmin()]


@pytest.mark.parametrize("sample", [1 << 14, 100])
def test_clusters_do_not_depend_on_the_order_of_rows_or_on_blocks(sample):
    x = np.random.default_rng(4).normal(size=(500, 3)).astype(np.float32)
    order = np.random.default_rng(5).permutation(500)
    whole = clustered(x, 7, sample_rows=sample).partition.label
    assert_array_equal(clustered(x[order], 7, sample_rows=sample).partition.label, whole[order])
    lazy = LazyInputs(lambda: iter([x[:130], x[130:]]), x.shape, x.dtype)
    assert_array_equal(clustered(lazy, 7, sample_rows=sample).partition.label, whole)
    assert_array_equal(clustered(x, 7, sample_rows=sample, block_rows=64).partition.label, whole)


def test_there_are_no_more_clusters_than_different_rows():
    x = np.repeat([[0.0, 1.0], [2.0, 3.0]], [30, 20], axis=0)
    found = clustered(x, 10)
    assert found.partition.label.tolist() == [0] * 30 + [1] * 20


def test_no_option_selects_a_cluster():
    partition = clustered(blobs()[0], 3).partition
    assert filter_options(partition.bins[0]) == ""
