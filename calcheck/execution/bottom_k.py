"""Samples of rows that hang on what rows hold, and not on their order: the same from one file or from many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions.row_random import hash_rows, mix
from calcheck.execution.context import RandomStream
from calcheck.execution.row_keys import occurrences
from calcheck.lazy_inputs import blocks, load, take

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.lazy_inputs import Inputs
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

BLOCK_ROWS = 4096  # whose inputs are hashed at a time


def sample_rows(rows: Predictions, size: int, run: Run) -> NDArray[np.intp]:
    """Choose rows uniformly, in a random order: those whose targets and predictions have the smallest hashes.

    What is hashed is their rank among those of all rows, which is the same in every unit; of rows that share both, each
    has a hash of its own, or whole groups would come together.

    Parameters
    ----------
    rows : Predictions
        With targets and distributions.
    size : int
        How many, at most.
    run : Run
        The seed.

    Returns
    -------
    (min(n, size),) intp
        Places among the rows. The first of them are a uniform sample too.
    """
    hashed = np.full(len(rows), hash_key(run), dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ _ranks(column))
    hashed ^= mix(occurrences(hashed))
    return bottom_k(hashed, size)


def sample_inputs(x: Inputs, size: int) -> NDArray[np.floating[Any]]:
    """Return all of (n, d) inputs, or so many where they are more, a uniform sample: those with the smallest hashes.

    Which are taken follows from the inputs alone: neither a seed nor the order of rows changes it. Of rows with the
    same input, each has a hash of its own.
    """
    if len(x) <= size:
        return load(x)
    hashed = np.concatenate([hash_rows([block], 1) for _, block in blocks(x)])
    return take(x, np.sort(bottom_k(hashed ^ mix(occurrences(hashed)), size)))


def hash_key(run: Run) -> int:
    """Return what hashes of rows hang on besides the rows."""
    return int(run.rng(RandomStream.LANDMARKS).integers(1 << 63, dtype=np.uint64))


def bottom_k(hashes: NDArray[np.uint64], size: int) -> NDArray[np.intp]:
    """Return the places of the smallest of (n,) hashes, in their order, (min(n, size),)."""
    if size >= len(hashes):
        return np.argsort(hashes, kind="stable")
    found = np.argpartition(hashes, size)[:size]
    return found[np.lexsort((found, hashes[found]))]


def hash_rows_and_inputs(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Hash rows by targets, predicted means and inputs, (n,); rows that are the same by their places too.

    So a sample by hashes is uniform also where targets and predictions take few values.
    """
    hashed = mix(_hashes(rows, key) ^ _hashes_of_inputs(rows.inputs(), key))
    _, which, count = np.unique(hashed, return_inverse=True, return_counts=True)
    again = count[which] > 1
    hashed[again] = mix(hashed[again] ^ rows.row_numbers()[again].astype(np.uint64))
    return hashed


def _ranks(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return how many different smaller values there are, for each of (n,)."""
    return np.unique(values, return_inverse=True)[1].astype(np.uint64)


def _hashes(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Hash rows by targets and predicted means, (n,)."""
    hashed = np.full(len(rows), key, dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    return hashed


def _hashes_of_inputs(x: NDArray[np.floating[Any]], key: int) -> NDArray[np.uint64]:
    """Hash (n, d) inputs, (n,): sums of products of whole numbers, which no order of rows rounds differently."""
    factors = np.random.default_rng(key).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    hashed = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[start : start + BLOCK_ROWS])
        words = block.view(f"u{block.itemsize}").astype(np.uint64)
        words ^= words >> np.uint64(32)  # numbers of few digits differ in their first bits only
        hashed[start : start + BLOCK_ROWS] = words @ factors
    return hashed


def _columns(values: Values) -> NDArray[np.float64]:
    return np.asarray(values.reshape(len(values), -1).T)
