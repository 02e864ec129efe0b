"""Tests by betting, valid at any time, and what they have seen of a monitored model."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calcheck.core import sc
from calcheck.distributions.row_random import RowRandom, hash_rows, mix, occurrences
from calcheck.errors import DataError
from calcheck.execution.run import RandomStream, Run
from calcheck.io.times import time_texts
from calcheck.predictions import Predictions
from calcheck.statistics.pit import COMPONENTS, NEAREST, component, randomized_pit
from calcheck.statistics.scores import are_impossible
from calcheck.typing import AnyArray, Indices, Mask, Values

Integers = NDArray[np.int64]
MOST_STEPS = 1_000  # Maximum lag: each lag has as many products
SHAPES = np.exp(np.linspace(-1, 1, 9))
FIRST, SECOND = (grid.ravel() for grid in np.meshgrid(SHAPES, SHAPES))  # Parameters of the beta densities, (b,) each
DENSITIES = len(FIRST)
BLOCK_OF_BETS = 1 << 14  # Rows per block of densities, 10 MiB
BETS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # Slopes of the bets of a simple jumper
JUMP = 0.01  # Share of the capital that a simple jumper spreads over all slopes after each step
BLOCK = 1 << 12  # Times per block of products
STEPS = 64  # Steps between divisions by the sum of the capital, by which it grows 1e11 times at most
WEIGHTS = np.array([0.5, 0.25, 0.25])  # Shares of the beta mixture, and of the jumpers on u and on |2u - 1|


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
        """The steps between the last known observation and the target, (t,): horizons, moved if they start below 1."""
        return self.horizons - min(int(self.horizons.min()), 1) + 1

    def take(self, chosen: AnyArray | slice) -> "History":
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
    components = np.stack([component(degree)(u) for degree in range(1, COMPONENTS + 1)], axis=1)
    return History(
        times=steps[pairs[0]],
        horizons=pairs[1].astype(np.int64),
        rows=counts.astype(np.int64),
        log_densities=log_mean_densities(u, group, count, are_impossible(rows)),
        means=group_means(jumper_values(u), group, count),
        components=group_means(components, group, count),
    )


def concatenate(pieces: Sequence[tuple[str, History]]) -> History:
    """Return the history of several pieces, which follow each other in time for each horizon."""
    total = pieces[0][1]
    for (before, _), (name, piece) in pairwise(pieces):
        if total.times.dtype.kind != piece.times.dtype.kind:
            raise DataError(f"the times of {before} and of {name} are of different kinds: dates and numbers")
        for horizon in np.unique(piece.horizons):
            known, new = (each.times[each.horizons == horizon] for each in (total, piece))
            if not len(known) or known.max() < new.min():
                continue
            last, first = time_texts(np.array([known.max(), new.min()]))
            what = "again" if (known == new.min()).any() else "out of order"
            raise DataError(
                f"{name} has rows of {first} {what}: {before} ends at {last}. All rows of a time are in one file, and"
                " files follow each other in time"
            )
        parts = {each.name: [getattr(total, each.name), getattr(piece, each.name)] for each in fields(History)}
        total = History(**{key: np.concatenate(values) for key, values in parts.items()})
    return total.take(np.lexsort([total.horizons, total.times]))


def log_mean_densities(u: Values, group: Indices, count: int, impossible: Mask | None = None) -> Values:
    """Return the log of the mean of each beta density over the rows of each group, (g, b).

    Rows of one time may depend on each other in any way: a mean of e-values is an e-value. A target with probability 0
    has the e-value inf: if the model is right there is none, so that the expected e-value remains at most 1.

    Shapes: u (n,), group (n,), impossible (n,).
    """
    u = np.clip(u, NEAREST, 1 - NEAREST)
    sums = np.zeros((count, DENSITIES))
    constant = sc.betaln(FIRST, SECOND)
    for start in range(0, len(u), BLOCK_OF_BETS):
        part = u[start : start + BLOCK_OF_BETS, None]
        logs = (FIRST - 1) * np.log(part) + (SECOND - 1) * np.log1p(-part) - constant
        np.add.at(sums, group[start : start + BLOCK_OF_BETS], np.exp(logs))
    if impossible is not None:
        sums[group[impossible]] = np.inf
    return np.asarray(np.log(sums / np.bincount(group, minlength=count)[:, None]))


def group_means(values: Values, group: Indices, count: int) -> Values:
    """Return the means of columns (n, k) over the rows of each group, (g, k)."""
    sums = np.stack([np.bincount(group, column, minlength=count) for column in values.T], axis=1)
    return np.asarray(sums / np.bincount(group, minlength=count)[:, None])


def jumper_values(u: Values) -> Values:
    """Return the values on which the simple jumpers bet, (n, 2): u, and |2u - 1|. Both are uniform if u is."""
    return np.stack([u, np.abs(2 * u - 1)], axis=1)


def log_beta_mixture(log_densities: Values) -> Values:
    """Return the log of the mean over beta densities of their products up to each time, (t,).

    Shapes: log_densities (t, b).

    Source: Arnold, Henzi, Ziegel (2023), "Sequentially valid tests for forecast calibration".
    """
    found, total = np.empty(len(log_densities)), np.zeros(log_densities.shape[1])
    for start in range(0, len(log_densities), BLOCK):
        products = total + np.cumsum(log_densities[start : start + BLOCK], axis=0)
        found[start : start + BLOCK] = sc.logsumexp(products, axis=1) - np.log(len(total))
        total = products[-1]
    return found


def log_simple_jumper(p: Values, *, jump: float = JUMP) -> Values:
    """Return the logs of the capital of simple jumpers after each time, (t, ...).

    A part of the capital bets 1 + s (p - 1/2) for each slope s. After each step a share ``jump`` of the capital is
    spread evenly, so that the jumper adapts to changes.

    Shapes: p (t, ...).

    Source: Vovk, Petej, Nouretdinov, Ahlberg, Carlsson, Gammerman (2021), "Retrain or not retrain: conformal test
    martingales for change-point detection".
    """
    parts = np.full((*p.shape[1:], len(BETS)), 1 / len(BETS))
    spread = (1 - jump) * np.eye(len(BETS)) + jump / len(BETS)
    found, total = np.empty(p.shape), np.zeros(p.shape[1:])
    for start in range(0, len(p), STEPS):
        states = 1 + BETS * (p[start : start + STEPS, ..., None] - 0.5)
        for state in states:
            state *= parts
            parts = state @ spread  # which does not change the sum
        growth = states.sum(axis=-1)
        found[start : start + STEPS] = total + np.log(growth)
        total += np.log(growth[-1])
        parts /= growth[-1][..., None]
    return found


def log_product(log_densities: Values, means: Values) -> Values:
    """Return the log e-process, (t,): mean of beta mixture, densities (t, b), and two simple jumpers, means (t, 2)."""
    parts = np.column_stack([log_beta_mixture(log_densities), log_simple_jumper(means)])
    return np.asarray(sc.logsumexp(parts, axis=1, b=WEIGHTS))


def log_e_process(log_densities: Values, means: Values, step: Indices, lag: int) -> Values:
    """Return the log of the e-process of forecasts with a lag after each time, (t,).

    A forecast with lag h is made before the last h - 1 times are observed, so PIT values that are less than h steps
    apart may depend on each other. Every h-th step forms a product of its own, which is an e-process. Their mean is not
    (Henzi and Ziegel 2022, correction): at a time when it is looked at, it is worth what it will be after h - 1 more
    steps. The largest product, divided by h, ever reaches 1 / alpha with a probability of at most alpha, because one of
    h products then reaches h / alpha. It is at most the mean, so that it is an e-value at any fixed time as well.

    Shapes: log_densities (t, b), means (t, 2), step (t,).

    Source: Henzi, Ziegel (2022), "Valid sequential inference on probability forecast performance", Biometrika 109, and
    its correction. Arnold, Henzi, Ziegel (2023).
    """
    best = np.full(len(step), -np.inf)
    for phase in range(lag):
        own = np.flatnonzero(step % lag == phase)
        path = np.concatenate([[0.0], log_product(log_densities[own], means[own])])  # 1 before the first time
        best = np.maximum(best, path[np.searchsorted(own, np.arange(len(step)), side="right")])
    return np.asarray(best - np.log(lag))


def change_point(log_densities: Values) -> int:
    """Return the start of the segment up to the last time whose product of one of the densities (t, b) is largest."""
    best, found = -np.inf, 0
    for density in log_densities.T:
        before = np.concatenate([[0.0], np.cumsum(density)])
        start = int(np.argmin(before[:-1]))
        if (gain := before[-1] - before[start]) > best:
            best, found = gain, start
    return found
