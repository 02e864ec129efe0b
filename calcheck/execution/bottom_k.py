"""Random rows by their hashes: the same rows in any order, batches or parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calcheck.core.memory import Inputs, blocks, load, take
from calcheck.distributions.row_random import hash_rows, mix, occurrences
from calcheck.execution.run import RandomStream, Run

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.typing import AnyArray, Floats, Indices, Values

BLOCK_ROWS = 4096  # Rows whose inputs are hashed at a time


def sample_rows(rows: Predictions, size: int, run: Run) -> Indices:
    """Return a uniform random sample of rows: those with the smallest hashes of targets and predicted means.

    The hashes are of ranks among all rows, so they do not depend on units. Rows with equal targets and means have
    different hashes, so that groups of ties are not sampled together.
    """
    hashed = np.full(len(rows), hash_key(run), dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ _ranks(column))
    hashed ^= mix(occurrences(hashed))
    return bottom_k(hashed, size)


def sample_inputs(x: Inputs, size: int) -> Floats:
    """Return at most ``size`` of (n, d) inputs: all, or a uniform sample of those with the smallest hashes.

    The sample depends on the inputs only, not on a seed or on the order of rows. Rows with equal inputs have different
    hashes.
    """
    if len(x) <= size:
        return load(x)
    hashed = np.concatenate([hash_rows([block], 1) for _, block in blocks(x)])
    return take(x, np.sort(bottom_k(hashed ^ mix(occurrences(hashed)), size)))


def hash_key(run: Run) -> int:
    """Return the hash seed of a run."""
    return int(run.rng(RandomStream.LANDMARKS).integers(1 << 63, dtype=np.uint64))


def bottom_k(hashes: NDArray[np.uint64], size: int) -> Indices:
    """Return the positions of the smallest of (n,) hashes, in ascending order of hashes, (min(n, size),)."""
    if size >= len(hashes):
        return np.argsort(hashes, kind="stable")
    found = np.argpartition(hashes, size)[:size]
    return found[np.lexsort((found, hashes[found]))]


def hash_rows_and_inputs(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Return hashes of targets, predicted means and inputs, (n,); equal rows also use their row numbers.

    A bottom-k sample is therefore uniform even if targets and predictions take few values.
    """
    hashed = mix(_hashes(rows, key) ^ _hashes_of_inputs(rows.inputs(), key))
    _, which, count = np.unique(hashed, return_inverse=True, return_counts=True)
    again = count[which] > 1
    hashed[again] = mix(hashed[again] ^ rows.row_numbers()[again].astype(np.uint64))
    return hashed


def _ranks(values: AnyArray) -> NDArray[np.uint64]:
    """Return the dense rank of each value, (n,), from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.uint64)


def _hashes(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Return hashes of targets and predicted means, (n,)."""
    hashed = np.full(len(rows), key, dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    return hashed


def _hashes_of_inputs(x: Floats, key: int) -> NDArray[np.uint64]:
    """Return hashes of (n, d) inputs, (n,): integer dot products, which are free of rounding."""
    factors = np.random.default_rng(key).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    hashed = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[start : start + BLOCK_ROWS])
        words = block.view(f"u{block.itemsize}").astype(np.uint64)
        words ^= words >> np.uint64(32)  # Numbers with few digits differ in their leading bits only
        hashed[start : start + BLOCK_ROWS] = words @ factors
    return hashed


def _columns(values: Values) -> Values:
    return np.asarray(values.reshape(len(values), -1).T)
