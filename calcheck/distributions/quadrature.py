"""Kernel means by quadrature, for families on y > 0 that have no closed form."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.continuous import Continuous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Refinement = Callable[[NDArray[np.float64]], NDArray[np.float64]]

NEGLIGIBLE = 1e-11  # mass that is left out above, and taken for a point below
POINT = 1e-12  # relative: distances in log y that are as good as none
CONSTANT = 1e-10  # length scales: between points closer than that the kernel is 1
REACH = 8.5  # length scales: beyond it the kernel is below e^-36
SCORES = 12  # places of the normal score from -6.7 to 6.7; between two of them a density is smooth
FINER = 8  # places between two, by which panels are laid out, or more:
FINER_LOG = 4.0  # no two of them are farther apart in log y
PANEL_LENGTH = 1.5  # of a dense panel, in length scales
PANEL_FLAT = 4.0  # of one close to 0, in log y
NEAR = 0.1  # length scales: where they pass from one to the other
PANEL_LOG = 0.7  # of a panel where the kernel is narrow, in log y
SMOOTH = 8.0  # length scales a score: the kernel is narrow where the density varies that slowly
FAR = 40.0  # length scales from 0, or more
LARGEST = 345.0  # log y, above which squares overflow: what is out there is far from everything
BLOCK_VALUES = 1 << 20  # numbers of one block of kernel values, 8 MiB
ROWS = 1 << 11  # of one block, times its panels
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)  # of a panel
NARROW_NODES, NARROW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)  # of a narrow kernel
NARROW_WEIGHTS = NARROW_WEIGHTS / np.sqrt(2 * np.pi)


@dataclass(frozen=True, eq=False)
class Positive(Continuous):
    """Distributions on y > 0 with a density that is smooth in log y.

    Up to some y*, kernel means are composite Gauss-Legendre sums in log y, over panels that resolve both the density
    and the kernel. Beyond y* the kernel is narrow: it varies much faster than the density, so the mean is the kernel's
    integral times the density averaged over the kernel, by Gauss-Hermite sums. With L = 1 / sqrt(2 gamma), y* is where
    the distribution's normal score takes 8 L a unit and 0 is 40 L away; so no more than some hundred panels are needed
    however narrow the kernel, and however wide the distribution.
    """

    @property
    def kernel_error(self) -> float:
        return 1e-10

    @abstractmethod
    def log_density(self, y: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the log densities of some rows (b,) at y > 0, (b, w)."""

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        log_density = np.full(len(self), -np.inf)
        possible = np.flatnonzero(y > 0)
        log_density[possible] = self.log_density(y[possible, None], possible)[:, 0]
        return log_density

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        gammas = np.broadcast_to(gamma[..., 0], len(points))
        mean = np.empty((len(self), len(points)))
        for one in np.unique(gammas):
            columns = np.flatnonzero(gammas == one)
            with np.errstate(over="ignore", divide="ignore"):  # what overflows is far away, and has no density
                mean[:, columns] = _Quadrature(self, float(one)).mean(points[columns, 0])
        return mean

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", divide="ignore"):
            return _Quadrature(self, float(gamma[0])).norm()


class _Quadrature:
    """Sums over distributions, for one gamma.

    Attributes
    ----------
    low, switch, high : (n,)
        log y: the first node, y* (infinite where the kernel is nowhere narrow), and the last.
    point : (n,) bool
        Where a distribution is so narrow that floats do not tell its values apart: it is taken for a point.
    finer : int
        Places between two scores.
    """

    def __init__(self, family: Positive, gamma: float) -> None:
        from scipy.special import ndtr, ndtri

        self.family, self.gamma, self.length = family, gamma, 1 / np.sqrt(2 * gamma)
        reach = float(-ndtri(NEGLIGIBLE))
        scores = np.linspace(-reach, reach, SCORES)
        with np.errstate(divide="ignore", over="ignore"):  # a quantile may underflow, or overflow
            logs = np.stack([np.log(family.quantile(float(ndtr(score)))) for score in scores], axis=1)
        self.logs = np.clip(logs, np.log(CONSTANT * self.length), max(LARGEST, np.log(self.length)))  # (n, SCORES)
        self.low, self.high = self.logs[:, 0], self.logs[:, -1]
        self.finer = max(FINER, int(np.ceil(np.diff(self.logs, axis=1).max() / FINER_LOG)))
        with np.errstate(divide="ignore"):  # several quantiles may be at a bound
            smooth = np.log(SMOOTH * self.length * np.diff(scores) / np.diff(self.logs, axis=1))
        narrow_from = np.maximum(np.maximum(smooth, np.log(FAR * self.length)), self.logs[:, :-1])  # between two places
        narrow = narrow_from < self.logs[:, 1:]
        first = narrow_from[np.arange(len(narrow)), narrow.argmax(axis=1)]
        self.point = self.high - self.low <= POINT * np.maximum(np.abs(self.low), 1)
        self.switch = np.where(narrow.any(axis=1) & ~self.point, first, np.inf)

    def mean(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E k(p_j, Y_i), (n, r)."""
        mean = np.empty((len(self.low), len(points)))
        for rows, y, mass in self._dense():
            width = max(1, BLOCK_VALUES // y.size)
            for start in range(0, len(points), width):
                near = slice(start, start + width)
                mean[rows, near] = self._sums(np.broadcast_to(points[near], (len(rows), len(points[near]))), y, mass)
        row, column = np.nonzero(points > np.exp(self.switch)[:, None])
        mean[row, column] = self._narrow(points[column, None], row)[:, 0]
        return mean

    def norm(self) -> NDArray[np.float64]:
        """Return E k(Y_i, Y_i'), (n,)."""
        norm = np.zeros(len(self.low))
        for rows, y, mass in self._dense():
            outer = self._nodes(rows, self.low, np.minimum(self.switch, self.high), self._lengths)
            width = max(1, BLOCK_VALUES // y.size)
            for start in range(0, outer[0].shape[1], width):
                at, weight = (values[:, start : start + width] for values in outer)
                norm[rows] += np.sum(weight * self._sums(at, y, mass), axis=1)
        rows = np.flatnonzero(np.isfinite(self.switch))
        for start in range(0, len(rows), ROWS):
            block = rows[start : start + ROWS]
            y, mass = self._nodes(block, self.switch, self.high, lambda log_y: log_y / PANEL_LOG)
            norm[block] += np.sum(mass[:, 1:] * self._narrow(y[:, 1:], block), axis=1)
        return norm

    def _sums(
        self, points: NDArray[np.float64], y: NDArray[np.float64], mass: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sums of the kernel between points (b, r) and nodes (b, w), (b, r)."""
        kernel = points[:, :, None] - y[:, None, :]
        kernel *= kernel
        kernel *= -self.gamma
        np.exp(kernel, out=kernel)
        return np.asarray((kernel @ mass[:, :, None])[:, :, 0])

    def _narrow(self, points: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the mean of a narrow kernel at points (b, w) of rows (b,)."""
        density = np.zeros_like(points)
        for node, weight in zip(NARROW_NODES, NARROW_WEIGHTS, strict=True):
            density += weight * np.exp(self.family.log_density(points + self.length * node, rows))
        return np.asarray(density * np.sqrt(np.pi / self.gamma))

    def _dense(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]]:
        """Yield blocks of rows, with nodes up to the kernel's reach beyond y* and their masses (:meth:`_nodes`)."""
        until = np.minimum(np.log(np.exp(self.switch) + REACH * self.length), self.high)
        panels = self._layout(np.arange(len(until)), self.low, until, self._lengths)[1][:, -1]
        order = np.argsort(panels)
        start = 0
        while start < len(order):
            rows = order[start : start + max(1, int(ROWS / (1 + panels[order[start]])))]
            y, mass = self._nodes(rows, self.low, until, self._lengths)
            yield rows, y, mass
            start += len(rows)

    def _lengths(self, log_y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count panels: 4 wide in log y where the kernel is nearly constant, 1.5 length scales where it is not."""
        lengths = np.exp(log_y) / self.length
        return np.asarray(log_y / PANEL_FLAT + np.log1p(lengths / NEAR) + lengths / PANEL_LENGTH)

    def _layout(
        self, rows: NDArray[np.intp], low: NDArray[np.float64], high: NDArray[np.float64], also: Refinement
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return places in log y from low to high, and how many panels end before each, (b, w)."""
        between = np.arange(self.finer) / self.finer
        fine = (self.logs[rows, :-1, None] + np.diff(self.logs[rows], axis=1)[:, :, None] * between).reshape(
            len(rows), -1
        )
        fine = np.concatenate([fine, self.logs[rows, -1:]], axis=1)
        log_y = np.clip(fine, low[rows, None], high[rows, None])
        steps, whole = np.diff(log_y, axis=1), np.diff(fine, axis=1)
        shares = np.divide(steps, whole, out=np.zeros_like(steps), where=whole > 0)
        panels = np.cumsum(shares / self.finer + np.diff(also(log_y), axis=1), axis=1)
        return log_y, np.pad(panels, ((0, 0), (1, 0)))

    def _nodes(
        self, rows: NDArray[np.intp], low: NDArray[np.float64], high: NDArray[np.float64], also: Refinement
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return nodes y and the mass that each stands for, (b, w): the first for all that is below it."""
        log_y, panels = self._layout(rows, low, high, also)
        share = np.linspace(0, 1, 1 + max(1, int(np.ceil(panels[:, -1].max()))))
        edges = np.stack(
            [np.interp(share * count[-1], count, place) for count, place in zip(panels, log_y, strict=True)]
        )
        half = np.diff(edges, axis=1)[:, :, None] / 2
        nodes = (edges[:, :-1, None] + half * (1 + NODES)).reshape(len(rows), -1)
        y = np.exp(nodes)
        mass = (half * WEIGHTS).reshape(len(rows), -1) * np.exp(self.family.log_density(y, rows) + nodes)
        first, part = np.exp(edges[:, :1]), self.family.take(rows)
        below = part.cdf(first[:, 0])
        summed, between = mass.sum(axis=1), part.cdf(np.exp(edges[:, -1])) - below
        mass *= np.divide(between, summed, out=np.ones_like(summed), where=summed > 0)[:, None]  # nodes are floats
        below[self.point[rows]], mass[self.point[rows]] = 1, 0
        return np.concatenate([first, y], axis=1), np.concatenate([below[:, None], mass], axis=1)
