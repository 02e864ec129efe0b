"""Windows of a monitored model: those that are stated, or by default at most twenty of equal numbers of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.io.times import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.monitoring.group_sums import GroupSums

    Times = NDArray[Any]

DEFAULT_WINDOWS = 20
MOST_GROUPS = 400  # Maximum number of groups of times whose sums a state keeps if no window is stated


def kept_window(stated: str | None, steps: Times) -> Window:
    """Return the groups of times whose sums a state keeps: the windows, or by default groups of one or a few times.

    Default windows depend on the number of all times, which later rows change. Groups have a power of 2 of times, so
    that groups of fewer times are parts of them.

    Parameters
    ----------
    stated : str, optional
        The window that the options state.
    steps : (s,)
        The different times.
    """
    return Window(count=_times_per_group(len(steps))) if stated is None else Window.parse(stated)


def shown_window(stated: str | None, steps: Times) -> Window:
    """Return the windows of a report: by default whole groups of times, in at most 20 windows."""
    if stated is not None:
        return Window.parse(stated)
    per_group = _times_per_group(len(steps))
    return Window(count=-(-len(steps) // (DEFAULT_WINDOWS * per_group)) * per_group)


def regroup(sums: GroupSums, window: Window, steps: Times) -> GroupSums:
    """Return sums over windows of a number of times, of sums over parts of these."""
    starts = window.starts(steps, "")
    return sums.merge(starts[np.searchsorted(steps, sums.keys)])


def _times_per_group(times: int) -> int:
    """Return the number of times of a group.

    Examples
    --------
    >>> [_times_per_group(times) for times in (1, 400, 401, 800, 801, 10_000)]
    [1, 1, 2, 2, 4, 32]
    """
    return 1 << (-(-times // MOST_GROUPS) - 1).bit_length()
