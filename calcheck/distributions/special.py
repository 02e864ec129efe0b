"""Special functions, moments and kernel means of distributions, and the numbers in their descriptions."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import comb, factorial
from statistics import NormalDist
from typing import Self

import numpy as np

from calcheck.core import sc
from calcheck.typing import AnyArray, Indices, Values

STIRLING_FROM = 16.0  # Argument from which five terms of the Stirling series are exact to rounding
SERIES_BELOW = 0.1  # |d| below which the series up to v^14 is exact to rounding
TERMS = 7  # Number of terms of that series
DIRECT_BELOW = 1.0  # Argument below which the direct formula of log_half_step is accurate
TEMME_FROM = 1e5  # Shape from which the first two terms of Temme's expansion are exact to nine digits
FAR_BELOW = 4.0  # Distance below the mean, in standard deviations, from which scipy's gammainc is inaccurate there
FEW = 1_024  # Numbers for which scipy.special is not imported: its import takes longer
ERFC = np.frompyfunc(math.erfc, 1, 1)
QUANTILE = NormalDist().inv_cdf
INVERSE = np.frompyfunc(lambda p: QUANTILE(p) if 0 < p < 1 else {0: -np.inf, 1: np.inf}.get(p, np.nan), 1, 1)
STEEPEST = 1e100  # Maximum rate of exponential distributions, in units of sqrt(gamma): effectively point masses
FARTHEST_SCORE, NEAR_ZERO = 40.0, 1e-150  # Normal scores that stand for infinite ones, and for 0
FARTHEST = 1e100  # Maximum distance or scale, in length scales: effectively infinite, but its square is finite
MIN_FULL, MAX_FULL = 1e3, 1e9  # Numbers in this range are written as whole numbers
REACH = 7.5  # Normal scores from -7.5 to 7.5 are integrated over
SCORES = np.linspace(-REACH, REACH, 21)  # Normal scores between which distribution functions are smooth
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)  # Of each panel between scores
DEGREE = 15  # Of the polynomials in tables of densities
MOST_PARTS = 16  # Most parts of a panel with a polynomial each
WIDEST = 16  # Largest width of a part relative to the noise, whose effect on a kink is then at several of 16 nodes
SERIES_ERROR = 1e-11  # Most of the last two terms of a Chebyshev series, relative to the least density
INTEGRAL_ERROR = 1e-9  # Most relative difference of integrals of densities and sums over nodes
CHEBYSHEV = np.polynomial.chebyshev.chebpts1(DEGREE + 1)
TO_SERIES = np.linalg.inv(np.polynomial.chebyshev.chebvander(CHEBYSHEV, DEGREE)).T
TO_POWERS = np.stack([np.pad(np.polynomial.chebyshev.cheb2poly(one), (0, DEGREE + 1))[: DEGREE + 1]
                      for one in np.eye(DEGREE + 1)])  # fmt: skip


def normal_cdf(z: Values | float) -> Values:
    """Return the standard normal distribution function."""
    if np.size(z) <= FEW:
        return np.asarray(ERFC(-np.sqrt(0.5) * z), dtype=np.float64) / 2
    return np.asarray(sc.ndtr(z))


def normal_quantile(p: Values | float) -> Values:
    """Return standard normal quantiles; infinite at 0 and 1, and NaN beyond."""
    if np.size(p) <= FEW:
        return np.asarray(INVERSE(p), dtype=np.float64)
    return np.asarray(sc.ndtri(p))


def ratio(part: Values, whole: Values, without: float) -> Values:
    """Return part / whole, or the value ``without`` where the whole is 0."""
    full = np.full(np.broadcast_shapes(part.shape, whole.shape), without)
    return np.asarray(np.divide(part, whole, out=full, where=whole > 0))


def round_to(values: Values, step: Values) -> Values:
    """Return the nearest multiples of a step, those above if two are equally near; infinite values stay."""
    return np.asarray(np.floor(values / step + 0.5) * step + 0.0)


def deviance_term(k: Values, mean: Values) -> Values:
    """Return k log(k / mean) - k + mean, the large-deviation rate of a Poisson distribution, without cancellation."""
    return mean * log_ratio_excess((k - mean) / mean)


def log_ratio_excess(d: Values) -> Values:
    """Return (1 + d) log(1 + d) - d for d >= -1.

    For small d, it is computed as d (v + (1 + v) (v^2 / 3 + v^4 / 5 + ...)) with v = d / (2 + d), without cancellation.
    """
    v = np.clip(d, -SERIES_BELOW, SERIES_BELOW) / (2 + np.clip(d, -SERIES_BELOW, SERIES_BELOW))
    square, series = v**2, np.zeros_like(v)
    for term in range(TERMS, 0, -1):
        series = square * (1 / (2 * term + 1) + series)
    return np.where(np.abs(d) < SERIES_BELOW, d * (v + (1 + v) * series), sc.xlog1py(1 + d, d) - d)


def stirling_error(k: Values) -> Values:
    """Return the error of Stirling's formula of log Gamma(k + 1) for k > 0, accurate for large k (C. Loader 2000)."""
    large = np.maximum(k, STIRLING_FROM)
    square = large**-2
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / large
    small = np.minimum(k, STIRLING_FROM)
    direct = sc.gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    return np.where(k >= STIRLING_FROM, series, direct)


def log_poisson(k: Values, mean: Values) -> Values:
    """Return log probabilities of Poisson distributions, without cancellation."""
    positive = np.maximum(k, 1)
    stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)
    return -deviance_term(k, mean) - np.where(k > 0, stirling, 0.0)


def gamma_below(shape: Values, x: Values) -> Values:
    """Return the lower incomplete gamma function; far below large shapes, where scipy fails, Temme's (1979)."""
    known = np.asarray(sc.gammainc(shape, x))
    far = (shape >= TEMME_FROM) & (x > 0) & (x < shape - FAR_BELOW * np.sqrt(shape))
    if far.any():
        known[far] = _temme(np.broadcast_to(shape, known.shape)[far], np.broadcast_to(x, known.shape)[far])
    return known


def _temme(shape: Values, x: Values) -> Values:
    """Return the lower incomplete gamma function for x < shape, where the shape is large."""
    rate = deviance_term(shape, x)
    eta = -np.sqrt(2 * rate / shape)
    first = -1 / 3 + eta * (1 / 12 + eta * (-2 / 135 + eta * (1 / 864 + eta / 2835)))
    second = -1 / 540 - eta / 288
    tail = np.exp(-rate) / np.sqrt(2 * np.pi * shape) * (first + second / shape)
    return np.asarray(0.5 * sc.erfc(np.sqrt(rate)) - tail)


def log_half_step(k: Values) -> Values:
    """Return log(Gamma(k + 1/2) / (Gamma(k) sqrt(k))) = log(sqrt(pi / k) / B(1/2, k)), k > 0, without cancellation."""
    large, small = np.maximum(k, DIRECT_BELOW), np.minimum(k, DIRECT_BELOW)
    steps = stirling_error(large - 0.5) - stirling_error(large)
    far = steps + large * np.log1p(-0.5 / large) + 0.5
    return np.where(k > DIRECT_BELOW, far, -sc.betaln(0.5, small) - np.log(small / np.pi) / 2)


def normal_moments(order: int) -> Values:
    """Return E Z^k of the standard normal distribution for k = 0, …, order: 1, 0, 1, 0, 3, …."""
    moments = np.zeros(order + 1)
    moments[0] = 1
    for k in range(2, order + 1, 2):
        moments[k] = (k - 1) * moments[k - 2]
    return moments


def exponential_moments(order: int) -> Values:
    """Return E E^k = k! of the standard exponential distribution for k = 0, …, order."""
    return np.array([float(factorial(k)) for k in range(order + 1)])


def monomials(points: Values, exponents: Indices) -> Values:
    """Return prod_c u_ic^e_jc, (p, q), for points (p, t) and exponents (q, t)."""
    return np.stack([np.prod(points**powers, axis=1) for powers in exponents], axis=1)


def shifted_moments(loc: Values, scale: Values, standard: Values) -> Values:
    """Return E (loc + scale Z)^k for k = 0, …, q, (…, q + 1), by the binomial theorem."""
    with np.errstate(over="ignore", invalid="ignore"):  # moments that overflow are not finite
        powers = [
            sum(comb(k, j) * loc ** (k - j) * scale**j * standard[..., j] for j in range(k + 1))
            for k in range(standard.shape[-1])
        ]
    return np.stack(powers, axis=-1)


def rbf(values: Values, points: Values, gamma: Values) -> Values:
    """Return exp(-sum_c gamma_c (u_c - v_c)^2) of (p, t) values and (r, t) points, (p, r); gamma is (t,) or (r, t)."""
    exponent, square = np.zeros((2, len(values), len(points)))
    for column in range(points.shape[1]):
        np.subtract(values[:, column, None], points[:, column], out=square)
        square *= square
        square *= gamma[..., column]
        exponent -= square
    kernel: Values = np.exp(exponent, out=exponent)
    return kernel


def in_lengths(distance: Values, gamma: Values) -> Values:
    """Return distances or scales in units of 1 / sqrt(gamma), clipped so that their squares are finite."""
    with np.errstate(over="ignore"):
        lengths = np.asarray(distance * np.sqrt(gamma))
    return np.clip(lengths, -FARTHEST, FARTHEST, out=lengths)


def normal_kernel_mean(distance: Values, scale: Values, gamma: Values) -> Values:
    """Return E exp(-gamma (d - E)^2) for E ~ N(0, scale^2), with broadcasting."""
    spread, kernel = in_lengths(scale, gamma), in_lengths(distance, gamma)
    spread = 1 + 2 * np.square(spread, out=spread)
    kernel = -np.square(kernel, out=kernel) / spread
    return np.asarray(np.exp(kernel) / np.sqrt(spread))


def normal_kernel_norm(scale: Values, gamma: Values) -> Values:
    """Return E exp(-gamma (E - E')^2) for independent E, E' ~ N(0, scale^2), with broadcasting."""
    return np.asarray(1 / np.sqrt(1 + 4 * in_lengths(scale, gamma) ** 2))


def truncated_normal_kernel_mean(distance: Values, scale: Values, gamma: Values, ends: tuple[Values, Values]) -> Values:
    """Return E exp(-gamma (d - E)^2) 1{a < E < b} for E ~ N(0, scale^2) and the ends a < b, with broadcasting."""
    excess = 2 * in_lengths(scale, gamma) ** 2
    middle, root = excess / (1 + excess) * distance, np.sqrt(1 + excess) / scale
    with np.errstate(over="ignore"):
        below, above = (sc.ndtr((end - middle) * root) for end in ends)
    return np.asarray(normal_kernel_mean(distance, scale, gamma) * (above - below))


def truncated_normal_kernel_norm(scale: Values, gamma: Values, ends: tuple[Values, Values]) -> Values:
    """Return E exp(-gamma (E - E')^2) 1{a < E, E' < b} for independent E, E' ~ N(0, scale^2) and the ends a < b."""
    pairs = 1 + 4 * in_lengths(scale, gamma) ** 2
    correlation = (pairs - 1) / (pairs + 1)
    with np.errstate(over="ignore"):
        low, high = (end / scale * np.sqrt(2 * pairs / (pairs + 1)) for end in ends)
    inside = (
        joint_normal_cdf(high, high, correlation)
        + joint_normal_cdf(low, low, correlation)
        - 2 * joint_normal_cdf(low, high, correlation)
    )
    return np.asarray(np.maximum(inside, 0) / np.sqrt(pairs))


def joint_normal_cdf(x: Values, y: Values, correlation: Values) -> Values:
    """Return P(X <= x, Y <= y) of standard normal X and Y with a correlation in [0, 1].

    Source: Owen (1956), "Tables for computing bivariate normal probabilities".
    """
    x, y = (np.clip(np.where(each == 0, NEAR_ZERO, each), -FARTHEST_SCORE, FARTHEST_SCORE) for each in (x, y))
    apart = np.sqrt(np.maximum((1 - correlation) * (1 + correlation), NEAR_ZERO))
    with np.errstate(over="ignore"):
        corners = sc.owens_t(x, (y / x - correlation) / apart) + sc.owens_t(y, (x / y - correlation) / apart)
    return np.asarray((sc.ndtr(x) + sc.ndtr(y) - (x * y < 0)) / 2 - corners)


def joint_normal_kernel_mean(distances: Values, cholesky: Values, gamma: Values) -> Values:
    """Return E exp(-sum_c gamma_c (d_c - E_c)^2) for normal vectors E with mean 0 and covariance L L^T, (n, r).

    With G = diag(gamma)^(1/2) and M = I + 2 G L L^T G, the value is det(M)^(-1/2) exp(-(G d)^T M^(-1) (G d)), computed
    by elimination of one target at a time. Its pivots are at least 1.

    Shapes: distances (t, n, r), cholesky (n, t, t), gamma (t,) or (r, t).
    """
    t = len(distances)
    away = [in_lengths(distances[one], gamma[..., one]) for one in range(t)]
    rows = [[in_lengths(cholesky[:, one, k, None], gamma[..., one]) for k in range(one + 1)] for one in range(t)]
    lower = [[2 * sum(map(np.multiply, rows[one], rows[other])) for other in range(one + 1)] for one in range(t)]
    exponent, determinant = np.zeros((2, *distances.shape[1:]))
    with np.errstate(over="ignore"):
        for one in range(t):
            pivot = np.maximum(1 + lower[one][one], 1.0)
            exponent -= away[one] ** 2 / pivot
            determinant += np.log(pivot)
            for other in range(one + 1, t):
                ratio = lower[other][one] / pivot
                away[other] = away[other] - ratio * away[one]
                for third in range(one + 1, other + 1):
                    lower[other][third] = lower[other][third] - ratio * lower[third][one]
    return np.asarray(np.exp(exponent - determinant / 2))


def exponential_kernel_mean(distance: Values, scale: Values, gamma: Values) -> Values:
    """Return E exp(-gamma (d - E)^2) for E exponential with mean ``scale`` >= 0 and any d, with broadcasting.

    With A = 1 / (2 scale sqrt(gamma)) and D = d sqrt(gamma), the value is sqrt(pi) A exp(A^2 - 2 A D) erfc(A - D). It
    is computed in one of two equivalent forms, depending on the sign of A - D, to avoid overflow.
    """
    with np.errstate(divide="ignore"):
        steep = np.minimum(1 / (2 * in_lengths(scale, gamma)), STEEPEST)  # A
    shape = np.broadcast_shapes(distance.shape, steep.shape, np.shape(gamma))
    near = np.broadcast_to(in_lengths(distance, gamma), shape)  # D
    ahead = steep - near  # A - D
    before = np.exp(-(near**2)) * sc.erfcx(np.maximum(ahead, 0))
    beyond = np.exp(np.minimum(steep * (ahead - near), 0)) * sc.erfc(np.minimum(ahead, 0))
    return np.asarray(np.sqrt(np.pi) * steep * np.where(ahead >= 0, before, beyond))


def describe_parameters(template: str, *parameters: AnyArray) -> list[str]:
    """Return a template such as ``"N({}, {}²)"`` filled with the parameters (n,) of each row, to three digits."""
    return [fill(template, row) for row in zip(*parameters, strict=True)]


def fill(template: str, numbers: Iterable[float]) -> str:
    """Return a template filled with numbers formatted by :func:`format_plain`."""
    return template.format(*map(format_plain, numbers))


def format_plain(number: float) -> str:
    """Return a number to three significant digits, or as a whole number if it is in [1e3, 1e9).

    >>> format_plain(0.04567), format_plain(1234.5), format_plain(1e12)
    ('0.0457', '1,234', '1e+12')
    """
    return f"{number:,.0f}" if MIN_FULL <= abs(number) < MAX_FULL else f"{number:.3g}"


def panels(edges: Values, nodes: Values = NODES, weights: Values = WEIGHTS) -> tuple[Values, Values]:
    """Return the nodes between edges (n, e), and their weights, (n, k (e - 1)) each, given those of [-1, 1]."""
    widths = np.diff(edges, axis=1)[:, :, None]
    inside = edges[:, :-1, None] + widths * (1 + nodes) / 2
    return inside.reshape(len(edges), -1), (widths * weights / 2).reshape(len(edges), -1)


def columns(of: Callable[[Values], Values], values: Values) -> Values:
    """Return a function of (n,) values for each column of (n, k) values."""
    return np.stack([of(column) for column in values.T], axis=1)


@dataclass(frozen=True, eq=False)
class DistributionTable:
    """Functions of n distributions as polynomials on equal parts of panels, where these are accurate."""

    edges: Values  # (n, e), increasing, of panels
    parts: Indices  # (n, e - 1), number of parts of each panel; 0 where polynomials are not accurate
    first: Indices  # (n, e - 1), index of the first part of each panel
    powers: Mapping[str, Values]  # Of each function, (d, p): coefficients of powers of places from -1 to 1 in each part

    @classmethod
    def fit(
        cls,
        edges: Values,
        density: Callable[[Indices, Values], Values],  # At several values of some rows, (w, k)
        of_edges: Mapping[str, Values],  # Values of ``cdf``, ``above`` and ``distance`` at the edges, (n, e) each
        noise: Values,  # (n,), widths of the narrowest features of the densities
        most: int,  # Largest number of coefficients
    ) -> Self | None:
        """Return the table of a density, its integrals from both sides, and the mean distance, E|Y - y|; None if large.

        A panel is divided until polynomials have a relative error of about 1e-11, and no feature is between nodes.
        """
        width = np.diff(edges, axis=1)
        parts, found = np.zeros(width.shape, np.intp), []
        waiting, count = np.flatnonzero((width > 0) & (width <= MOST_PARTS * WIDEST * noise[:, None])), 1
        while len(waiting) and count <= MOST_PARTS:
            row, panel = np.divmod(waiting, width.shape[1])
            step = width[row, panel] / count
            good = step <= WIDEST * noise[row]
            if not good.any():
                count *= 2
                continue
            now, row, panel, step = waiting[good], row[good], panel[good], step[good]
            places = np.arange(count)[:, None] + (1 + CHEBYSHEV) / 2
            y = edges[row, panel, None, None] + step[:, None, None] * places
            values = density(np.repeat(row, count), y.reshape(-1, len(CHEBYSHEV))).reshape(y.shape)
            series = values @ TO_SERIES
            accurate = np.abs(series[..., -2:]).sum(axis=2) <= SERIES_ERROR * values.min(axis=2)
            accurate = accurate.all(axis=1) & (values > 0).all(axis=(1, 2))
            good[good] = accurate
            parts.reshape(-1)[waiting[good]] = count
            ends = {
                name: np.stack([values[row[accurate], panel[accurate] + end] for end in (0, 1)])
                for name, values in of_edges.items()
            }
            found.append((now[accurate], _integrals(series[accurate] @ TO_POWERS, step[accurate] / 2, ends)))
            waiting, count = waiting[~good], 2 * count
            if sum(values.size for _, each in found for values in each.values()) > most:
                return None
        first = (np.cumsum(parts) - parts.reshape(-1)).reshape(parts.shape)
        total = int(parts.sum())
        powers: dict[str, Values] = {}
        for places, each in found:
            at = np.add.outer(first.reshape(-1)[places], np.arange(each["cdf"].shape[1])).ravel()
            for name, values in each.items():
                place = powers.setdefault(name, np.zeros((len(values.T), total)))
                for line, power in zip(place, values.T, strict=True):
                    line[at] = power.T.ravel()
        return cls(edges, parts, first, powers)

    def take(self, rows: Indices | slice) -> Self:
        """Return the table of the selected rows."""
        return replace(self, edges=self.edges[rows], parts=self.parts[rows], first=self.first[rows])

    def at(self, name: str, rows: Indices, y: Values) -> Values:
        """Return a function of the distributions of some rows at y, (w,); NaN where it is not in the table."""
        panel = np.sum(self.edges[rows] <= y[:, None], axis=1) - 1
        inside = (panel >= 0) & (panel < self.parts.shape[1])
        panel = np.where(inside, panel, 0)
        parts = self.parts[rows, panel]
        inside &= parts > 0
        low = self.edges[rows, panel]
        place = (y - low) / (self.edges[rows, panel + 1] - low) * parts
        part = np.clip(np.floor(np.where(inside, place, 0)), 0, np.maximum(parts - 1, 0))
        x = 2 * (place - part) - 1
        part = np.where(inside, self.first[rows, panel] + part.astype(np.intp), 0)
        powers = self.powers[name]
        found = powers[-1][part]
        for power in powers[-2::-1]:
            found *= x
            found += power[part]
        return np.where(inside, found, np.nan)


def _integrals(density: Values, half: Values, ends: Mapping[str, Values]) -> dict[str, Values]:
    """Return coefficients of the functions in a table, given those of densities on parts (w, m, d) of panels (w,)."""
    half = half[:, None, None]

    def integral(of: Values) -> tuple[Values, Values, Values]:
        """Return coefficients of integrals from the start of each part, and integrals before and over parts."""
        powers = np.concatenate([np.zeros((*of.shape[:2], 1)), half * of / np.arange(1, of.shape[2] + 1)], axis=2)
        signs = np.where(np.arange(powers.shape[2]) % 2, -1.0, 1.0)
        powers[..., 0] = -powers @ signs
        mass = powers.sum(axis=2)
        return powers, np.cumsum(mass, axis=1) - mass, mass

    cdf, before, mass = integral(density)
    above = -cdf
    above[..., 0] += ends["above"][1][:, None] + np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]
    cdf[..., 0] += ends["cdf"][0][:, None] + before
    slope = 2 * cdf
    slope[..., 0] -= 1
    distance, before, change = integral(slope)
    start, stop = ends["distance"]
    agrees = np.abs(start + change.sum(axis=1) - stop) <= INTEGRAL_ERROR * stop  # not without a mean
    distance[..., 0] += np.where(agrees, start, np.nan)[:, None] + before
    return {"density": density, "cdf": cdf, "above": above, "distance": distance}
