"""Mixtures of Gaussian predictive distributions, and distributions with normal noise."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb
from typing import ClassVar, Literal, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.core.validation import require, require_moderate, require_positive
from calcheck.distributions import special
from calcheck.distributions.base import BLOCK_VALUES, MAX_CACHED_VALUES, NEGLIGIBLE, Block, Derived, Parts
from calcheck.distributions.continuous import Continuous, LocationScale
from calcheck.distributions.count_base import Counts, autocorrelation, half_distance
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
FEW_PANELS = 4  # Most parts of a panel that may as well be divided further for other rows
MARGIN = 8.0  # Distance from such panels, in standard deviations of noise, whose density there is negligible
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


def _half_mean_distance(mass: Values, scale: Values) -> Values:
    """Return E|X + E| / 2 for E ~ N(0, scale^2) and differences X of whole numbers with probabilities (b, w), (b,)."""
    lags = np.arange(mass.shape[1], dtype=np.float64)
    more = mean_distance(lags, scale) - lags
    more[:, 1:] *= 2
    return np.asarray(half_distance(mass) + np.sum(autocorrelation(mass) * more, axis=1) / 2)


def _count_below(values: Values, row: Indices, y: Values) -> Indices:
    """Return the number of values (b, k), increasing, of some rows that are less than y, (w,), by bisection."""
    size = values.shape[1]
    count, step = np.zeros(len(y), np.intp), 1 << size.bit_length()
    while step := step // 2:
        more = np.minimum(count + step, size)
        count = np.where(values[row, more - 1] < y, more, count)
    return count


def _sums_around(name: str, nodes: "_Nodes", row: Indices, y: Values, noise: Values) -> Values:
    """Return means of one of :data:`FUNCTIONS` of (y - v) / noise over values v of rows, at neighboring y, (w, k)."""
    of, left, right = FUNCTIONS[name]
    values, mass = nodes.values, nodes.mass
    of_values, of_mass = (row if len(each) > 1 else np.zeros_like(row) for each in (values, mass))
    start, stop = np.zeros_like(row), np.full_like(row, values.shape[1])
    found = np.zeros(y.shape)
    if np.isfinite(left):  # the function is constant where values are far from y
        low, high = y.min(axis=1), y.max(axis=1)
        away = np.maximum(np.maximum(values[of_values, 0] - low, high - values[of_values, -1]), 0)
        reach = np.hypot(away, FAR * noise)
        start, stop = _count_below(values, of_values, low - reach), _count_below(values, of_values, high + reach)
        found += (left * nodes.below[of_mass, start] + right * nodes.beyond[of_mass, stop])[:, None]
    order = np.argsort(stop - start, kind="stable")
    size = max(1, CHUNK // (y.shape[1] * max(int(np.max(stop - start, initial=1)), 1)))
    for some in (order[first : first + size] for first in range(0, len(order), size)):
        places = start[some, None] + np.arange((stop - start)[some[-1]])
        known, places = places < stop[some, None], np.minimum(places, values.shape[1] - 1)
        inner = np.where(known, mass[of_mass[some, None], places], 0)
        z = y[some, :, None] - values[of_values[some, None], places][:, None]
        z /= noise[some, None, None]
        found[some] += (of(z) @ inner[:, :, None])[:, :, 0]
    return found


def _normal_density(z: Values) -> Values:
    """Return standard normal densities, in place."""
    z *= z
    z *= -0.5
    return np.asarray(np.exp(z, out=z) / np.sqrt(2 * np.pi))


FUNCTIONS: Mapping[str, tuple[Callable[[Values], Values], float, float]] = {
    "cdf": (lambda z: np.asarray(sc.ndtr(z)), 1.0, 0.0),
    "above": (lambda z: np.asarray(sc.ndtr(-z)), 0.0, 1.0),
    "density": (_normal_density, 0.0, 0.0),
    "distance": (lambda z: mean_distance(z, np.ones(1)), np.inf, np.inf),
}
"""Functions of (y - v) / noise whose means over values v are those of a table, and limits for v far below and above."""


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Values, (b, k) or (1, k), increasing, and their probabilities, for sums over them."""

    values: Values
    mass: Values

    @cached_property
    def below(self) -> Values:
        """The probabilities of the first values, (b, k + 1)."""
        return np.pad(np.cumsum(self.mass, axis=1), ((0, 0), (1, 0)))

    @cached_property
    def beyond(self) -> Values:
        """The probabilities of all but the first values, (b, k + 1)."""
        return np.pad(np.cumsum(self.mass[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))


def _half_mean_difference(edges: Values, cdf: Callable[[Indices, Values], Values]) -> Values:
    """Return E|Y - Y'| / 2 for independent Y and Y', the integral of F (1 - F) between edges, (n,)."""
    total, size = np.empty(len(edges)), BLOCK_VALUES // (edges.shape[1] * len(NODES))
    for rows in (np.arange(start, min(start + size, len(edges))) for start in range(0, len(edges), size)):
        nodes, weights = special.panels(edges[rows])
        below = cdf(np.repeat(rows, nodes.shape[1]), nodes.ravel()).reshape(nodes.shape)
        total[rows] = np.sum(weights * below * (1 - below), axis=1)
    return total


def from_logits(loc: Values, scale: Values, logits: Values) -> Mixture:
    """Return the distributions with weights softmax(logits)."""
    require_moderate("logits", logits)
    return Mixture(loc, scale, sc.softmax(logits, axis=-1))


def from_weights(loc: Values, scale: Values, weight: Values | None = None) -> Mixture:
    """Return the distributions with the given weights, or equal ones."""
    return Mixture(loc, scale, np.full(loc.shape, 1 / loc.shape[1]) if weight is None else weight)


def _nodes_of(block: Parts) -> _Nodes:
    _, [(values, mass)] = block
    return _Nodes(values, mass[:1] if mass.strides[0] == 0 else mass)


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

    @cached
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
            part = self.base.take(rows)
            spans = zip(SCORES[:-1], SCORES[1:], self._divisions(rows), strict=True)
            steps = [np.linspace(low, high, count, endpoint=False) for low, high, count in spans]
            scores, weights = special.panels(np.append(np.concatenate(steps), REACH)[None])
            density = np.exp(-(scores[0] ** 2) / 2) / np.sqrt(2 * np.pi)
            values = np.stack([part.quantile(float(level)) for level in sc.ndtr(scores[0])], axis=1)
            yield rows, values, np.broadcast_to(weights * density, values.shape)

    def _nodes(self) -> Iterator[_Nodes]:
        """Yield what blocks of rows are summed over."""
        return iter(self._cached_nodes) if self._cached is not None else map(_nodes_of, self._blocks())

    @cached_property
    def _cached_nodes(self) -> list[_Nodes]:
        return [_nodes_of(block) for block in self._blocks()]

    @cached_property
    def _places(self) -> tuple[Indices, Indices]:
        """The number of the block of each row, and the place in it, (n,) each."""
        owner, place = np.empty((2, len(self)), np.intp)
        for number, rows in enumerate(self._rows()):
            owner[rows], place[rows] = number, np.arange(len(rows))
        return owner, place

    def _rows(self) -> Iterator[Indices]:
        """Yield blocks of rows that need many nodes in similar panels."""
        if isinstance(self.base, Counts):
            yield from (rows for rows, _, _ in self.base.masses())
            return
        many = np.sum(self._counts > FEW_PANELS, axis=1)
        for number in np.unique(many):
            rows = np.flatnonzero(many == number)
            size = max(1, BLOCK_VALUES // (len(NODES) * int(self._divisions(rows).sum())))
            yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def _divisions(self, rows: Indices) -> Indices:
        """Return into how many parts each panel of some rows is divided, (panels,)."""
        counts = self._counts[rows]
        return np.asarray(np.where(counts <= MOST_PANELS, counts, 1).max(axis=0))

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

    def _summed(self, name: str, row: Indices, y: Values) -> Values:
        """Return one of the functions of a table by sums, at neighboring values of some rows, (w, k)."""
        low, high = (limit[row, None] for limit in self._resolved)
        far = (y <= low) | (y >= high)
        found = np.empty(y.shape)
        if len(inner := np.flatnonzero(~far.all(axis=1))):
            found[inner] = self._over_values(name, row[inner], y[inner])
        if far.any():
            found[far] = self._over_noise(name, row[np.nonzero(far)[0]], y[far])
        return found

    def _over_values(self, name: str, row: Indices, y: Values) -> Values:
        """Return means over the values without noise, (w, k)."""
        owner, place = (each[row] for each in self._places)
        order, found = np.argsort(owner, kind="stable"), np.empty(y.shape)
        stops = np.cumsum(np.bincount(owner))
        for nodes, start, stop in zip(self._nodes(), [0, *stops[:-1]], stops, strict=False):
            if len(some := order[start:stop]):
                found[some] = _sums_around(name, nodes, place[some], y[some], self.noise[row[some]])
        unit = {"density": 1 / self.noise[row, None], "distance": self.noise[row, None]}
        return np.asarray(found * unit.get(name, 1.0))

    def _over_noise(self, name: str, row: Indices, y: Values) -> Values:
        """Return means over the noise, (w,), for tails that are smooth at its scale."""
        found, size = np.empty(len(y)), CHUNK // len(HERMITE)
        for some in (slice(start, start + size) for start in range(0, len(y), size)):
            part = self.base.take(np.repeat(row[some], len(HERMITE)))
            at = (y[some, None] - self.noise[row[some], None] * HERMITE).ravel()
            match name:
                case "density":
                    values = np.exp(part.log_prob(at))
                case "distance":
                    values = part.crps(at) + np.repeat(self._base_spread[row[some]], len(HERMITE))
                case _:
                    values = getattr(part, name)(at)
            found[some] = values.reshape(-1, len(HERMITE)) @ HERMITE_WEIGHTS
        return found

    def _at(self, name: str, y: Values, row: Indices | None = None) -> Values:
        """Return one of the functions of a table at values of some rows, (w,); by sums where that does not have it."""
        row = np.arange(len(self)) if row is None else row
        if self._table is None:
            return self._summed(name, row, y[:, None])[:, 0]
        found = self._table.at(name, row, y)
        if len(missing := np.flatnonzero(np.isnan(found))):
            found[missing] = self._summed(name, row[missing], y[missing, None])[:, 0]
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
        row = np.repeat(np.arange(len(self)), edges.shape[1])
        of_edges = {
            name: self._summed(name, row, edges.reshape(-1, 1)).reshape(edges.shape)
            for name in ("cdf", "above", "distance")
        }
        table = special.DistributionTable.fit(
            edges, partial(self._summed, "density"), of_edges, self.noise, MAX_CACHED_VALUES
        )
        return table if table is not None and np.mean(table.parts > 0) > MIDDLE else None

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
        panel, share = divmod(np.clip((float(sc.ndtri(p)) + REACH) / (SCORES[1] - SCORES[0]), 0, len(SCORES) - 1), 1)
        x = edges[:, int(panel)] * (1 - share) + edges[:, min(int(panel) + 1, len(SCORES) - 1)] * share
        fine = 4 * np.finfo(np.float64).eps * np.maximum(np.abs(edges).max(axis=1), self.noise)
        rows = np.arange(len(self))
        for _ in range(MAX_STEPS):
            at = x[rows]
            excess = (1 - p) - self._at("above", at, rows) if upper else self._at("cdf", at, rows) - p
            low[rows], high[rows] = np.where(excess < 0, at, low[rows]), np.where(excess < 0, high[rows], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                guess = at - excess / self._at("density", at, rows)
            found = np.abs(guess - at) <= fine[rows]
            inside = (guess > low[rows]) & (guess < high[rows])
            x[rows] = np.where(found | inside, guess, (low[rows] + high[rows]) / 2)
            rows = rows[~found & (high[rows] - low[rows] > fine[rows])]
            if not len(rows):
                break
        return np.asarray(x)

    def sample(self, rng: Random, size: int) -> Values:
        return np.asarray(self.base.sample(rng, size) + self.noise[:, None] * rng.standard_normal((len(self), size)))

    def crps(self, y: Values) -> Values:
        return np.asarray(self._at("distance", y) - self._spread)

    @cached_property
    def _spread(self) -> Values:
        """E|Y - Y'| / 2 for independent Y and Y', (n,)."""
        if isinstance(self.base, Counts):
            noise = np.sqrt(2) * self.noise[:, None]
            return self._each(lambda rows, _, mass: _half_mean_distance(mass, noise[rows]))
        return _half_mean_difference(self.edges(), lambda row, y: self._at("cdf", y, row))

    @cached_property
    def _base_spread(self) -> Values:
        return _half_mean_difference(self.base.edges(), lambda row, y: self.base.take(row).cdf(y))

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
        return special.normal_kernel_mean(away, np.sqrt(copies) * self.noise[rows, None, None], gamma)

    def _reach(self, gamma: float) -> float:
        return float(np.hypot(super()._reach(gamma), np.sqrt(4 * NEGLIGIBLE) * self.noise.max()))
