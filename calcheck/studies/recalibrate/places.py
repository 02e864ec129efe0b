"""Where predictions are wrong before and after a correction: regions, groups and new inputs, with their factors."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from calcheck.errors import DataError, OptionError
from calcheck.evaluation import Answer, with_intervals
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.metrics.base import inapplicable_reason
from calcheck.new_inputs.transfer import Transferred, transfer
from calcheck.options import TOLERANCE
from calcheck.predictions import InMemory, Predictions, Source, row_keys
from calcheck.recalibration.cross_validation import WEIGHTS
from calcheck.recalibration.features import Feature, column_values
from calcheck.regions.partition import COMPUTED, filter_options, label_of, search_columns
from calcheck.regions.scan import DIRECTIONS, Scan, row_scores, scores_of
from calcheck.reports import Inference, Result, rejects
from calcheck.statistics.groups import effective_count
from calcheck.typing import Indices, Mask, Values

MOST_ROWS = 10_000  # Rows that are searched; of more, a sample
REPLICATES = 199
CLEAR = 0.01  # Maximum p-value of a wrong region
FEWEST_ROWS, FEWEST_SHARE = 50, 0.02  # Minimum number and share of the rows of a region
BINS = 10
FEWEST, MOST = 30, 8  # Minimum number of rows of a group, and maximum number of groups of a column
FACTOR = "width-factor"
BIAS = "standardized-bias"
REST = "elsewhere"
NEW = "new inputs"


class Place(NamedTuple):
    """Some of the rows."""

    label: str  # In words
    filter: str  # As options that select them; empty if none do
    inside: Mask  # (n,)


class WrongPlace(NamedTuple):
    """A region where predictions differ from those of a perfect model."""

    place: Place
    direction: str
    p_value: float

    @property
    def rows(self) -> int:
        """Number of its rows."""
        return int(self.place.inside.sum())


@dataclass(frozen=True, eq=False)
class Places:
    """The search for regions in columns of the rows of a source, with different predictions."""

    source: Source  # The rows before the correction
    columns: tuple[str, ...]  # Columns that are searched
    run: Run

    @cached_property
    def rows(self) -> Predictions:
        """The rows before the correction."""
        return self.source.predictions()

    @cached_property
    def searched(self) -> Indices:
        """The rows that are searched, in an order that does not depend on that of the file."""
        return np.argsort(row_keys(self.rows, self.run.seed), kind="stable")[:MOST_ROWS]

    @cached_property
    def scan(self) -> Scan:
        """The regions of all rows, in columns of the rows before the correction."""
        least = max(FEWEST_ROWS, math.ceil(FEWEST_SHARE * len(self.searched)))
        found = search_columns(self.source, self.columns, BINS, least)
        return Scan(tuple(each for each in found if len(each.bins) > 1), least)

    def are_searchable(self, rows: Predictions) -> bool:
        """Return whether regions can be searched: rows are independent, many, and have whole distributions."""
        predictive, n = rows.distributions(), len(rows)
        stated = predictive.interval_levels is None and predictive.shape_is_known and rows.observation is None
        enough = n >= 2 * FEWEST_ROWS and not self.run.dependence.is_stated
        return bool(stated and enough and predictive.targets == 1 and self.columns and self.scan.partitions)

    @cached_property
    def _uniform(self) -> list[Values]:
        """The scores of right continuous predictions, (n, 2) each, the same for all of them."""
        rng = self.run.rng(RandomStream.RANDOMIZATION)
        levels = (rng.random(len(self.searched)) for _ in range(REPLICATES))
        return [scores_of(each, each) for each in levels]

    def _scores(self, rows: Predictions) -> Iterator[Values]:
        """Yield the scores of rows, and those of replicates of a right model, (n, 2) each."""
        yield row_scores(rows)
        predictive = rows.distributions()
        if predictive.n_draws is None and predictive.quantile_levels is None and not predictive.is_discrete:
            yield from self._uniform
        else:
            yield from map(row_scores, islice(NullSimulator(rows, self.run), REPLICATES))

    def wrong(self, rows: Predictions) -> WrongPlace | None:
        """Return the region where the rows, with other predictions, differ most, if its p-value is small."""
        partitions = tuple(replace(each, label=each.label[self.searched]) for each in self.scan.partitions)
        scan = replace(self.scan, partitions=partitions)
        with np.errstate(all="ignore"):
            deviations = scan.deviations(self._scores(rows.take(self.searched)))
        if not deviations.regions:
            return None
        first = deviations.most_deviating()
        if not rejects(first.p_value, 1 - CLEAR):
            return None
        least = math.ceil(self.scan.min_rows * len(self.searched) / len(rows))
        conditions, inside = self.scan.place(first, deviations.scores[:, first.score], self.searched, least)
        place = Place(label_of(conditions) or "all rows", filter_options(conditions), inside)
        return WrongPlace(place, DIRECTIONS[first.score][int(first.deviation > 0)], first.p_value)

    def at_step(self, found: WrongPlace | None, feature: Feature | None) -> WrongPlace | None:
        """Return a region up to a limit of one column, with the limit of the correction if that has one there."""
        split = None if found is None else re.fullmatch(r"(.+?)(<=|>)[^<>]+", found.place.label)
        if found is None or split is None or feature is None or feature.kind != "step":
            return found
        column, operator = split.groups()
        if feature.is_time or feature.column != column.removeprefix(f"{COMPUTED} "):
            return found
        above = column_values(self.rows, feature.column, "step") > feature.knots[0]
        label = feature.name.replace(f"{feature.column}>", f"{column}{operator}", 1)
        chosen = f"--filter {shlex.quote(label)}" if found.place.filter else ""
        return found._replace(place=Place(label, chosen, above if operator == ">" else ~above))

    def groups(self, *found: WrongPlace | None) -> list[Place]:
        """Return the regions that were found, the other rows, and the groups of each column of texts."""
        regions = [each.place for each in found if each is not None and not each.place.inside.all()]
        places = {each.label: each for each in regions}
        if regions:
            places[REST] = Place(REST, "", ~np.logical_or.reduce([each.inside for each in regions]))
        for partition in self.scan.partitions:
            for place in () if partition.ordered else np.argsort(-partition.counts, kind="stable")[:MOST]:
                bin_ = partition.bins[place]
                own = Place(label_of(bin_), filter_options(bin_), partition.label == place)
                places.setdefault(own.label, own)
        return [each for each in places.values() if each.inside.sum() >= FEWEST]

    def results(self, rows: Predictions, places: list[Place], subset: dict[str, Any]) -> Iterator[Result]:
        """Yield by how much wider intervals would have to be, and the mean error, at places, with intervals."""
        for place in places:
            own = InMemory(rows.take(np.flatnonzero(place.inside)).observed())
            metrics = [METRICS[name]() for name in (FACTOR, BIAS)]
            metrics = [
                each.with_defaults(own.rows) for each in metrics if not inapplicable_reason(type(each), own.rows)
            ]
            where = {**subset, "group": place.label, "filter": place.filter, "n": int(place.inside.sum())}
            for each, inference in with_intervals(metrics, own, self.run):
                yield each.metric.result(each.value, where, replace(inference, verdict="none"))


def weighted_rows(rows: Predictions, new: Predictions, run: Run) -> tuple[Predictions, float]:
    """Return rows with a column of weights as among the new ones, and how many of them count."""
    found = _transferred(rows, new, run)
    on = found.conclusion
    if on.effects[0].value is None or on.effective_rows is None:
        raise DataError(f"no correction is fitted for new inputs (--on): {on.effects[0].text}")
    weights = found.weights()
    return replace(rows, columns={**rows.columns, WEIGHTS: weights}), effective_count(weights)


def _transferred(rows: Predictions, new: Predictions, run: Run) -> Transferred:
    if rows.x is None:
        raise OptionError("--on compares inputs: also pass --inputs or --embedding, with the columns of both files")
    return transfer(rows, new, run=run, tolerance=TOLERANCE, level=Answer().level_of(rows))


def foretold_results(stages: Mapping[str, Predictions], new: Predictions, run: Run) -> Iterator[Result]:
    """Yield by how much intervals and means are off at new inputs, by stages of rows."""
    for stage, rows in stages.items():
        for effect in _transferred(rows, new, run).conclusion.effects[:2]:
            metric = METRICS[FACTOR if effect.topic == "size" else BIAS]()
            inference = Inference(
                low=effect.low,
                high=effect.high,
                interval="order-statistics" if effect.topic == "size" else "t",
                p_value_adjusted=effect.p,
            )
            yield metric.result(effect.value, {"rows": NEW, "stage": stage}, inference)
