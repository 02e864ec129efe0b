"""Hash of a data set, so that each data set has its own random stream."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def hash_order(y: NDArray[Any]) -> int:
    """Return a hash of the sort order of the targets, which does not depend on their unit."""
    order = np.argsort(y, axis=None, kind="stable").astype("<i8", copy=False)
    return int.from_bytes(blake2b(order.data, digest_size=8).digest())
