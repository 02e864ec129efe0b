"""What columns whose names do not tell their scale make of the data, read one way and the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.predictions import Predictions

MOST_HINTS = 3  # columns that are read


def scale_hint(columns: Sequence[str], with_variances: Callable[[str], Predictions]) -> str:
    """Say what mean z² is if columns hold variances, and if they hold standard deviations; nothing if it cannot be.

    Parameters
    ----------
    columns : sequence of str
        Columns of unclear scale.
    with_variances : callable
        Reads the file with a column of variances.
    """
    hints = []
    for column in columns[:MOST_HINTS]:
        try:
            rows = with_variances(column)
        except (DataError, OptionError):
            continue
        if rows.y is None or rows.predictive is None:
            continue
        error, std = rows.y - rows.predictive.mean(), rows.predictive.std()
        with np.errstate(all="ignore"):  # numbers beyond all bounds are told as what they are
            as_variance, as_std = (float(np.mean((error / spread) ** 2)) for spread in (std, std**2))
        hints.append(f"{column}: {as_variance:.3g} as a variance, {as_std:.3g} as a std")
    return f". Mean z², about 1 if right: {'; '.join(hints)}" if hints else ""
