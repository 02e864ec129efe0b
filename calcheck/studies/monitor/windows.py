"""Windows of a monitored model, and the sums of metrics by window or horizon, of the data and of replicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calcheck.io.times import Window
from calcheck.statistics.groups import Means

if TYPE_CHECKING:
    from calcheck.typing import AnyArray, Values

DEFAULT_WINDOWS = 20
MOST_GROUPS = 400  # Maximum number of groups of times whose sums a state keeps if no window is stated


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of columns over g groups of rows."""

    keys: AnyArray  # (g,), groups in ascending order: starts of windows, or horizons
    rows: NDArray[np.int64]  # (g,)
    # For each column of a metric, named `metric.column`, its sums (g, 1 + R): of the data, then of replicates
    sums: Mapping[str, Values]

    def add(self, other: GroupSums) -> GroupSums:
        """Return the sums over these and other rows, whose groups may be the same, and of the replicates of both."""
        sums = {}
        for name, own in self.sums.items():
            common = min(own.shape[1], other.sums[name].shape[1])
            sums[name] = np.concatenate([own[:, :common], other.sums[name][:, :common]])
        keys, rows = (np.concatenate([own, its]) for own, its in ((self.keys, other.keys), (self.rows, other.rows)))
        return GroupSums(keys, rows, sums).merge(keys)

    def merge(self, keys: AnyArray) -> GroupSums:
        """Return the sums over larger groups, whose keys are those of each group, (g,)."""
        keys, at = np.unique(keys, return_inverse=True)
        sums = {}
        for name, own in self.sums.items():
            sums[name] = np.zeros((len(keys), own.shape[1]))
            np.add.at(sums[name], at, own)
        return GroupSums(keys, np.bincount(at, self.rows).astype(np.int64), sums)

    def means(self, metric: str) -> Iterator[Means]:
        """Yield the means of the columns of a metric in each group, (1 + R,) each."""
        prefix = f"{metric}."
        columns = {name.removeprefix(prefix): each for name, each in self.sums.items() if name.startswith(prefix)}
        for group, rows in enumerate(self.rows.tolist()):
            yield Means({name: sums[group] / rows for name, sums in columns.items()}, rows)


class Adder:
    """Adds up columns by group, one data set after the other."""

    def __init__(
        self,
        keys: AnyArray,  # (n,), group of each row
    ) -> None:
        self._keys, self._codes = np.unique(keys, return_inverse=True)
        self._sums: dict[str, list[Values]] = {}

    def update(self, metric: str, columns: Mapping[str, Values]) -> None:
        """Add the columns of a metric, (n,) each: of the data, then of one replicate after the other."""
        for name, values in columns.items():
            sums = self._sums.setdefault(f"{metric}.{name}", [])
            sums.append(np.bincount(self._codes, values, len(self._keys)).astype(np.float64))

    def result(self) -> GroupSums:
        """Return the sums."""
        counts = np.bincount(self._codes, minlength=len(self._keys)).astype(np.int64)
        return GroupSums(self._keys, counts, {name: np.stack(sums, axis=1) for name, sums in self._sums.items()})


def kept_window(stated: str | None, steps: AnyArray) -> Window:
    """Return the groups of times whose sums a state keeps: the windows, or by default groups of one or a few times.

    Default windows depend on the number of all times, which later rows change. Groups have a power of 2 of times, so
    that groups of fewer times are parts of them.

    Shapes: steps (s,).
    """
    return Window(count=_times_per_group(len(steps))) if stated is None else Window.parse(stated)


def shown_window(stated: str | None, steps: AnyArray) -> Window:
    """Return the windows of a report: by default whole groups of times, in at most 20 windows."""
    if stated is not None:
        return Window.parse(stated)
    per_group = _times_per_group(len(steps))
    return Window(count=-(-len(steps) // (DEFAULT_WINDOWS * per_group)) * per_group)


def regroup(sums: GroupSums, window: Window, steps: AnyArray) -> GroupSums:
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
