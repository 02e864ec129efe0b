"""Kernel means by quadrature, for families on y > 0 that have no closed form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calcheck.distributions.continuous import Continuous
from calcheck.typing import Indices, Values

Refinement = Callable[[Values], Values]

NEGLIGIBLE = 1e-11  # Probability neglected above the last node, and treated as a point mass below the first
POINT = 1e-12  # Relative width in log y below which a distribution is treated as a point mass
CONSTANT = 1e-10  # Distance, in length scales, below which the kernel is 1
REACH = 8.5  # Distance, in length scales, beyond which the kernel is below e^-36
SCORES = 12  # Number of normal scores from -6.7 to 6.7; densities are smooth between adjacent scores
MIN_SUBDIVISIONS = 8  # Minimum subdivisions between adjacent scores, for the placement of panels
MAX_SUBDIVISION_LOG = 4.0  # Maximum length of a subdivision in log y
PANEL_LENGTH = 1.5  # Length of a dense panel, in length scales
PANEL_FLAT = 4.0  # Length of a dense panel close to y = 0, in log y
NEAR = 0.1  # y, in length scales, at which panels change from one to the other
PANEL_LOG = 0.7  # Length of a panel where the kernel is narrow, in log y
SMOOTH = 8.0  # Length scales per normal score above which the kernel is narrow
FAR = 40.0  # Minimum y, in length scales, at which the kernel is narrow
LARGEST = 345.0  # Maximum log y; squares of larger values overflow
BLOCK_VALUES = 1 << 20  # Kernel values per block, 8 MiB
ROWS = 1 << 11  # Rows times panels per block
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)  # Quadrature rule of a panel
NARROW_NODES, NARROW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)  # Quadrature rule of a narrow kernel
NARROW_WEIGHTS = NARROW_WEIGHTS / np.sqrt(2 * np.pi)


@dataclass(frozen=True, eq=False)
class Positive(Continuous):
    """Distributions on y > 0 with a density that is smooth in log y.

    Up to a switch point y*, kernel means are composite Gauss-Legendre sums in log y, over panels that resolve both the
    density and the kernel. Beyond y*, the kernel is narrow: it varies much faster than the density. The kernel mean is
    then the integral of the kernel times the kernel-weighted average of the density, by Gauss-Hermite quadrature. With
    L = 1 / sqrt(2 gamma), y* is the smallest y >= 40 L at which one unit of the normal score spans 8 L. The number of
    panels is thus at most a few hundred for any kernel and any distribution.
    """

    @property
    def kernel_error(self) -> float:
        return 1e-10

    @abstractmethod
    def log_density(self, y: Values, rows: Indices) -> Values:
        """Return the log densities of selected rows (b,) at y > 0, (b, w)."""

    def log_prob(self, y: Values) -> Values:
        log_density = np.full(len(self), -np.inf)
        possible = np.flatnonzero(y > 0)
        log_density[possible] = self.log_density(y[possible, None], possible)[:, 0]
        return log_density

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        gammas = np.broadcast_to(gamma[..., 0], len(points))
        mean = np.empty((len(self), len(points)))
        for one in np.unique(gammas):
            columns = np.flatnonzero(gammas == one)
            with np.errstate(over="ignore", divide="ignore"):  # overflow occurs only where the density is 0
                mean[:, columns] = _Quadrature(self, float(one)).mean(points[columns, 0])
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        with np.errstate(over="ignore", divide="ignore"):
            return _Quadrature(self, float(gamma[0])).norm()


class _Quadrature:
    """Quadrature of kernel means and norms of distributions for one gamma."""

    def __init__(self, family: Positive, gamma: float) -> None:
        from scipy.special import ndtr, ndtri

        self.family, self.gamma, self.length = family, gamma, 1 / np.sqrt(2 * gamma)
        reach = float(-ndtri(NEGLIGIBLE))
        scores = np.linspace(-reach, reach, SCORES)
        with np.errstate(divide="ignore", over="ignore"):  # quantiles may underflow or overflow
            logs = np.stack([np.log(family.quantile(float(ndtr(score)))) for score in scores], axis=1)
        self.logs = np.clip(logs, np.log(CONSTANT * self.length), max(LARGEST, np.log(self.length)))  # (n, SCORES)
        # (n,), log y at the first node, at y* (infinite if the kernel is nowhere narrow) and at the last node
        self.low, self.high = self.logs[:, 0], self.logs[:, -1]
        # Number of subdivisions between adjacent normal scores
        self.subdivisions = max(MIN_SUBDIVISIONS, int(np.ceil(np.diff(self.logs, axis=1).max() / MAX_SUBDIVISION_LOG)))
        with np.errstate(divide="ignore"):  # several quantiles may be clipped to the same bound
            smooth = np.log(SMOOTH * self.length * np.diff(scores) / np.diff(self.logs, axis=1))
        # log y from which the kernel is narrow, per interval between adjacent scores
        narrow_from = np.maximum(np.maximum(smooth, np.log(FAR * self.length)), self.logs[:, :-1])
        narrow = narrow_from < self.logs[:, 1:]
        first = narrow_from[np.arange(len(narrow)), narrow.argmax(axis=1)]
        # (n,), whether a distribution is too narrow for the resolution of floats; it is then treated as a point mass
        self.point = self.high - self.low <= POINT * np.maximum(np.abs(self.low), 1)
        self.switch = np.where(narrow.any(axis=1) & ~self.point, first, np.inf)

    def mean(self, points: Values) -> Values:
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

    def norm(self) -> Values:
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

    def _sums(self, points: Values, y: Values, mass: Values) -> Values:
        """Return the weighted sums of the kernel between points (b, r) and nodes (b, w), (b, r)."""
        kernel = points[:, :, None] - y[:, None, :]
        kernel *= kernel
        kernel *= -self.gamma
        np.exp(kernel, out=kernel)
        return np.asarray((kernel @ mass[:, :, None])[:, :, 0])

    def _narrow(self, points: Values, rows: Indices) -> Values:
        """Return the mean of a narrow kernel at points (b, w) of rows (b,), (b, w)."""
        density = np.zeros_like(points)
        for node, weight in zip(NARROW_NODES, NARROW_WEIGHTS, strict=True):
            density += weight * np.exp(self.family.log_density(points + self.length * node, rows))
        return np.asarray(density * np.sqrt(np.pi / self.gamma))

    def _dense(self) -> Iterator[tuple[Indices, Values, Values]]:
        """Yield blocks of rows with their nodes and weights (:meth:`_nodes`), up to the kernel's range beyond y*."""
        until = np.minimum(np.log(np.exp(self.switch) + REACH * self.length), self.high)
        panels = self._layout(np.arange(len(until)), self.low, until, self._lengths)[1][:, -1]
        order = np.argsort(panels)
        start = 0
        while start < len(order):
            rows = order[start : start + max(1, int(ROWS / (1 + panels[order[start]])))]
            y, mass = self._nodes(rows, self.low, until, self._lengths)
            yield rows, y, mass
            start += len(rows)

    def _lengths(self, log_y: Values) -> Values:
        """Return cumulative panel counts: 4 wide in log y where the kernel is flat, else 1.5 length scales wide."""
        lengths = np.exp(log_y) / self.length
        return np.asarray(log_y / PANEL_FLAT + np.log1p(lengths / NEAR) + lengths / PANEL_LENGTH)

    def _layout(self, rows: Indices, low: Values, high: Values, also: Refinement) -> tuple[Values, Values]:
        """Return points in log y from low to high, and the cumulative number of panels at each, (b, w)."""
        between = np.arange(self.subdivisions) / self.subdivisions
        fine = (self.logs[rows, :-1, None] + np.diff(self.logs[rows], axis=1)[:, :, None] * between).reshape(
            len(rows), -1
        )
        fine = np.concatenate([fine, self.logs[rows, -1:]], axis=1)
        log_y = np.clip(fine, low[rows, None], high[rows, None])
        steps, whole = np.diff(log_y, axis=1), np.diff(fine, axis=1)
        shares = np.divide(steps, whole, out=np.zeros_like(steps), where=whole > 0)
        panels = np.cumsum(shares / self.subdivisions + np.diff(also(log_y), axis=1), axis=1)
        return log_y, np.pad(panels, ((0, 0), (1, 0)))

    def _nodes(self, rows: Indices, low: Values, high: Values, also: Refinement) -> tuple[Values, Values]:
        """Return nodes y and their probability weights, (b, w); the first has the probability below it."""
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
        # corrects the effect of rounding of the nodes
        mass *= np.divide(between, summed, out=np.ones_like(summed), where=summed > 0)[:, None]
        below[self.point[rows]], mass[self.point[rows]] = 1, 0
        return np.concatenate([first, y], axis=1), np.concatenate([below[:, None], mass], axis=1)
