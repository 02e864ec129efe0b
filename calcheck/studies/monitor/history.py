"""What a monitored model has seen: sums of groups and of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calcheck.distributions.row_random import RowRandom, hash_rows, mix
from calcheck.errors import DataError
from calcheck.execution.bottom_k import occurrences
from calcheck.execution.run import RandomStream, Run
from calcheck.io.times import time_texts
from calcheck.statistics.pit import randomized_pit
from calcheck.statistics.scores import are_impossible
from calcheck.studies.monitor.e_process import (
    component_values,
    group_means,
    jumper_values,
    log_e_process,
    log_mean_densities,
)

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.typing import AnyArray, Mask, Values

Integers = NDArray[np.int64]


MOST_STEPS = 1_000  # Maximum lag: each lag has as many products


@dataclass(frozen=True, eq=False)
class History:
    """The rows of t pairs of a time and a horizon, summarized, in ascending order."""

    times: AnyArray  # (t,), target times: datetime64, or float64
    horizons: Integers  # (t,), horizons, in steps of the times
    rows: Integers  # (t,)
    # (t, b), logs of the means of beta densities at the PIT values of the rows; inf if a target has probability 0
    log_densities: Values
    means: Values  # (t, 2), means of u and of |2u - 1|
    components: Values  # (t, 4), means of the components of the PIT

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def steps(self) -> AnyArray:
        """The different times, in ascending order, (s,)."""
        return np.unique(self.times)

    @cached_property
    def impossible(self) -> Mask:
        """Whether a target has probability 0 under its prediction, (t,)."""
        return np.asarray(np.isposinf(self.log_densities).any(axis=1))

    @cached_property
    def lags(self) -> Integers:
        """The number of steps between the last observation that a forecast knows and its target, (t,).

        It is the horizon, if horizons count from 1. If they count from 0 or less, the smallest one has a lag of 1.
        """
        return self.horizons - min(int(self.horizons.min()), 1) + 1

    def take(self, chosen: AnyArray | slice) -> History:
        """Return a part of the history."""
        return History(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def log_e_values(self, lag: int) -> Values:
        """Return the log of the e-process of the forecasts with a lag after each of the steps, (s,)."""
        own = self.take(self.lags == lag)
        step = np.searchsorted(self.steps, own.times)
        path = np.concatenate([[-np.log(lag)], log_e_process(own.log_densities, own.means, step, lag)])
        return np.asarray(path[np.searchsorted(step, np.arange(len(self.steps)), side="right")])


def summarize(rows: Predictions, times: AnyArray, horizons: Integers, run: Run) -> History:
    """Return the history of rows.

    PIT values of distributions with jumps are randomized by a hash of the target, the distribution, the time and the
    horizon of each row, so that they do not depend on other rows.

    Shapes: times, horizons (n,).
    """
    seed = int(run.rng(RandomStream.RANDOMIZATION).integers(1 << 63))
    steps, step = np.unique(times, return_inverse=True)
    pairs, group, counts = np.unique(np.stack([step, horizons]), axis=1, return_inverse=True, return_counts=True)
    keys = hash_rows(
        [rows.targets(), rows.distributions().hashes(seed), steps.astype(np.float64)[step], horizons], seed
    )
    keys ^= mix(occurrences(keys))
    u = randomized_pit(rows, RowRandom(keys).random(len(keys)))
    group, count = group.reshape(len(u)), pairs.shape[1]
    return History(
        times=steps[pairs[0]],
        horizons=pairs[1].astype(np.int64),
        rows=counts.astype(np.int64),
        log_densities=log_mean_densities(u, group, count, are_impossible(rows)),
        means=group_means(jumper_values(u), group, count),
        components=group_means(component_values(u), group, count),
    )


def concatenate(pieces: Sequence[tuple[str, History]]) -> History:
    """Return the history of several pieces, which follow each other in time for each horizon."""
    total = pieces[0][1]
    for (before, _), (name, piece) in pairwise(pieces):
        _require_later(total, piece, before, name)
        parts = {each.name: [getattr(total, each.name), getattr(piece, each.name)] for each in fields(History)}
        total = History(**{key: np.concatenate(values) for key, values in parts.items()})
    return total.take(np.lexsort([total.horizons, total.times]))


def _require_later(total: History, piece: History, before: str, name: str) -> None:
    """Raise unless the times of each horizon of a piece are after those before it."""
    if total.times.dtype.kind != piece.times.dtype.kind:
        msg = f"the times of {before} and of {name} are of different kinds: dates and numbers"
        raise DataError(msg)
    for horizon in np.unique(piece.horizons):
        known, new = (each.times[each.horizons == horizon] for each in (total, piece))
        if not len(known) or known.max() < new.min():
            continue
        last, first = time_texts(np.array([known.max(), new.min()]))
        what = "again" if (known == new.min()).any() else "out of order"
        msg = (
            f"{name} has rows of {first} {what}: {before} ends at {last}. All rows of a time are in one file, and files"
            " follow each other in time"
        )
        raise DataError(msg)
