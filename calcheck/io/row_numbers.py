"""Places of rows in their file: a range while rows follow each other, an array where some are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Places: TypeAlias = range | NDArray[np.intp]


def as_array(places: Places) -> NDArray[np.intp]:
    """Return them as an array."""
    return np.arange(places.start, places.stop) if isinstance(places, range) else places


def as_index(places: Places) -> slice | NDArray[np.intp]:
    """Return them as what selects them in an array."""
    return slice(places.start, places.stop) if isinstance(places, range) else places


def as_sequence(places: Places) -> Sequence[int]:
    """Return them as whole numbers."""
    return places if isinstance(places, range) else places.tolist()
