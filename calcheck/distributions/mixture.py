"""Mixtures of Gaussian predictive distributions, and distributions with normal noise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.core.validation import require, require_moderate, require_positive
from calcheck.distributions import special
from calcheck.distributions.base import BLOCK_VALUES, MAX_CACHED_VALUES, NEGLIGIBLE, Block, Derived, Predictive
from calcheck.distributions.continuous import Continuous, LocationScale
from calcheck.distributions.count_base import Counts
from calcheck.distributions.row_random import Random
from calcheck.distributions.special import NODES, REACH, SCORES
from calcheck.errors import DataError
from calcheck.typing import Indices, Values

ROUNDING = 1e-14  # Weights that sum to 1 within this error are not rescaled, so that selected rows keep them
WEIGHT_ERROR = 1e-6  # Maximum error of the sum of the weights; files often have single precision
SHOWN = 3  # Maximum number of components in a description
MAX_BISECTIONS = 64  # Maximum bisection steps; 53 reduce an interval to neighboring floats
HERMITE, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(24)  # Of noise that is narrow where a density is smooth
HERMITE_WEIGHTS = HERMITE_WEIGHTS / np.sqrt(2 * np.pi)
LENGTH = 2.5  # Length of a panel, in standard deviations of noise
MOST_PANELS = 16  # Most parts of a panel; where it needs more, the density is smooth at the scale of the noise
MARGIN = 4.0  # Distance from such panels, in standard deviations of noise
FAR = 11.5  # Normal score beyond which noise is negligible, even beside the smallest mass of a node
CHUNK = 1 << 16  # Numbers that are computed together, which fit in the cache
TABLES = {"all": (slice(None), 8_000), "inner": (slice(4, -4), 1_000)}
"""Edges of the panels of tables, and numbers per row; beyond inner ones is about one of 100,000 targets."""
MIDDLE = 0.5
MAX_STEPS = 100  # Iterations for quantiles
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
        of_components = special.shifted_moments(self.loc, self.scale, special.normal_moments(order))
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

    def above(self, y: Values) -> Values:
        return np.minimum(self._below(y, -1), 1.0)

    def _below(self, y: Values, sign: int) -> Values:
        """Return P(Y_i < y_i) for sign 1 and P(Y_i > y_i) for sign -1, (n,), accurate for small probabilities."""
        return np.asarray(np.sum(self.weight * sc.ndtr(sign * self._standard(y)), axis=1))

    def log_prob(self, y: Values) -> Values:
        log_density = -0.5 * self._standard(y) ** 2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi)
        return np.asarray(sc.logsumexp(log_density, axis=1, b=self.weight))

    def edges(self) -> Values:
        ends = self.loc[:, :, None] + self.scale[:, :, None] * special.SCORES[::2]
        return np.sort(ends.reshape(len(self), -1), axis=1)

    def crps(self, y: Values) -> Values:
        """Return E|Y - y| - E|Y - Y'| / 2, computed from normal differences (E. P. Grimit et al., 2006)."""
        score = np.sum(self.weight * mean_distance(y[:, None] - self.loc, self.scale), axis=1)
        for one in range(self.loc.shape[1]):
            away, width = self._differences(one)
            score -= self.weight[:, one] * np.sum(self.weight * mean_distance(away, width), axis=1) / 2
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
            mean += weight * special.normal_kernel_mean(points[:, 0] - loc, scale, gamma[..., 0])
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.zeros(len(self))
        for one in range(self.loc.shape[1]):
            pairs = special.normal_kernel_mean(*self._differences(one), gamma[0])
            norm += self.weight[:, one] * np.sum(self.weight * pairs, axis=1)
        return norm

    def describe(self) -> list[str]:
        described = []
        for row in range(len(self)):
            parts = zip(self.weight[row], self.loc[row], self.scale[row], strict=True)
            terms = [special.fill("{} N({}, {}²)", part) for part in parts]
            described.append(" + ".join(terms[:SHOWN] + ["…"] * (len(terms) > SHOWN)))
        return described


def mean_distance(away: Values, scale: Values) -> Values:
    """Return E|X| for X ~ N(away, scale^2)."""
    z = away / (np.sqrt(2) * scale)
    return np.asarray(scale * np.sqrt(2 / np.pi) * np.exp(-(z**2)) + away * sc.erf(z))


def _mean_distances(values: Values, mass: Values, scale: Values) -> Values:
    """Return E|X| for X ~ N(v - v', scale^2) and independent v, v' with probabilities, (b,)."""
    each = [mass[:, one] * np.sum(mass * mean_distance(values - values[:, [one]], scale), axis=1)
            for one in range(mass.shape[1])]  # fmt: skip
    return np.asarray(np.sum(each, axis=0))


def _mean_over(
    values: Values,  # (b, k) or (1, k), increasing
    mass: Values,  # (b, k) or (1, k)
    y: Values,  # (b, 1)
    noise: Values,  # (b, 1)
    of: Callable[[Values], Values],
    outside: tuple[float, float] | None,
) -> Values:
    """Return the means of a function of (y - v) / noise over values with probabilities, (b,)."""
    if outside is not None and len(mass) == 1 < len(values):
        away = np.maximum(np.maximum(values[:, :1] - y, y - values[:, -1:]), 0)
        reach = np.hypot(away, FAR * noise)
        start, stop = np.sum(values < y - reach, axis=1), np.sum(values <= y + reach, axis=1)
        width = int((stop - start).max())
        if 2 * width < values.shape[1]:
            places = start[:, None] + np.arange(width)
            near, before = places < stop[:, None], np.concatenate([[0.0], np.cumsum(mass[0])])
            places = np.minimum(places, values.shape[1] - 1)
            at = of((y - np.take_along_axis(values, places, 1)) / noise)
            inner = np.sum(mass[0][places] * at, axis=1, where=near)
            return np.asarray(inner + outside[1] * before[start] + outside[0] * (before[-1] - before[stop]))
    return np.asarray(np.sum(mass * of((y - values) / noise), axis=1))


def _densities_around(values: Values, mass: Values, y: Values, noise: Values) -> Values:
    """Return densities at neighboring y (b, k) of normal noise (b, 1) around values (b, v) with probabilities."""
    low, high = y.min(axis=1, keepdims=True), y.max(axis=1, keepdims=True)
    away = np.maximum(np.maximum(values[:, :1] - low, high - values[:, -1:]), 0)
    reach = np.hypot(away, FAR * noise)
    start = np.sum(values < low - reach, axis=1)
    width = np.sum(values <= high + reach, axis=1) - start
    found, order = np.zeros(y.shape), np.argsort(width)
    size = max(1, CHUNK // (y.shape[1] * max(int(width.max(initial=1)), 1)))
    for some in (order[first : first + size] for first in range(0, len(order), size)):
        places = start[some, None] + np.arange(width[some[-1]])
        known, places = places < values.shape[1], np.minimum(places, values.shape[1] - 1)
        inner = np.where(known, np.take_along_axis(mass[some], places, 1), 0)
        near = np.take_along_axis(values[some], places, 1)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (y[some, :, None] - near) / noise[some, :, None]
            z *= z
        z *= -0.5
        found[some] = (np.exp(z, out=z) @ inner[:, :, None])[:, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # without noise, all values are far from it
        return np.asarray(found / (noise * np.sqrt(2 * np.pi)))


def _half_mean_difference(predictive: Predictive) -> Values:
    """Return E|Y - Y'| / 2 for independent Y and Y', the integral of F (1 - F), (n,)."""
    nodes, weights = special.panels(predictive.edges())
    below = special.columns(predictive.cdf, nodes)
    return np.asarray(np.sum(weights * below * (1 - below), axis=1))


def from_logits(loc: Values, scale: Values, logits: Values) -> Mixture:
    """Return the distributions with weights softmax(logits)."""
    require_moderate("logits", logits)
    return Mixture(loc, scale, sc.softmax(logits, axis=-1))


def from_weights(loc: Values, scale: Values, weight: Values | None = None) -> Mixture:
    """Return the distributions with the given weights, or equal ones."""
    return Mixture(loc, scale, np.full(loc.shape, 1 / loc.shape[1]) if weight is None else weight)


@dataclass(frozen=True, eq=False)
class Noisy(Derived, Continuous):
    """Distributions of targets with normal noise: mixtures of normal ones around the nodes of a quadrature, or counts.

    Where nodes are farther apart than the noise, in tails, distribution functions are smooth at its scale, and Gauss-
    Hermite quadrature over the noise is used.
    """

    family: ClassVar[str] = "with noise"
    shared: ClassVar[tuple[str, ...]] = ("tabulated",)
    noise: Values  # (n,), standard deviations of the noise, >= 0; > 0 for counts
    # Which panels have tables in place of sums over nodes; tables cost as much as 100 sums, so "no" if few are needed
    tabulated: Literal["no", "inner", "all"] = "inner"

    def __post_init__(self) -> None:
        if isinstance(self.base, Counts):
            require_positive("target-std", self.noise)

    def validate_targets(self, y: Values) -> None:
        """Allow any target."""

    def mean(self) -> Values:
        return np.asarray(self.base.mean())

    def std(self) -> Values:
        return np.asarray(np.hypot(self.base.std(), self.noise))

    def spread(self) -> Values:
        return np.asarray(np.hypot(self.base.spread(), self.noise))

    def edges(self) -> Values:
        edges = self.base.edges()
        middle = edges[:, [edges.shape[1] // 2]]
        return np.asarray(middle + np.copysign(np.hypot(edges - middle, SCORES * self.noise[:, None]), SCORES))

    def median(self) -> Values:
        return np.asarray(self.base.median()) if isinstance(self.base, LocationScale) else self.quantile(0.5)

    def _made_blocks(self) -> Iterator[Block]:
        if isinstance(self.base, Counts):
            yield from ((rows, k[None], mass) for rows, k, mass in self.base.masses())
            return
        for rows in self._rows():
            counts = self._counts[rows]
            part = self.base.take(rows)
            parts = np.where(counts <= MOST_PANELS, counts, 1).max(axis=0)
            spans = zip(SCORES[:-1], SCORES[1:], parts, strict=True)
            steps = [np.linspace(low, high, count, endpoint=False) for low, high, count in spans]
            scores, weights = special.panels(np.append(np.concatenate(steps), REACH)[None])
            density = np.exp(-(scores[0] ** 2) / 2) / np.sqrt(2 * np.pi)
            values = np.stack([part.quantile(float(level)) for level in sc.ndtr(scores[0])], axis=1)
            yield rows, values, np.broadcast_to(weights * density, values.shape)

    def _rows(self) -> Iterator[Indices]:
        """Yield blocks of rows that need similarly many nodes."""
        total = np.where(self._counts <= MOST_PANELS, self._counts, 1).sum(axis=1)
        order = np.argsort(total, kind="stable")
        size = max(1, BLOCK_VALUES // (len(NODES) * int(total.max())))
        return (np.sort(order[start : start + size]) for start in range(0, len(order), size))

    @cached_property
    def _counts(self) -> Indices:
        """The number of parts of each panel that the noise needs, (n, panels)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.diff(self.base.edges(), axis=1) / (LENGTH * self.noise[:, None])
        counts = np.ceil(np.nan_to_num(lengths, posinf=MOST_PANELS + 1))
        return np.asarray(np.clip(counts, 1, MOST_PANELS + 1), np.intp)

    @cached_property
    def _resolved(self) -> tuple[Values, Values]:
        """The values between which sums over nodes are right, (n,) each."""
        if isinstance(self.base, Counts):
            return np.full(len(self), -np.inf), np.full(len(self), np.inf)
        edges, middle = self.base.edges(), len(SCORES) // 2
        good = self._counts <= MOST_PANELS
        right = middle + np.minimum.accumulate(good[:, middle:], axis=1).sum(axis=1)
        left = middle - np.minimum.accumulate(good[:, :middle][:, ::-1], axis=1).sum(axis=1)
        rows, margin = np.arange(len(self)), MARGIN * self.noise
        low = np.where(left > 0, edges[rows, left] + margin, -np.inf)
        high = np.where(right < len(SCORES) - 1, edges[rows, right] - margin, np.inf)
        return low, high

    def _sum(
        self,
        y: Values,
        of: Callable[[Values], Values],
        smooth: Callable[[Any, Values], Values],
        outside: tuple[float, float] | None = None,
    ) -> Values:
        """Return the mean of a function of (y - v) / noise over v; in smooth tails that of another, over the noise.

        The function may be constant far outside of 0. Rows in which y is NaN are not computed.
        """
        low, high = self._resolved
        near = (y > low) & (y < high)
        found = np.zeros(len(self))
        for rows, values, mass in self._blocks():
            inner = near[rows]
            some = rows[inner]
            if len(some):
                own = values if len(values) == 1 or inner.all() else values[inner]
                shared = mass[:1] if mass.strides[0] == 0 else mass[inner]
                found[some] = _mean_over(own, shared, y[some, None], self.noise[some, None], of, outside)
        far = np.flatnonzero((y <= low) | (y >= high))
        if len(far):
            part, noise = self.base.take(far), self.noise[far]
            found[far] = sum(
                weight * smooth(part, y[far] - noise * node)
                for node, weight in zip(HERMITE, HERMITE_WEIGHTS, strict=True)
            )
        return found

    def _summed(self, name: str, y: Values) -> Values:
        """Return one of the functions of a table by sums."""
        match name:
            case "cdf":
                return self._sum(y, sc.ndtr, lambda part, at: part.cdf(at), (0.0, 1.0))
            case "above":
                return self._sum(y, lambda z: sc.ndtr(-z), lambda part, at: part.above(at), (1.0, 0.0))
        low, high = self._resolved
        near = (y > low) & (y < high)
        if name == "density":
            density = self._sum(
                y,
                lambda z: np.exp(-(z**2) / 2),
                lambda part, at: np.exp(part.log_prob(at)) * np.sqrt(2 * np.pi),
                (0.0, 0.0),
            )
            return np.asarray(density / (np.where(near, self.noise, 1.0) * np.sqrt(2 * np.pi)))
        distance = self._sum(y, lambda z: mean_distance(z, np.ones(1)), lambda part, at: part.crps(at))
        return np.where(near, self.noise * distance, distance if near.all() else distance + self._base_spread)

    def _at(self, name: str, y: Values) -> Values:
        """Return one of the functions of a table; by sums where that does not have it."""
        if self._table is None:
            return self._summed(name, y)
        found = self._table.at(name, y)
        if (missing := np.isnan(found)).any():
            found[missing] = self._summed(name, np.where(missing, y, np.nan))[missing]
        return found

    def take(self, rows: Indices | slice) -> Self:
        """Return the distributions of the selected rows, which have these rows of the table."""
        taken = super().take(rows)
        vars(taken)["_taken_from"] = self, rows
        return taken

    @property
    def _panels(self) -> slice | None:
        """The edges of the panels of the table; None without one."""
        names = {"no": (), "inner": ("inner",), "all": ("all", "inner")}[self.tabulated]
        parts = [part for part, size in map(TABLES.__getitem__, names) if len(self) * size <= MAX_CACHED_VALUES]
        return parts[0] if parts else None

    @cached_property
    def _table(self) -> special.DistributionTable | None:
        """The table; None where it would be large, or lacks most panels.

        It does not depend on the number of calls, so that values are the same whatever was computed before.
        """
        whole: Noisy | None
        whole, rows = vars(self).get("_taken_from", (None, slice(None)))
        if whole is not None and whole._panels is not None:  # noqa: SLF001 - same class
            return whole._table and whole._table.take(rows)  # noqa: SLF001
        if self._panels is None:
            return None
        edges = self.edges()[:, self._panels]
        of_edges = {name: special.columns(partial(self._summed, name), edges) for name in ("cdf", "above", "distance")}
        table = special.DistributionTable.fit(edges, self._densities, of_edges, self.noise, MAX_CACHED_VALUES)
        return table if table is not None and np.mean(table.parts > 0) > MIDDLE else None

    def _densities(self, row: Indices, y: Values) -> Values:
        """Return densities at neighboring values of some rows, (w, k)."""
        low, high = (limit[row, None] for limit in self._resolved)
        noise, found = self.noise[row, None], np.full(y.shape, np.nan)
        for rows, values, mass in self._blocks():
            place = np.full(len(self), -1)
            place[rows] = np.arange(len(rows))
            here = np.flatnonzero(place[row] >= 0)
            for some in np.array_split(here, 1 + len(here) * values.shape[1] // CHUNK):
                at = place[row[some]]
                around = values[at % len(values)], mass[at]
                found[some] = _densities_around(*around, y[some], noise[some])
        far = (y <= low) | (y >= high)
        if far.any():
            which = np.flatnonzero(far.any(axis=1))
            part = self.base.take(np.repeat(row[which], y.shape[1]))
            near = y[which].reshape(-1), np.repeat(noise[which], y.shape[1])
            nodes = zip(HERMITE, HERMITE_WEIGHTS, strict=True)
            smooth = sum(weight * np.exp(part.log_prob(near[0] - near[1] * node)) for node, weight in nodes)
            found[far] = np.reshape(smooth, (len(which), -1))[far[which]]
        return found

    def cdf(self, y: Values) -> Values:
        return np.clip(self._at("cdf", y), 0, 1)

    def above(self, y: Values) -> Values:
        return np.clip(self._at("above", y), 0, 1)

    def log_prob(self, y: Values) -> Values:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._at("density", y)))

    @cached
    def quantile(self, p: float) -> Values:
        """Return the quantiles, by Newton's method and bisection."""
        edges = self.edges()
        margin = 2 * REACH * self.noise
        low, high = edges[:, 0] - margin, edges[:, -1] + margin
        upper = p > MIDDLE
        x = np.stack([np.interp(float(sc.ndtri(p)), SCORES, row) for row in edges])
        fine = 4 * np.finfo(np.float64).eps * np.maximum(np.abs(edges).max(axis=1), self.noise)
        for _ in range(MAX_STEPS):
            excess = (1 - p) - self.above(x) if upper else self.cdf(x) - p
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                guess = x - excess / np.exp(self.log_prob(x))
            found = np.abs(guess - x) <= fine
            x = np.where(found | ((guess > low) & (guess < high)), guess, (low + high) / 2)
            if (found | (high - low <= fine)).all():
                break
        return x

    def sample(self, rng: Random, size: int) -> Values:
        return np.asarray(self.base.sample(rng, size) + self.noise[:, None] * rng.standard_normal((len(self), size)))

    def crps(self, y: Values) -> Values:
        return np.asarray(self._at("distance", y) - self._spread)

    @cached_property
    def _spread(self) -> Values:
        """E|Y - Y'| / 2 for independent Y and Y', (n,)."""
        if isinstance(self.base, Counts):
            noise = np.sqrt(2) * self.noise[:, None]
            return self._each(lambda rows, values, mass: _mean_distances(values, mass, noise[rows])) / 2
        return _half_mean_difference(self)

    @cached_property
    def _base_spread(self) -> Values:
        return _half_mean_difference(self.base)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        if (self.noise != self.noise[0]).any():
            return super().kernel_mean(points, gamma)
        shrunk = self._shrunk(gamma, 1)
        return np.asarray(self.base.kernel_mean(points, gamma * shrunk) * np.sqrt(shrunk[..., 0]))

    def kernel_norm(self, gamma: Values) -> Values:
        if (self.noise != self.noise[0]).any():
            return super().kernel_norm(gamma)
        shrunk = self._shrunk(gamma, 2)
        return np.asarray(self.base.kernel_norm(gamma * shrunk) * np.sqrt(shrunk[0]))

    def _shrunk(self, gamma: Values, copies: int) -> Values:
        """Return what a parameter is multiplied by if the noise of one or two targets becomes part of the kernel."""
        return np.asarray(1 / (1 + 2 * copies * special.in_lengths(self.noise[0], gamma) ** 2))

    def raw_moments(self, order: int) -> Values:
        base, errors = self.base.raw_moments(order), special.normal_moments(order)
        moments = [
            sum(comb(k, j) * base[:, k - j] * self.noise**j * errors[j] for j in range(k + 1)) for k in range(order + 1)
        ]
        return np.stack(moments, axis=1)

    def _kernel(self, rows: Indices, away: Values, gamma: Values, copies: int) -> Values:
        return special.normal_kernel_mean(away, np.sqrt(copies) * self.noise[rows, None], gamma)

    def _reach(self, gamma: float) -> float:
        return float(np.hypot(super()._reach(gamma), np.sqrt(4 * NEGLIGIBLE) * self.noise.max()))
