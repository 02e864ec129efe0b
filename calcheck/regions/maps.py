"""Maps of two variables: of all rows with their limits, and of the two columns of a region."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calcheck.core import sc
from calcheck.core.filter_conditions import Condition
from calcheck.core.lazy_inputs import load
from calcheck.core.text import percent
from calcheck.core.validation import LARGEST, finite_rows
from calcheck.distributions import Predictive
from calcheck.errors import DataError, OptionError, listed_columns
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.linalg.gram import PrincipalDirections, principal_components
from calcheck.metrics.base import inapplicable_reason
from calcheck.metrics.coverage import Coverage
from calcheck.metrics.pit import Pit
from calcheck.metrics.spread import Zms
from calcheck.predictions import Predictions
from calcheck.regions.partition import Partition, column_values
from calcheck.regions.scan import Deviations, Region
from calcheck.regions.worst import rectangle
from calcheck.reports import Curve
from calcheck.statistics.binning import Binning, middle_range
from calcheck.statistics.groups import Groups, cells
from calcheck.statistics.pit import levels_of, pit, share_of_row_below
from calcheck.statistics.zscores import missing_reference_reason, z_scores
from calcheck.typing import Indices, Mask, Values

Limits = tuple[Values, Values]
ROUNDING = 1e-6  # Of counts, relative to the number of rows
BINS = 20  # Number of bins of a PIT histogram
DRAWS = 400_000  # Number of targets to draw for all replicates together
MIN_REPLICATES, MAX_REPLICATES = 2, 39
NEGLIGIBLE = 1e-12  # Variance of a sum, relative to its squared mean, that is rounding
NORMAL_VARIANCE = 2.0  # Variance of a squared standard normal number
ROWS_PER_CELL = 10  # Mean number of rows per cell below which cells become larger
MIN_BINS, MAX_BINS = 4, 24  # Number of bins per axis
WORST_CELLS = 5  # Number of cells to choose by their deviation
TAIL = 0.005  # Share of rows beyond the outermost edges on each side, which belong to the outer bins
LONG_RANGE = 100.0  # Ratio of the edges from which a positive variable may have a logarithmic axis
COMPONENT = "principal component"
HALF = 0.5  # Level of intervals of distributions without moments
MAX_GROUPS = 20  # Number of categories of a column with groups
MAX_NUMBERS = 8  # Number of distinct whole numbers that are categories
CATEGORIES, WHOLE_NUMBERS = "bOU", "iu"  # Kinds of NumPy types


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the rows of g groups; what the predictions do not state is None, or not known exactly."""

    n: Indices  # (g,), number of rows
    level: float  # Level of the intervals
    covered: Values | None = None  # (g,), number of targets inside their intervals
    covered_expected: Values | None = None  # (g,), their expected number if the distributions are right
    squares: Values | None = None  # (g,), sum of squared z-scores
    # squares_expected, squares_variance: (g,), mean and variance of this sum if the distributions are right; None
    # without replicates. The variance is NaN where no replicate differs from the others.
    squares_expected: Values | None = None
    squares_variance: Values | None = None
    pit: Values | None = None  # (g, 20), rows in each bin of the PIT histogram, divided among bins that a PIT spans
    # (g, 20), variance of these if the distributions are right, whose mean is n / 20; None without replicates
    pit_variance: Values | None = None

    def arrays(self) -> dict[str, Values]:
        """Return the sums that are known, by name."""
        known = {each.name: getattr(self, each.name) for each in fields(self)[2:]}
        return {name: values for name, values in known.items() if values is not None}

    def without_limits(self) -> "GroupSums":
        """Return the sums without what limits of right models need."""
        return replace(self, covered_expected=None, squares_expected=None, squares_variance=None, pit_variance=None)

    def total(self) -> "GroupSums":
        """Return the sums over the rows of all groups together, as one group."""
        totals = {name: values.sum(axis=0, keepdims=True) for name, values in self.arrays().items()}
        return GroupSums(np.array([self.n.sum()]), self.level, **totals)

    @np.errstate(divide="ignore", invalid="ignore")  # Nothing is expected to vary
    def deviations(self) -> tuple[Values, str]:
        """Return how far errors are above those of a right model, in standard errors, (g,) or NaN, and what they are.

        Errors are squared z-scores, by their cube roots, which are nearly normal (Wilson, Hilferty 1931); of intervals,
        the shares of targets outside.
        """
        if self.squares is not None:
            expected, variance = self.squares_expected, self.squares_variance
            if expected is None or variance is None:
                return np.full(len(self.n), np.nan), "squared errors"
            spread = variance / (9 * expected**2)
            return ((self.squares / expected) ** (1 / 3) - 1 + spread) / np.sqrt(spread), "squared errors"
        if self.covered is None or self.covered_expected is None:
            return np.full(len(self.n), np.nan), "targets outside"
        expected = self.covered_expected
        return (expected - self.covered) / np.sqrt(expected * (1 - expected / self.n)), "targets outside"


def group_sums(rows: Predictions, groups: Groups, run: Run, *, level: float | None = None) -> GroupSums:
    """Return the sums over the rows of each group."""
    metric = Coverage(level).with_defaults(rows)
    few = min(MAX_REPLICATES, max(MIN_REPLICATES, DRAWS // len(rows)))  # The rows of a group share theirs
    replicates = NullSimulator(rows, run, numbers=range(0 if run.replicates == 0 else few))
    found = GroupSums(groups.counts, metric.level_of(rows.predictive))
    if not inapplicable_reason(Coverage, rows):
        covered = metric.compute(rows)
        expected = None if covered.reference is None else groups.sums(covered.columns["expected"])
        found = replace(found, covered=groups.sums(covered.columns["covered"]), covered_expected=expected)
    if not inapplicable_reason(Zms, rows):
        found = replace(found, **_square_sums(rows, groups, replicates))
    if not inapplicable_reason(Pit, rows):
        counts = np.stack([groups.sums(share) for share in _shares_in_bins(*pit(rows))], axis=1)
        found = replace(found, pit=counts, pit_variance=_pit_variance(rows, groups, replicates))
    return found


def _square_sums(rows: Predictions, groups: Groups, replicates: NullSimulator) -> dict[str, Any]:
    try:
        total = groups.sums(z_scores(rows) ** 2)
        expected, variance = _expected_squares(rows, groups, replicates)
    except DataError:  # Some distributions have no spread: the report states it for zms
        return {}
    return {"squares": total, "squares_expected": expected, "squares_variance": variance}


def _expected_squares(
    rows: Predictions, groups: Groups, replicates: NullSimulator
) -> tuple[Values, Values] | tuple[None, None]:
    """Return the mean and variance of sums of squared z-scores of a right model, (g,) each; NaN if none varies."""
    n = groups.counts.astype(np.float64)
    if rows.distributions().normal() is not None:
        return n, NORMAL_VARIANCE * n
    if not len(replicates):
        return None, None
    total, squares, count = np.zeros(len(rows)), np.zeros(len(rows)), len(replicates)
    for replicate in replicates:
        drawn = z_scores(replicate) ** 2
        total += drawn
        squares += drawn**2
    variance = groups.sums((squares - total**2 / count) / (count - 1))
    expected = n if not missing_reference_reason(rows) else groups.sums(total) / count
    estimated = 1.0 if expected is n else 1 + 1 / count
    return expected, np.where(variance > NEGLIGIBLE * expected**2, variance * estimated, np.nan)


def _pit_variance(rows: Predictions, groups: Groups, replicates: NullSimulator) -> Values | None:
    """Return the variance of the counts if the distributions are right, (g, 20)."""
    left, right = pit(rows)
    if left is right:
        return np.repeat(groups.counts[:, None] * (1 - 1 / BINS) / BINS, BINS, axis=1)
    if not len(replicates):
        return None
    found = np.zeros((groups.classes, BINS))
    for replicate in replicates:
        for place, share in enumerate(_shares_in_bins(*pit(replicate))):
            found[:, place] += groups.sums((share - 1 / BINS) ** 2)
    return found / len(replicates)


def _shares_in_bins(left: Values, right: Values) -> Iterator[Values]:
    """Yield the share of each row in each bin of its histogram, (n,)."""
    ends = (share_of_row_below(left, right, level) for level in levels_of(BINS - 1))
    for below, up_to in pairwise(chain([np.zeros(len(right))], ends, [np.ones(len(right))])):
        yield up_to - below


def coverage_limits(n: Indices, expected: Values, confidence: float) -> Limits:
    """Return the limits of the coverage of a right model, (g,) each, in [0, 1]: binomial quantiles."""
    low, high = _binomial_limits(n, np.minimum(expected / n, 1.0), 1 - confidence)
    return low / n, high / n


def mean_square_limits(n: Indices, expected: Values, variance: Values, confidence: float) -> Limits:
    """Return the limits of the mean squared z-score of a right model, (g,) each: gamma quantiles, or NaN.

    Source: Wilson, Hilferty (1931), "The distribution of chi-square".
    """
    mean, known = expected / n, np.where(expected > 0, expected, np.nan)
    spread = variance / (9 * known**2)  # 2 / (9 dof) of a chi-square distribution with these moments
    step = sc.ndtri((1 + confidence) / 2) * np.sqrt(spread)
    low, high = (mean * np.maximum(1 - spread + sign * step, 0) ** 3 for sign in (-1, 1))
    return low, high


def histogram_limits(n: Indices, variance: Values, confidence: float) -> Limits:
    """Return simultaneous limits of the counts of the PIT histogram of a right model, (g, 20) each.

    They are quantiles of multiples of binomial numbers with the mean and the variance of the counts, at a level divided
    by the number of bins.
    """
    size = BINS * variance / n[:, None] + 1 / BINS  # Share of a row that is in a bin, if any of it is
    low, high = _binomial_limits(n[:, None], 1 / (BINS * size), (1 - confidence) / BINS)
    return low * size, high * size


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity of g groups, with its limits for right models."""

    key: str  # Its name in the data of a map
    name: str
    values: Values  # (g,)
    limits: tuple[Values, Values] | None  # (g,) each, lower and upper limits; None if they are not known
    # below, above: how a model is wrong if the value is below, or above its limits
    below: str
    above: str

    def limits_of(self, group: int) -> tuple[float, ...]:
        """Return the limits of a group; none if they are not known."""
        found = tuple(float(side[group]) for side in self.limits or ())
        return found if np.isfinite(found).all() else ()

    def fault(self, group: int) -> str | None:
        """Return how the model is wrong in a group; "" if its value is inside its limits, None without limits."""
        if not (limits := self.limits_of(group)):
            return None
        if self.values[group] < limits[0]:
            return self.below
        return self.above if self.values[group] > limits[1] else ""


def quantities(sums: GroupSums, confidence: float) -> list[Quantity]:
    """Return coverage and mean squared z-score of groups, as far as the predictions state them."""
    found, n = [], sums.n
    if sums.covered is not None:
        limits = None if sums.covered_expected is None else coverage_limits(n, sums.covered_expected, confidence)
        name = f"coverage of {percent(sums.level)} intervals"
        found.append(Quantity("coverage", name, sums.covered / n, limits, "too narrow", "too wide"))
    if sums.squares is not None:
        limits = None
        if sums.squares_expected is not None and sums.squares_variance is not None:
            limits = mean_square_limits(n, sums.squares_expected, sums.squares_variance, confidence)
        found.append(Quantity("squares", "mean squared z-score", sums.squares / n, limits, "too wide", "too narrow"))
    return found


def bins_outside(sums: GroupSums, confidence: float) -> Indices | None:
    """Return the number of bins of the PIT histogram beyond their limits, (g,); None without limits."""
    if sums.pit is None or sums.pit_variance is None:
        return None
    low, high = histogram_limits(sums.n, sums.pit_variance, confidence)
    room = ROUNDING * sums.n[:, None]
    outside = (sums.pit < low - room) | (sums.pit > high + room)
    return np.asarray(outside.sum(axis=1))


def _binomial_limits(n: Indices, share: Values, excess: float) -> Limits:
    """Return the quantiles that leave half of an excess probability on each side."""
    low, high = (binomial_quantiles(level, n, share) for level in (excess / 2, 1 - excess / 2))
    return low, high


def binomial_quantiles(level: float, n: Indices, share: Values) -> Values:
    """Return the binomial quantiles at a level; the import of :mod:`scipy.stats` takes longer than a page."""
    above = np.where(share > 0, np.ceil(sc.bdtrik(level, n, share)), 0.0)
    below = np.maximum(above - 1, 0)
    return np.asarray(np.where(sc.bdtr(below, n, share) >= level, below, above))


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of a map."""

    name: str
    values: Values  # (n,), its values, finite


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a map, cut into bins."""

    name: str  # Name of the variable
    # (k + 1,), edges of the bins, increasing. A value equal to an edge belongs to the bin above; values beyond the
    # outermost edges belong to the outer bins.
    edges: Values
    is_log: bool  # Whether the axis is logarithmic

    @property
    def bins(self) -> int:
        """Number of bins, k."""
        return len(self.edges) - 1

    def between(self, low: float, high: float) -> tuple[int, int]:
        """Return the first and the last bin between two edges, or infinite limits."""
        first, last = np.searchsorted(self.edges, (low, high))
        return int(first), min(int(last), self.bins) - 1


@dataclass(frozen=True, eq=False)
class RegionMap:
    """A map of two variables: the sums over the rows of each cell that has rows."""

    # x, y: the axes
    x: Axis
    y: Axis
    # x_bin, y_bin: (g,), bins of each cell
    x_bin: Indices
    y_bin: Indices
    sums: GroupSums  # Sums over the rows of each cell
    confidence: float  # Confidence of the limits
    independent: bool = True  # Whether rows are independent; if not, there are no limits
    local: Mapping[str, Values] = field(default_factory=dict)  # (g,) each, means of local errors, by name
    inside: Values | None = None  # (g,), shares of the rows that are in the worst region
    worst: tuple[int, int, int, int] | None = None  # First and last bins of the worst region, if it is a rectangle

    @property
    def limited(self) -> GroupSums:
        """The sums, with what limits need only if rows are independent."""
        return self.sums if self.independent else self.sums.without_limits()

    def regions(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield regions by first and last bins along x and y: all, the worst, halves, else deviating cells."""
        x_last, y_last = self.x.bins - 1, self.y.bins - 1
        x_half, y_half = self.x.bins // 2, self.y.bins // 2
        yield 0, x_last, 0, y_last
        if self.worst is not None:
            yield self.worst
        if x_half:
            yield from ((0, x_half - 1, 0, y_last), (x_half, x_last, 0, y_last))
        if y_half:
            yield from ((0, x_last, 0, y_half - 1), (0, x_last, y_half, y_last))
        size = np.nan_to_num(np.abs(self.sums.deviations()[0]))
        for cell in np.argsort(-size, kind="stable")[:WORST_CELLS] if self.inside is None else ():
            if size[cell] > 0:
                x, y = int(self.x_bin[cell]), int(self.y_bin[cell])
                yield x, x, y, y


def named_variables(rows: Predictions, names: Sequence[str]) -> tuple[Variable, Variable]:
    """Return two columns of numbers."""
    if len(names) != 2 or len(set(names)) < 2:  # noqa: PLR2004 - of a map
        raise OptionError(f"--plot-by needs two different columns, got {','.join(names)!r}")
    x, y = (Variable(name, _numbers(rows, name)) for name in names)
    return x, y


def _numbers(rows: Predictions, name: str) -> Values:
    if name not in rows.columns:
        raise DataError(f"there is no column {name!r} for the map (--plot-by) {listed_columns(rows.columns, name)}")
    values = rows.columns[name]
    if values.dtype.kind not in "iufb" or not np.isfinite(values).all():
        raise DataError(f"column {name!r} must hold finite numbers for the map (--plot-by)")
    return values.astype(np.float64)


def default_variables(rows: Predictions, names: Sequence[str], inside: Mask | None = None) -> tuple[Variable, Variable]:
    """Return inputs that tell most about a region, the first components of an embedding, or what is predicted."""
    if rows.x is None:
        return _stated(rows)
    if rows.has_embedding and rows.width > 2:  # noqa: PLR2004 - of a map
        scores, shares = principal_components(rows.lazy_inputs(), 2)
        first, second = (f"{COMPONENT} {number}, {share:.0%}" for number, share in enumerate(shares, 1))
        return Variable(first, scores[:, 0]), Variable(second, scores[:, 1])
    called = _input_names(rows, names)
    inputs = load(rows.lazy_inputs()).astype(np.float64, copy=False)
    of_text = {place for each in rows.categories for place in range(rows.width)[each.places]}
    numbers = [place for place in range(rows.width) if place not in of_text]
    if len(numbers) < 2:  # noqa: PLR2004 - of a map
        predicted = _stated(rows)
        return (Variable(called[numbers[0]], inputs[:, numbers[0]]), predicted[1]) if numbers else predicted
    told = {place: 0.0 if inside is None else _told(inputs[:, place], inside) for place in numbers}
    chosen = sorted(sorted(numbers, key=lambda place: -told[place])[:2])
    x, y = (Variable(called[place], inputs[:, place]) for place in chosen)
    return x, y


def positions_of(new: Predictions, rows: Predictions, names: Sequence[str], x: Variable, y: Variable) -> Values | None:
    """Return where new rows are on a map of rows, (m, 2); None if they do not have its variables."""
    if rows.x is not None and rows.has_embedding and rows.width > 2:  # noqa: PLR2004 - of a map
        found = PrincipalDirections.from_inputs(rows.lazy_inputs(), 2).scores(new.lazy_inputs())
        if x.name.startswith(COMPONENT) and y.name.startswith(COMPONENT):
            return found
    known: dict[str, Values] = {name: values for name, values in new.columns.items() if values.dtype.kind in "iuf"}
    known |= dict(zip(_input_names(rows, names), load(new.lazy_inputs()).T, strict=True))
    if new.predictive is not None:
        known |= {each.name: each.values for each in _stated(new)}
    both = [known.get(each.name) for each in (x, y)]
    return None if any(each is None for each in both) else np.stack([np.asarray(each, np.float64) for each in both], 1)


def _input_names(rows: Predictions, names: Sequence[str]) -> Sequence[str]:
    return names if len(names) == rows.width else [f"input {place + 1}" for place in range(rows.width)]


def _told(values: Values, inside: Mask) -> float:
    """Return how much the order of values (n,) tells about which rows are inside a region: a variance of shares."""
    parts = np.array_split(inside[np.argsort(values, kind="stable")], MAX_BINS)
    return float(np.var([part.mean() for part in parts if len(part)]))


def _stated(rows: Predictions) -> tuple[Variable, Variable]:
    """Return the predicted mean and standard deviation, or middles and widths of intervals if there are no moments."""
    predictive = rows.distributions()
    if predictive.interval_levels is not None:
        return _interval(predictive, float(predictive.interval_levels[0]))
    try:
        mean, std = predictive.mean(), predictive.std()
    except DataError:  # Of Cauchy distributions
        return _interval(predictive, HALF)
    if not np.isfinite(mean + std).all():
        return _interval(predictive, HALF)
    return Variable("predicted mean", mean), Variable("predicted std", std)


def _interval(predictive: Predictive, level: float) -> tuple[Variable, Variable]:
    low, high = predictive.central_interval(level)
    called = f"of the {percent(level)} interval"
    return Variable(f"middle {called}", (low + high) / 2), Variable(f"width {called}", high - low)


def make_map(
    rows: Predictions,
    x: Variable,
    y: Variable,
    run: Run,
    *,
    level: float | None = None,
    independent: bool = True,
    inside: Mask | None = None,
    local: Mapping[str, Values] | None = None,
) -> RegionMap:
    """Return the map of two variables and of local errors (n,) by name; ``inside`` are rows of the worst region."""
    bins = int(np.clip(np.sqrt(len(rows) / ROWS_PER_CELL), MIN_BINS, MAX_BINS))
    limits = None if inside is None else rectangle(x.values, y.values, inside)
    across, up = (make_axis(each, bins, ends) for each, ends in zip((x, y), limits or ((), ()), strict=True))
    label, (x_bin, y_bin) = cells(Binning.edges(x.values, across.edges), Binning.edges(y.values, up.edges))
    groups = Groups(label, len(x_bin))
    return RegionMap(
        across,
        up,
        x_bin,
        y_bin,
        group_sums(rows, groups, run, level=level),
        run.confidence,
        independent=independent,
        local={name: groups.means(values) for name, values in (local or {}).items()},
        inside=None if inside is None else groups.means(inside.astype(np.float64)),
        worst=None if limits is None else (*across.between(*limits[0]), *up.between(*limits[1])),
    )


def make_axis(variable: Variable, bins: int, limits: Sequence[float] = ()) -> Axis:
    """Return the axis of a variable: one bin per value if there are few, else bins of equal width.

    Finite limits become edges.

    >>> make_axis(Variable("age", np.array([1.0, 2, 2, 4])), 4).edges.tolist()
    [0.5, 1.5, 3.0, 5.0]
    >>> make_axis(Variable("age", np.array([1.0, 2, 2, 4])), 4, (-np.inf, 3.5)).edges.tolist()
    [0.5, 1.5, 3.5, 5.0]
    """
    values = np.clip(variable.values, -LARGEST, LARGEST)
    distinct = np.unique(values)
    is_log = False
    if len(distinct) <= bins:
        edges = _edges_between(distinct)
    else:
        low, high = middle_range(values, TAIL)
        is_log = _is_log(float(low), float(np.quantile(values, 0.5)), float(high))
        edges = np.geomspace(low, high, bins + 1) if is_log else np.linspace(low, high, bins + 1)
    known = [each for each in limits if np.isfinite(each)]
    for limit in known:
        place = int(np.abs(edges - limit).argmin())
        is_fixed = place in (0, len(edges) - 1) or edges[place] in known
        edges = np.unique(np.append(edges if is_fixed else np.delete(edges, place), limit))
    return Axis(variable.name, edges, is_log)


def _is_log(low: float, middle: float, high: float) -> bool:
    """Return whether values with these limits and this median are spread more evenly by their logarithms."""
    if low <= 0 or high / low <= LONG_RANGE:
        return False
    place = (middle - low) / (high - low)
    log_place = np.log(middle / low) / np.log(high / low)
    return bool(abs(log_place - 0.5) < abs(place - 0.5))


def _edges_between(distinct: Values) -> Values:
    """Return edges half way between increasing values, and as far beyond the outer ones."""
    if len(distinct) == 1:
        return np.array([distinct[0] - 0.5, distinct[0] + 0.5])
    middle = (distinct[1:] + distinct[:-1]) / 2
    return np.concatenate([[2 * distinct[0] - middle[0]], middle, [2 * distinct[-1] - middle[-1]]])


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """The groups of rows by a column."""

    column: str
    names: tuple[str, ...]  # Category of each group, (g,)
    sums: GroupSums  # Sums over the rows of each group
    confidence: float  # Confidence of the limits


def column_groups(
    rows: Predictions, run: Run, *, without: Collection[str] = (), level: float | None = None, independent: bool = True
) -> tuple[ColumnGroups, ...]:
    """Return the groups by each column of categories: text or truths with 2 to 20 values, or few whole numbers."""
    found = []
    for column, values in rows.columns.items():
        if column in without or values.dtype.kind not in CATEGORIES + WHOLE_NUMBERS:
            continue
        most = MAX_NUMBERS if values.dtype.kind in WHOLE_NUMBERS else MAX_GROUPS
        names, label = np.unique(_texts(values), return_inverse=True)
        if 2 <= len(names) <= most:  # noqa: PLR2004 - one group is all rows
            sums = group_sums(rows, Groups(label, len(names)), run, level=level)
            limited = sums if independent else sums.without_limits()
            found.append(ColumnGroups(column, tuple(names.tolist()), limited, run.confidence))
    return tuple(found)


def _texts(values: NDArray[np.generic]) -> NDArray[np.str_]:
    """Return categories as text; absent ones are a category, too."""
    if values.dtype.kind != "O":
        return values.astype(str)
    return np.where(finite_rows(values), values.astype(str), "(absent)")


def region_map(
    found: Deviations,
    region: Region,
    columns: Sequence[NDArray[np.generic]],
    conditions: Sequence[Condition] = (),
) -> tuple[Curve, ...]:
    """Return the map of the cells of the columns (n,) of a region, and its outline, if both hold numbers.

    Conditions are those of the region where its limits are not those of bins.
    """
    partitions = found.scan.columns[region.first], found.scan.columns[region.second]
    edges = [cell_edges(partition, values) for partition, values in zip(partitions, columns, strict=True)]
    if any(len(each) == 0 for each in edges):
        return ()
    shape = len(edges[0]) - 1, len(edges[1]) - 1
    rows, deviations = found.in_cells((region.first, region.second), region.score)
    places = [(first, second) for first, second in np.ndindex(shape) if rows[first, second]]
    runs = [run or (0, length - 1) for run, length in zip((region.first_run, region.second_run), shape, strict=True)]
    if any(last >= length for (_, last), length in zip(runs, shape, strict=True)):  # Missing values
        return ()
    lines = zip(*places, strict=True)  # Bins of all cells in the first column, then in the second
    cells = [[(each[place], each[place + 1]) for place in line] for each, line in zip(edges, lines, strict=True)]
    names = partitions[0].column, partitions[1].column
    limits = {(each.column, each.operator): float(each.value) for each in conditions if each.operator in (">", "<=")}
    outline = [
        [(limits.get((name, ">"), each[first]), limits.get((name, "<="), each[last + 1]))]
        for name, each, (first, last) in zip(names, edges, runs, strict=True)
    ]
    return (
        _curve("map", names, cells, [float(deviations[place]) for place in places], [int(rows[p]) for p in places]),
        _curve("region", names, outline, [region.deviation]),
    )


def cell_edges(partition: Partition, raw: NDArray[np.generic]) -> list[float]:
    """Return the edges of the bins of a column of numbers, of which a single first value gets a width; else none."""
    values, missing = column_values(raw)
    if values.dtype.kind != "f" or not partition.cuts:
        return []
    known = values[~missing & np.isfinite(values)]
    cuts = [float(below.value) for below, _ in partition.cuts]
    edges = [*cuts, max(float(known.max()), cuts[-1])]
    low = float(known.min())
    return [low if low < cuts[0] else cuts[0] - (edges[1] - cuts[0]), *edges]


def _curve(
    name: Literal["map", "region"],
    columns: tuple[str, str],
    cells: Sequence[Sequence[tuple[float, float]]],
    values: Sequence[float],
    rows: Sequence[int] = (),
) -> Curve:
    (start, stop), (start2, stop2) = (tuple(zip(*line, strict=True)) for line in cells)
    return Curve(
        name=name,
        x_name=columns[0],
        x=start,
        stop=stop,
        x2_name=columns[1],
        x2=start2,
        stop2=stop2,
        y=tuple(values),
        rows=tuple(rows),
    )
