"""Log-normal, gamma and Weibull distributions of positive targets, with kernel means by quadrature."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import LARGEST, LEAST, UNIT, require, require_moderate, require_positive
from calcheck.distributions.continuous import Continuous
from calcheck.distributions.row_random import Random
from calcheck.distributions.special import deviance_term, gamma_below, log_half_step, stirling_error
from calcheck.errors import ExtremeValuesError
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
LARGEST_BOUND = 345.0  # Maximum log y; squares of larger values overflow
BLOCK_VALUES = 1 << 20  # Kernel values per block, 8 MiB
TOGETHER = 16  # Maximum neighboring points whose kernel means are computed together, from the nodes within reach
ROWS = 1 << 11  # Rows times panels per block
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)  # Quadrature rule of a panel
NARROW_NODES, NARROW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)  # Quadrature rule of a narrow kernel
NARROW_WEIGHTS = NARROW_WEIGHTS / np.sqrt(2 * np.pi)
FAR_LOG = 5.0  # Distance from the mean in log y beyond which the direct formula of the density is accurate
TINY = np.finfo(np.float64).tiny
SERIES_BELOW = 0.1  # x below which the series of log_moment_ratio is exact to rounding
TERMS = 24  # Number of terms of that series
ROUNDING = 1e-9  # Tolerance of logarithms
CLOSE = 0.5  # sigma below which the terms of the closed form of the CRPS nearly cancel
UNIT_NODES, UNIT_WEIGHTS = np.polynomial.legendre.leggauss(10)
UNIT_NODES, UNIT_WEIGHTS = (UNIT_NODES + 1) / 2, UNIT_WEIGHTS / 2  # rule on [0, 1]


@dataclass(frozen=True, eq=False)
class Positive(Continuous):
    """Distributions on y > 0 with a density that is smooth in log y.

    Up to a switch point y*, kernel means are composite Gauss-Legendre sums in log y, over panels that resolve both the
    density and the kernel. Beyond y*, the kernel is narrow: it varies much faster than the density. The kernel mean is
    then the integral of the kernel times the kernel-weighted average of the density, by Gauss-Hermite quadrature. With
    L = 1 / sqrt(2 gamma), y* is the smallest y >= 40 L at which one unit of the normal score spans 8 L. The number of
    panels is thus at most a few hundred for any kernel and any distribution.
    """

    kernel_error = 1e-10

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
        self.family, self.gamma, self.length = family, gamma, 1 / np.sqrt(2 * gamma)
        reach = float(-sc.ndtri(NEGLIGIBLE))
        scores = np.linspace(-reach, reach, SCORES)
        with np.errstate(divide="ignore", over="ignore"):  # quantiles may underflow or overflow
            logs = np.stack([np.log(family.quantile(float(sc.ndtr(score)))) for score in scores], axis=1)
        limits = np.log(CONSTANT * self.length), max(LARGEST_BOUND, np.log(self.length))
        self.logs = np.clip(logs, *limits)  # (n, SCORES)
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
        mean, reach = np.zeros((len(self.low), len(points))), REACH * self.length
        order = np.argsort(points)
        for rows, y, mass in self._dense():
            lowest, highest = y.min(axis=0), y.max(axis=0)
            width = max(1, min(TOGETHER, BLOCK_VALUES // y.size))
            for start in range(0, len(points), width):
                near = order[start : start + width]
                some = points[near]
                first, stop = np.searchsorted(highest, some[0] - reach), np.searchsorted(lowest, some[-1] + reach)
                at = np.broadcast_to(some, (len(rows), len(some)))
                mean[rows[:, None], near] = self._sums(at, y[:, first:stop], mass[:, first:stop])
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
        fine = self.logs[rows, :-1, None] + np.diff(self.logs[rows], axis=1)[:, :, None] * between
        fine = np.concatenate([fine.reshape(len(rows), -1), self.logs[rows, -1:]], axis=1)
        log_y = np.clip(fine, low[rows, None], high[rows, None])
        steps, whole = np.diff(log_y, axis=1), np.diff(fine, axis=1)
        shares = np.divide(steps, whole, out=np.zeros_like(steps), where=whole > 0)
        panels = np.cumsum(shares / self.subdivisions + np.diff(also(log_y), axis=1), axis=1)
        return log_y, np.pad(panels, ((0, 0), (1, 0)))

    def _nodes(self, rows: Indices, low: Values, high: Values, also: Refinement) -> tuple[Values, Values]:
        """Return nodes y and their probability weights, (b, w); the first has the probability below it."""
        log_y, panels = self._layout(rows, low, high, also)
        share = np.linspace(0, 1, 1 + max(1, int(np.ceil(panels[:, -1].max()))))
        pairs = zip(panels, log_y, strict=True)
        edges = np.stack([np.interp(share * count[-1], count, place) for count, place in pairs])
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


@dataclass(frozen=True, eq=False)
class Gamma(Positive):
    """Gamma distributions on y > 0."""

    family: ClassVar[str] = "gamma"
    template: ClassVar[str] = "Gamma(shape {}, scale {})"
    shape: Values  # (n,), shapes, > 0
    scale: Values  # (n,), scales, > 0, in the unit of the targets; the mean is shape * scale

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def mean(self) -> Values:
        return self.shape * self.scale

    def std(self) -> Values:
        return np.sqrt(self.shape) * self.scale

    def raw_moments(self, order: int) -> Values:
        """Return scale^k shape (shape + 1) … (shape + k - 1), (n, order + 1)."""
        factors = self.scale[:, None] * (self.shape[:, None] + np.arange(order))
        with np.errstate(over="ignore"):
            return np.cumprod(np.concatenate([np.ones((len(self), 1)), factors], axis=1), axis=1)

    def cdf(self, y: Values) -> Values:
        return gamma_below(self.shape, np.maximum(y, 0) / self.scale)

    def above(self, y: Values) -> Values:
        return np.asarray(sc.gammaincc(self.shape, np.maximum(y, 0) / self.scale))

    def log_prob(self, y: Values) -> Values:
        """Return log densities, (n,); at y = 0, inf for shape < 1, -log(scale) for shape 1, and -inf for shape > 1."""
        at_zero = np.select([self.shape < 1, self.shape == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: Values, rows: Indices) -> Values:
        shape, scale = self.shape[rows, None], self.scale[rows, None]
        constant = np.log(shape / (2 * np.pi)) / 2 - stirling_error(shape)
        # written as a Poisson probability with shape and rate exchanged, which is accurate for large shapes
        log_ratio = np.log(y) - np.log(scale) - np.log(shape)
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            near = deviance_term(shape, np.clip(y / scale, shape * np.exp(-FAR_LOG), shape * np.exp(FAR_LOG)))
            away = np.where(np.abs(log_ratio) < FAR_LOG, near, shape * (np.expm1(log_ratio) - log_ratio))
        return np.asarray(constant - away - np.log(y))

    def crps(self, y: Values) -> Values:
        """Return the closed form of M. Moller and M. Scheuerer (2015), rearranged to avoid cancellation of large terms.

        With z = y / scale and the standard density f, the CRPS in units of the scale is
        (z - shape) (2 F(z) - 1) + 2 z f(z) - Gamma(shape + 1/2) / (Gamma(shape) sqrt(pi)).
        """
        z = np.maximum(y, 0) / self.scale
        below = gamma_below(self.shape, z)
        away = deviance_term(self.shape, np.where(z > 0, z, 1))
        density = np.where(z > 0, np.sqrt(self.shape / (2 * np.pi)) * np.exp(-stirling_error(self.shape) - away), 0)
        pairs = np.sqrt(self.shape / np.pi) * np.exp(log_half_step(self.shape))
        return np.asarray((y - self.mean()) * (2 * below - 1) + self.scale * (2 * density - pairs))

    def quantile(self, p: float) -> Values:
        return np.asarray(self.scale * sc.gammaincinv(self.shape, p))

    def sample(self, rng: Random, size: int) -> Values:
        return rng.gamma(self.shape[:, None], self.scale[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "gamma:scipy", {"a": self.shape, "scale": self.scale}


def gamma_from_scipy(a: Values, scale: Values) -> Gamma:
    """Return the distributions as scipy.stats.gamma(a, scale=scale)."""
    require_positive("a", a)
    return Gamma(shape=a, scale=scale)


def gamma_from_torch(concentration: Values, rate: Values) -> Gamma:
    """Return the distributions as torch.distributions.Gamma."""
    require_positive("concentration", concentration)
    require_positive("rate", rate)
    return Gamma(shape=concentration, scale=1 / rate)


@dataclass(frozen=True, eq=False)
class Weibull(Positive):
    """Weibull distributions on y > 0: (y / scale)^c has a standard exponential distribution."""

    family: ClassVar[str] = "weibull"
    template: ClassVar[str] = "Weibull(c {}, scale {})"
    c: Values  # (n,), shapes, > 0
    # (n,), scales, > 0, in the unit of the targets. Moments, quantiles and draws that overflow are infinite.
    scale: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("c", self.c)
        require_positive("scale", self.scale)

    def mean(self) -> Values:
        return np.asarray(self.scale * sc.gamma(1 + 1 / self.c))

    def std(self) -> Values:
        """Return the standard deviations, from E Y^2 = scale^2 Gamma(1 + 2 / c), without cancellation for large c."""
        with np.errstate(over="ignore"):
            root = self.scale * np.exp(sc.gammaln(1 + 2 / self.c) / 2)
        return np.asarray(root * np.sqrt(-np.expm1(-log_moment_ratio(1 / self.c))))

    def raw_moments(self, order: int) -> Values:
        """Return scale^k Gamma(1 + k / c), (n, order + 1)."""
        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] ** k * sc.gamma(1 + k / self.c[:, None]))

    def _exponential(self, y: Values) -> Values:
        """Return (y / scale)^c, (n,); 0 for y <= 0."""
        with np.errstate(over="ignore"):
            return np.asarray((np.maximum(y, 0) / self.scale) ** self.c)

    def cdf(self, y: Values) -> Values:
        return np.asarray(-np.expm1(-self._exponential(y)))

    def above(self, y: Values) -> Values:
        return np.exp(-self._exponential(y))

    def log_prob(self, y: Values) -> Values:
        """Return log densities, (n,); at y = 0, inf for c < 1, -log(scale) for c = 1, and -inf for c > 1."""
        at_zero = np.select([self.c < 1, self.c == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: Values, rows: Indices) -> Values:
        c, scale = self.c[rows, None], self.scale[rows, None]
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            log_ratio = np.log(np.maximum(y / scale, TINY))
            away = np.exp(c * log_ratio)
        return np.asarray(np.log(c) - np.log(scale) + (c - 1) * log_ratio - away)

    def crps(self, y: Values) -> Values:
        """Return E|Y - y| - E|Y - Y'| / 2 in closed form.

        With t = (y / scale)^c and the regularized incomplete gamma function P, E(Y; Y <= y) = E(Y) P(1 + 1 / c, t).
        The smaller of Y and Y' is a Weibull distribution with the scale 2^(-1 / c) scale, so the CRPS is
        y (2 F(y) - 1) - 2 E(Y) P(1 + 1 / c, t) + E(Y) 2^(-1 / c).
        """
        t, power = self._exponential(y), 1 / self.c
        with np.errstate(over="ignore", divide="ignore"):  # products may be finite where the mean is not
            below = np.exp(sc.gammaln(1 + power) + np.log(sc.gammainc(1 + power, t)))
            least = np.exp(sc.gammaln(1 + power) - power * np.log(2))
        return np.asarray(y * (1 - 2 * np.exp(-t)) + self.scale * (least - 2 * below))

    def quantile(self, p: float) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * (-np.log1p(-p)) ** (1 / self.c))

    def sample(self, rng: Random, size: int) -> Values:
        exponential = -np.log1p(-rng.random((len(self), size)))
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] * exponential ** (1 / self.c[:, None]))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "weibull:scipy", {"c": self.c, "scale": self.scale}


def log_moment_ratio(x: Values) -> Values:
    """Return log(E Y^2 / (E Y)^2) = log(Gamma(1 + 2 x) / Gamma(1 + x)^2) for x = 1 / c > 0, without cancellation.

    For small x, about pi^2 x^2 / 6, it is the sum of zeta(k) (2^k - 2) (-x)^k / k over k >= 2.
    """
    small, k = np.minimum(x, SERIES_BELOW), np.arange(2, TERMS + 2)
    series = np.polynomial.polynomial.polyval(-small, [0, 0, *(sc.zeta(k) * (2.0**k - 2) / k)])
    return np.where(x < SERIES_BELOW, series, sc.gammaln(1 + 2 * x) - 2 * sc.gammaln(1 + x))


@dataclass(frozen=True, eq=False)
class LogNormal(Positive):
    """Distributions of exp(Z), Z ~ N(mu, sigma^2), on y > 0."""

    family: ClassVar[str] = "lognormal"
    template: ClassVar[str] = "LogNormal(mu {}, sigma {})"
    mu: Values  # (n,), means of log Y, for Y in the unit of the targets
    # (n,), standard deviations of log Y, > 0. Moments, quantiles and draws that overflow are infinite.
    sigma: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate("mu", self.mu)
        require_positive("sigma", self.sigma)
        rule = f"must be logarithms of numbers from {LEAST:.0e} to {LARGEST:.0e}"
        require("mu", np.abs(self.mu) <= np.log(LARGEST) + ROUNDING, rule, UNIT, ExtremeValuesError)

    def mean(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2 / 2))

    def std(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2) * np.sqrt(-np.expm1(-(self.sigma**2))))

    def raw_moments(self, order: int) -> Values:
        """Return exp(k mu + k^2 sigma^2 / 2), (n, order + 1)."""
        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(k * self.mu[:, None] + (k * self.sigma[:, None]) ** 2 / 2))

    def median(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu))

    def _score(self, y: Values) -> Values:
        """Return the standardized logs of targets, (n,); -inf for y <= 0."""
        log_y = np.log(y, out=np.full(len(y), -np.inf), where=y > 0)
        return (log_y - self.mu) / self.sigma

    def cdf(self, y: Values) -> Values:
        return np.asarray(sc.ndtr(self._score(y)))

    def above(self, y: Values) -> Values:
        return np.asarray(sc.ndtr(-self._score(y)))

    def log_density(self, y: Values, rows: Indices) -> Values:
        sigma, log_y = self.sigma[rows, None], np.log(y)
        score = (log_y - self.mu[rows, None]) / sigma
        return np.asarray(-0.5 * score**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi) - log_y)

    def crps(self, y: Values) -> Values:
        """Return the closed form of S. Baran and S. Lerch (2015), in one of two forms.

        For small sigma, the terms of the closed form cancel. With the standardized log w and E(w) = 2 Phi(w) - 1, it is
        rearranged to the mean times (y / mean - 1) E(w) + E(w) - E(w - sigma) - erf(sigma / 2). For large sigma,
        factors are combined so that none overflows unless their product does.
        """
        score, sigma = self._score(y), self.sigma
        with np.errstate(over="ignore"):
            beyond = np.exp(self.mu + sigma**2 / 2 + sc.log_ndtr(score - sigma))
            pairs = np.exp(self.mu + sigma**2 / 4) * sc.erfcx(sigma / 2)
        wide = y * sc.erf(score / np.sqrt(2)) - 2 * beyond + pairs
        close = (sigma < CLOSE) & (y > 0)
        small, at = np.where(close, sigma, 0.0), np.where(close, score, 0.0)
        between = at[:, None] - small[:, None] * UNIT_NODES
        step = small * (np.exp(-(between**2) / 2) @ UNIT_WEIGHTS) * np.sqrt(2 / np.pi)  # E(w) - E(w - sigma)
        terms = np.expm1(small * (at - small / 2)) * sc.erf(at / np.sqrt(2)) + step - sc.erf(small / 2)
        return np.asarray(np.where(close, np.exp(np.where(close, self.mu + small**2 / 2, 0)) * terms, wide))

    def quantile(self, p: float) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma * float(sc.ndtri(p))))

    def sample(self, rng: Random, size: int) -> Values:
        return rng.lognormal(self.mu[:, None], self.sigma[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "lognormal:torch", {"loc": self.mu, "scale": self.sigma}


def lognormal_from_scipy(s: Values, scale: Values) -> LogNormal:
    """Return the distributions as scipy.stats.lognorm(s, scale=scale)."""
    require_positive("s", s)
    require_positive("scale", scale)
    return LogNormal(mu=np.log(scale), sigma=s)


def lognormal_from_torch(loc: Values, scale: Values) -> LogNormal:
    """Return the distributions as torch.distributions.LogNormal."""
    require_moderate("loc", loc)
    require_positive("scale", scale)
    return LogNormal(mu=loc, sigma=scale)
