"""Recalibration maps, and recalibrated predictive distributions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.distributions.base import Predictive, assemble, forwarded
from calcheck.distributions.continuous import Continuous, LocationScale
from calcheck.distributions.count_base import Block, Counts
from calcheck.distributions.quantiles import MIN_LEVELS, Quantiles
from calcheck.distributions.row_random import Random
from calcheck.distributions.samples import Samples
from calcheck.distributions.special import panels
from calcheck.errors import DataError
from calcheck.options import LEVEL_TOLERANCE
from calcheck.typing import Indices, Mask, Values

Maps = tuple["Recalibrator", ...]

BELOW_ONE = 1 - 2.0**-53  # The largest number below 1, at which no quantile is infinite
MIN_KNOTS = 2  # The ends, 0 and 1


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """An increasing, piecewise linear map R of [0, 1] onto itself: the distribution function F becomes R(F(y))."""

    probability: Values  # (k,), strictly increasing knots, from 0 to 1
    level: Values  # (k,), values of R at the knots, strictly increasing from 0 to 1

    def __post_init__(self) -> None:
        for name in ("probability", "level"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, values)
            if len(values) < MIN_KNOTS or values[0] != 0 or values[-1] != 1 or not (np.diff(values) > 0).all():
                raise DataError(f"the {name} of a recalibration map must increase from 0 to 1")
        if len(self.probability) != len(self.level):
            raise DataError(f"a recalibration map has {len(self.probability)} knots, but {len(self.level)} values")

    @classmethod
    def from_knots(cls, probability: Values, level: Values, *, most: int | None = None) -> Self:
        """Return the map through (k,) points, the largest levels of equal ones, thinned to ``most`` inner knots."""
        last = np.append(np.diff(probability) > 0, True)
        probability, level = probability[last], level[last]
        if most is not None and len(probability) > most:
            chosen = np.unique(np.linspace(0, len(probability) - 1, most).round().astype(np.intp))
            probability, level = probability[chosen], level[chosen]
        return cls(np.concatenate([[0.0], probability, [1.0]]), np.concatenate([[0.0], level, [1.0]]))

    def __call__(self, probability: Values | float) -> Values:
        """Return R of probabilities, in [0, 1]."""
        return np.asarray(np.interp(probability, self.probability, self.level))

    def inverse(self, level: Values | float) -> Values:
        """Return the probabilities at which R has the given levels; below 1 for levels below 1."""
        found = np.interp(level, self.level, self.probability)
        return np.where(np.less(level, 1), np.minimum(found, BELOW_ONE), found)

    @cached_property
    def slopes(self) -> Values:
        """The slopes between the knots, (k - 1,), > 0."""
        return np.asarray(np.diff(self.level) / np.diff(self.probability))

    def slope(self, probability: Values | float) -> Values:
        """Return the slope of R at probabilities: that of the piece to the left of a knot."""
        piece = np.searchsorted(self.probability, probability) - 1
        return np.asarray(self.slopes[np.clip(piece, 0, len(self.slopes) - 1)])


def join_maps(parts: Sequence[tuple[tuple[Recalibrator, ...], Indices]]) -> tuple[tuple[Recalibrator, ...], Indices]:
    """Return the maps of several batches of rows as one tuple, and the index of the map of each row."""
    maps = tuple({id(each): each for found, _ in parts for each in found}.values())
    places = {id(each): place for place, each in enumerate(maps)}
    return maps, np.concatenate([np.array([places[id(each)] for each in found])[which] for found, which in parts])


LEVELS = np.concatenate([[0.005], np.arange(1, 100) / 100, [0.995]])
"""Levels of the quantiles that represent a distribution whose family is not closed under a map."""
TINY = 1e-9  # Probability below which differences of distribution functions lose digits
RULE = np.polynomial.legendre.leggauss(16)
HALVINGS = 60  # Pieces of each tail; the outermost has a probability of 2^-60 of that of the tail


class StandardForm:
    """A standard distribution Z with a recalibrated distribution function R(F(z))."""

    def __init__(
        self,
        standard: LocationScale,  # One distribution, with location 0 and scale 1; symmetric
        recalibrator: Recalibrator,  # The map R
    ) -> None:
        self.standard, self.recalibrator = standard, recalibrator

    def cdf(self, z: Values) -> Values:
        """Return R(F(z)), in the shape of z."""
        return self.recalibrator(self.standard.standard_cdf(z))

    def above(self, z: Values) -> Values:
        """Return 1 - R(F(z)), in the shape of z, accurate where it is small."""
        below, slope = self.standard.standard_cdf(z), self.recalibrator.slopes[-1]
        is_last = below >= self.recalibrator.probability[-2]
        return np.where(is_last, slope * self.standard.standard_cdf(-z), 1 - self.recalibrator(below))

    def log_density(self, z: Values) -> Values:
        """Return the log density, in the shape of z."""
        slope = self.recalibrator.slope(self.standard.standard_cdf(z))
        return np.asarray(self.standard.standard_log_density(z) + np.log(slope))

    def quantile(self, level: Any) -> Values:
        """Return the quantiles at levels, in the shape of the levels."""
        return self.standard.standard_quantile(self.recalibrator.inverse(level))

    @cached_property
    def _quadrature(self) -> tuple[Values, Values, Values]:
        """Nodes z with their levels R(F(z)) and weights: of Gauss and Legendre in F(z) between knots, then halved."""
        knots, slope = self.recalibrator.probability, self.recalibrator.slope
        halves = 0.5 ** np.arange(HALVINGS, -1, -1.0)
        first, last = min(knots[1], 1 / 2), min(1 - knots[-2], 1 / 2)
        inner = np.union1d(knots[1:-1], [1 / 2])  # Laplace densities have a kink at the median
        edges = np.concatenate([first * halves, inner[(inner > first) & (inner <= 1 - last)]])
        (lower,), (weights,) = panels(edges[None], *RULE)
        (upper,), (more,) = panels(last * halves[None], *RULE)
        z = np.concatenate([self.standard.standard_quantile(lower), -self.standard.standard_quantile(upper)])
        levels = np.concatenate([self.recalibrator(lower), 1 - self.recalibrator.slopes[-1] * upper])
        return z, levels, np.concatenate([weights * slope(lower), more * self.recalibrator.slopes[-1]])

    @cached_property
    def mean(self) -> float:
        """The mean."""
        z, _, weights = self._quadrature
        return float(weights @ z)

    @cached_property
    def std(self) -> float:
        """The standard deviation."""
        z, _, weights = self._quadrature
        return float(np.sqrt(weights @ (z - self.mean) ** 2))

    @cached_property
    def _half_distance(self) -> float:
        """E|Z - Z'| / 2 for independent Z and Z'."""
        z, levels, weights = self._quadrature
        return float(weights @ ((z - self.mean) * (2 * levels - 1)))

    @cached_property
    def _partial_means(self) -> tuple[Values, Values]:
        """Partial means of the standard distribution up to each knot, and of this one, (k,) each."""
        knots = self.standard.standard_quantile(self.recalibrator.probability[1:-1])
        inner = self.standard.standard_partial_mean(knots)
        base = np.concatenate([[0.0], inner, [0.0]])
        return base, np.concatenate([[0.0], np.cumsum(self.recalibrator.slopes * np.diff(base))])

    def crps(self, z: Values) -> Values:
        """Return the CRPS at targets z, E|Z - z| - E|Z - Z'| / 2, in the shape of z."""
        below = self.standard.standard_cdf(z)
        piece = np.clip(np.searchsorted(self.recalibrator.probability, below) - 1, 0, len(self.recalibrator.slopes) - 1)
        base, own = self._partial_means
        partial = own[piece] + self.recalibrator.slopes[piece] * (self.standard.standard_partial_mean(z) - base[piece])
        distance = z * (2 * self.recalibrator(below) - 1) + own[-1] - 2 * partial
        return np.asarray(distance - self._half_distance)


@dataclass(frozen=True, eq=False)
class _Recalibrated:
    """Rows of a base family with one map of probabilities each."""

    shared: ClassVar[tuple[str, ...]] = ("maps",)
    base: Any  # The n distributions F_i before the recalibration
    maps: Maps
    which: Indices  # (n,), index of each row's map

    @classmethod
    def from_map(cls, base: Predictive, recalibrator: Recalibrator) -> Self:
        """Return distributions that are recalibrated by the same map."""
        return cls(base, (recalibrator,), np.zeros(len(base), np.intp))

    @property
    def display_name(self) -> str:
        return f"{self.base.display_name}, recalibrated"

    def join(self, others: list[Self]) -> Self:
        maps, which = join_maps([(each.maps, each.which) for each in (self, *others)])
        return type(self)(self.base.join([each.base for each in others]), maps, which)

    def equals(self, other: Self) -> Mask:
        same = [mine is theirs for mine, theirs in zip(self._maps_of_rows(), other._maps_of_rows(), strict=True)]
        return np.asarray(self.base.equals(other.base) & np.array(same))

    def _maps_of_rows(self) -> list[Recalibrator]:
        return [self.maps[place] for place in self.which]

    def describe(self) -> list[str]:
        return [f"{text}, recalibrated" for text in self.base.describe()]

    def by_map(self, of: Callable[[Recalibrator, Any, Indices], Values]) -> Values:
        """Return a function of each map, the distributions that it recalibrates and their rows, (n, …)."""
        used = np.unique(self.which)
        if len(used) == 1:
            return of(self.maps[used[0]], self.base, np.arange(len(self.which)))
        groups = [(place, np.flatnonzero(self.which == place)) for place in used]
        return assemble(
            len(self.which), ((rows, of(self.maps[place], self.base.take(rows), rows)) for place, rows in groups)
        )

    def quantile(self, p: float) -> Values:
        return self.by_map(lambda recalibrator, base, _: base.quantile(float(recalibrator.inverse(p))))

    def as_quantiles(self) -> Quantiles:
        """Return the same distributions, given by their quantiles at :data:`LEVELS`."""
        values = np.stack([self.quantile(float(level)) for level in LEVELS], axis=1)
        return Quantiles(LEVELS, np.maximum.accumulate(values, axis=1))


@dataclass(frozen=True, eq=False)
class RecalibratedScale(_Recalibrated, Continuous):
    """Recalibrated location-scale distributions; kernel means are those of their quantiles at :data:`LEVELS`."""

    family: ClassVar[str] = "recalibrated"
    kernel_error = 1e-3
    base: LocationScale

    @cached_property
    def _forms(self) -> list[StandardForm]:
        standard = replace(self.base.take(slice(0, 1)), loc=np.zeros(1), scale=np.ones(1))
        return [StandardForm(standard, each) for each in self.maps]

    def _by_form(self, of: Callable[[StandardForm, LocationScale, Indices], Values]) -> Values:
        forms = dict(zip(map(id, self.maps), self._forms, strict=True))
        return self.by_map(lambda recalibrator, base, rows: of(forms[id(recalibrator)], base, rows))

    def mean(self) -> Values:
        return self._by_form(lambda form, base, _: base.loc + base.scale * form.mean)

    def std(self) -> Values:
        self.base.take(slice(0, 1)).std()  # raises if it is infinite
        return self._by_form(lambda form, base, _: base.scale * form.std)

    def cdf(self, y: Values) -> Values:
        return self._by_form(lambda form, base, rows: form.cdf(base.standardize(y[rows])))

    def above(self, y: Values) -> Values:
        return self._by_form(lambda form, base, rows: form.above(base.standardize(y[rows])))

    def log_prob(self, y: Values) -> Values:
        return self._by_form(lambda form, base, rows: form.log_density(base.standardize(y[rows])) - np.log(base.scale))

    def crps(self, y: Values) -> Values:
        return self._by_form(lambda form, base, rows: base.scale * form.crps(base.standardize(y[rows])))

    def sample(self, rng: Random, size: int) -> Values:
        return self._at_levels(rng.random((len(self), size)))

    def at_scores(self, z: Values) -> Values:
        return self._at_levels(sc.ndtr(z))

    def _at_levels(self, level: Values) -> Values:
        return self._by_form(
            lambda form, base, rows: base.loc[:, None] + base.scale[:, None] * form.quantile(level[rows])
        )

    @cached_property
    def _quantiles(self) -> Quantiles:
        return self.as_quantiles()

    raw_moments, kernel_mean, kernel_norm = forwarded("_quantiles", "raw_moments", "kernel_mean", "kernel_norm")


@dataclass(frozen=True, eq=False)
class RecalibratedCounts(_Recalibrated, Counts):
    """Recalibrated counts: k has the probability R(F(k)) - R(F(k - 1)), over the effective support of the base."""

    family: ClassVar[str] = "recalibrated counts"
    base: Counts

    def log_weight(self, k: Values, rows: Indices) -> Values:
        at = np.broadcast_to(k, (len(rows), np.shape(k)[-1]))
        return np.stack([self.take(rows).log_prob(column) for column in at.T], axis=1)

    deviance, mode, spread = forwarded("base", "deviance", "mode", "spread")

    def smooth(self) -> Mask:
        return np.zeros(len(self), np.bool_)

    def _block(self, rows: Indices, k: Values) -> Block:
        _, _, mass, total = self.base._block(rows, k)  # noqa: SLF001 - the same family of classes
        below = np.minimum(np.cumsum(mass, axis=1), 1.0)
        below[:, -1] = 1.0
        levels = np.empty_like(below)
        for place in np.unique(self.which[rows]):
            same = self.which[rows] == place
            levels[same] = self.maps[place](below[same])
        return rows, k, np.diff(levels, axis=1, prepend=0.0), np.zeros_like(total)

    def log_prob(self, y: Values) -> Values:
        """Return log probabilities; in tails that the sums do not resolve, by the slope of the map."""
        left, right = self.base.cdf_limits(y)
        slope = self.by_map(lambda recalibrator, _, rows: recalibrator.slope(right[rows]))
        near = self.by_map(lambda recalibrator, _, rows: recalibrator(right[rows]) - recalibrator(left[rows]))
        exact = near > TINY
        return np.where(exact, np.log(np.where(exact, near, 1.0)), self.base.log_prob(y) + np.log(slope))


def recalibrate(predictive: Predictive, recalibrator: Recalibrator) -> Predictive:
    """Return distributions mapped by R: with densities or masses for standard forms and counts, else quantiles."""
    predictive = predictive.load()
    if isinstance(predictive, Counts):
        return RecalibratedCounts.from_map(predictive, recalibrator)
    if isinstance(predictive, LocationScale) and predictive.has_standard_form:
        return RecalibratedScale.from_map(predictive, recalibrator)
    if isinstance(predictive, Samples) and predictive.targets == 1:
        return _from_draws(predictive, recalibrator)
    if isinstance(predictive, Quantiles):
        return _from_quantiles(predictive, recalibrator)
    if isinstance(predictive, Continuous):
        values = [predictive.quantile(float(level)) for level in recalibrator.inverse(LEVELS)]
        return Quantiles(LEVELS, np.maximum.accumulate(np.stack(values, axis=1), axis=1))
    raise DataError(f"probabilities of {predictive.display_name} cannot be mapped")


def _from_draws(samples: Samples, recalibrator: Recalibrator) -> Quantiles:
    """Return quantiles of draws after the map: the k-th smallest of m is at level k / (m + 1), ends have the rest."""
    m = samples.n_draws
    ordered = np.sort(samples.draws, axis=1)
    place = np.clip(recalibrator.inverse(LEVELS) * (m + 1) - 1, 0, m - 1)
    low = np.floor(place).astype(np.intp)
    share, high = place - low, np.minimum(low + 1, m - 1)
    return Quantiles(LEVELS, ordered[:, low] + share * (ordered[:, high] - ordered[:, low]))


def _from_quantiles(quantiles: Quantiles, recalibrator: Recalibrator) -> Quantiles:
    """Return the quantiles at the same levels after the map."""
    levels, wanted = quantiles.levels, recalibrator.inverse(quantiles.levels)
    inside = (wanted >= levels[0] - LEVEL_TOLERANCE) & (wanted <= levels[-1] + LEVEL_TOLERANCE)
    if inside.sum() < MIN_LEVELS:
        raise DataError(
            f"fewer than two of the quantiles {levels[0]:g} … {levels[-1]:g} remain after the map: it needs outer ones"
        )
    values = [quantiles.quantile(float(np.clip(level, levels[0], levels[-1]))) for level in wanted[inside]]
    return Quantiles(levels[inside], np.maximum.accumulate(np.stack(values, axis=1), axis=1))
