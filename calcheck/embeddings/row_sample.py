"""Uniform samples of rows that add up: of batches, files and days, the rows with the smallest hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.bottom_k import bottom_k, hash_rows_and_inputs
from calcheck.predictions import concat

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

SAMPLE_ROWS = 1 << 14  # a mean over so many is known to half a per cent; of 512 numbers in float32 they take 32 MiB


@dataclass(eq=False)
class RowSample:
    """What is known of a uniform sample of rows, of all of them where they are few.

    Parameters
    ----------
    hashes : (k,) uint64
        Of the rows, the smallest first.
    columns : dict
        By name, (k, …) each.
    """

    hashes: NDArray[np.uint64]
    columns: dict[str, NDArray[Any]]

    def add(self, other: RowSample) -> None:
        """Make it a sample of other rows too, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.hashes = hashes[kept]
        self.columns = {name: np.concatenate([each, other.columns[name]])[kept] for name, each in self.columns.items()}


@dataclass(eq=False)
class RowSampleSums:
    """A uniform sample of rows as they are.

    Parameters
    ----------
    n : int
        How many rows it is a sample of.
    hashes : (k,) uint64
        Of the rows, the smallest first.
    rows : Predictions
        The rows, k of them.
    """

    n: int
    hashes: NDArray[np.uint64]
    rows: Predictions

    def add(self, other: RowSampleSums) -> None:
        """Make it a sample of other rows too, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.n += other.n
        self.hashes, self.rows = hashes[kept], concat([self.rows, other.rows]).take(kept)


@dataclass(frozen=True)
class SampleRows:
    """Samples the rows of a batch.

    Parameters
    ----------
    key : int
        What hashes hang on besides the rows.
    """

    key: int

    def __call__(self, batch: Predictions) -> RowSampleSums:
        """Sample them."""
        hashes = hash_rows_and_inputs(batch, self.key)
        kept = bottom_k(hashes, SAMPLE_ROWS)
        return RowSampleSums(len(batch), hashes[kept], batch.take(kept))
