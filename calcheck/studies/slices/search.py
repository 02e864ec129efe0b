"""The search for the regions where a model deviates most: scans of regions, and trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calcheck.conclusion import unjudged_conclusion
from calcheck.core import __version__
from calcheck.core.filter_conditions import Condition
from calcheck.core.text import p_text
from calcheck.dependence.clusters import noticed_effect
from calcheck.errors import DataError, Message, OptionError, named_some
from calcheck.evaluation import data_warnings, with_intervals
from calcheck.execution.run import RandomStream, Run, run_settings
from calcheck.inference.null_distribution import NullSimulator
from calcheck.inference.p_values_and_verdicts import without_verdict
from calcheck.io.file_source import FileSource
from calcheck.metrics.base import Metric, inapplicable_reason
from calcheck.options import TOLERANCE
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.regions import partition
from calcheck.regions import scan as region_scan
from calcheck.regions.maps import region_map
from calcheck.regions.partition import EMBEDDING, EmbeddingClusters, cluster_embedding
from calcheck.regions.trees import Node, Trees
from calcheck.reports import Conclusion, Curve, Report, Result, Skipped, cannot_reject, rejects, results_by_group
from calcheck.reports.conclusion import Direction, Effect
from calcheck.statistics.zscores import columns_of_targets
from calcheck.studies.slices.groups import concluded, fault_effects, group_metrics
from calcheck.studies.slices.options import SearchOptions
from calcheck.typing import AnyArray, Indices, Values


class TreeSearch:
    """A tree of some rows.

    The nodes of the tree of the data are compared with those of the trees of all replicates, grown in the same way: the
    p-value of a node is the share of data sets of which any node has as large an excess, for either score; that of a
    split, the share of which any split has as large a gain. Splits are kept that are significant or above such splits,
    or above a significant node that is below none: a fault that is the same in all rows needs no split.
    """

    def __init__(self, searched: SearchedRows, depth: int) -> None:
        self.searched, self.depth = searched, depth  # Maximum number of splits above a leaf
        squares, count = np.zeros((len(searched.rows), 2)), 0
        for scores in searched.scores("variances: replicates"):
            squares += scores**2
            count += 1
        self.trees = Trees(searched.partitions, squares / count, depth, searched.min_rows)
        self.grown: list[Node] = []  # The nodes of the data
        largest: list[tuple[float, float]] = []
        for scores in searched.scores("trees: replicates"):
            nodes = self.trees.grow(scores)
            self.grown = self.grown or nodes
            largest.append((float(self.trees.excess(nodes).max()), float(self.trees.gains(nodes).max())))
        self.largest = np.array(largest)  # (1 + R, 2), excess of a node and gain of a split, by data set

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes of the pruned tree, depth first."""
        grown = self.grown
        split, children = self._kept(grown), dict[int | None, list[int]]()
        for place, node in enumerate(grown):
            children.setdefault(node.parent, []).append(place)
        order, waiting = list[int](), [0]
        while waiting:
            order.append(waiting.pop())
            if order[-1] in split:
                waiting += reversed(children.get(order[-1], []))
        number = {each: place for place, each in enumerate(order)}
        return [
            grown[each]._replace(parent=None if (parent := grown[each].parent) is None else number[parent])
            for each in order
        ]

    def _p_values(self, nodes: Sequence[Node]) -> Values:
        """Return the p-values of nodes, (m,)."""
        return region_scan.p_values_of(self.trees.excess(nodes).max(axis=1), self.largest[:, 0])

    def _kept(self, nodes: Sequence[Node]) -> set[int]:
        """Return the nodes whose split is kept."""
        confidence = self.searched.run.confidence
        significant = [rejects(float(p), confidence) for p in self._p_values(nodes)]
        splits = region_scan.p_values_of(self.trees.gains(nodes), self.largest[:, 1])
        kept: set[int] = set()
        for number in range(len(nodes)):
            above = _ancestors(nodes, number)
            if rejects(float(splits[number]), confidence):
                kept |= {number, *above}
            if significant[number] and not any(significant[each] for each in above):
                kept |= set(above)
        return kept

    @cached_property
    def regions(self) -> list[FoundRegion]:
        """The leaves of the pruned tree."""
        masks, parents = self.trees.masks(self.nodes), {each.parent for each in self.nodes}
        found = []
        for number, node in enumerate(self.nodes):
            if number not in parents:
                score = int(np.argmax(np.abs(node.deviations)))
                conditions = self.trees.conditions(self.nodes, number)
                p_value = float(self._p_values([node])[0])
                rows = np.flatnonzero(masks[number])
                found.append(FoundRegion(conditions, rows, score, node.deviations[score], p_value))
        return found

    @property
    def p_value(self) -> float:
        """The p-value of the tree: that of the node that deviates most."""
        return float(self._p_values(self.grown).min())

    def report(self) -> Report:
        """Return the report, with metrics that describe the leaves."""
        results = [result for leaf in self.regions for result in self.searched.results(leaf)]
        settings = {"depth": self.depth, "p_value": self.p_value, "tree": self._described(results)}
        return self.searched.report(settings, results, self._conclude(results))

    def _described(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Return the nodes for the report, depth first; only leaves have a group and a verdict."""
        p_values, verdicts = self._p_values(self.nodes), dict[str, str]()
        for label, by_metric in results_by_group(results).items():
            judged = any(each.verdict != "none" for each in by_metric.values())
            verdicts[label] = partition.describe_faults(by_metric) or ("no fault found" if judged else "not judged")
        parents, leaves = {each.parent for each in self.nodes}, iter(self.regions)
        groups = [None if number in parents else next(leaves).slice["group"] for number in range(len(self.nodes))]
        return [
            {
                "parent": node.parent,
                "rule": "all rows"
                if (condition := self.trees.condition(node)) is None
                else partition.words_of(condition),
                "rows": node.rows,
                "deviations": dict(zip(region_scan.SCORES, node.deviations, strict=True)),
                "p_value": float(p_value),
                "group": group,
                "verdict": verdicts.get(str(group)),
            }
            for node, p_value, group in zip(self.nodes, p_values, groups, strict=True)
        ]

    def _conclude(self, results: Sequence[Result]) -> Conclusion:
        """Return what is wrong in which leaves."""
        count = f"{len(self.largest) - 1:,} trees of a perfect model"
        if rejects(self.p_value, self.searched.run.confidence):
            return concluded(with_p_values(self.searched.faults(results), results, count))
        p = p_text(self.p_value)
        text = f"no node of a tree differs from a perfect model by more than chance: {p} over {count}"
        return Conclusion(answer="yes", effects=(Effect(topic="where", within=True, text=text),))


def _ancestors(nodes: Sequence[Node], number: int) -> list[int]:
    """Return the numbers of the nodes above a node."""
    parent = nodes[number].parent
    return [] if parent is None else [parent, *_ancestors(nodes, parent)]


BY_GROUPS = ", with groups (--by)"  # Options of dependent rows need them
SHARE = 0.1  # Share of the rows of the region for which the size of faults that would be found is stated
NEARLY_ALWAYS = 1.6448536269514722  # Normal quantile at 95 %


def search_regions(
    source: Source,
    *,
    options: SearchOptions | None = None,
    metrics: Sequence[Metric[Any]] | None = None,
    run: Run | None = None,
    sink: RegionSink | None = None,
    tolerance: float = TOLERANCE,
) -> Report:
    """Return the regions of the inputs where a model deviates most from a perfect one.

    Regions are runs of quantile bins of one column, rectangles of two columns, and categories; they depend on inputs
    only. The scores of the rows are functions of the PIT (:mod:`calcheck.regions.scan`). The sum of a score over a
    region, in units of its standard deviation and less a penalty for small regions, is compared with the maximum over
    all regions and both scores for each replicate, which controls the probability of any false region exactly. Further
    regions are significant too, and so are their rows outside of those before, which alone are reported.
    """
    if run is not None and run.dependence.is_stated:
        msg = "regions are searched among independent rows only: with --cluster, --time or --block, name groups (--by)"
        raise OptionError(msg)
    options = options or SearchOptions()
    metrics = group_metrics() if metrics is None else metrics
    searched = SearchedRows(source, options, run or Run(), metrics, tolerance)
    study = TreeSearch(searched, options.depth) if options.depth else RegionSearch(searched)
    report = study.report()
    if sink is not None:
        sink(searched.rows, searched.row_columns([each.rows for each in study.regions]))
    return report


class RegionSearch:
    """A scan of the regions of some rows."""

    def __init__(self, searched: SearchedRows) -> None:
        self.searched, self.run = searched, searched.run
        self.scan = region_scan.Scan(searched.partitions, searched.min_rows)
        self.deviations = self.scan.deviations(searched.scores("regions: replicates"))
        if not self.deviations.regions:
            least, rows = searched.min_rows, len(searched.rows)
            raise DataError(f"no region has {least} rows: there are {rows}, pass a smaller --min-rows")
        self.first = self.deviations.most_deviating()
        self.regions = self._search()

    def _search(self) -> list[FoundRegion]:
        """Return the region that deviates most, and the next ones, without the rows of those before."""
        scan, level, region = self.scan, 1 - self.run.confidence, self.first
        found, before, new = list[FoundRegion](), list[list[region_scan.Side]](), np.ones(len(self.searched.rows), bool)
        while not found or region.p_value <= level:
            searched, score, deviation, p_value = np.flatnonzero(new), region.score, region.deviation, region.p_value
            sides = scan.sides(region, self.deviations.scores[searched, score], searched)
            conditions, inside = region_scan.outside_of(before, *scan.intersect(sides))
            if found:
                deviation, own = self.deviations.judge(inside, score)
                p_value = max(own, p_value)
            if not found or p_value <= level:
                found.append(FoundRegion(conditions, np.flatnonzero(inside), score, deviation, p_value))
                before.append(sides)
            new &= ~(inside | scan.mask(region))
            if region.p_value > level or not new.any() or len(found) == self.searched.options.most:
                break
            region = self.deviations.most_deviating(new, level)
        return found

    def report(self) -> Report:
        """Return the report, with metrics that describe the regions."""
        first = self.regions[0]
        results = [result for region in self.regions for result in self.searched.results(region)]
        if results and self.run.curves:
            results[0] = replace(results[0], curves=self._map(self.first))
        settings = {"regions": self.deviations.regions, "p_value": first.p_value, "detectable": self._detectable()}
        settings |= {"elsewhere": self._elsewhere(first)} if rejects(first.p_value, self.run.confidence) else {}
        return self.searched.report(settings, results, self._conclude(first, results))

    def _elsewhere(self, first: FoundRegion) -> dict[str, Any] | None:
        """Return the number of rows that are in no region, with their metrics; None for too few."""
        inside = np.concatenate([region.rows for region in self.regions])
        rows = np.setdiff1d(np.arange(len(self.searched.rows)), inside)
        if len(rows) < FEWEST_ROWS:
            return None
        results = self.searched.results(FoundRegion((), rows, first.score, 0.0, 1.0))
        return {"rows": len(rows)} | {each.metric: [each.value, each.low, each.high] for each in results}

    def _map(self, region: region_scan.Region) -> tuple[Curve, ...]:
        """Return the map of the columns of a region, and its outline."""
        known = {partition.name_of(self.searched.source, name): name for name in self.searched.columns}
        names = [self.scan.columns[place].column for place in (region.first, region.second)]
        if not all(name in known for name in names):  # A single column
            return ()
        return region_map(
            self.deviations,
            region,
            [partition.values_of(self.searched.source, known[name]) for name in names],
            self.regions[0].conditions,
        )

    def _detectable(self) -> dict[str, float | int | None]:
        """Return by which factors too small deviations of 10 % of the rows are found in 50 % and in 95 % of files."""
        rows = max(self.searched.min_rows, round(SHARE * len(self.searched.rows)))
        limit = float(np.quantile(self.deviations.largest[1:], self.run.confidence)) - float(
            self.scan.excess(0.0, rows)
        )
        scores = ((limit + further) / math.sqrt(rows) for further in (0.0, NEARLY_ALWAYS))
        half, nearly = (region_scan.factor_of_dispersion(score) for score in scores)
        return {"rows": rows, "half": half, "nearly_always": nearly}

    def _conclude(self, first: FoundRegion, results: Sequence[Result]) -> Conclusion:
        """Return what is wrong where, or what was searched and would have been found."""
        count = f"{self.deviations.regions:,} regions"
        if rejects(first.p_value, self.run.confidence):
            return concluded(with_p_values(self.searched.faults(results), results, count))
        label = first.slice["group"]
        text = f"no region differs from a perfect model by more than chance: {label} deviates most of {count}, "
        effects = [Effect(topic="where", within=True, text=f"{text}{p_text(first.p_value)}")]
        rows, half, nearly = self._detectable().values()
        if half is not None:
            sizes = f"uncertainties {half:.3g} times too small in {rows:,} rows would be found in half of all files"
            sizes += f", {nearly:.3g} times in 95 %" if nearly is not None else ""
            effects.append(Effect(topic="where", text=sizes))
        return Conclusion(answer="yes", effects=tuple(effects))


RegionSink = Callable[[Predictions, dict[str, Indices]], None]


def with_p_values(effects: Sequence[Effect], results: Sequence[Result], count: str) -> tuple[Effect, ...]:
    """Return effects with the p-values of their regions; ``count`` says over what."""
    p_values: dict[str, float] = {}  # Of the first failure of each region
    for result in results:
        if result.verdict == "fail" and result.p_value_adjusted is not None:
            p_values.setdefault(str(result.slice["group"]), result.p_value_adjusted)
    return tuple(
        replace(effect, text=f"{effect.text}; {p_text(p_value)} over {count}")
        for effect, p_value in zip(effects, p_values.values(), strict=True)
    )


FEWEST_ROWS, FEWEST_SHARE = 50, 0.02  # Minimum number and share of the rows of a region
FEWEST_LEAF_ROWS = 100  # Minimum number of rows of a leaf
MOST_COLUMNS = 40


class FoundRegion(NamedTuple):
    """A region that a search found."""

    conditions: tuple[Condition, ...]  # Conditions of its rows; none for all rows
    rows: Indices  # (m,)
    score: int  # The score that deviates most
    deviation: float  # How far it deviates, with its sign
    p_value: float  # Probability that a perfect model deviates as much anywhere

    @property
    def slice(self) -> dict[str, Any]:
        """What the report states about the rows of the region."""
        return {
            "group": partition.label_of(self.conditions) or "all rows",
            "filter": partition.filter_options(self.conditions),
            "rows": len(self.rows),
            "score": region_scan.SCORES[self.score],
        }

    @property
    def direction(self) -> Direction:
        """How the model is wrong in the region, if it is."""
        return region_scan.DIRECTIONS[self.score][int(self.deviation > 0)]


class SearchedRows:
    """Rows in whose columns regions are searched."""

    def __init__(
        self, source: Source, options: SearchOptions, run: Run, metrics: Sequence[Metric[Any]], tolerance: float
    ) -> None:
        self.source, self.options, self.run, self.tolerance = source, options, run, tolerance
        self.rows = source.predictions()
        predictive = self.rows.distributions()
        by_intervals = predictive.interval_levels is not None
        if by_intervals or not predictive.shape_is_known:
            remedy = "compare groups with --by" if by_intervals else "state it with --error-dist"
            msg = f"a search needs the whole distribution of each row, which the file does not state: {remedy}"
            raise DataError(msg)
        if predictive.targets > 1 or self.rows.repeated:
            raise DataError("a search needs one target per row: pass --only TARGET for one of several")
        self.simulation = NullSimulator(self.rows, run)
        if cannot_reject(len(self.simulation), "greater", run.confidence):
            msg = f"{len(self.simulation)} replicates cannot show a fault at a confidence of {run.confidence:g}"
            raise OptionError(f"{msg}: pass a larger --replicates")
        reasons = [(each, inapplicable_reason(type(each), self.rows) or self._unknown(each)) for each in metrics]
        self.metrics = [each.with_defaults(self.rows) for each, reason in reasons if not reason]
        self.skipped = tuple(
            Skipped(metric=each.info.name, code="inapplicable", reason=reason) for each, reason in reasons if reason
        )
        self.noticed = noticed_effect(self.rows)  # By what rows seem to depend on each other
        dependent = () if self.noticed is None else (self.noticed.warning("The search for regions"),)
        self.warnings = (*data_warnings(source, self.rows.predictive), *dependent, *self._left_out())

    @cached_property
    def _free_columns(self) -> dict[str, AnyArray]:
        """The columns that are searched if none are named, and those that seem computed from targets."""
        stated = isinstance(self.source, FileSource) and self.source.options.inputs
        if self.options.columns is not None or stated:
            return {}
        known = self.source.feature_columns() if isinstance(self.source, FileSource) else self.rows.columns
        return {name: np.asarray(self.rows.columns[name]) for name in known if name in self.rows.columns}

    @cached_property
    def _of_targets(self) -> list[str]:
        """The names of the columns that seem computed from targets, which are searched only if they are named."""
        return columns_of_targets(self._free_columns, self.rows)

    def _left_out(self) -> list[Message]:
        """Return the warning about columns that are not searched; none if all are."""
        if not self._of_targets:
            return []
        found = f"not searched, as they seem computed from targets: {named_some(self._of_targets)}"
        return [Message("computed-from-targets", f"{found} (--columns names those to search)")]

    def _unknown(self, metric: Metric[Any]) -> str:
        """Return why a metric of the rows is unknown: few quantiles do not state it; empty if it is known."""
        if self.rows.distributions().quantile_levels is None:
            return ""
        try:
            metric.with_defaults(self.rows).evaluate(None, InMemory(self.rows), self.run.quiet())
        except DataError as error:
            return str(error)
        return ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are searched."""
        named = self.options.columns
        if named is not None:
            named = tuple(name for name in named if name != EMBEDDING)
        elif isinstance(self.source, FileSource) and self.source.options.inputs:
            named = self.source.roles.x
        else:
            known = [name for name in self._free_columns if name not in self._of_targets]
            named = tuple(dict.fromkeys([*known, *partition.predicted_columns(self.rows.distributions())]))
        if not named and self.clusters is None:
            raise DataError("there are no columns to search: add columns of inputs to the file")
        if len(named) > MOST_COLUMNS:
            msg = f"there are {len(named)} columns, at most {MOST_COLUMNS} can be searched: name some with --columns"
            raise DataError(msg)
        return named

    @property
    def min_rows(self) -> int:
        """Minimum number of rows of a region, or of a leaf of a tree."""
        if self.options.min_rows is not None:
            return self.options.min_rows
        return max(FEWEST_LEAF_ROWS if self.options.depth else FEWEST_ROWS, math.ceil(FEWEST_SHARE * len(self.rows)))

    @cached_property
    def clusters(self) -> EmbeddingClusters | None:
        """The clusters of the embedding; None if there is no embedding, or if they are not searched."""
        known = self.rows.x is not None and self.rows.has_embedding
        if not known and self.options.columns is not None and EMBEDDING in self.options.columns:
            raise DataError("there is no embedding, in whose clusters regions are searched. Pass --embedding")
        if not known or not self.options.reads_embedding:
            return None
        rng = self.run.rng(RandomStream.KMEANS)
        return cluster_embedding(self.rows.lazy_inputs(), self.options.embedding_clusters, rng)

    @cached_property
    def partitions(self) -> tuple[partition.Partition, ...]:
        """The bins of the columns that have several, or of one column."""
        found = partition.search_columns(self.source, self.columns, self.options.bins, self.min_rows)
        found += [] if self.clusters is None else [self.clusters.partition]
        return tuple(each for each in found if len(each.bins) > 1) or tuple(found[:1])

    def scores(self, stage: str) -> Iterator[Values]:
        """Yield the scores of the rows, (n, 2): of the data, then of each replicate."""
        yield region_scan.row_scores(self.rows)
        yield from map(region_scan.row_scores, self.run.track(stage, self.simulation, len(self.simulation)))

    def report(self, further: dict[str, Any], results: Sequence[Result], conclusion: Conclusion) -> Report:
        """Return the report of a search, with further settings."""
        settings = {
            **({} if self.noticed is None else self.noticed.settings),
            **run_settings(self.run),
            "columns": [*self.columns, *([] if self.clusters is None else [EMBEDDING])],
            **({} if self.clusters is None else {"embedding_clusters": self.clusters.details(self.rows)}),
            "bins": self.options.bins,
            "min_rows": self.min_rows,
            "tolerance": self.tolerance,
            **further,
        }
        return Report(
            calcheck=__version__,
            input=self.source.input_info(),
            settings=settings,
            results=tuple(results),
            skipped=self.skipped,
            conclusion=unjudged_conclusion(settings, BY_GROUPS) or conclusion,
        )

    def faults(self, results: Sequence[Result]) -> tuple[Effect, ...]:
        """Return what is wrong in the regions that fail."""
        return fault_effects(results, self.tolerance, searched=True)

    def row_columns(self, regions: Sequence[Indices]) -> dict[str, Indices]:
        """Return the number of the region of each row, or 0, and of its cluster of the embedding, (n,) each."""
        numbers = np.zeros(len(self.rows), dtype=np.intp)
        for number, rows in enumerate(regions, 1):
            numbers[rows] = number
        return {"region": numbers, **({} if self.clusters is None else {"cluster": self.clusters.partition.label + 1})}

    def results(self, region: FoundRegion) -> Iterator[Result]:
        """Yield the metrics of a region; those of its fault have the p-value and the verdict."""
        inside, fails = InMemory(self.rows.take(region.rows)), rejects(region.p_value, self.run.confidence)
        for computed, inferred in with_intervals(self.metrics, inside, self.run):
            metric = computed.metric
            inference = replace(inferred, verdict="none", warnings=(*self.warnings, *inferred.warnings))
            if region.direction in (metric.info.above, metric.info.below):
                inference = replace(
                    inference,
                    p_value_adjusted=region.p_value,
                    verdict="fail" if fails else "pass",
                    direction=region.direction if fails else None,
                )
            if self.noticed is not None and inference.verdict != "none":
                inference = replace(without_verdict(inference, self.noticed.reason), direction=None)
            yield metric.result(computed.value, region.slice, inference)
