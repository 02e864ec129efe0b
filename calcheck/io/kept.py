"""What is kept in memory of the rows of a file: what takes little of it, however many rows there are."""

from __future__ import annotations

from copy import copy
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError
from calcheck.predictions import join

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

NARROW_BYTES = 32  # of parameters a row


def is_narrow(predictive: Predictive) -> bool:
    """Tell whether distributions take few parameters a row, and are no draws or quantiles."""
    by_parameters = predictive.draws_a_row is None and predictive.known_levels is None
    return by_parameters and predictive.nbytes <= NARROW_BYTES * len(predictive)


def joined(batches: list[Predictions]) -> Predictions:
    """Append batches; the places of their rows are left out if they are 0, 1, … and there are targets to count.

    Raises
    ------
    DataError
        There are no rows.
    """
    if not batches:
        msg = "there are no rows"
        raise DataError(msg)
    if batches[0].y is not None and _counted(batches):
        batches = [copy(batch) for batch in batches]  # they are sound
        for batch in batches:
            object.__setattr__(batch, "row", None)
    return join(batches)


def _counted(batches: list[Predictions]) -> bool:
    """Tell whether the places of all rows are 0, 1, …."""
    stops = accumulate(map(len, batches))
    return all(
        np.array_equal(batch.places(), np.arange(stop - len(batch), stop))
        for batch, stop in zip(batches, stops, strict=True)
    )
