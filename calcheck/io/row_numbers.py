"""Row numbers in a file: a range for consecutive rows, an array if rows were dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Places: TypeAlias = range | NDArray[np.intp]


def as_array(places: Places) -> NDArray[np.intp]:
    """Return row numbers as an array."""
    return np.arange(places.start, places.stop) if isinstance(places, range) else places


def as_index(places: Places) -> slice | NDArray[np.intp]:
    """Return row numbers as a slice or an index array."""
    return slice(places.start, places.stop) if isinstance(places, range) else places


def as_sequence(places: Places) -> Sequence[int]:
    """Return row numbers as a sequence of integers."""
    return places if isinstance(places, range) else places.tolist()
