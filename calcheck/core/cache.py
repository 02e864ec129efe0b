"""Cache of statistics, by rows and parameters."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from calcheck.typing import AnyArray

OwnerT = TypeVar("OwnerT")
ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")

KEPT_BYTES = 3 << 26  # Maximum cache size: 192 MiB, or two columns of ten million rows
_clock = count()
_unchecked = 0  # Bytes that were added since the size of the cache was last computed


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
    """Cache results of a function for the lifetime of its first argument, rows or distributions, up to a limit."""

    @wraps(function)
    def remembered(owner: OwnerT, /, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT:
        known = _known.setdefault(owner, {})
        key = (function, args, tuple(sorted(kwargs.items())))
        if key in known:
            known[key].used = next(_clock)
            return known[key].result  # type: ignore[no-any-return]
        result = function(owner, *args, **kwargs)
        owned = {id(_whole(array)) for array in _arrays(owner)}  # its owner holds these anyway
        sizes = {id(array): array.nbytes for array in map(_whole, _arrays(result)) if id(array) not in owned}
        known[key] = _Kept(result, sum(sizes.values()))
        _evict_lru(known[key].nbytes)
        return result

    return remembered


def _evict_lru(added: int) -> None:
    """Evict the least recently used entries until the cache is within its limit, once a sixteenth of it was added."""
    global _unchecked  # noqa: PLW0603 - of the cache, which is global
    _unchecked += added
    if _unchecked <= KEPT_BYTES // 16:
        return
    _unchecked, total = 0, sum(each.nbytes for known in _known.values() for each in known.values())
    entries = [(each, key, known) for known in _known.values() for key, each in known.items() if each.nbytes]
    for each, key, known in sorted(entries, key=lambda entry: entry[0].used):
        if total <= KEPT_BYTES:
            return
        total -= each.nbytes
        del known[key]


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
