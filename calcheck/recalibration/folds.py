"""Folds of rows for cross-validation, which do not depend on the order of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.dependence.columns import column_labels, time_labels
from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError
from calcheck.execution.row_dependence import RowDependence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions


def assign_folds(
    rows: Predictions, folds: int, *, seed: int = 0, dependence: RowDependence | None = None
) -> NDArray[np.intp]:
    """Return the fold of each row, (n,), in 0 … folds - 1.

    Rows are ordered by hashes of their contents, so that other orders of the rows give the same folds. Whole clusters
    are in one fold. Folds of a series are blocks of time, and rows of one time are in one fold; without a column of
    times, the order of the rows is that of time.

    Parameters
    ----------
    rows : Predictions
        The rows, with the named columns.
    folds : int
        Number of folds, >= 2.
    seed : int
        Seed of the hashes.
    dependence : RowDependence, optional
        Which rows depend on each other.

    Raises
    ------
    DataError
        There are fewer rows, clusters or times than folds.
    """
    stated = dependence or RowDependence()
    if stated.time is not None or stated.block is not None:
        labels = time_labels(rows, stated.time)
        order = np.arange(labels.max() + 1)
    elif stated.cluster is not None:
        labels = column_labels(rows, stated.cluster)
        order = np.argsort(hash_rows([np.arange(labels.max() + 1.0)], seed), kind="stable")
    else:
        y = rows.targets()
        words = hash_rows([y.reshape(len(y), -1), rows.distributions().hashes(seed)], seed)
        labels, order = np.arange(len(rows)), np.argsort(words, kind="stable")
    fold = _shared(labels, order, folds)
    if len(np.unique(fold)) < folds:
        what = f"different values of {stated.columns[0]!r}" if stated.columns else "rows"
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
