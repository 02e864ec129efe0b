"""Columns that form slices: those of the file, and the predicted means and standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.regions.binning import bin_column, column_values, quantile_bins, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.predictions import Source
    from calcheck.regions.binning import Binning
    from calcheck.regions.cut import Cut

MEAN, STD = "mean", "std"
PREDICTED = (MEAN, STD)
"""Columns of predicted means and standard deviations, which every file of distributions has."""
COMPUTED = "predicted"  # Prefix of columns that the file does not have
MOST_FREQUENT = 20  # Maximum number of texts that have a bin of their own in a search


def cut_columns(source: Source, cuts: Sequence[Cut]) -> list[Binning]:
    """Return the bins of columns of a source.

    Raises
    ------
    DataError
        A column is missing or cannot be cut, or the predicted means of draws are not fixed by inputs.
    """
    return [bin_column(name_of(source, cut.column), values_of(source, cut.column), cut) for cut in cuts]


def name_of(source: Source, column: str) -> str:
    """Return the name of a column in conditions: for predicted means and deviations, that of their column."""
    if column not in PREDICTED or column in source.predictions().columns:
        return column
    return source.input_info().columns.get(column, f"{COMPUTED} {column}")


def search_columns(source: Source, columns: Sequence[str], bins: int, fewest: int) -> list[Binning]:
    """Return the bins of columns in which regions are searched.

    Numbers and times have quantile bins, and texts a bin for each of the 20 most frequent, and one for the others.

    Parameters
    ----------
    source : Source
        Predictions and columns.
    columns : sequence of str
        Names of the columns.
    bins : int
        Number of quantile bins.
    fewest : int
        Minimum number of rows of a text that has a bin.
    """
    return [_search_bins(name_of(source, name), values_of(source, name), bins, fewest) for name in columns]


def _search_bins(name: str, raw: NDArray[Any], bins: int, fewest: int) -> Binning:
    values, missing = column_values(raw)
    if values.dtype.kind == "U":
        return texts(name, values, missing, MOST_FREQUENT, max(2, fewest))
    return quantile_bins(name, values, missing, bins)


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
