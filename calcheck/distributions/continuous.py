"""Continuous distributions: normal, Laplace, Cauchy, Student t, and their common base."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import require_moderate, require_positive
from calcheck.distributions import special
from calcheck.distributions.base import Predictive, assemble
from calcheck.distributions.row_random import Random
from calcheck.errors import DataError
from calcheck.typing import Indices, Values

PART = 1 << 16  # Rows per batch: 0.5 MB per column
ZERO_FROM = 750.0  # Distance beyond which densities are 0
SERIES_FROM = 50.0  # A from which the series is used: 5 terms are accurate to 1e-15, the closed form still to 1e-12
NEGLIGIBLE = 1e-11  # Neglected probability of the mixing distribution on each side
DF_RANGE = 1e-13, 1e11  # Range of df in kernel means; values outside are clipped, with an error below 1e-11
STRIP = 1.4  # Maximum half width, in log s, of the strip for the error bound of the trapezoidal rule; < pi / 2
DIGITS = 25.0  # Target accuracy of the trapezoidal rule: the error is below 2 e^-25 = 3e-11
BLOCK_VALUES = 1 << 16  # Kernel values per block, which fits in the cache
CLOSE = 1.5  # df below which the beta functions of df / 2 and df - 1/2 are nearly equal
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
MAX_SUBSCRIPT = 1000  # Whole degrees of freedom below this are written as a subscript
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, eq=False)
class Continuous(Predictive):
    """Distributions without atoms."""

    def cdf_left(self, y: Values) -> Values:
        return self.cdf(y)

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        below = self.cdf(y)
        return below, below


@dataclass(frozen=True, eq=False)
class LocationScale(Continuous):
    """Distributions of loc + scale Z, where the family defines the standard form Z."""

    names: ClassVar[tuple[str, str]] = ("loc", "scale")  # Names of the location and the scale in messages
    loc: Values  # (n,), locations, in the unit of the targets
    scale: Values  # (n,), scales, > 0, in the unit of the targets

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate(self.names[0], self.loc)
        require_positive(self.names[1], self.scale)

    @abstractmethod
    def standard_cdf(self, z: Values) -> Values:
        """Return P(Z_i <= z_i), (n,)."""

    @abstractmethod
    def standard_log_density(self, z: Values) -> Values:
        """Return the log density of Z_i at z_i, (n,)."""

    @abstractmethod
    def standard_quantile(self, p: Values | float) -> Values:
        """Return the quantiles of Z_i at levels p, (n,), or in the shape of p if they are equal for all rows."""

    def standard_partial_mean(self, z: Values) -> Values:  # noqa: ARG002 - for overrides
        """Return the integral of x f_i(x) from -inf to z_i for the density f_i of Z_i, (n,), <= 0."""
        raise DataError(f"distributions of the family {self.family} have no partial means")

    @abstractmethod
    def standard_draws(self, rng: Random, size: int) -> Values:
        """Return ``size`` draws of each Z_i, (n, size)."""

    def standard_moments(self, order: int) -> Values:
        """Return E Z_i^k for k = 0, …, order, (order + 1,) if they are equal for all rows, else (n, order + 1)."""
        return super().raw_moments(order)

    def raw_moments(self, order: int) -> Values:
        return special.shifted_moments(self.loc, self.scale, self.standard_moments(order))

    def standardize(self, y: Values) -> Values:
        """Return (y_i - loc_i) / scale_i, (n,)."""
        return (y - self.loc) / self.scale

    @property
    def has_standard_form(self) -> bool:
        """Whether Z_i has the same distribution in all rows, symmetric and with a mean."""
        return False

    def rescale(self, shift: Values, factor: Values) -> Self:
        return replace(self, loc=self.loc + shift, scale=self.scale * factor)

    def spread(self) -> Values:
        return self.scale

    def mean(self) -> Values:
        return self.loc

    def median(self) -> Values:
        return self.loc

    def batches(self) -> Iterator[tuple[slice, Self]]:
        return iter(self._batches)

    @cached_property
    def _batches(self) -> list[tuple[slice, Self]]:
        """The batches, as views; statistics of them are cached as long as these distributions exist."""
        parts = [slice(start, min(start + PART, len(self))) for start in range(0, len(self), PART)]
        return [(rows, self.take(rows)) for rows in parts]

    def map_batches(self, of: Callable[[Self, slice], Values]) -> Values:
        if len(self) <= PART:
            return of(self, slice(None))
        return assemble(len(self), ((rows, of(part, rows)) for rows, part in self.batches()))

    def cdf(self, y: Values) -> Values:
        return self.map_batches(lambda part, rows: part.standard_cdf(part.standardize(y[rows])))

    def above(self, y: Values) -> Values:
        """Return P(Y_i >= y_i), (n,): all families are symmetric."""
        return self.map_batches(lambda part, rows: part.standard_cdf(-part.standardize(y[rows])))

    def central_mass(self, level: float) -> Values:
        low, high = (self.standard_cdf(np.asarray(self.standard_quantile((1 + sign * level) / 2))) for sign in (-1, 1))
        return np.broadcast_to(high - low, len(self))

    def log_prob(self, y: Values) -> Values:
        return self.map_batches(
            lambda part, rows: part.standard_log_density(part.standardize(y[rows])) - np.log(part.scale)
        )

    def quantile(self, p: float) -> Values:
        with np.errstate(over="ignore"):  # for scales near the largest float
            return np.asarray(self.loc + self.scale * self.standard_quantile(p))

    def at_scores(self, z: Values) -> Values:
        """Return the quantiles, of which those above the median are the others reflected."""
        away = special.columns(self.standard_quantile, sc.ndtr(-np.abs(z)))
        return np.asarray(self.loc[:, None] - np.sign(z) * self.scale[:, None] * away)

    def sample(self, rng: Random, size: int) -> Values:
        drawn = self.standard_draws(rng, size)
        with np.errstate(over="ignore"):  # for scales near the largest float
            drawn *= self.scale[:, None]
            drawn += self.loc[:, None]
        return drawn


@dataclass(frozen=True, eq=False)
class Gaussian(LocationScale):
    """Normal distributions with means ``loc`` and standard deviations ``scale``, in the unit of the targets."""

    family: ClassVar[str] = "gaussian"
    template: ClassVar[str] = "N({}, {}²)"
    names: ClassVar[tuple[str, str]] = ("mean", "std")
    has_standard_form = True

    def std(self) -> Values:
        return self.scale

    def standard_cdf(self, z: Values) -> Values:
        return special.normal_cdf(z)

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-0.5 * z**2 - 0.5 * np.log(2 * np.pi))

    def standard_quantile(self, p: Values | float) -> Values:
        return special.normal_quantile(p)

    def standard_moments(self, order: int) -> Values:
        return special.normal_moments(order)

    def standard_partial_mean(self, z: Values) -> Values:
        return np.asarray(-np.exp(self.standard_log_density(z)))

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.standard_normal((len(self), size))

    def at_scores(self, z: Values) -> Values:
        return self.loc[:, None] + self.scale[:, None] * z

    def crps(self, y: Values) -> Values:
        from scoringrules import crps_normal

        return self.map_batches(
            lambda part, rows: np.asarray(crps_normal(y[rows], part.loc, part.scale, backend="numpy"))
        )

    def normal(self) -> tuple[Values, Values]:
        return self.loc[:, None], self.scale[:, None]

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return special.normal_kernel_mean(points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0])

    def kernel_norm(self, gamma: Values) -> Values:
        return special.normal_kernel_norm(self.scale, gamma[0])


@dataclass(frozen=True, eq=False)
class AssumedGaussian(Gaussian):
    """Normal distributions assumed for a file that gives means and standard deviations but no distribution family."""

    shape_is_known = False


@dataclass(frozen=True, eq=False)
class Laplace(LocationScale):
    """Laplace distributions of density exp(-|y - loc| / scale) / (2 scale): means, mean absolute deviations."""

    family: ClassVar[str] = "laplace"
    template: ClassVar[str] = "Laplace({}, {})"
    has_standard_form = True

    def std(self) -> Values:
        return np.asarray(np.sqrt(2) * self.scale)

    def standard_cdf(self, z: Values) -> Values:
        tail = np.exp(-np.abs(z)) / 2
        return np.asarray(np.where(z < 0, tail, 1 - tail))

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-np.abs(z) - np.log(2))

    def standard_quantile(self, p: Values | float) -> Values:
        p = np.asarray(p, dtype=np.float64)
        with np.errstate(divide="ignore"):  # one of both sides, which is not used
            return np.asarray(np.where(p < 1 / 2, np.log(2 * p), -np.log(2 * (1 - p))))

    def standard_moments(self, order: int) -> Values:
        """Return k! for even k and 0 for odd k, (order + 1,)."""
        return np.where(np.arange(order + 1) % 2 == 0, special.exponential_moments(order), 0.0)

    def standard_partial_mean(self, z: Values) -> Values:
        away = np.minimum(np.abs(z), ZERO_FROM)
        return np.asarray(-(1 + away) * np.exp(-away) / 2)

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.laplace(size=(len(self), size))

    def crps(self, y: Values) -> Values:
        from scoringrules import crps_laplace

        return np.asarray(crps_laplace(y, self.loc, self.scale, backend="numpy"))

    def kinks(self) -> Values:
        return self.loc[:, None]

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        away, scale, gamma = points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0]
        sides = [special.exponential_kernel_mean(sign * away, scale, gamma) for sign in (1, -1)]
        return (sides[0] + sides[1]) / 2

    def kernel_norm(self, gamma: Values) -> Values:
        """Return E exp(-gamma u^2) for u = Y - Y', which has the density (1 + |u| / b) exp(-|u| / b) / (4 b)."""
        one_sided = special.exponential_kernel_mean(np.zeros(1), self.scale, gamma[0])  # E
        steep = 1 / (2 * np.maximum(special.in_lengths(self.scale, gamma[0]), 1 / special.STEEPEST))  # A
        x = 1 / (2 * np.maximum(steep, SERIES_FROM) ** 2)
        series = 1 - x * (3 - x * (15 - x * (105 - x * 945)))
        closed = 2 * np.minimum(steep, SERIES_FROM) ** 2 * (1 - one_sided)
        return np.asarray(one_sided + np.where(steep >= SERIES_FROM, series, closed)) / 2


@dataclass(frozen=True, eq=False)
class Cauchy(LocationScale):
    """Cauchy distributions: medians ``loc``, half widths at half maximum ``scale``, no means and variances."""

    family: ClassVar[str] = "cauchy"
    template: ClassVar[str] = "Cauchy({}, {})"

    def mean(self) -> Values:
        raise DataError("a cauchy distribution has no mean")

    def std(self) -> Values:
        raise DataError("a cauchy distribution has no standard deviation")

    def crps(self, y: Values) -> Values:
        """Return scale (z (2 F(z) - 1) - log((1 + z^2) / 4) / pi), which is finite although there is no mean."""
        z = self.standardize(y)
        centered = 2 * np.arctan(z) / np.pi
        return np.asarray(self.scale * (z * centered - 2 * np.log(np.hypot(1, z) / 2) / np.pi))

    def standard_cdf(self, z: Values) -> Values:
        return np.asarray(np.arctan2(1, -z) / np.pi)  # accurate for small probabilities

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-2 * np.log(np.hypot(1, z)) - np.log(np.pi))

    def standard_quantile(self, p: Values | float) -> Values:
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(np.where(p < 1 / 2, -1 / np.tan(np.pi * p), 1 / np.tan(np.pi * (1 - p))))

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.standard_cauchy((len(self), size))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        """Return Re w((d + i scale) sqrt(gamma)) with d = p - loc and the Faddeeva function w: a Voigt profile."""
        away = special.in_lengths(points[:, 0] - self.loc[:, None], gamma[..., 0])
        return np.asarray(sc.wofz(away + 1j * special.in_lengths(self.scale[:, None], gamma[..., 0])).real)

    def kernel_norm(self, gamma: Values) -> Values:
        return np.asarray(sc.erfcx(2 * special.in_lengths(self.scale, gamma[0])))  # Y - Y' has twice the scale


@dataclass(frozen=True, eq=False)
class StudentT(LocationScale):
    """Student-t distributions: Y = loc + scale Z / sqrt(s) with Z ~ N(0, 1) and s ~ Gamma(df / 2, df / 2).

    Kernel means and norms are those of normal distributions, averaged over s by the trapezoidal rule in log s. In the
    strip |Im log s| <= 1.4, the integrand is at most cos(Im log s)^(-df / 2) times the density, which bounds the error.
    """

    family: ClassVar[str] = "student-t"
    df_label: ClassVar[str] = "df"  # Name of the degrees of freedom in messages
    df: Values  # (n,), degrees of freedom, > 0
    kernel_error = 1e-9

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)

    def _require_df_above(self, least: int, without: str) -> None:
        """Raise an error unless df > least in all rows."""
        if lacking := int(np.sum(self.df <= least)):
            raise DataError(
                f"{lacking:,} of {len(self):,} {self.family} distributions have no {without}"
                f" ({self.df_label} <= {least})"
            )

    def mean(self) -> Values:
        self._require_df_above(1, "mean")
        return self.loc

    def std(self) -> Values:
        self._require_df_above(2, "finite standard deviation")
        return np.asarray(self.scale * np.sqrt(self.df / (self.df - 2)))

    @property
    def has_standard_form(self) -> bool:
        return bool(self.df[0] > 1 and (self.df == self.df[0]).all())

    def standard_cdf(self, z: Values) -> Values:
        return np.asarray(sc.stdtr(self.df, z))

    @cached_property
    def _half_step(self) -> Values:
        """Half steps of the log gamma function at df / 2, which replicates share, (n,)."""
        return special.log_half_step(self.df / 2)

    def standard_log_density(self, z: Values) -> Values:
        log_power = np.log1p(z**2 / self.df)
        return np.asarray(-(self.df + 1) / 2 * log_power - np.log(2 * np.pi) / 2 + self._half_step)

    def standard_quantile(self, p: Values | float) -> Values:
        return np.asarray(sc.stdtrit(self.df, p))

    def standard_moments(self, order: int) -> Values:
        """Return E Z^k = E Z^(k - 2) (k - 1) df / (df - k) for even k and 0 for odd k, (n, order + 1)."""
        self._require_df_above(order, f"finite moment of order {order}")
        moments = np.zeros((len(self), order + 1))
        moments[:, 0] = 1
        for k in range(2, order + 1, 2):
            moments[:, k] = moments[:, k - 2] * (k - 1) * self.df / (self.df - k)
        return moments

    def standard_partial_mean(self, z: Values) -> Values:
        """Return the integral of x f(x) up to z, (n,): -(df + z^2) / (df - 1) f(z)."""
        self._require_df_above(1, "mean")
        near = np.clip(z, -special.FARTHEST, special.FARTHEST)
        return np.asarray(-(self.df + near**2) / (self.df - 1) * np.exp(self.standard_log_density(near)))

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.standard_t(self.df[:, None], (len(self), size))

    def crps(self, y: Values) -> Values:
        """Return the closed form of Jordan, Krueger and Lerch (2019), rearranged to avoid cancellation.

        In units of the scale, it is z (2 F(z) - 1) + E|Z - Z'| / 2 (exp(u) - 1) with
        u = log(B(1/2, df / 2) / B(1/2, df - 1/2)) - (df - 1) / 2 log(1 + z^2 / df), which is 0 at df = 1. This form is
        accurate for df close to 1 and for large df.
        """
        self._require_df_above(1, "mean, and so no CRPS")
        z, df, (pairs, ratio) = self.standardize(y), self.df, self._crps_constants
        rest = np.expm1(ratio - (df - 1) / 2 * np.log1p(z**2 / df))
        return np.asarray(self.scale * (z * (2 * self.standard_cdf(z) - 1) + pairs * rest))

    @cached_property
    def _crps_constants(self) -> tuple[Values, Values]:
        """E|Z - Z'| / 2 and the logarithm of the ratio of beta functions, which replicates share, (n,) each."""
        df, half, far = self.df, self._half_step, special.log_half_step(self.df - 0.5)
        pairs = df / (df - 1) * np.sqrt(df / (df - 0.5) / np.pi) * np.exp(2 * half - far)
        return pairs, np.where(df < CLOSE, _log_beta_ratio(df), np.log(2 - 1 / df) / 2 + far - half)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        gamma = np.broadcast_to(gamma[..., 0], len(points))  # (r,)
        mean = np.empty((len(self), len(points)))
        for rows, mixing, weight in self._mixtures(float(gamma.min()), max(1, BLOCK_VALUES // len(points))):
            away = special.in_lengths(points[:, 0] - self.loc[rows, None], gamma) ** 2  # (b, r)
            width = 2 * special.in_lengths(self.scale[rows, None], gamma) ** 2
            total = np.zeros_like(away)
            for node in range(mixing.shape[1]):
                flattened = 1 / (1 + width / mixing[:, node, None])
                total += weight[:, node, None] * np.sqrt(flattened) * np.exp(-away * flattened)
            mean[rows] = total
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.empty(len(self))
        for rows, mixing, weight in self._mixtures(float(gamma[0]), BLOCK_VALUES // 64):
            width = 2 * special.in_lengths(self.scale[rows, None], gamma[0]) ** 2 / mixing
            total = np.zeros(len(rows))
            for node in range(mixing.shape[1]):
                pairs = 1 / np.sqrt(1 + width + width[:, node, None])
                total += weight[:, node] * np.sum(weight * pairs, axis=1)
            norm[rows] = total
        return norm

    def _mixtures(self, gamma: float, size: int) -> Iterator[tuple[Indices, Values, Values]]:
        """Yield blocks of up to ``size`` rows with the quadrature rule for means over s, valid for kernels >= gamma."""
        low, high, step = self._mixing_range(gamma)
        order = np.argsort((high - low) / step)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            nodes = int(np.ceil(np.max((high[rows] - low[rows]) / step[rows]))) + 1
            spacing = (high[rows] - low[rows]) / (nodes - 1)
            t = low[rows, None] + spacing[:, None] * np.arange(nodes)
            shape = np.clip(self.df, *DF_RANGE)[rows, None] / 2
            log_density = shape * (t - np.expm1(t)) + np.log(shape / (2 * np.pi)) / 2 - special.stirling_error(shape)
            yield rows, np.exp(t), spacing[:, None] * np.exp(log_density)

    def _mixing_range(self, gamma: float) -> tuple[Values, Values, Values]:
        """Return the limits in log s, beyond which kernel means are negligible, and the step of the rule, (n,) each."""
        df = np.clip(self.df, *DF_RANGE)
        shape = df / 2
        power = sc.gammaln(shape + 1) - shape * np.log(shape)  # P(s < x) <= x^shape e^-power
        lengths = np.maximum(special.in_lengths(self.scale, np.asarray(gamma)), 1 / special.FARTHEST)
        width = np.log(lengths) + np.log(2) / 2
        with np.errstate(divide="ignore"):  # quantiles underflow where the other bounds are sharp
            lows = (
                np.log(sc.gammaincinv(shape, NEGLIGIBLE) / shape),
                (np.log(NEGLIGIBLE) + power) / shape,
                (np.log(NEGLIGIBLE) + power + width) / (shape + 0.5),
            )
            high = np.log(sc.gammainccinv(shape, NEGLIGIBLE) / shape)
        low = np.max(lows, axis=0)
        strip = np.minimum(STRIP, 2 * np.sqrt(DIGITS / df))
        step = 2 * np.pi * strip / (DIGITS - shape * np.log(np.cos(strip)))
        return low, np.maximum(high, low + step), step

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "student-t", {"df": self.df, "loc": self.loc, "scale": self.scale}

    def describe(self) -> list[str]:
        described = []
        for df, *others in zip(self.df, self.loc, self.scale, strict=True):
            if df == int(df) and df < MAX_SUBSCRIPT:
                described.append(special.fill(f"t{int(df)}".translate(SUBSCRIPTS) + "({}, {})", others))
            else:
                described.append(special.fill("t(df {}, {}, {})", (df, *others)))
        return described


def _log_beta_ratio(df: Values) -> Values:
    """Return log(B(1/2, df / 2) / B(1/2, df - 1/2)) for df in [1, 1.5], as the integral of its derivative."""
    half = (np.minimum(df, CLOSE) - 1) / 4
    at = (np.minimum(df, CLOSE) / 2 + half)[:, None] + half[:, None] * NODES
    return np.asarray(half * ((sc.digamma(at + 0.5) - sc.digamma(at)) @ WEIGHTS))


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(StudentT):
    """Student-t distributions predicted by deep evidential regression (A. Amini et al., NeurIPS 2020)."""

    family: ClassVar[str] = "nig"
    df_label: ClassVar[str] = "2 alpha"


def from_evidential(gamma: Values, v: Values, alpha: Values, beta: Values) -> NormalInverseGamma:
    """Return the distributions that evidential regression predicts by the four parameters."""
    require_moderate("gamma", gamma)
    for name, values in (("v", v), ("alpha", alpha), ("beta", beta)):
        require_positive(name, values)
    with np.errstate(over="ignore"):  # infinite scales are rejected by the family
        return NormalInverseGamma(loc=gamma, scale=np.sqrt(beta) * np.sqrt(1 + 1 / v) / np.sqrt(alpha), df=2 * alpha)
