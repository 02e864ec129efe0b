"""Rows that are searched for regions, their null distribution, and what a found region shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calcheck.dependence.notice import DesignEffect, noticed_effect
from calcheck.errors import DataError, Message, OptionError
from calcheck.evaluation import data_warnings, fitted_metric, run_settings
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.null_distribution import NullSimulator, without_verdict
from calcheck.inference.p_values import cannot_reject, rejects
from calcheck.inference.results import IntervalInference
from calcheck.inference.verdicts import Basis, infer
from calcheck.io.source import FileSource
from calcheck.metrics.base import Metric, inapplicable_reason
from calcheck.options import option
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.regions.binning import PREDICTED, Binning, label_of, search_columns
from calcheck.regions.clusters import EMBEDDING, EmbeddingClusters, cluster_embedding
from calcheck.regions.scan import SCORES, row_scores
from calcheck.regions.sentences import describe_faults, filter_options, sentence
from calcheck.report import Conclusion, Finding, Result, Skipped
from calcheck.statistics.scores import describe_impossible
from calcheck.typing import Indices, Values

if TYPE_CHECKING:
    from calcheck.core.conditions import Condition

RegionSink = Callable[[Predictions, dict[str, Indices]], None]


def conclude_groups(results: Sequence[Result], impossible: Mapping[str, int]) -> Conclusion | None:
    """Return what is wrong in which groups; None if no group is judged."""
    if all(result.verdict == "none" for result in results) and not impossible:
        return None
    others = [result for result in results if not result.is_impossible]
    findings = (*map(_impossible, impossible.items()), *fault_findings(others))
    if findings:
        return Conclusion(answer="no", findings=findings)
    text = "no group differs from a perfect model by more than chance"
    return Conclusion(answer="yes", findings=(Finding(topic="where", state="right", text=text),))


def _impossible(group: tuple[str, int]) -> Finding:
    label, count = group
    text = f"{label}: {describe_impossible(count)}"
    return Finding(topic="where", state="fault", fault="worse-than-promised", text=text)


def fault_findings(results: Sequence[Result]) -> tuple[Finding, ...]:
    """Return what is wrong in each group or region that fails."""
    groups = by_group(results).items()
    return tuple(_finding(label, by_metric) for label, by_metric in groups if describe_faults(by_metric))


def by_group(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    """Return results by group and metric."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        found.setdefault(str(result.slice["group"]), {})[result.metric] = result
    return found


def _finding(label: str, results: Mapping[str, Result]) -> Finding:
    first = next(each for each in results.values() if each.verdict == "fail")
    text = sentence(label, int(first.slice["rows"]), describe_faults(results))
    return Finding(topic="where", state="fault", fault=first.direction, text=text)


def with_p_values(findings: Sequence[Finding], results: Sequence[Result], count: str) -> tuple[Finding, ...]:
    """Return findings with the p-values of their regions; ``count`` says over what."""
    p_values = [each.p_value_adjusted for each in _first_failures(results)]
    return tuple(
        replace(finding, text=f"{finding.text}; p = {p_value:.2g} over {count}")
        for finding, p_value in zip(findings, p_values, strict=True)
    )


def _first_failures(results: Sequence[Result]) -> list[Result]:
    """Return the first failure of each region."""
    found: dict[str, Result] = {}
    for result in results:
        if result.verdict == "fail":
            found.setdefault(str(result.slice["group"]), result)
    return list(found.values())


FEWEST_ROWS, FEWEST_SHARE = 50, 0.02  # Minimum number and share of the rows of a region
FEWEST_LEAF_ROWS = 100  # Minimum number of rows of a leaf
MOST_COLUMNS, MOST_BINS, MOST_CLUSTERS, MOST_DEPTH = 40, 32, 50, 5
DIRECTIONS = {"dispersion": ("too-wide", "too-narrow"), "bias": ("predictions-too-high", "predictions-too-low")}
"""What a negative and a positive score mean."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search for regions."""

    columns: tuple[str, ...] | None = option(
        None,
        "Columns in which to search regions. Default: the inputs and all columns without a role, mean and std, the"
        " predicted ones, and embedding, its clusters. Columns that were computed from targets must be left out.",
        metavar="COLUMNS",
    )
    bins: int = option(10, "Number of quantile bins per column of numbers or dates.")
    embedding_clusters: int = option(
        10,
        "Number of clusters of an embedding, each of which is a category of the search; 0 for none. By default they"
        " have about as many rows as quantile bins.",
    )
    min_rows: int | None = option(
        None,
        "Minimum number of rows of a group that is judged, 30 by default; or of a region, 50 by default, or 2 % of the"
        " rows if that is more.",
        metavar="ROWS",
    )
    most: int = option(5, "Maximum number of regions to report.")
    depth: int | None = option(
        None,
        "Summarize the file by a tree of this depth, e.g. 3, instead of the regions that deviate most. Leaves have"
        " at least 100 rows, or 2 % of the rows if that is more (--min-rows).",
    )

    def __post_init__(self) -> None:
        limited = (("bins", 2, MOST_BINS), ("embedding_clusters", 0, MOST_CLUSTERS), ("most", 1, None))
        for name, least, most in (*limited, ("min_rows", 1, None), ("depth", 1, MOST_DEPTH)):
            value = getattr(self, name)
            if value is not None and (value < least or (most is not None and value > most)):
                limits = f"at least {least}" if most is None else f"between {least} and {most}"
                msg = f"--{name.replace('_', '-')} must be {limits}, got {value}"
                raise OptionError(msg)

    @property
    def reads_embedding(self) -> bool:
        """Whether clusters of an embedding are searched, if there is one."""
        return bool(self.embedding_clusters) and (self.columns is None or EMBEDDING in self.columns)


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
            "group": label_of(self.conditions) or "all rows",
            "filter": filter_options(self.conditions),
            "rows": len(self.rows),
            "score": SCORES[self.score],
        }

    @property
    def direction(self) -> str:
        """How the model is wrong in the region, if it is."""
        return DIRECTIONS[SCORES[self.score]][int(self.deviation > 0)]


class SearchedRows:
    """Rows in whose columns regions are searched."""

    def __init__(
        self,
        source: Source,  # Predictions with targets, and the columns
        options: SearchOptions,  # Columns, bins and sizes
        run: Run,  # Seed, confidence and replicates
        metrics: Sequence[Metric[Any]],  # Metrics that describe regions
    ) -> None:
        self.source, self.options, self.run = source, options, run
        self.rows = source.predictions()
        self._require_distributions()
        self.simulation = NullSimulator(self.rows, run)
        if cannot_reject(len(self.simulation), "greater", run.confidence):
            msg = f"{len(self.simulation)} replicates cannot show a fault at a confidence of {run.confidence:g}"
            raise OptionError(f"{msg}: pass a larger --replicates")
        reasons = [(each, inapplicable_reason(type(each), self.rows)) for each in metrics]
        self.metrics = [each.with_defaults(self.rows) for each, reason in reasons if not reason]
        self.skipped = tuple(
            Skipped(metric=each.info.name, code="inapplicable", reason=reason) for each, reason in reasons if reason
        )

    def _require_distributions(self) -> None:
        """Raise unless the distributions are fully specified and there is one target per row."""
        predictive = self.rows.distributions()
        open_ = predictive.quantile_levels is not None or predictive.interval_levels is not None
        if open_ or not predictive.shape_is_known:
            remedy = "compare groups with --by" if open_ else "state it with --error-dist"
            msg = f"a search needs the whole distribution of each row, which the file does not state: {remedy}"
            raise DataError(msg)
        if predictive.targets > 1 or self.rows.repeated:
            msg = "a search needs one target per row"
            raise DataError(msg)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are searched."""
        named = self.options.columns
        if named is not None:
            named = tuple(name for name in named if name != EMBEDDING)
        else:
            known = self.source.feature_columns() if isinstance(self.source, FileSource) else self.rows.columns
            predicted = () if self.rows.distributions().n_draws is not None else PREDICTED
            named = tuple(dict.fromkeys([*(name for name in known if name in self.rows.columns), *predicted]))
        if not named and self.clusters is None:
            msg = "there are no columns to search: add columns of inputs to the file"
            raise DataError(msg)
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
            msg = "there is no embedding, in whose clusters regions are searched. Pass --embedding"
            raise DataError(msg)
        if not known or not self.options.reads_embedding:
            return None
        rng = self.run.rng(RandomStream.KMEANS)
        return cluster_embedding(self.rows.lazy_inputs(), self.options.embedding_clusters, rng)

    @cached_property
    def binnings(self) -> tuple[Binning, ...]:
        """The bins of the columns that have several, or of one column."""
        found = search_columns(self.source, self.columns, self.options.bins, self.min_rows)
        found += [] if self.clusters is None else [self.clusters.binning]
        return tuple(each for each in found if len(each.bins) > 1) or tuple(found[:1])

    @cached_property
    def noticed(self) -> DesignEffect | None:
        """By what rows seem to depend on each other."""
        return noticed_effect(self.rows)

    @cached_property
    def warnings(self) -> tuple[Message, ...]:
        """Warnings about the rows."""
        dependent = () if self.noticed is None else (self.noticed.warning("The search for regions"),)
        return (*data_warnings(self.source, self.rows.predictive), *dependent)

    def scores(self, stage: str) -> Iterator[Values]:
        """Yield the scores of the rows, (n, 2): of the data, then of each replicate."""
        yield row_scores(self.rows)
        for number, replicate in enumerate(self.simulation):
            yield row_scores(replicate)
            self.run.progress(stage, (number + 1) / len(self.simulation))

    def settings(self) -> dict[str, Any]:
        """Return the settings for the report."""
        return {
            **({} if self.noticed is None else self.noticed.settings),
            **run_settings(self.run),
            "columns": [*self.columns, *([] if self.clusters is None else [EMBEDDING])],
            **({} if self.clusters is None else {"embedding_clusters": self.clusters.details(self.rows)}),
            "bins": self.options.bins,
            "min_rows": self.min_rows,
        }

    def row_columns(self, regions: Sequence[Indices]) -> dict[str, Indices]:
        """Return the number of the first region of each row, or 0, and of its cluster of the embedding, (n,) each."""
        numbers = np.zeros(len(self.rows), dtype=np.intp)
        for number, rows in reversed(list(enumerate(regions, 1))):
            numbers[rows] = number
        return {"region": numbers, **({} if self.clusters is None else {"cluster": self.clusters.binning.label + 1})}

    def results(self, region: FoundRegion, *, intervals: bool = False) -> Iterator[Result]:
        """Yield the metrics of a region; those of its fault have the p-value and the verdict."""
        inside, fails = InMemory(self.rows.take(region.rows)), rejects(region.p_value, self.run.confidence)
        with np.errstate(all="ignore"):
            fits = [metric.evaluate(metric.fit(inside, self.run), inside, self.run) for metric in self.metrics]
            found = [(metric, rows, Basis("none")) for metric, rows in zip(self.metrics, fits, strict=True)]
            inferred = infer(found, self.run.quiet()) if intervals else [IntervalInference()] * len(found)
            values = [fitted_metric(metric, None, rows, basis).value for metric, rows, basis in found]
        for metric, value, inference in zip(self.metrics, values, inferred, strict=True):
            inference = replace(inference, verdict="none", warnings=(*self.warnings, *inference.warnings))
            if region.direction in (metric.info.above, metric.info.below):
                inference = replace(
                    inference,
                    p_value_adjusted=region.p_value,
                    verdict="fail" if fails else "pass",
                    direction=region.direction if fails else None,
                )
            if self.noticed is not None and inference.verdict != "none":
                inference = replace(without_verdict(inference, self.noticed.reason), direction=None)
            named = metric.result(value if math.isfinite(value) else None, region.slice)
            yield Result.from_inference(named, inference)
