"""Clusters of an embedding as bins in which regions are searched: k-means on the inputs alone."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.cluster.vq import kmeans2, vq

from calcheck.core.filter_conditions import EQUAL, Condition
from calcheck.core.lazy_inputs import Inputs, blocks
from calcheck.distributions.row_random import hash_rows
from calcheck.kernels.bandwidths import sample_inputs
from calcheck.predictions import Predictions
from calcheck.regions.partition import Partition
from calcheck.typing import Floats, Indices, Values

EMBEDDING = "embedding"  # Name of the embedding among the columns of a search
SAMPLE_ROWS = 1 << 14  # Rows to which the clusters are fitted
ITERATIONS = 20
BLOCK_ROWS = 1 << 13  # Rows that are assigned together


@dataclass(frozen=True)
class InCluster(Condition):
    """Condition that a row is in a cluster, which no option can state."""

    is_option = False

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{'' if self.operator == EQUAL else 'not in '}cluster {self.value} of {self.column}"


@dataclass(frozen=True, eq=False)
class EmbeddingClusters:
    """Clusters of the rows."""

    partition: Partition  # The clusters as bins, which are in no order
    central: Indices  # (k,), the row nearest to the center of each cluster

    def details(self, rows: Predictions) -> dict[str, Any]:
        """Return the number of clusters, their sizes, and the numbers of the rows nearest to their centers."""
        sizes = self.partition.counts
        central = rows.row_numbers()[self.central]
        return {"count": len(sizes), "rows": sizes.tolist(), "central_rows": central.tolist()}


def cluster_embedding(
    x: Inputs, count: int, rng: Generator, *, sample_rows: int = SAMPLE_ROWS, block_rows: int = BLOCK_ROWS
) -> EmbeddingClusters:
    """Return clusters of an embedding (n, d) by k-means, fitted to a sample of the rows, the largest one first.

    Source: Arthur, Vassilvitskii (2007), "k-means++: the advantages of careful seeding", SODA.
    """
    centers = _fit(sample_inputs(x, sample_rows), count, rng)
    codes, distances = np.empty(len(x), dtype=np.intp), np.empty(len(x))
    for rows, block in blocks(x):
        codes[rows], distances[rows] = _assign(block, centers, block_rows)
    found, codes = np.unique(codes, return_inverse=True)
    order = np.argsort(-np.bincount(codes), kind="stable")
    codes = np.argsort(order)[codes]
    nearest = np.lexsort((distances, codes))
    central = nearest[np.searchsorted(codes[nearest], np.arange(len(found)))]
    bins = tuple((InCluster(EMBEDDING, EQUAL, str(number + 1)),) for number in range(len(found)))
    return EmbeddingClusters(Partition.make(codes, bins, EMBEDDING), central)


def _fit(sample: Floats, count: int, rng: Generator) -> Values:
    """Return the centers of clusters of a sample, (k, d)."""
    sample = sample[np.argsort(hash_rows([sample], 1), kind="stable")].astype(np.float64)
    distinct = np.unique(sample, axis=0)
    if len(distinct) <= count:
        return np.asarray(distinct)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its center
        centers, _ = kmeans2(sample, count, iter=ITERATIONS, minit="++", seed=rng)
    return np.asarray(centers)


def _assign(x: Floats, centers: Values, size: int) -> tuple[Indices, Values]:
    """Return the nearest center of each row, and the distance from it, (b,) each."""
    parts = [vq(x[start : start + size].astype(np.float64), centers) for start in range(0, len(x), size)]
    codes, distances = zip(*parts, strict=True)
    return np.concatenate(codes).astype(np.intp), np.concatenate(distances)
