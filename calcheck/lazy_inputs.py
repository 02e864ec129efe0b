"""Inputs that are left where they are, and read again whenever they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LazyInputs:
    """Inputs that are too many numbers to be held: an embedding of a million rows, say.

    Each method reads all rows once, block by block.

    Parameters
    ----------
    read : callable
        Reads the inputs from the start, in blocks of rows, (b, d) each.
    shape : (int, int)
        Rows and numbers a row, (n, d).
    dtype : dtype
        Of the numbers.
    """

    read: Callable[[], Iterator[NDArray[np.floating[Any]]]]
    shape: tuple[int, int]
    dtype: np.dtype[np.floating[Any]]
    ndim = 2

    def __len__(self) -> int:
        """Count the rows, n."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """How much memory they would take."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
        """Yield rows and their inputs, (b, d) each, in parts that fit in memory."""
        start = 0
        for block in self.read():
            yield slice(start, start + len(block)), block
            start += len(block)

    def take(self, rows: NDArray[np.intp] | slice) -> NDArray[np.floating[Any]]:
        """Return some rows, (m, d), in the order given."""
        wanted = np.arange(len(self))[rows]
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        rows_read = np.empty((len(wanted), self.shape[1]), self.dtype)
        for place, block in self.blocks():
            low, high = np.searchsorted(ascending, [place.start, place.stop])
            rows_read[order[low:high]] = block[ascending[low:high] - place.start]
        return rows_read

    def load(self) -> NDArray[np.floating[Any]]:
        """Return all rows, (n, d)."""
        full = np.empty(self.shape, self.dtype)
        for place, block in self.blocks():
            full[place] = block
        return full


Inputs: TypeAlias = "NDArray[np.floating[Any]] | LazyInputs"


def take(x: Inputs, rows: NDArray[np.intp] | slice) -> NDArray[np.floating[Any]]:
    """Return some rows of inputs that are held or deferred, (m, d), in the order given."""
    return x.take(rows) if isinstance(x, LazyInputs) else x[rows]


def load(x: Inputs) -> NDArray[np.floating[Any]]:
    """Return all rows of inputs that are held or deferred, (n, d)."""
    return x.load() if isinstance(x, LazyInputs) else x


def same_inputs(first: Inputs | None, second: Inputs | None) -> bool:
    """Tell whether two models are conditioned on the same inputs, or both on none."""
    if first is None or second is None or first is second:
        return first is second
    if first.shape != second.shape:
        return False
    theirs, mine = (first, second) if isinstance(first, LazyInputs) else (second, first)
    whole = load(mine)  # one of them, where both are deferred
    return all(np.array_equal(whole[rows], block) for rows, block in blocks(theirs))


def blocks(x: Inputs) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Yield rows of inputs that are held or deferred, and their inputs, (b, d) each."""
    return x.blocks() if isinstance(x, LazyInputs) else iter([(slice(0, len(x)), x)])
