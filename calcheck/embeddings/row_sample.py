"""Mergeable uniform samples of rows: the rows with the smallest hashes."""

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

SAMPLE_ROWS = 1 << 14  # Maximum rows: means are accurate to half a percent; 512 float32 columns take 32 MiB


@dataclass(eq=False)
class RowSample:
    """Columns of a uniform sample of rows; all rows if they are few.

    Parameters
    ----------
    hashes : (k,) uint64
        Hashes of the rows, in ascending order.
    columns : dict
        Arrays (k, …) by name.
    """

    hashes: NDArray[np.uint64]
    columns: dict[str, NDArray[Any]]

    def add(self, other: RowSample) -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.hashes = hashes[kept]
        self.columns = {name: np.concatenate([each, other.columns[name]])[kept] for name, each in self.columns.items()}


@dataclass(eq=False)
class RowSampleSums:
    """A uniform sample of complete rows.

    Parameters
    ----------
    n : int
        Number of rows that were sampled from.
    hashes : (k,) uint64
        Hashes of the rows, in ascending order.
    rows : Predictions
        The k sampled rows.
    """

    n: int
    hashes: NDArray[np.uint64]
    rows: Predictions

    def add(self, other: RowSampleSums) -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.n += other.n
        self.hashes, self.rows = hashes[kept], concat([self.rows, other.rows]).take(kept)


@dataclass(frozen=True)
class SampleRows:
    """Function that samples the rows of a batch.

    Parameters
    ----------
    key : int
        Seed of the hashes.
    """

    key: int

    def __call__(self, batch: Predictions) -> RowSampleSums:
        """Return a sample of the rows of a batch."""
        hashes = hash_rows_and_inputs(batch, self.key)
        kept = bottom_k(hashes, SAMPLE_ROWS)
        return RowSampleSums(len(batch), hashes[kept], batch.take(kept))
