"""Work that several metrics, or all replicates of the targets, ask for and that is done once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

OwnerT = TypeVar("OwnerT")
ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")

KEPT_BYTES = 3 << 26  # 192 MiB, two columns of ten million rows: more is forgotten, and made again when needed
_clock = count()


@dataclass
class _Kept:
    """A result, how much memory it takes, and when it was last asked for."""

    result: Any
    nbytes: int
    used: int = field(default_factory=lambda: next(_clock))


_known: WeakKeyDictionary[Any, dict[Any, _Kept]] = WeakKeyDictionary()


def cached(
    function: Callable[Concatenate[OwnerT, ParametersT], ResultT],
) -> Callable[Concatenate[OwnerT, ParametersT], ResultT]:
    """Keep what a function says of its first argument (rows, or distributions) for as long as that is kept.

    What depends on the distributions alone is best made a function of these: replicates of the targets share them.
    Where all that is kept takes too much memory, what was not asked for the longest is forgotten.
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
    """Forget what was not asked for the longest, until the rest takes no more memory than it may."""
    kept = [(each, key, known) for known in _known.values() for key, each in known.items() if each.nbytes]
    total = sum(each.nbytes for each, *_ in kept)
    for each, key, known in sorted(kept, key=lambda entry: entry[0].used):
        if total <= KEPT_BYTES:
            return
        total -= each.nbytes
        del known[key]


def _nbytes(owner: object, result: object) -> int:
    """Return how much memory a result takes besides what its owner holds anyway."""
    held = {id(_whole(array)) for array in _arrays(owner)}
    return sum({id(array): array.nbytes for array in map(_whole, _arrays(result)) if id(array) not in held}.values())


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that one is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _arrays(holder: object) -> Iterator[NDArray[Any]]:
    """Yield an array itself, or those that a tuple or an object has."""
    if isinstance(holder, np.ndarray):
        yield holder
        return
    for part in holder if isinstance(holder, tuple) else vars(holder).values() if hasattr(holder, "__dict__") else ():
        if isinstance(part, np.ndarray):
            yield part
