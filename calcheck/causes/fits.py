"""Normal scores of targets, and fits of what a cause leaves open: how likely all targets are after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from calcheck.core import sc
from calcheck.distributions import Predictive
from calcheck.predictions import Predictions
from calcheck.typing import Mask, Values

EVEN = np.array([-2.3, -1.5, -0.8, 0.0, 0.8, 1.5, 2.3])  # Normal scores of the quantiles of continuous distributions
OUTER = 0.002  # Probabilities of counts are at least this
NARROW = 1e-3  # Minimum distance of quantiles, relative to the range of all
FARTHEST = 1e30  # Maximum normal score, whose square is finite
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


NORMAL = np.inf  # Degrees of freedom of the normal distribution
FREEDOMS = (NORMAL, 10.0, 5.0, 3.0)  # Degrees of freedom of the errors that are tried
TAILS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # Of heavy tails as a cause
SHARES, SMALL = np.arange(1, 20) / 20, (0.01, 0.03, 0.1, 0.2, 0.3)  # Shares of training rows, and their errors in std
NOISES = np.geomspace(0.2, 5, 14)  # Standard deviations of noise that are tried, in median predicted ones
NEARLY_ONE = np.exp(np.linspace(-0.15, 0.15, 5))  # Factors of a std that is nearly right
RIDGE, STEPS = 1.0, 25  # Of the regression of squared errors
PARTNERS = 200  # Rows whose predictions are those of a target if rows are shuffled


class Likely(NamedTuple):
    """How likely the targets are, and their probability integral transforms."""

    log_density: Values  # (n,), in the unit of the targets of the file
    pit: Values  # (n,)

    @property
    def total(self) -> float:
        """Log-likelihood of all targets."""
        return float(self.log_density.sum())


Fit = Callable[[Mask], Likely]


def as_stated(scored: Scored, freedoms: Sequence[float] = FREEDOMS) -> Fit:
    """Return the fit of predictions as they are, up to the degrees of freedom of errors of the same variance."""
    r, slope = scored.evaluate()
    each = {freedom: log_density(r, freedom) for freedom in freedoms}

    def fit(train: Mask) -> Likely:
        best = max(each, key=lambda freedom: float(each[freedom][train].sum()))
        return Likely(each[best] + slope, probability(r, best))

    return fit


def recalibrated(scored: Scored, *, shift: bool, scale: bool, freedoms: Sequence[float] = FREEDOMS) -> Fit:
    """Return the fit with a common shift and a common factor of the normal scores."""
    r, slope = scored.evaluate()

    def fit(train: Mask) -> Likely:
        found = []
        for freedom in freedoms:
            b, s = _location_scale(r[train], freedom, shift=shift, scale=scale)
            found.append((log_density((r - b) / s, freedom) - np.log(s), probability((r - b) / s, freedom)))
        density, pit = max(found, key=lambda each: float(each[0][train].sum()))
        return Likely(density + slope, pit)

    return fit


def _location_scale(r: Values, freedom: float, *, shift: bool, scale: bool) -> tuple[float, float]:
    """Return the most likely shift and factor, by iterated weights."""
    b = float(np.median(r)) if shift else 0.0
    s = max(float(np.sqrt(np.mean((r - b) ** 2))), 1e-9) if scale else 1.0
    for _ in range(STEPS if np.isfinite(freedom) else 1):
        away = (r - b) ** 2 / s**2
        weight = (freedom + 1) / (freedom - 2 + away) if np.isfinite(freedom) else np.ones(len(r))
        b = float(np.sum(weight * r) / np.sum(weight)) if shift else 0.0
        s = max(float(np.sqrt(np.mean(weight * (r - b) ** 2))), 1e-9) if scale else 1.0
    return b, s


def factor(scored: Scored) -> float:
    """Return the most likely factor of the errors, beside a shift."""
    r, _ = scored.evaluate()
    found = {freedom: _location_scale(r, freedom, shift=True, scale=True) for freedom in FREEDOMS}
    likely = {each: float(np.sum(log_density((r - b) / s, each) - np.log(s))) for each, (b, s) in found.items()}
    return found[max(likely, key=lambda each: likely[each])][1]


def noisy(scored: Scored) -> Fit:
    """Return the fit with noise of the observation of the most likely size, beside a std that is nearly right."""
    middle = float(np.median(scored.spread))
    stated, nearly = (
        [as_stated(scored.stretched(width).with_noise(each * middle)) for width in widths for each in NOISES]
        for widths in ((1.0,), NEARLY_ONE)
    )
    return lambda train: Likely(_best(nearly, train).log_density, _best(stated, train).pit)


def noise_of(scored: Scored) -> float:
    """Return the standard deviation of the most likely noise of the observation, in the unit of the targets."""
    middle, every = float(np.median(scored.spread)), np.ones(len(scored.y), np.bool_)
    fits = [as_stated(scored.with_noise(each * middle)) for each in NOISES]
    return middle * float(NOISES[int(np.argmax([float(fit(every).log_density.sum()) for fit in fits]))])


def freedom_of(scored: Scored) -> float:
    """Return the most likely degrees of freedom of errors of the same variance."""
    r, _ = scored.evaluate()
    return max(TAILS, key=lambda each: float(log_density(r, each).sum()))


def partly_trained(scored: Scored) -> Fit:
    """Return the fit in which part of the rows has errors that are far too small."""
    r, slope = scored.evaluate()
    usual = np.exp(log_density(r, NORMAL))
    small = {each: np.exp(log_density(r / each, NORMAL)) / each for each in SMALL}

    def fit(train: Mask) -> Likely:
        def total(choice: tuple[float, float]) -> float:
            share, size = choice
            return float(np.log((1 - share) * usual[train] + share * small[size][train] + 1e-300).sum())

        share, size = max(product(SHARES, SMALL), key=total)
        density = np.log((1 - share) * usual + share * small[size] + 1e-300)
        return Likely(density + slope, (1 - share) * sc.ndtr(r) + share * sc.ndtr(r / size))

    return fit


def shuffled(scored: Scored) -> Fit:
    """Return the fit in which each target belongs to any of the predictions."""
    n = len(scored.y)
    chosen = np.random.default_rng(n).permutation(n)[:PARTNERS]
    density, pit = np.zeros(n), np.zeros(n)
    for row in chosen:
        x, scores = scored.quantiles[row], scored.scores[row]
        place = np.clip(np.searchsorted(x, scored.y, side="right") - 1, 0, len(x) - 2)
        slope = (np.diff(scores) / np.diff(x))[place]
        r = np.clip(scores[place] + (scored.y - x[place]) * slope, -1e3, 1e3)
        density += np.exp(log_density(r, NORMAL)) * slope
        pit += sc.ndtr(r)
    likely = Likely(np.log(density / len(chosen) + 1e-300), pit / len(chosen))
    return lambda _: likely


def local(scored: Scored, features: Values, freedoms: Sequence[float] = (NORMAL,)) -> Fit:
    """Return the fit with a logarithm of the standard deviations that is linear in features (n, d)."""
    r, slope = scored.evaluate()

    def fit(train: Mask) -> Likely:
        found = []
        for freedom in freedoms:
            eta = features @ coefficients(features[train], r[train], freedom)
            z = r * np.exp(-eta / 2)
            found.append(Likely(log_density(z, freedom) - eta / 2 + slope, probability(z, freedom)))
        return max(found, key=lambda each: float(each.log_density[train].sum()))

    return fit


def coefficients(features: Values, r: Values, freedom: float = NORMAL) -> Values:
    """Return those of the logarithm of the variance of errors, by scoring with a small penalty."""
    ridge = RIDGE * np.eye(features.shape[1])
    ridge[0, 0] = 1e-9
    beta = np.zeros(features.shape[1])
    beta[0] = np.log(np.mean(np.minimum(r**2, 1e12)) + 1e-12)
    hat = np.linalg.solve(features.T @ features + ridge, features.T)
    for _ in range(STEPS):
        eta = features @ beta
        squares = np.clip(r**2 * np.exp(-eta), 0, 1e6)
        if np.isfinite(freedom):
            squares *= (freedom + 1) / (freedom - 2 + squares)
        step = hat @ (eta + squares - 1) - beta
        beta += step / max(1.0, float(np.abs(step).max()))
    return np.asarray(beta)


def piecewise(scored: Scored, inside: Mask) -> Fit:
    """Return the fit with a shift and a factor of its own in some rows, and none in the others; with any tails."""
    r, slope = scored.evaluate()

    def fit(train: Mask) -> Likely:
        found = []
        for freedom in FREEDOMS:
            b, s = _location_scale(r[train & inside], freedom, shift=True, scale=True)
            z, width = np.where(inside, (r - b) / s, r), np.where(inside, s, 1.0)
            found.append(Likely(log_density(z, freedom) - np.log(width) + slope, probability(z, freedom)))
        return max(found, key=lambda each: float(each.log_density[train].sum()))

    return fit


def shift_and_factor(scored: Scored, inside: Mask) -> tuple[float, float]:
    """Return the shift and the factor of the normal scores of some rows."""
    return _location_scale(scored.evaluate()[0][inside], NORMAL, shift=True, scale=True)


def clipped(scored: Scored, low: float | None, high: float | None, resolution: float) -> Fit:
    """Return the fit with targets that are clipped at limits; those at limits are known to a resolution."""
    r, slope = scored.evaluate()
    density, pit = log_density(r, NORMAL) + slope, sc.ndtr(r)
    random = np.random.default_rng(len(r)).random(len(r))
    for limit, sign in ((low, 1.0), (high, -1.0)):
        if limit is not None:
            at = scored.y == limit
            beyond = sc.ndtr(sign * r[at])
            density[at] = np.log(beyond + 1e-300) - np.log(resolution)
            pit[at] = random[at] * beyond if sign > 0 else 1 - random[at] * beyond
    likely = Likely(density, pit)
    return lambda _: likely


def _best(fits: Sequence[Fit], train: Mask) -> Likely:
    return max((fit(train) for fit in fits), key=lambda each: float(each.log_density[train].sum()))
