"""Hint for columns of unknown scale: the mean squared z-score as a variance and as a standard deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.predictions import Predictions

MAX_COLUMNS = 3  # Maximum columns to try


def scale_hint(columns: Sequence[str], with_variances: Callable[[str], Predictions]) -> str:
    """Return the mean z² of columns read as variances and as standard deviations; empty if it cannot be computed.

    Parameters
    ----------
    columns : sequence of str
        Columns that may hold variances or standard deviations.
    with_variances : callable
        Reads the file with the given column as the variance.
    """
    hints = []
    for column in columns[:MAX_COLUMNS]:
        try:
            rows = with_variances(column)
        except (DataError, OptionError):
            continue
        if rows.y is None or rows.predictive is None:
            continue
        error, std = rows.y - rows.predictive.mean(), rows.predictive.std()
        with np.errstate(all="ignore"):  # overflow and division by zero are shown as inf or nan
            as_variance, as_std = (float(np.mean((error / spread) ** 2)) for spread in (std, std**2))
        hints.append(f"{column} gives {as_variance:.3g} as a variance, {as_std:.3g} as a standard deviation")
    return f". Mean z² should be about 1: {'; '.join(hints)}" if hints else ""
