"""Sizes of batches and partitions of files, and of what stays in memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadLimits:
    """Sizes of batches and partitions of a file, and of what stays in memory; they change no value that is read.

    Parameters
    ----------
    batch_bytes : int
        Target bytes per batch of a Parquet file; the default is 32 MiB.
    batch_rows : int
        Minimum rows per batch of a Parquet file.
    joined_bytes : int
        Maximum bytes per batch of inputs that are joined from another file.
    predictive_bytes : int
        Maximum bytes of distributions in memory, unless they have few parameters per row; larger ones are read again
        whenever they are needed.
    input_bytes : int
        Maximum bytes of inputs in memory; larger ones are read again whenever they are needed.
    partition_rows, partition_bytes : int
        Minimum rows or bytes of a partition for another process; a partition is complete at either minimum.
    """

    batch_bytes: int = 1 << 25
    batch_rows: int = 1 << 6
    joined_bytes: int = 1 << 26
    predictive_bytes: int = 1 << 26
    input_bytes: int = 1 << 29
    partition_rows: int = 1 << 16
    partition_bytes: int = 1 << 26
