"""Sizes at which a computation samples rows, or changes to a cheaper method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes at which a computation samples rows, or changes to a cheaper method.

    They trade accuracy or memory for time. They are no options of the user, so that the same file always has the same
    results.

    Parameters
    ----------
    max_exact_flops : float
        Maximum multiply-adds for an exact solver of cce. The default is 40,000 rows of 512 columns: one to two minutes.
    evaluated_rows : int
        Maximum rows over which cce on landmarks is averaged; the relative standard error is then below one percent.
    full_validation_rows : int
        Up to this many rows, all are validation rows, and the mean of cce on landmarks is exact.
    validation_rows : int
        Minimum validation rows otherwise, on which the Nyström error is estimated.
    pilot_rows : int
        Rows of the pilot sample that determines the number of landmarks before all rows are read.
    min_landmarks : int
        Minimum number of landmarks.
    block_rows : int
        Rows whose kernel values with landmarks are computed at a time, which takes tens of MB.
    cholesky_rows : int
        Maximum rows for Cholesky by default: under half a second, and dof is exact.
    factor_rows : int
        Maximum rows for Cholesky if several regressions share a lambda: about a second.
    nystroem_ranks : tuple of int
        Numbers of landmarks of low-rank approximations, tried in order.
    smoother_bytes : int
        Bytes per block of the matrix that smooths.
    reach_rank, reach_signs : int
        Landmarks of a low-rank approximation of squared weights, and random sign vectors that estimate the rest, for
        more than ``cholesky_rows`` rows.
    abc_rows : int
        Minimum rows for ABC limits, which need no resamples; their error is then below 0.4 % of the width of the
        interval.
    many_rows : int
        From this number of rows on, metrics of all rows start with 59 replicates, for time; more follow for open
        verdicts.
    pointwise_replicates : int
        Default replicates for tests at each input; tails fitted to 199 replicates reject too often.
    max_pointwise_inputs : int
        Maximum inputs, and rows, for that default, which then takes seconds.
    block_targets : int
        Targets of replicates that are drawn at a time; the default takes 32 MiB.
    block_swaps : int
        Rows that a permutation test swaps at a time. The random numbers depend on it.
    """

    max_exact_flops: float = 2e13
    evaluated_rows: int = 1 << 15
    full_validation_rows: int = 1 << 12
    validation_rows: int = 1 << 10
    pilot_rows: int = 1 << 13
    min_landmarks: int = 1 << 8
    block_rows: int = 4096
    cholesky_rows: int = 2048
    factor_rows: int = 6000
    nystroem_ranks: tuple[int, ...] = (256, 512, 1024, 2048)
    smoother_bytes: int = 1 << 26
    reach_rank: int = 512
    reach_signs: int = 32
    abc_rows: int = 20_000
    many_rows: int = 1_000_000
    pointwise_replicates: int = 1_999
    max_pointwise_inputs: int = 2_048
    block_targets: int = 1 << 22
    block_swaps: int = 1 << 21

    def n_validation(self, n: int, n_landmarks: int) -> int:
        """Return the number of validation rows: n if n is small, otherwise at least the number of landmarks."""
        return n if n <= self.full_validation_rows else max(self.validation_rows, n_landmarks)
