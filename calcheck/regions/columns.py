"""Columns that form slices: those of the file, and the predicted means and standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.regions.binning import bin_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.predictions import Source
    from calcheck.regions.binning import Binning
    from calcheck.regions.cut import Cut

MEAN, STD = "mean", "std"
PREDICTED = (MEAN, STD)
"""Columns of predicted means and standard deviations, which every file of distributions has."""


def cut_columns(source: Source, cuts: Sequence[Cut]) -> list[Binning]:
    """Return the bins of columns of a source.

    Raises
    ------
    DataError
        A column is missing or cannot be cut, or the predicted means of draws are not fixed by inputs.
    """
    roles = source.input_info().columns
    return [bin_column(roles.get(cut.column, cut.column), values_of(source, cut.column), cut) for cut in cuts]


def values_of(source: Source, column: str) -> NDArray[Any]:
    """Return the values of a column, or the predicted means or standard deviations, (n,).

    Raises
    ------
    DataError
        There is no such column, or the distributions are given by draws.
    """
    rows = source.predictions()
    if column in rows.columns:
        return np.asarray(rows.columns[column])
    if column not in PREDICTED:
        msg = f"there is no column {column!r} with one value per row"
        raise DataError(msg)
    if rows.distributions().n_draws is not None:
        msg = (
            f"the {column} of draws does not form groups: it varies with the draws, with which targets are exchanged."
            " Name columns of inputs"
        )
        raise DataError(msg)
    return rows.distributions().mean() if column == MEAN else rows.distributions().spread()
