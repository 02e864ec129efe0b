"""Student-t predictive distributions, including those of evidential regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.core.validation import require_moderate, require_positive
from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.formatting import fill
from calcheck.distributions.special import FARTHEST, in_lengths, log_half_step, stirling_error
from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.distributions.row_random import Random
    from calcheck.typing import Indices, Values

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
class StudentT(LocationScale):
    """Student-t distributions.

    ``loc``: medians, in the unit of the targets. ``scale``: scales, > 0; the standard deviations are scale sqrt(df /
    (df - 2)).

    Y = loc + scale Z / sqrt(s) with Z ~ N(0, 1) and s ~ Gamma(df / 2, df / 2). Kernel means and norms are those of
    normal distributions, averaged over s by the trapezoidal rule in log s. In the strip |Im log s| <= 1.4, the
    integrand is at most cos(Im log s)^(-df / 2) times the density. This bounds the error and determines the step.
    """

    family: ClassVar[str] = "student-t"
    df_label: ClassVar[str] = "df"
    """Name of the degrees of freedom in messages."""
    df: Values  # (n,), degrees of freedom, > 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)

    @property
    def kernel_error(self) -> float:
        return 1e-9

    def _require_df_above(self, least: int, without: str) -> None:
        """Raise an error unless df > least in all rows."""
        if lacking := int(np.sum(self.df <= least)):
            msg = (
                f"{lacking:,} of {len(self):,} {self.family} distributions have no {without}"
                f" ({self.df_label} <= {least})"
            )
            raise DataError(msg)

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
        from scipy.special import stdtr

        return np.asarray(stdtr(self.df, z))

    def standard_log_density(self, z: Values) -> Values:
        log_power = np.log1p(z**2 / self.df)
        return np.asarray(-(self.df + 1) / 2 * log_power - np.log(2 * np.pi) / 2 + log_half_step(self.df / 2))

    def standard_quantile(self, p: Values | float) -> Values:
        from scipy.special import stdtrit

        return np.asarray(stdtrit(self.df, p))

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
        near = np.clip(z, -FARTHEST, FARTHEST)
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
        z, df = self.standardize(y), self.df
        far, half = log_half_step(df - 0.5), log_half_step(df / 2)
        pairs = df / (df - 1) * np.sqrt(df / (df - 0.5) / np.pi) * np.exp(2 * half - far)
        ratio = np.where(df < CLOSE, _log_beta_ratio(df), np.log(2 - 1 / df) / 2 + far - half)
        rest = np.expm1(ratio - (df - 1) / 2 * np.log1p(z**2 / df))
        return np.asarray(self.scale * (z * (2 * self.standard_cdf(z) - 1) + pairs * rest))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        gamma = np.broadcast_to(gamma[..., 0], len(points))  # (r,)
        mean = np.empty((len(self), len(points)))
        for rows, mixing, weight in self._mixtures(float(gamma.min()), max(1, BLOCK_VALUES // len(points))):
            away = in_lengths(points[:, 0] - self.loc[rows, None], gamma) ** 2  # (b, r)
            width = 2 * in_lengths(self.scale[rows, None], gamma) ** 2
            total = np.zeros_like(away)
            for node in range(mixing.shape[1]):
                flattened = 1 / (1 + width / mixing[:, node, None])
                total += weight[:, node, None] * np.sqrt(flattened) * np.exp(-away * flattened)
            mean[rows] = total
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.empty(len(self))
        for rows, mixing, weight in self._mixtures(float(gamma[0]), BLOCK_VALUES // 64):
            width = 2 * in_lengths(self.scale[rows, None], gamma[0]) ** 2 / mixing
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
            log_density = shape * (t - np.expm1(t)) + np.log(shape / (2 * np.pi)) / 2 - stirling_error(shape)
            yield rows, np.exp(t), spacing[:, None] * np.exp(log_density)

    def _mixing_range(self, gamma: float) -> tuple[Values, Values, Values]:
        """Return the limits in log s and the step of the trapezoidal rule, (n,) each.

        The lower limit neglects values of s that have little probability, or for which the normal distributions are so
        wide that the kernel mean, at most sqrt(s / (2 gamma scale^2)), is negligible.
        """
        from scipy.special import gammainccinv, gammaincinv, gammaln

        df = np.clip(self.df, *DF_RANGE)
        shape = df / 2
        power = gammaln(shape + 1) - shape * np.log(shape)  # P(s < x) <= x^shape e^-power
        width = np.log(np.maximum(in_lengths(self.scale, np.asarray(gamma)), 1 / FARTHEST)) + np.log(2) / 2
        with np.errstate(divide="ignore"):  # quantiles underflow where the other bounds are sharp
            lows = (
                np.log(gammaincinv(shape, NEGLIGIBLE) / shape),
                (np.log(NEGLIGIBLE) + power) / shape,
                (np.log(NEGLIGIBLE) + power + width) / (shape + 0.5),
            )
            high = np.log(gammainccinv(shape, NEGLIGIBLE) / shape)
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
                described.append(fill(f"t{int(df)}".translate(SUBSCRIPTS) + "({}, {})", others))
            else:
                described.append(fill("t(df {}, {}, {})", (df, *others)))
        return described


def _log_beta_ratio(df: Values) -> Values:
    """Return log(B(1/2, df / 2) / B(1/2, df - 1/2)) for df in [1, 1.5], as the integral of its derivative."""
    from scipy.special import digamma

    half = (np.minimum(df, CLOSE) - 1) / 4
    at = (np.minimum(df, CLOSE) / 2 + half)[:, None] + half[:, None] * NODES
    return np.asarray(half * ((digamma(at + 0.5) - digamma(at)) @ WEIGHTS))


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
