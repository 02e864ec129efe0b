"""What is kept in memory: statistics are cached, and large inputs are read again on each use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from calcheck.typing import AnyArray, Floats, Indices


@dataclass(frozen=True, eq=False)
class LazyInputs:
    """Inputs that are too large for memory, such as an embedding of a million rows.

    Each method makes one pass over all rows, block by block.
    """

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


Inputs: TypeAlias = "NDArray[np.floating[Any]] | LazyInputs"


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


OwnerT = TypeVar("OwnerT")
ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")

KEPT_BYTES = 3 << 26  # Maximum cache size: 192 MiB, or two columns of ten million rows
_clock = count()


@dataclass
class _Kept:
    """A cached result, its size in bytes, and the time of its last use."""

    result: Any
    nbytes: int
    used: int = field(default_factory=lambda: next(_clock))


_known: WeakKeyDictionary[Any, dict[Any, _Kept]] = WeakKeyDictionary()


def cached(
    function: Callable[Concatenate[OwnerT, ParametersT], ResultT],
) -> Callable[Concatenate[OwnerT, ParametersT], ResultT]:
    """Cache the results of a function for the lifetime of its first argument (rows, or distributions).

    A result that depends on distributions only should be a function of these: replicates of the targets share them.
    If the cache exceeds its limit, the least recently used entries are evicted.
    """

    @wraps(function)
    def remembered(owner: OwnerT, /, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT:
        known = _known.setdefault(owner, {})
        key = (function, args, tuple(sorted(kwargs.items())))
        if key in known:
            known[key].used = next(_clock)
            return known[key].result  # type: ignore[no-any-return]
        result = function(owner, *args, **kwargs)
        known[key] = _Kept(result, _nbytes(owner, result))
        _evict_lru()
        return result

    return remembered


def _evict_lru() -> None:
    """Evict the least recently used entries until the cache is within its limit."""
    total = sum(each.nbytes for known in _known.values() for each in known.values())
    if total <= KEPT_BYTES:
        return
    entries = [(each, key, known) for known in _known.values() for key, each in known.items() if each.nbytes]
    for each, key, known in sorted(entries, key=lambda entry: entry[0].used):
        if total <= KEPT_BYTES:
            return
        total -= each.nbytes
        del known[key]


def _nbytes(owner: object, result: object) -> int:
    """Return the size of a result in bytes, without arrays that its owner holds anyway."""
    owned = {id(_whole(array)) for array in _arrays(owner)}
    return sum({id(array): array.nbytes for array in map(_whole, _arrays(result)) if id(array) not in owned}.values())


def _whole(array: AnyArray) -> AnyArray:
    """Return the base array of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _arrays(holder: object) -> Iterator[AnyArray]:
    """Yield the array itself, or the arrays that are members of a tuple or an object."""
    if isinstance(holder, np.ndarray):
        yield holder
        return
    for part in holder if isinstance(holder, tuple) else vars(holder).values() if hasattr(holder, "__dict__") else ():
        if isinstance(part, np.ndarray):
            yield part
