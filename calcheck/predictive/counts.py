"""What the families of counts share: sums over the part of the support that carries the mass."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.checks import require_counts
from calcheck.errors import DataError
from calcheck.predictive.base import Predictive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.predictive.row_random import Random

    Block = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

TAIL_RATE = 45.0  # nats: a tail that is left out weighs less than e^-45 = 3e-20
CHUNK_VALUES = 1 << 12  # of a support, in one product with a kernel
BLOCK_VALUES = 1 << 20  # numbers in one block of masses, 8 MiB
KEPT_VALUES = 1 << 22  # 32 MiB
LARGEST_SUPPORT = 1 << 19  # values of one support: beyond it sums take minutes and say no more than a Gaussian


@dataclass(frozen=True, eq=False)
class Counts(Predictive):
    """Distributions on 0, 1, 2, …, given by their masses up to a factor and a large-deviation rate.

    A family states :meth:`log_weight`, :meth:`rate` and :meth:`centre`; the support that carries all but
    e^-45 of the mass follows from the rate, and everything else is a sum over it.
    """

    lattice: ClassVar[bool] = True
    normalised: ClassVar[bool] = False
    """Whether :meth:`log_weight` is the log mass itself."""

    def require_possible(self, y: NDArray[np.float64]) -> None:
        require_counts("y", y, self.family)

    @abstractmethod
    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return log P(Y_i = k_j) up to a constant of the row i, (b, w), for k (w,) or (b, w) and b rows."""

    @abstractmethod
    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return I_i(k_i) >= 0, (n,): 0 at the mean, convex, P(Y_i beyond k_i) <= exp(-I_i) to a small power of k."""

    @abstractmethod
    def centre(self) -> NDArray[np.float64]:
        """Return where :meth:`rate` is 0, (n,)."""

    def support(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first and the last value worth summing, (n,) each.

        Raises
        ------
        DataError
            A support is too large to be summed.
        """
        centre = self.centre()
        step = np.ones_like(centre)
        while (short := self.rate(centre + step) < TAIL_RATE).any():
            step[short] *= 2
            if step.max() > LARGEST_SUPPORT:
                msg = (
                    f"a {self.family} distribution with mean {centre[np.argmax(step)]:.4g} spreads over more than"
                    f" {LARGEST_SUPPORT:,} values. Describe it as a Gaussian (--mean, --std) instead"
                )
                raise DataError(msg)
        high = self._where_rate_is_reached(centre, centre + step)
        low = self._where_rate_is_reached(centre, np.zeros_like(centre))
        return np.floor(low), np.ceil(high)

    def _where_rate_is_reached(self, inner: NDArray[np.float64], outer: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bisect, to within one count, for the value between the two where the rate is :data:`TAIL_RATE`."""
        while np.abs(outer - inner).max() > 1:
            middle = (inner + outer) / 2
            within = self.rate(middle) < TAIL_RATE
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        return outer

    def masses(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]]:
        """Yield blocks of rows with the values of their common support and their masses.

        Yields
        ------
        rows : (b,)
            Rows of the block; over all blocks every row comes once.
        k : (w,)
            Consecutive whole numbers.
        mass : (b, w)
            P(Y_i = k_j).
        """
        for rows, k, mass, _ in self._blocks():
            yield rows, k, mass

    def _blocks(self) -> Iterator[Block]:
        """Yield what :meth:`masses` does, and the log of each row's sum of weights, (b,)."""
        return iter(self._kept) if self._kept is not None else map(self._block, *self._plan)

    @cached_property
    def _kept(self) -> list[Block] | None:
        """The blocks, where they are small: all replicates of the targets, and many metrics, ask for them."""
        rows, supports = self._plan
        values = sum(len(block) * len(k) for block, k in zip(rows, supports, strict=True))
        return list(map(self._block, rows, supports)) if values <= KEPT_VALUES else None

    @cached_property
    def _plan(self) -> tuple[list[NDArray[np.intp]], list[NDArray[np.float64]]]:
        """The rows of each block, and their common support."""
        low, high = self.support()
        order = np.lexsort((high, low))
        blocks, supports, start = [], [], 0
        while start < len(order):
            widths = np.maximum.accumulate(high[order[start:]]) - low[order[start]] + 1
            fits = widths * np.arange(1, len(widths) + 1) <= BLOCK_VALUES
            stop = start + max(1, int(np.argmin(fits)) if not fits.all() else len(fits))
            rows = order[start:stop]
            blocks.append(rows)
            supports.append(np.arange(low[rows].min(), high[rows].max() + 1))
            start = stop
        return blocks, supports

    def _block(self, rows: NDArray[np.intp], k: NDArray[np.float64]) -> Block:
        mass = self.log_weight(k, rows)
        largest = mass.max(axis=1, keepdims=True)
        mass -= largest
        np.exp(mass, out=mass)
        total = mass.sum(axis=1, keepdims=True)
        mass /= total
        return rows, k, mass, (largest + np.log(total))[:, 0]

    def mean(self) -> NDArray[np.float64]:
        mean = np.empty(len(self))
        for rows, k, mass in self.masses():
            mean[rows] = mass @ k
        return mean

    def std(self) -> NDArray[np.float64]:
        variance, mean = np.empty(len(self)), self.mean()
        for rows, k, mass in self.masses():
            variance[rows] = np.sum(mass * (k - mean[rows, None]) ** 2, axis=1)
        return np.sqrt(variance)

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._mass_below(np.floor(y))

    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._mass_below(np.ceil(y) - 1)

    def _mass_below(self, last: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(Y_i <= last_i), (n,)."""
        below = np.empty(len(self))
        for rows, k, mass in self.masses():
            below[rows] = np.sum(mass, axis=1, where=k <= last[rows, None])
        return np.minimum(below, 1.0)

    def jump(self, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        left, right = np.empty(len(self)), np.empty(len(self))
        for rows, k, mass in self.masses():
            at = y[rows, None]
            left[rows] = np.sum(mass, axis=1, where=k < at)
            right[rows] = left[rows] + np.sum(mass, axis=1, where=k == at)
        return np.minimum(left, 1.0), np.minimum(right, 1.0)

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.normalised:
            return self.log_weight(y[:, None], np.arange(len(self)))[:, 0]
        log_mass = np.empty(len(self))
        for rows, _, _, log_total in self._blocks():
            log_mass[rows] = self.log_weight(y[rows, None], rows)[:, 0] - log_total
        return log_mass

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E|Y - y| - E|Y - Y'|/2, summed over the support: closed forms overflow from means of 200 on."""
        score = np.empty(len(self))
        for rows, k, mass in self.masses():
            below = np.cumsum(mass, axis=1)
            score[rows] = np.sum(mass * np.abs(k - y[rows, None]), axis=1) - np.sum(below * (1 - below), axis=1)
        return score

    def quantile(self, p: float) -> NDArray[np.float64]:
        found = np.empty(len(self))
        for rows, k, mass in self.masses():
            found[rows] = k[self._first_reaching(mass, np.full((len(rows), 1), p))[:, 0]]
        return found

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        uniform = rng.random((len(self), size))
        drawn = np.empty((len(self), size))
        for rows, k, mass in self.masses():
            drawn[rows] = k[self._first_reaching(mass, uniform[rows])]
        return drawn

    @staticmethod
    def _first_reaching(mass: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return for each row the first places where its cumulated mass reaches p, (b, s)."""
        cumulated = np.cumsum(mass, axis=1)
        cumulated /= cumulated[:, -1:]  # ends at 1 exactly, above every p
        return np.stack([np.searchsorted(row, levels) for row, levels in zip(cumulated, p, strict=True)])

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = np.zeros((len(self), len(points)))
        at, precision = points[:, 0], np.broadcast_to(gamma[..., 0], len(points))
        reach = np.sqrt(TAIL_RATE / precision)  # beyond it the kernel is 0
        for rows, k, mass in self.masses():
            for start in range(0, len(k), CHUNK_VALUES):
                part = k[start : start + CHUNK_VALUES]
                near = np.flatnonzero((at > part[0] - reach) & (at < part[-1] + reach))
                kernel = np.exp(-precision[near] * (part[:, None] - at[near]) ** 2)
                mean[rows[:, None], near] += mass[:, start : start + CHUNK_VALUES] @ kernel
        return mean

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        norm = np.empty(len(self))
        for rows, k, mass in self.masses():
            lags = np.arange(len(k))
            spectrum = np.fft.rfft(mass, n=2 * len(k), axis=1)
            autocorrelation = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * len(k), axis=1)[:, : len(k)]
            weights = np.exp(-gamma[0] * lags**2.0) * np.where(lags == 0, 1, 2)
            norm[rows] = autocorrelation @ weights
        return norm
