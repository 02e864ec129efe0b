"""Inputs that are kept on disk and read again on each use, and columns of inputs that state categories."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calcheck.typing import Floats, Indices, Mask


@dataclass(frozen=True, eq=False)
class LazyInputs:
    """Inputs that are too large for memory; each method makes one pass over all rows, block by block."""

    # Returns an iterator over the inputs from the first row, in blocks (b, d)
    read: Callable[[], Iterator[Floats]]
    shape: tuple[int, int]  # Number of rows and of features, (n, d)
    dtype: np.dtype[np.floating[Any]]  # Data type of the inputs
    ndim = 2

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Memory that the loaded inputs would take, in bytes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows and their inputs, (b, d) each, in blocks that fit in memory."""
        start = 0
        for block in self.read():
            yield slice(start, start + len(block)), block
            start += len(block)

    def take(self, rows: Indices | slice) -> Floats:
        """Return the inputs of the selected rows, (m, d), in the given order."""
        wanted = np.arange(len(self))[rows]
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        rows_read = np.empty((len(wanted), self.shape[1]), self.dtype)
        for place, block in self.blocks():
            low, high = np.searchsorted(ascending, [place.start, place.stop])
            rows_read[order[low:high]] = block[ascending[low:high] - place.start]
        return rows_read

    def load(self) -> Floats:
        """Return all inputs as one array, (n, d)."""
        full = np.empty(self.shape, self.dtype)
        for place, block in self.blocks():
            full[place] = block
        return full


class Categories(NamedTuple):
    """Columns of inputs that state the category of each row in a column of text: 1 in one of them, 0 in the others."""

    column: str  # Name of the column of text
    values: tuple[str, ...]  # The categories
    start: int  # Place of the first of their columns in the inputs

    @property
    def places(self) -> slice:
        """The places of their columns."""
        return slice(self.start, self.start + len(self.values))

    def other(self, x: Floats) -> Mask:
        """Return which rows of inputs (n, d) have another category, (n,)."""
        return np.asarray(~x[:, self.places].any(axis=1))


Inputs: TypeAlias = NDArray[np.floating[Any]] | LazyInputs


def take(x: Inputs, rows: Indices | slice) -> Floats:
    """Return the selected rows of inputs in memory or on disk, (m, d), in the given order."""
    return x.take(rows) if isinstance(x, LazyInputs) else x[rows]


def load(x: Inputs) -> Floats:
    """Return all inputs as one array in memory, (n, d)."""
    return x.load() if isinstance(x, LazyInputs) else x


def same_inputs(first: Inputs | None, second: Inputs | None) -> bool:
    """Return whether two models have the same inputs, or neither has inputs."""
    if first is None or second is None or first is second:
        return first is second
    if first.shape != second.shape:
        return False
    streamed, other = (first, second) if isinstance(first, LazyInputs) else (second, first)
    loaded = load(other)  # only one array is loaded, also if both are lazy
    return all(np.array_equal(loaded[rows], block) for rows, block in blocks(streamed))


def blocks(x: Inputs) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of rows and their inputs, (b, d) each; one block if the inputs are in memory."""
    return x.blocks() if isinstance(x, LazyInputs) else iter([(slice(0, len(x)), x)])
