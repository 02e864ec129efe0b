"""Normal scores of targets by a few quantiles of each prediction, which any cause can move, stretch or exchange."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calcheck.core import sc
from calcheck.distributions import Predictive
from calcheck.predictions import Predictions
from calcheck.typing import Values

EVEN = np.array([-2.3, -1.5, -0.8, 0.0, 0.8, 1.5, 2.3])  # Normal scores of the quantiles of continuous distributions
OUTER = 0.002  # Probabilities of counts are at least this
NARROW = 1e-3  # Minimum distance of quantiles, relative to the range of all
FARTHEST = 1e6  # Maximum normal score
MANY_DRAWS = 100  # Draws from which quantiles are counted
LOG_ROOT = float(np.log(np.sqrt(2 * np.pi)))


@dataclass(frozen=True, eq=False)
class Scored:
    """Targets with the quantiles of their predictions; normal scores are linear between quantiles, and beyond."""

    y: Values  # (n,)
    quantiles: Values  # (n, k), increasing
    scores: Values  # (n, k), their normal scores, increasing
    jacobian: Values | float = 0.0  # Logarithm of the derivative of the targets by those of the file

    @classmethod
    def from_rows(cls, rows: Predictions) -> Self:
        """Return the targets and predictions of rows."""
        quantiles, scores = _quantiles(rows.distributions())
        scores = np.broadcast_to(scores, quantiles.shape)
        least = NARROW * np.ptp(quantiles, axis=1, keepdims=True) + 1e-12 * np.abs(quantiles).max() + 1e-300
        rising = np.arange(quantiles.shape[1]) * least
        return cls(rows.targets(), np.maximum.accumulate(quantiles - rising, axis=1) + rising, scores)

    def at(self, score: float) -> Values:
        """Return the quantiles of a normal score, (n,)."""
        return _interpolated(self.scores, self.quantiles, np.full(len(self.y), score))[0]

    @property
    def center(self) -> Values:
        """Medians, (n,)."""
        return self.at(0.0)

    @property
    def spread(self) -> Values:
        """Half widths of the intervals of a standard deviation, (n,)."""
        return (self.at(1.0) - self.at(-1.0)) / 2

    def evaluate(self) -> tuple[Values, Values]:
        """Return the normal scores of the targets, and the logarithms of their derivatives, (n,) each."""
        r, slope = _interpolated(self.quantiles, self.scores, self.y)
        return np.clip(r, -FARTHEST, FARTHEST), np.log(slope) + self.jacobian

    def stretched(self, factor: Values | float) -> Self:
        """Return predictions stretched about their medians."""
        center = self.center[:, None]
        each = np.broadcast_to(factor, len(self.y))[:, None]
        return replace(self, quantiles=center + each * (self.quantiles - center))

    def with_noise(self, std: float) -> Self:
        """Return predictions of targets to which normal noise was added."""
        center = self.center[:, None]
        away = self.quantiles - center
        return replace(self, quantiles=center + np.sign(self.scores) * np.hypot(away, self.scores * std))

    def with_targets(self, y: Values, jacobian: Values | float = 0.0) -> Self:
        """Return the same predictions of other targets."""
        return replace(self, y=y, jacobian=jacobian)


def log_density(scores: Values, freedom: float) -> Values:
    """Return the log densities of Student's t with the variance 1, or of the normal distribution, (n,)."""
    if not np.isfinite(freedom):
        return np.asarray(-(scores**2) / 2 - LOG_ROOT)
    constant = sc.gammaln((freedom + 1) / 2) - sc.gammaln(freedom / 2) - np.log(np.pi * (freedom - 2)) / 2
    return np.asarray(constant - (freedom + 1) / 2 * np.log1p(scores**2 / (freedom - 2)))


def probability(scores: Values, freedom: float) -> Values:
    """Return the distribution function of the same, (n,)."""
    if not np.isfinite(freedom):
        return np.asarray(sc.ndtr(scores))
    return np.asarray(sc.stdtr(freedom, scores * np.sqrt(freedom / (freedom - 2))))


def _quantiles(predictive: Predictive) -> tuple[Values, Values]:
    """Return quantiles (n, k) of distributions, and their normal scores (k,) or (n, k)."""
    levels, stated, draws = predictive.quantile_levels, predictive.interval_levels, predictive.n_draws
    if stated is not None:
        limits = [predictive.central_interval(float(each)) for each in np.sort(stated)]
        both = [low for low, _ in limits[::-1]], [high for _, high in limits]
        half = sc.ndtri((1 + np.sort(stated)) / 2)
        return np.stack(both[0] + both[1], axis=1), np.concatenate([-half[::-1], half])
    if levels is not None:
        return np.stack([predictive.quantile(float(each)) for each in levels], axis=1), sc.ndtri(levels)
    if draws is not None and draws < MANY_DRAWS:
        wider = np.sqrt(1 + 1 / draws) * sc.stdtrit(draws - 1, sc.ndtr(EVEN))
        return predictive.mean()[:, None] + predictive.std()[:, None] * wider, EVEN
    if predictive.is_discrete:
        return _count_quantiles(predictive)
    if (normal := predictive.normal()) is not None:
        mean, std = normal
        return mean.reshape(-1, 1) + std.reshape(-1, 1) * EVEN[[1, -2]], EVEN[[1, -2]]
    return np.stack([predictive.quantile(float(each)) for each in sc.ndtr(EVEN)], axis=1), EVEN


def _count_quantiles(predictive: Predictive) -> tuple[Values, Values]:
    """Return halves between counts, and the normal scores of their probabilities, (n, k) each."""
    mean, std = predictive.mean(), predictive.std()
    places = np.maximum(np.floor(mean[:, None] + std[:, None] * EVEN), 0) + 0.5
    step = np.arange(places.shape[1])
    places = np.maximum.accumulate(places - step, axis=1) + step
    mass = np.stack([predictive.cdf(each) for each in places.T], axis=1)
    scores = sc.ndtri(np.clip(mass, OUTER, 1 - OUTER))
    return places, np.maximum.accumulate(scores - NARROW * step, axis=1) + NARROW * step


def _interpolated(x: Values, y: Values, at: Values) -> tuple[Values, Values]:
    """Return lines through points (n, k) at values (n,), and their slopes."""
    place = np.clip(np.sum(x <= at[:, None], axis=1) - 1, 0, x.shape[1] - 2)
    row = np.arange(len(at))
    slope = (y[row, place + 1] - y[row, place]) / (x[row, place + 1] - x[row, place])
    return y[row, place] + (at - x[row, place]) * slope, slope
