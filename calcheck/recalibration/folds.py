"""Folds of rows for cross-validation, which do not depend on the order of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.dependence.columns import column_labels, time_labels
from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions


def assign_folds(
    rows: Predictions, folds: int, *, seed: int = 0, cluster: str | None = None, time: str | None = None
) -> NDArray[np.intp]:
    """Return the fold of each row, (n,), in 0 … folds - 1.

    Rows are ordered by hashes of their contents, so that other orders of the rows give the same folds. Whole clusters
    are in one fold; with a time column, folds are blocks of time, and rows of one time are in one fold.

    Parameters
    ----------
    rows : Predictions
        The rows, with the named columns.
    folds : int
        Number of folds, >= 2.
    seed : int
        Seed of the hashes.
    cluster, time : str, optional
        Column of clusters, or of times.

    Raises
    ------
    DataError
        There are fewer rows, clusters or times than folds.
    """
    if time is not None:
        labels = time_labels(rows, time)
        order = np.arange(labels.max() + 1)
    elif cluster is not None:
        labels = column_labels(rows, cluster)
        order = np.argsort(hash_rows([np.arange(labels.max() + 1.0)], seed), kind="stable")
    else:
        y = rows.targets()
        words = hash_rows([y.reshape(len(y), -1), rows.distributions().hashes(seed)], seed)
        labels, order = np.arange(len(rows)), np.argsort(words, kind="stable")
    fold = _shared(labels, order, folds)
    if len(np.unique(fold)) < folds:
        what = "rows" if cluster is None and time is None else f"different values of {cluster or time!r}"
        msg = f"{len(order):,} {what} are too few for {folds} folds. Pass a smaller --folds, or more rows"
        raise DataError(msg)
    return fold


def _shared(labels: NDArray[np.intp], order: NDArray[np.intp], folds: int) -> NDArray[np.intp]:
    """Return the folds of rows, if groups in this order are shared out so that folds have about equally many rows."""
    counts = np.bincount(labels)[order]
    before = np.cumsum(counts) - counts / 2
    fold_of_group = np.empty(len(order), np.intp)
    fold_of_group[order] = np.minimum((before / len(labels) * folds).astype(np.intp), folds - 1)
    return fold_of_group[labels]
