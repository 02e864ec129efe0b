"""Equally spaced evaluation points on the range of one-dimensional inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import OptionError
from calcheck.predictions import InMemory, Predictions

if TYPE_CHECKING:
    from calcheck.predictions import Source

MOST_POINTS = 1_000_000  # maximum number of evaluation points


def require_grid(grid: int | None, *, at: bool) -> None:
    """Raise unless the number of points is in range, and ``at`` says that there are no other evaluation points.

    Raises
    ------
    OptionError
        The number is out of range, or there are other evaluation points.
    """
    if grid is not None and not 1 <= grid <= MOST_POINTS:
        msg = f"--grid must be between 1 and {MOST_POINTS:,}, got {grid}"
        raise OptionError(msg)
    if grid is not None and at:
        msg = "--grid and --at contradict each other: pass only one of them"
        raise OptionError(msg)


def grid_of(source: Source, size: int, name: str) -> InMemory:
    """Return equally spaced inputs, (size, 1), from the smallest to the largest input of a source.

    Parameters
    ----------
    source : Source
        Rows with inputs.
    size : int
        Number of points.
    name : str
        Name of the input, as the column of the points.

    Raises
    ------
    DataError
        There are no inputs.
    OptionError
        The inputs have several dimensions.
    """
    rows = source.predictions()
    x = rows.inputs()
    if x.shape[1] > 1:
        msg = f"--grid needs one-dimensional inputs, and these have {x.shape[1]} dimensions. Pass --at FILE instead"
        raise OptionError(msg)
    points = np.linspace(x.min(), x.max(), size, dtype=np.float64)
    return InMemory(Predictions(x=points[:, None], has_embedding=rows.has_embedding, columns={name: points}))
