"""Mixtures of Gaussian predictive distributions."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import require, require_moderate, require_positive
from calcheck.distributions.continuous import Continuous
from calcheck.distributions.row_random import Random
from calcheck.distributions.special import fill, normal_kernel_mean, normal_moments, shifted_moments
from calcheck.errors import DataError
from calcheck.typing import Values

ROUNDING = 1e-14  # Weights that sum to 1 within this error are not rescaled, so that selected rows keep them
WEIGHT_ERROR = 1e-6  # Maximum error of the sum of the weights; files often have single precision
SHOWN = 3  # Maximum number of components in a description
MAX_BISECTIONS = 64  # Maximum bisection steps; 53 reduce an interval to neighboring floats
GROUP_AXES = 2  # Number of axes of parameters: rows and components


@dataclass(frozen=True, eq=False)
class Mixture(Continuous):
    """Mixtures of k normal distributions per row."""

    family: ClassVar[str] = "mixture"
    loc: Values  # (n, k), means of the components, in the unit of the targets
    scale: Values  # (n, k), standard deviations of the components, > 0
    # (n, k), weights of the components, >= 0; they must sum to 1 within 1e-6, and are rescaled to an exact sum
    weight: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        if self.loc.ndim != GROUP_AXES or not self.loc.shape[1]:
            raise DataError(f"the parameters of a mixture must be rows by components, got shape {self.loc.shape}")
        require_moderate("loc", self.loc)
        require_positive("scale", self.scale)
        require_moderate("weight", self.weight)
        require("weight", self.weight >= 0, "must be nonnegative")
        total = self.weight.sum(axis=1, keepdims=True)
        remedy = "If they are logits, pass --dist mixture:logits."
        require("weight", np.abs(total - 1) <= WEIGHT_ERROR, "must be normalized to a sum of 1 per row", remedy)
        object.__setattr__(self, "weight", self.weight / np.where(np.abs(total - 1) > ROUNDING, total, 1))

    def mean(self) -> Values:
        return np.asarray(np.sum(self.weight * self.loc, axis=1))

    def std(self) -> Values:
        away = self.loc - self.mean()[:, None]
        return np.asarray(np.sqrt(np.sum(self.weight * (self.scale**2 + away**2), axis=1)))

    def raw_moments(self, order: int) -> Values:
        of_components = shifted_moments(self.loc, self.scale, normal_moments(order))
        return np.asarray(np.sum(self.weight[:, :, None] * of_components, axis=1))

    def rescale(self, shift: Values, factor: Values) -> "Mixture":
        """Return the mixtures with means moved, and deviations from them scaled."""
        center = self.mean()[:, None]
        loc = center + shift[:, None] + factor[:, None] * (self.loc - center)
        return replace(self, loc=loc, scale=factor[:, None] * self.scale)

    def _standard(self, y: Values) -> Values:
        return (y[:, None] - self.loc) / self.scale

    def cdf(self, y: Values) -> Values:
        return np.minimum(self._below(y, 1), 1.0)

    def _below(self, y: Values, sign: int) -> Values:
        """Return P(Y_i < y_i) for sign 1 and P(Y_i > y_i) for sign -1, (n,), accurate for small probabilities."""
        return np.asarray(np.sum(self.weight * sc.ndtr(sign * self._standard(y)), axis=1))

    def log_prob(self, y: Values) -> Values:
        log_density = -0.5 * self._standard(y) ** 2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi)
        return np.asarray(sc.logsumexp(log_density, axis=1, b=self.weight))

    def crps(self, y: Values) -> Values:
        """Return E|Y - y| - E|Y - Y'| / 2, computed from normal differences (E. P. Grimit et al., 2006)."""
        score = np.sum(self.weight * _mean_distance(y[:, None] - self.loc, self.scale), axis=1)
        for one in range(self.loc.shape[1]):
            away, width = self._differences(one)
            score -= self.weight[:, one] * np.sum(self.weight * _mean_distance(away, width), axis=1) / 2
        return np.asarray(score)

    def _differences(self, one: int) -> tuple[Values, Values]:
        """Return means and standard deviations of the differences to one component, (n, k) each."""
        return self.loc - self.loc[:, one, None], np.hypot(self.scale, self.scale[:, one, None])

    def quantile(self, p: float) -> Values:
        """Return the quantiles to rounding, by bisection between the quantiles of the components."""
        ends = self.loc + self.scale * float(sc.ndtri(p))
        low, high = ends.min(axis=1), ends.max(axis=1)
        sign = 1 if p <= 1 / 2 else -1
        fine = 4 * np.finfo(np.float64).eps * np.maximum(np.abs(ends).max(axis=1), self.scale.min(axis=1))
        for _ in range(MAX_BISECTIONS):
            if (high - low <= fine).all():
                break
            middle = low / 2 + high / 2
            reached = self._below(middle, 1) >= p if sign == 1 else self._below(middle, -1) <= 1 - p
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high)

    def sample(self, rng: Random, size: int) -> Values:
        uniform = rng.random((len(self), size))
        component = np.zeros(uniform.shape, dtype=np.intp)
        for reached in np.cumsum(self.weight[:, :-1], axis=1).T:
            component += uniform >= reached[:, None]
        loc, scale = (np.take_along_axis(values, component, axis=1) for values in (self.loc, self.scale))
        return loc + scale * rng.standard_normal(uniform.shape)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        mean = np.zeros((len(self), len(points)))
        for one in range(self.loc.shape[1]):
            loc, scale, weight = (values[:, one, None] for values in (self.loc, self.scale, self.weight))
            mean += weight * normal_kernel_mean(points[:, 0] - loc, scale, gamma[..., 0])
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.zeros(len(self))
        for one in range(self.loc.shape[1]):
            pairs = normal_kernel_mean(*self._differences(one), gamma[0])
            norm += self.weight[:, one] * np.sum(self.weight * pairs, axis=1)
        return norm

    def describe(self) -> list[str]:
        described = []
        for row in range(len(self)):
            parts = zip(self.weight[row], self.loc[row], self.scale[row], strict=True)
            terms = [fill("{} N({}, {}²)", part) for part in parts]
            described.append(" + ".join(terms[:SHOWN] + ["…"] * (len(terms) > SHOWN)))
        return described


def _mean_distance(away: Values, scale: Values) -> Values:
    """Return E|X| for X ~ N(away, scale^2)."""
    z = away / (np.sqrt(2) * scale)
    return np.asarray(scale * np.sqrt(2 / np.pi) * np.exp(-(z**2)) + away * sc.erf(z))


def from_logits(loc: Values, scale: Values, logits: Values) -> Mixture:
    """Return the distributions with weights softmax(logits)."""
    require_moderate("logits", logits)
    return Mixture(loc, scale, sc.softmax(logits, axis=-1))


def from_weights(loc: Values, scale: Values, weight: Values | None = None) -> Mixture:
    """Return the distributions with the given weights, or equal ones."""
    return Mixture(loc, scale, np.full(loc.shape, 1 / loc.shape[1]) if weight is None else weight)
