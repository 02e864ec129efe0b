"""Work that several metrics ask for and that is done once."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.predictions import Predictions

ResultT = TypeVar("ResultT")


def once(function: Callable[[Predictions], ResultT]) -> Callable[[Predictions], ResultT]:
    """Keep what a function says of some rows for as long as the rows are kept."""
    known: WeakKeyDictionary[Predictions, ResultT] = WeakKeyDictionary()

    @wraps(function)
    def remembered(rows: Predictions) -> ResultT:
        if rows not in known:
            known[rows] = function(rows)
        return known[rows]

    return remembered
