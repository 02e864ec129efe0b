"""NumPy files: arrays of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from calcheck.io.files import File


class ArrayTable:
    """Named arrays as columns, rows along the first axis; two-dimensional ones as fixed-size lists."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._table = pa.table({name: _column(name, values) for name, values in arrays.items()})
        self.schema = self._table.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in one batch."""
        yield self._table.select(list(columns))


def npy_table(file: File) -> ArrayTable:
    """Open a .npy file; its one array is the column ``embedding``."""
    return ArrayTable({"embedding": np.load(file.stream(), allow_pickle=False)})


def npz_table(file: File) -> ArrayTable:
    """Open a .npz file; a single array is the column ``embedding`` whatever its name."""
    with np.load(file.stream(), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if len(arrays) == 1:
        arrays = {"embedding": next(iter(arrays.values()))}
    return ArrayTable(arrays)


def _column(name: str, values: NDArray[Any]) -> pa.Array:
    """Make an Arrow column of an array (n,) or (n, ...).

    Raises
    ------
    DataError
        The array has no rows axis, or does not hold numbers.
    """
    if values.ndim == 0 or values.dtype.kind not in "fiub":
        msg = f"array {name!r} has shape {values.shape} and type {values.dtype}; rows of numbers are needed"
        raise DataError(msg)
    if values.ndim == 1:
        return pa.array(values)
    flat = np.ascontiguousarray(values).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), flat.size // max(1, len(values)))
