"""Keys of rows: hashes of their content, which seed their random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions.row_random import hash_rows, mix
from calcheck.execution.context import RandomStream
from calcheck.lazy_inputs import LazyInputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions

    Words = NDArray[np.uint64]


def replicate_seed(run: Run) -> int:
    """Return the seed of the random numbers of replicates."""
    return int(run.rng(RandomStream.REPLICATES).integers(1 << 63))


def row_keys(rows: Predictions, seed: int) -> Words:
    """Return a key for each row of a data set, (n,), which does not depend on the order of the rows.

    A key is a hash of the seed, the target and the distribution. Ties are broken by inputs, other columns and id, and
    for fully equal rows by a counter.
    """
    keys = _hashes(rows, seed)
    tied = _tied(keys)
    if len(tied):
        keys[tied] = hash_rows([keys[tied], *_others(rows, tied)], 0)
        keys[tied] ^= mix(occurrences(keys[tied]))
    return keys


def batch_row_keys(rows: Predictions, seed: int) -> Words:
    """Return a key for each row of a batch, (n,); see :func:`row_keys`.

    Ties are broken by the row number in the file, because the rows of other batches are unknown.
    """
    keys = _hashes(rows, seed)
    tied = _tied(keys)
    keys[tied] = mix(keys[tied] ^ mix(rows.row_numbers()[tied].astype(np.uint64) + np.uint64(1)))
    return keys


def _hashes(rows: Predictions, seed: int) -> Words:
    return hash_rows([rows.targets(), rows.distributions().hashes(seed)], seed)


def _tied(hashes: Words) -> NDArray[np.intp]:
    """Return the positions of hashes that occur more than once."""
    order = np.argsort(hashes, kind="stable")
    equal = np.diff(hashes[order]) == 0
    return np.asarray(order[np.concatenate([equal, [False]]) | np.concatenate([[False], equal])])


def _others(rows: Predictions, chosen: NDArray[np.intp]) -> list[NDArray[Any]]:
    """Return further data of the chosen rows: inputs in memory, and ranks of columns and ids."""
    columns = [*rows.columns.values(), *([] if rows.id is None else [rows.id])]
    inputs = [] if rows.x is None or isinstance(rows.x, LazyInputs) else [rows.x[chosen]]
    return [*inputs, *(_ranks(column[chosen]) for column in columns)]


def _ranks(values: NDArray[Any]) -> NDArray[np.intp]:
    return np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)[1]


def occurrences(values: Words) -> Words:
    """Return the number of equal values before each value, (n,)."""
    order = np.argsort(values, kind="stable")
    places = np.arange(len(values))
    first = np.concatenate([[True], np.diff(values[order]) != 0])
    found = np.empty(len(values), dtype=np.uint64)
    found[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return found
