"""The region of the inputs whose rows differ most from the others: a run, a corner, a direction of columns, a ball."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from calcheck.core.filter_conditions import EQUAL, Condition
from calcheck.core.lazy_inputs import blocks, load, take
from calcheck.core.text import p_text, shortest_number
from calcheck.inference.null_distribution import NullSimulator
from calcheck.predictions import Predictions, row_keys
from calcheck.regions.partition import Partition, filter_options, label_of
from calcheck.regions.scan import DIRECTIONS, Region, Scan, p_values_of, row_scores
from calcheck.reports import rejects
from calcheck.reports.conclusion import Direction, WorstRegion
from calcheck.typing import Floats, Indices, Mask, Values

MOST_ROWS = 4_096  # Rows that are searched; of more, a sample
MOST_REPLICATES = 199
MOST_COLUMNS = 40  # More inputs are searched like an embedding
FEWEST_ROWS, FEWEST_SHARE = 20, 0.05  # Minimum number and share of the rows of a region, and outside of it
BINS = 64  # Of a column, for its runs
CORNER_BINS, FEW_COLUMNS, COARSE_BINS = 16, 4, 8  # Of each of two columns, for corners; fewer for more columns
CENTERS, SIZES = 2_048, 12  # Numbers of centers of balls, and of sizes of balls and of directions
RIDGE = 0.05  # Penalty per row of the regression that finds a direction
PLAINER = 0.5  # By how much runs between two values and corners must exceed runs to an end; directions, twice as much
DIGITS = 1  # Of the coefficients of a direction, relative to the largest
Ends = tuple[float, float]


class Place(NamedTuple):
    """A region in words, as options that select its rows ("" if none do), and which rows are in it, (n,)."""

    text: str
    filter: str
    inside: Mask


class WorstPlace(NamedTuple):
    """The region that differs most from the other rows."""

    place: Place
    score: int  # BIAS or DISPERSION, whichever differs more
    is_positive: bool  # Whether targets are above the predictions there, or distributions too narrow
    p_value: float  # Probability that the rows of a right model differ as much in any region

    @property
    def direction(self) -> Direction:
        """How the model is wrong there."""
        return DIRECTIONS[self.score][int(self.is_positive)]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Runs of bins of one column, or corners of two."""

    columns: tuple[tuple[Partition, ...], ...]  # Bins of all rows, of the columns of each scan
    searched: Indices
    one_sided: bool = False  # Whether runs end at the first or the last bin
    handicap: float = 0.0  # By how much its regions must exceed those of other families

    def scans(self, searched: Indices | slice) -> list[Scan]:
        """Return the scans of some rows."""
        parts = [tuple(replace(each, label=each.label[searched]) for each in bins) for bins in self.columns]
        return [Scan(each, FEWEST_ROWS, one_sided=self.one_sided) for each in parts]

    def sums(self, scores: Values) -> Iterator[tuple[Values, Values]]:
        """Yield numbers of rows, (m,), and sums of scores (n, c), (m, c), of the regions of each pair of columns."""
        for scan in self.scans(self.searched):
            ones = np.ones((len(scores), 1))
            for rows, sums in zip(scan.by_region(ones), scan.by_region(scores), strict=True):
                yield rows.ravel(), sums.reshape(-1, scores.shape[1])

    def place(self, part: int, number: int, scores: Values) -> Place:
        """Return a region by its number in a part. Shapes: scores (n,), those of the data that differ there."""
        scan, (first, second) = [(scan, pair) for scan in self.scans(slice(None)) for pair in scan.pairs][part]
        line, column = divmod(number, len(scan.selectors[second]))
        region = Region(first, second, scan.run(first, line), scan.run(second, column), 0, 0.0, 1.0)
        conditions, inside = scan.place(region, scores, self.searched, _least(len(scores)))
        return Place(label_of(conditions), filter_options(conditions), inside)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Inputs in units of their standard deviations over the searched rows, or an embedding as it is."""

    middle: Values
    deviation: Values

    @classmethod
    def standard(cls, x: Floats) -> "Scaling":
        """Return the scaling that makes columns standardized."""
        deviation = x.std(axis=0, dtype=np.float64)
        return cls(x.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, 1.0))

    def scaled(self, x: Floats) -> Values:
        """Return scaled inputs, (b, d)."""
        return np.asarray((x - self.middle) / self.deviation)


class Directions:
    """Rows far in the direction of a ridge regression of scores on inputs, and on squared norms of an embedding."""

    handicap = 2 * PLAINER

    def __init__(self, rows: Predictions, names: Sequence[str], searched: Indices) -> None:
        self.rows, self.names, self.searched = rows, names, searched
        self.sizes = _sizes(len(searched))
        x = take(rows.lazy_inputs(), searched)
        self.scaling = Scaling.standard(x)
        squares = (self.scaling.scaled(x) ** 2).sum(axis=1, keepdims=True)
        self.norms = Scaling.standard(squares)
        self.x = self._features(x)
        gram = self.x.T @ self.x + RIDGE * len(searched) * np.eye(self.x.shape[1])
        self.solution = np.linalg.solve(gram, self.x.T)  # (d, n)

    def _features(self, x: Floats) -> Values:
        """Return the standardized inputs, and the squared norms of an embedding, (b, d) or (b, d + 1)."""
        scaled = self.scaling.scaled(x)
        if not self.rows.has_embedding:
            return scaled
        return np.column_stack([scaled, self.norms.scaled((scaled**2).sum(axis=1, keepdims=True))])

    def sums(self, scores: Values) -> Iterator[tuple[Values, Values]]:
        """Yield numbers of rows and sums by size, of the rows with the largest fitted values, and with the smallest."""
        order = np.argsort(-self.x @ (self.solution @ scores), axis=0, kind="stable")
        for end in (order, order[::-1]):
            yield self.sizes.astype(np.float64), np.cumsum(np.take_along_axis(scores, end, 0), axis=0)[self.sizes - 1]

    def place(self, part: int, number: int, scores: Values) -> Place:
        """Return a region as a condition on a sum of standardized inputs, with rounded coefficients."""
        slopes = self.solution @ scores * (1 if part == 0 else -1)
        weights = slopes / np.abs(slopes).max()
        weights = weights if self.rows.has_embedding else np.round(weights, DIGITS)
        position, count = self.x @ weights, int(self.sizes[number])
        ordered = np.sort(position)[::-1]
        limit = float(shortest_number(ordered[count], ordered[count - 1]))
        parts = [self._features(block) @ weights for _, block in blocks(self.rows.lazy_inputs())]
        if self.rows.has_embedding:
            text = f"on the side of row {self.rows.row_numbers()[self.searched[position.argmax()]]}"
        else:
            terms = [f"{weight:+g}·{name}" for weight, name in zip(weights, self.names, strict=True) if weight]
            text = " ".join(terms).replace("+1·", "+").replace("-1·", "-").removeprefix("+")
            text = f"{text} > {limit:g} (standardized)"
        return Place(text, "", np.concatenate(parts) > limit)


class Balls:
    """Nearest neighbors of rows, by Euclidean distance."""

    handicap = 0.0

    def __init__(self, rows: Predictions, searched: Indices, centers: Indices) -> None:
        self.rows, self.searched, self.centers = rows, searched, centers
        x = take(rows.lazy_inputs(), searched)
        plain = Scaling(np.zeros(rows.width), np.ones(rows.width))
        self.scaling = plain if rows.has_embedding else Scaling.standard(x)
        self.x, self.sizes = self.scaling.scaled(x), _sizes(len(x))
        nearest = np.argsort(_distances(self.x[centers], self.x), axis=1, kind="stable")[:, : self.sizes[-1]]
        ends = np.cumsum(np.tile(np.diff(self.sizes, prepend=0), len(nearest)))
        shape = len(nearest) * len(self.sizes), len(x)
        self.shells = csr_array((np.ones(nearest.size, np.float32), nearest.ravel(), np.append(0, ends)), shape)

    def sums(self, scores: Values) -> Iterator[tuple[Values, Values]]:
        """Yield numbers of rows and sums by center and size."""
        by_shell = np.asarray(self.shells @ scores.astype(np.float32)).reshape(-1, len(self.sizes), scores.shape[1])
        rows = np.tile(self.sizes.astype(np.float64), len(by_shell))
        yield rows, np.cumsum(by_shell, axis=1, dtype=np.float64).reshape(-1, scores.shape[1])

    def place(self, part: int, number: int, scores: Values) -> Place:  # noqa: ARG002 - as for directions
        """Return a ball by its center."""
        center, size = divmod(number, len(self.sizes))
        place = self.centers[center]
        point = self.x[place : place + 1]
        radius = np.sort(_distances(point, self.x)[0])[self.sizes[size] - 1]
        parts = [_distances(point, self.scaling.scaled(block))[0] for _, block in blocks(self.rows.lazy_inputs())]
        inside = np.concatenate(parts) <= radius * (1 + 1e-9)
        return Place(f"nearest to row {self.rows.row_numbers()[self.searched[place]]}", "", inside)


Family: TypeAlias = Boxes | Directions | Balls


def _distances(centers: Floats, x: Floats) -> Values:
    """Return squared distances, (k, n)."""
    squares = (centers**2).sum(axis=1)[:, None] + (x**2).sum(axis=1)
    return np.asarray(squares - 2 * centers @ x.T)


def _sizes(n: int) -> Indices:
    """Return the numbers of rows of balls, and of directions, from the least to a half."""
    return np.unique(np.geomspace(_least(n), n // 2, SIZES).astype(np.intp))


def _least(n: int) -> int:
    return max(FEWEST_ROWS, math.ceil(FEWEST_SHARE * n))


@dataclass(frozen=True, eq=False)
class Search:
    """A search of N data sets, the first of which are the data: all are treated alike, so that the p-value is exact."""

    scores: Values  # (n, N, 2)

    @cached_property
    def standardized(self) -> tuple[Values, Values]:
        """The scores with mean 0 and variance 1 in each data set, (n, 2 N), and their means before, (2 N,)."""
        flat = self.scores.reshape(len(self.scores), -1)
        mean, deviation = flat.mean(axis=0), flat.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        return (flat - mean) / deviation, mean / deviation

    def largest(self, family: Family) -> tuple[Values, tuple[int, int, int], bool]:
        """Return the largest excess in each data set, (N,); in the data its part, number and score, and its sign."""
        scores, shift = self.standardized
        largest = np.full(scores.shape[1], -np.inf)
        place, is_positive = (0, 0, 0), False
        for part, (rows, sums) in enumerate(family.sums(scores)):
            excess = self._excess(rows, sums)
            if (own := excess[:, :2]).max() > largest[:2].max():
                number, score = map(int, np.unravel_index(own.argmax(), own.shape))
                place, is_positive = (part, number, score), shift[score] + sums[number, score] / rows[number] > 0
            largest = np.maximum(largest, excess.max(axis=0))
        return largest.reshape(-1, 2).max(axis=1), place, bool(is_positive)

    def _excess(self, rows: Values, sums: Values) -> Values:
        """Return how far regions differ from others beyond what their size explains, (m, 2 N), or -inf."""
        n, shift = len(self.scores), self.standardized[1]
        least = _least(n)
        found = np.full(sums.shape, -np.inf)
        enough = (rows >= least) & (n - rows >= least)
        count, sums = rows[enough, None], sums[enough]
        sizes = np.abs(sums)
        usual = np.sqrt(2 * np.log(np.e * n / np.minimum(count, n - count)))
        is_worse = sizes * (1 / count - 1 / (n - count)) >= np.copysign(2, -sums) * shift
        found[enough] = np.where(is_worse, sizes / np.sqrt(count * (1 - count / n)) - usual, -np.inf)
        return found

    def worst(self, families: Sequence[Family]) -> WorstPlace:
        """Return the region with the largest excess; that of each family is relative to its median over data sets."""
        found = [self.largest(family) for family in families]
        pairs = zip(families, found, strict=True)
        relative = [values - np.median(values) - each.handicap for each, (values, *_) in pairs]
        first = int(np.argmax([values[0] for values in relative]))
        largest = np.max(relative, axis=0)
        _, (part, number, score), is_positive = found[first]
        p_value = float(p_values_of(largest[:1], largest)[0])
        place = families[first].place(part, number, self.standardized[0][:, score])
        return WorstPlace(place, score, is_positive, p_value)


def worst_region(
    rows: Predictions, simulation: NullSimulator, names: Sequence[str], confidence: float
) -> WorstPlace | None:
    """Return the region that differs most from the other, independent rows; None if none does significantly."""
    if not is_searchable(rows):
        return None
    by_key = np.argsort(row_keys(rows, simulation.run.seed), kind="stable")  # Whatever the order of the rows
    searched = np.sort(by_key[:MOST_ROWS])
    data_sets = [rows.take(searched), *islice(simulation.take(searched), MOST_REPLICATES)]
    if not rejects(1 / len(data_sets), confidence):
        return None
    search = Search(np.stack([row_scores(each) for each in data_sets], axis=1))
    found = search.worst(_families(rows, names, searched, np.sort(by_key[:CENTERS])))
    return found if rejects(found.p_value, confidence) else None


def is_searchable(rows: Predictions) -> bool:
    """Return whether there are inputs, several rows, one target per row, and a distribution or quantiles of each."""
    predictive = rows.predictive
    if rows.x is None or rows.y is None or predictive is None or rows.repeated or len(rows) < 4 * FEWEST_ROWS:
        return False
    stated = predictive.interval_levels is None and predictive.shape_is_known
    return stated and predictive.targets == 1


def _families(rows: Predictions, names: Sequence[str], searched: Indices, centers: Indices) -> list[Family]:
    """Return the regions of inputs, or those of an embedding, round some of its rows and in directions."""
    if rows.has_embedding or rows.width > MOST_COLUMNS:
        found: list[Family] = [Balls(rows, searched, np.searchsorted(searched, centers))]
        return [*found, Directions(rows, names, searched)] if rows.has_embedding else found
    x = load(rows.lazy_inputs()).astype(np.float64)
    runs = tuple((each,) for each in _bins(rows, x, names, BINS))
    found = [Boxes(runs, searched, one_sided=True), Boxes(runs, searched, handicap=PLAINER)]
    if rows.width > 1:
        bins = CORNER_BINS if rows.width <= FEW_COLUMNS else COARSE_BINS
        corners = (tuple(_bins(rows, x, names, bins)),)
        found += [Boxes(corners, searched, one_sided=True, handicap=PLAINER), Directions(rows, names, searched)]
    return found


def _bins(rows: Predictions, x: Values, names: Sequence[str], bins: int) -> Iterator[Partition]:
    """Yield the quantile bins of each column of numbers, and the categories of each column of text."""
    for each in rows.categories:
        label = x[:, each.places].argmax(axis=1)
        yield Partition.make(label, [(Condition(each.column, EQUAL, value),) for value in each.values], each.column)
    of_text = {place for each in rows.categories for place in range(rows.width)[each.places]}
    for place, (name, values) in enumerate(zip(names, x.T, strict=True)):
        if place not in of_text:
            yield Partition.quantiles(name, values, np.zeros(len(values), dtype=np.bool_), bins)


def rectangle(x: Values, y: Values, inside: Mask) -> tuple[Ends, Ends] | None:
    """Return the limits of the rows inside a region along x and y, (n,) each; None if other rows are there, too."""
    ends = _ends(x, inside), _ends(y, inside)
    within = [(low <= values) & (values < high) for values, (low, high) in zip((x, y), ends, strict=True)]
    return ends if np.array_equal(within[0] & within[1], inside) else None


def _ends(values: Values, inside: Mask) -> Ends:
    """Return the limits of the values of some rows; infinite where no other row is beyond them."""
    low, high = values[inside].min(), values[inside].max()
    below, above = values[values < low], values[values > high]
    first = np.nextafter(float(shortest_number(below.max(), low)), np.inf) if len(below) else -np.inf
    return float(first), np.nextafter(float(shortest_number(high, above.min())), np.inf) if len(above) else np.inf


SIDES = "above", "below"  # Where targets are


def describe_region(region: WorstRegion, n: int) -> str:
    """Return the sentence about the worst region of n rows."""
    is_below = region.level is None and region.direction != "predictions-too-low"
    other_below = region.level is None and (region.other_value or 0.0) < 0
    inside = _with_limits(region.value, region.low, region.high, -1 if is_below else 1)
    other = _with_limits(region.other_value, region.other_low, region.other_high, -1 if other_below else 1)
    if not inside:
        what = region.direction.replace("-", " ")
    elif region.level is not None:
        what = f"{inside} times as wide would be right"
    else:
        what = f"targets are {inside} predicted standard deviations {SIDES[is_below]} the predictions"
        other = f"{other} {SIDES[other_below]}" if other else ""
    elsewhere = f", elsewhere {other}" if inside and other else ""
    return f"{region.where} ({region.rows:,} of {n:,} rows): {what}{elsewhere}; {p_text(region.p_value)}"


def _with_limits(value: float | None, low: float | None, high: float | None, sign: int) -> str:
    """Return a number with its interval; an empty string if it has none, or is outside."""
    if value is None or low is high is None:
        return ""
    limits = sorted((sign * (-np.inf if low is None else low), sign * (np.inf if high is None else high)))
    if not limits[0] <= sign * value <= limits[1]:
        return ""
    return f"{sign * value:.2f} ({limits[0]:.2f} to {limits[1]:.2f})".replace("inf", "∞")
