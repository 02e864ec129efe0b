"""All rows of a file in one batch; what would fill the memory is left in the file."""

from __future__ import annotations

from contextlib import closing
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions.lazy import LazyPredictive
from calcheck.errors import DataError
from calcheck.lazy_inputs import LazyInputs
from calcheck.predictions import concat

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.io.scan import Scan
    from calcheck.lazy_inputs import Inputs
    from calcheck.predictions import Predictions

NARROW_BYTES = 32  # of parameters a row
HELD_BYTES = 1 << 26  # of distributions in memory; more of them are read again whenever they are needed
HELD_INPUTS = 1 << 29  # bytes of inputs in memory; more of them are read again whenever they are needed


def load_all(whole: Scan) -> tuple[Predictions, Scan]:
    """Read all rows into one batch, and return the pass that met them.

    Inputs that may be too large to be held are not looked at in this pass, unless they decide which rows are left out.

    Parameters
    ----------
    whole : Scan
        All columns that are needed.

    Raises
    ------
    DataError
        There are no rows, or they are not sound.
    """
    large = whole.inputs_bytes() > HELD_INPUTS
    met = whole.without_inputs() if large and not whole.lenient else whole
    batches: list[Predictions] = []
    size, first = 0, None
    for batch in met.batches():
        size += 0 if batch.predictive is None or fits_in_memory(batch.predictive) else batch.predictive.nbytes
        if size > HELD_BYTES and first is None and batch.predictive is not None:
            first = batch.predictive.take(slice(0, 1))
            batches = [each.without("predictive") for each in batches]
        left = [*(["predictive"] if first is not None else []), *(["x"] if large else [])]
        batches.append(batch.without(*left) if left else batch)
    rows = concat_batches(batches)
    if first is not None:
        rows = replace(rows, predictive=LazyPredictive(lambda: _distributions(whole), first, len(rows)))
    return (replace(rows, x=_left(whole, len(rows))) if large else rows), met


def _left(whole: Scan, count: int) -> Inputs:
    """Return the inputs of so many rows, left in their file if they are as large as they looked."""
    with closing(_inputs(whole)) as blocks:
        first = next(blocks)
    left = LazyInputs(lambda: _inputs(whole), (count, first.shape[1]), first.dtype)
    return left if left.nbytes > HELD_INPUTS else left.load()


def _inputs(whole: Scan) -> Generator[NDArray[np.floating[Any]]]:
    """Read the inputs again, batch by batch."""
    for batch in whole.of_inputs().batches():
        yield batch.inputs()


def _distributions(whole: Scan) -> Iterator[Predictive]:
    """Read the distributions again, batch by batch."""
    return (batch.predictive for batch in whole.of_predictive().batches() if batch.predictive is not None)


def fits_in_memory(predictive: Predictive) -> bool:
    """Tell whether distributions take few parameters a row, and are no draws or quantiles."""
    by_parameters = predictive.n_draws is None and predictive.quantile_levels is None
    return by_parameters and predictive.nbytes <= NARROW_BYTES * len(predictive)


def concat_batches(batches: list[Predictions]) -> Predictions:
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
    return concat(batches)


def _counted(batches: list[Predictions]) -> bool:
    """Tell whether the places of all rows are 0, 1, …."""
    stops = accumulate(map(len, batches))
    return all(
        np.array_equal(batch.row_numbers(), np.arange(stop - len(batch), stop))
        for batch, stop in zip(batches, stops, strict=True)
    )
