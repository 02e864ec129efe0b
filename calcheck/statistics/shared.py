"""Work that several metrics, or all replicates of the targets, ask for and that is done once."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

OwnerT = TypeVar("OwnerT")
ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")


def once(
    function: Callable[Concatenate[OwnerT, ParametersT], ResultT],
) -> Callable[Concatenate[OwnerT, ParametersT], ResultT]:
    """Keep what a function says of its first argument (rows, or distributions) for as long as that is kept.

    What depends on the distributions alone is best made a function of these: replicates of the targets share them.
    """
    known: WeakKeyDictionary[OwnerT, dict[object, ResultT]] = WeakKeyDictionary()

    @wraps(function)
    def remembered(owner: OwnerT, /, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT:
        found = known.setdefault(owner, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in found:
            found[key] = function(owner, *args, **kwargs)
        return found[key]

    return remembered
