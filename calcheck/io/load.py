"""Load all rows of a file into one batch; inputs and distributions above a size limit stay on disk."""

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

NARROW_BYTES = 32  # Distributions with at most this many bytes of parameters per row are always loaded
# Larger data is read again from the file whenever it is needed.
MAX_PREDICTIVE_BYTES = 1 << 26  # Maximum bytes of distributions in memory
MAX_INPUT_BYTES = 1 << 29  # Maximum bytes of inputs in memory


def load_all(scan: Scan) -> tuple[Predictions, Scan]:
    """Return all rows as one batch, and the scan that read them.

    Inputs above the size limit are not read in this scan, unless they determine which rows are dropped.

    Parameters
    ----------
    scan : Scan
        A scan of all columns that are needed.

    Raises
    ------
    DataError
        There are no rows, or some are invalid.
    """
    large = scan.inputs_bytes() > MAX_INPUT_BYTES
    eager = scan.without_inputs() if large and not scan.lenient else scan
    batches: list[Predictions] = []
    size, first = 0, None
    for batch in eager.batches():
        size += 0 if batch.predictive is None or fits_in_memory(batch.predictive) else batch.predictive.nbytes
        if size > MAX_PREDICTIVE_BYTES and first is None and batch.predictive is not None:
            first = batch.predictive.take(slice(0, 1))
            batches = [earlier.without("predictive") for earlier in batches]
        deferred = [*(["predictive"] if first is not None else []), *(["x"] if large else [])]
        batches.append(batch.without(*deferred) if deferred else batch)
    rows = concat_batches(batches)
    if first is not None:
        rows = replace(rows, predictive=LazyPredictive(lambda: _distributions(scan), first, len(rows)))
    return (replace(rows, x=_eager_or_lazy_inputs(scan, len(rows))) if large else rows), eager


def _eager_or_lazy_inputs(scan: Scan, count: int) -> Inputs:
    """Return the inputs of all rows: loaded, or left on disk if they are larger than the limit."""
    with closing(_inputs(scan)) as blocks:
        first = next(blocks)
    lazy = LazyInputs(lambda: _inputs(scan), (count, first.shape[1]), first.dtype)
    return lazy if lazy.nbytes > MAX_INPUT_BYTES else lazy.load()


def _inputs(scan: Scan) -> Generator[NDArray[np.floating[Any]]]:
    """Read the inputs again, in batches."""
    for batch in scan.of_inputs().batches():
        yield batch.inputs()


def _distributions(scan: Scan) -> Iterator[Predictive]:
    """Read the distributions again, in batches."""
    return (batch.predictive for batch in scan.of_predictive().batches() if batch.predictive is not None)


def fits_in_memory(predictive: Predictive) -> bool:
    """Return whether distributions have few parameters per row, and no draws or quantiles."""
    by_parameters = predictive.n_draws is None and predictive.quantile_levels is None
    return by_parameters and predictive.nbytes <= NARROW_BYTES * len(predictive)


def concat_batches(batches: list[Predictions]) -> Predictions:
    """Concatenate batches; row numbers are dropped if they are 0, 1, … and there are targets.

    Raises
    ------
    DataError
        There are no rows.
    """
    if not batches:
        msg = "there are no rows"
        raise DataError(msg)
    if batches[0].y is not None and _is_consecutive(batches):
        batches = [copy(batch) for batch in batches]  # already validated
        for batch in batches:
            object.__setattr__(batch, "row", None)
    return concat(batches)


def _is_consecutive(batches: list[Predictions]) -> bool:
    """Return whether the row numbers are 0, 1, …."""
    stops = accumulate(map(len, batches))
    return all(
        np.array_equal(batch.row_numbers(), np.arange(stop - len(batch), stop))
        for batch, stop in zip(batches, stops, strict=True)
    )
