"""Search of the regions where uncertainties or predictions are wrong, with p-values over all regions searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, OptionError
from calcheck.evaluation import data_warnings, fitted_metric, run_settings
from calcheck.execution.context import RandomStream, Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.inference.p_values import cannot_reject, rejects
from calcheck.inference.verdict_basis import Basis
from calcheck.io.source import FileSource
from calcheck.metrics.base import inapplicable_reason
from calcheck.options import option
from calcheck.predictions import InMemory
from calcheck.regions.binning import label_of
from calcheck.regions.clusters import EMBEDDING, EmbeddingClusters, cluster_embedding
from calcheck.regions.columns import PREDICTED, name_of, search_columns, values_of
from calcheck.regions.maps import region_map
from calcheck.regions.scan import Scan
from calcheck.regions.scores import SCORES, factor_of_dispersion, row_scores
from calcheck.regions.sentences import filter_options
from calcheck.report import Conclusion, Finding, Inference, Report, Result, Skipped
from calcheck.studies.slices import fault_findings, group_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions, Source
    from calcheck.regions.scan import Deviations, Region
    from calcheck.report import Curve

    RegionSink = Callable[[Predictions, dict[str, NDArray[np.intp]]], None]

FEWEST_ROWS, FEWEST_SHARE = 50, 0.02  # Minimum number and share of the rows of a region
SHARE = 0.1  # Share of the rows of the region for which the size of faults that would be found is stated
NEARLY_ALWAYS = 1.6448536269514722  # Normal quantile at 95 %
MOST_COLUMNS, MOST_BINS, MOST_CLUSTERS = 40, 32, 50
DIRECTIONS = {"dispersion": ("too-wide", "too-narrow"), "bias": ("predictions-too-high", "predictions-too-low")}
"""What a negative and a positive score mean."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search for regions.

    Parameters
    ----------
    columns : tuple of str, optional
        Columns, and ``"mean"`` and ``"std"`` for the predicted ones; by default all inputs and columns without a role.
    bins : int
        Number of quantile bins per column.
    embedding_clusters : int
        Number of clusters of an embedding; 0 for none.
    min_rows : int, optional
        Minimum number of rows of a region; by default 50, or 2 % of the rows if that is more.
    most : int
        Maximum number of regions in the report.

    Raises
    ------
    OptionError
        A number is out of range.
    """

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

    def __post_init__(self) -> None:
        limited = (("bins", 2, MOST_BINS), ("embedding_clusters", 0, MOST_CLUSTERS), ("most", 1, None))
        for name, least, most in (*limited, ("min_rows", 1, None)):
            value = getattr(self, name)
            if value is not None and (value < least or (most is not None and value > most)):
                limits = f"at least {least}" if most is None else f"between {least} and {most}"
                msg = f"--{name.replace('_', '-')} must be {limits}, got {value}"
                raise OptionError(msg)

    @property
    def reads_embedding(self) -> bool:
        """Whether clusters of an embedding are searched, if there is one."""
        return bool(self.embedding_clusters) and (self.columns is None or EMBEDDING in self.columns)


def search_regions(
    source: Source,
    *,
    options: SearchOptions | None = None,
    metrics: Sequence[Metric[Any]] | None = None,
    run: Run | None = None,
    sink: RegionSink | None = None,
) -> Report:
    """Return the regions of the inputs where a model deviates most from a perfect one.

    Parameters
    ----------
    source : Source
        Predictions with targets, and the columns.
    options : SearchOptions, optional
        Columns, bins and sizes.
    metrics : sequence of Metric, optional
        Metrics that describe the regions; by default :func:`group_metrics`.
    run : Run, optional
        Seed, confidence and replicates.
    sink : callable, optional
        Receives the rows, and columns of each row by name: ``region``, the number of the first region in the report
        that it is in, or 0; and ``cluster``, the number of its cluster of the embedding.

    Returns
    -------
    Report
        For each region found one result per metric, with ``slice`` ``{"group": "age>60 and bmi<=24", "filter":
        "--filter 'age>60' --filter 'bmi<=24'", "rows": 412, "score": "dispersion"}``; if none is found, for the region
        that deviates most. ``p_value_adjusted`` is over all regions and both scores, and belongs to the metrics of the
        fault. The conclusion says what is wrong where, or what size of fault would have been found. If curves are
        requested, the first result has the map of its region.

    Raises
    ------
    DataError
        There are no columns, too many, or the distributions are not fully specified.

    Notes
    -----
    Regions are runs of quantile bins of one column, rectangles of two columns, and categories; they depend on inputs
    only. The scores of the rows are functions of the PIT (:mod:`calcheck.regions.scores`). The sum of a score over a
    region, in units of its standard deviation and less a penalty for small regions, is compared with the maximum over
    all regions and both scores for each replicate, which controls the probability of any false region exactly. Further
    regions are significant too, and so are their rows outside of those before.
    """
    if run is not None and run.dependence.is_stated:
        msg = "regions are searched among independent rows only: with --cluster, --time or --block, name groups (--by)"
        raise OptionError(msg)
    study = _Search(source, options or SearchOptions(), run or Run())
    report = study.report(group_metrics() if metrics is None else metrics)
    if sink is not None:
        sink(study.rows, study.row_columns())
    return report


class _Search:
    """A scan of the regions of a source."""

    def __init__(self, source: Source, options: SearchOptions, run: Run) -> None:
        self.source, self.options, self.run = source, options, run
        self.rows = source.predictions()
        self._require_distributions()
        self.simulation = NullSimulator(self.rows, run)
        if cannot_reject(len(self.simulation), "greater", run.confidence):
            msg = f"{len(self.simulation)} replicates cannot show a fault at a confidence of {run.confidence:g}"
            raise OptionError(f"{msg}: pass a larger --replicates")

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
        """Names of the columns that are searched.

        Raises
        ------
        DataError
            There are none, or too many.
        """
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
        """Minimum number of rows of a region."""
        if self.options.min_rows is not None:
            return self.options.min_rows
        return max(FEWEST_ROWS, math.ceil(FEWEST_SHARE * len(self.rows)))

    @cached_property
    def clusters(self) -> EmbeddingClusters | None:
        """The clusters of the embedding; None if there is no embedding, or if they are not searched.

        Raises
        ------
        DataError
            The embedding is named, and there is none.
        """
        known = self.rows.x is not None and self.rows.has_embedding
        if not known and self.options.columns is not None and EMBEDDING in self.options.columns:
            msg = "there is no embedding, in whose clusters regions are searched. Pass --embedding"
            raise DataError(msg)
        if not known or not self.options.reads_embedding:
            return None
        rng = self.run.rng(RandomStream.KMEANS)
        return cluster_embedding(self.rows.lazy_inputs(), self.options.embedding_clusters, rng)

    @cached_property
    def scan(self) -> Scan:
        """The regions."""
        binnings = search_columns(self.source, self.columns, self.options.bins, self.min_rows)
        binnings += [] if self.clusters is None else [self.clusters.binning]
        return Scan(tuple(each for each in binnings if len(each.bins) > 1) or tuple(binnings[:1]), self.min_rows)

    @cached_property
    def deviations(self) -> Deviations:
        """The deviations of all regions."""
        found = self.scan.deviations(self._scores())
        if not found.regions:
            msg = f"no region has {self.min_rows} rows: there are {len(self.rows)}, pass a smaller --min-rows"
            raise DataError(msg)
        return found

    def _scores(self) -> Iterator[NDArray[np.float64]]:
        yield row_scores(self.rows)
        for number, replicate in enumerate(self.simulation):
            yield row_scores(replicate)
            self.run.progress("regions: replicates", (number + 1) / len(self.simulation))

    @cached_property
    def regions(self) -> list[Region]:
        """The regions that deviate most."""
        return self.deviations.most_deviating(1 - self.run.confidence, self.options.most)

    def row_columns(self) -> dict[str, NDArray[np.intp]]:
        """Return the number of the first region of each row, or 0, and of its cluster of the embedding, (n,) each."""
        numbers = np.zeros(len(self.rows), dtype=np.intp)
        for number, region in reversed(list(enumerate(self.regions, 1))):
            numbers[self.scan.mask(region)] = number
        return {"region": numbers, **({} if self.clusters is None else {"cluster": self.clusters.binning.codes + 1})}

    def report(self, metrics: Sequence[Metric[Any]]) -> Report:
        """Return the report, with metrics that describe the regions."""
        from calcheck.version import __version__

        regions = self.regions
        applicable = [each.with_defaults(self.rows) for each in metrics if not self._reason(each)]
        results = [result for region in regions for result in self._results(region, applicable)]
        if results and self.run.curves:
            results[0] = replace(results[0], curves=self._map(regions[0]))
        return Report(
            calcheck=__version__,
            input=self.source.input_info(),
            settings={
                **run_settings(self.run, subsample=None, replicates=self.run.replicates),
                "columns": [*self.columns, *([] if self.clusters is None else [EMBEDDING])],
                **({} if self.clusters is None else {"embedding_clusters": self.clusters.details(self.rows)}),
                "bins": self.options.bins,
                "min_rows": self.min_rows,
                "regions": self.deviations.regions,
                "p_value": regions[0].p_value,
                "detectable": self._detectable(),
            },
            results=tuple(results),
            skipped=tuple(
                Skipped(metric=each.info.name, code="inapplicable", reason=reason)
                for each in metrics
                if (reason := self._reason(each))
            ),
            conclusion=self._conclude(regions[0], results),
        )

    def _reason(self, metric: Metric[Any]) -> str:
        return inapplicable_reason(type(metric), self.rows)

    def _results(self, region: Region, metrics: Sequence[Metric[Any]]) -> Iterator[Result]:
        """Yield the metrics of a region; those of its fault have the p-value and the verdict."""
        conditions = self.scan.conditions(region)
        rows = np.flatnonzero(self.scan.mask(region))
        inside = InMemory(self.rows.take(rows))
        subset = {
            "group": label_of(conditions) or "all rows",
            "filter": filter_options(conditions),
            "rows": len(rows),
            "score": SCORES[region.score],
        }
        direction = DIRECTIONS[SCORES[region.score]][int(region.deviation > 0)]
        for metric in metrics:
            with np.errstate(all="ignore"):
                found = metric.evaluate(metric.fit(inside, self.run), inside, self.run)
                value = fitted_metric(metric, None, found, Basis("none")).value
            inference = Inference(warnings=data_warnings(self.source, self.rows.predictive))
            if direction in (metric.info.above, metric.info.below):
                fails = rejects(region.p_value, self.run.confidence)
                inference = replace(
                    inference,
                    p_value_adjusted=region.p_value,
                    verdict="fail" if fails else "pass",
                    direction=direction if fails else None,
                )
            yield Result.from_inference(metric.result(value if math.isfinite(value) else None, subset), inference)

    def _map(self, region: Region) -> tuple[Curve, ...]:
        """Return the map of the columns of a region, and its outline."""
        known = {name_of(self.source, name): name for name in self.columns}
        names = [self.scan.columns[place].column for place in (region.first, region.second)]
        if not all(name in known for name in names):  # A single column
            return ()
        return region_map(self.deviations, region, [values_of(self.source, known[name]) for name in names])

    def _detectable(self) -> dict[str, float | int | None]:
        """Return which faults in 10 % of the rows are found with a probability of one half, and of 95 %.

        They are factors by which the deviations of normal distributions are too small.
        """
        rows = max(self.min_rows, round(SHARE * len(self.rows)))
        limit = float(np.quantile(self.deviations.largest[1:], self.run.confidence)) - float(
            self.scan.excess(0.0, rows)
        )
        scores = ((limit + further) / math.sqrt(rows) for further in (0.0, NEARLY_ALWAYS))
        half, nearly = (factor_of_dispersion(score) for score in scores)
        return {"rows": rows, "half": half, "nearly_always": nearly}

    def _conclude(self, first: Region, results: Sequence[Result]) -> Conclusion:
        """Return what is wrong where, or what was searched and would have been found."""
        count = f"{self.deviations.regions:,} regions"
        if rejects(first.p_value, self.run.confidence):
            return Conclusion(answer="no", findings=_with_p_values(fault_findings(results), results, count))
        label = results[0].slice["group"] if results else "all rows"
        text = f"no region differs from a perfect model by more than chance: {label} deviates most of {count}, p = "
        findings = [Finding(topic="where", state="right", text=f"{text}{first.p_value:.2g}")]
        if sizes := _sizes(self._detectable()):
            findings.append(Finding(topic="where", state="untested", text=sizes))
        return Conclusion(answer="yes", findings=tuple(findings))


def _sizes(found: dict[str, float | int | None]) -> str:
    """Return which faults would have been found, in words; empty if none would."""
    half, nearly = found["half"], found["nearly_always"]
    if half is None:
        return ""
    text = f"uncertainties {half:.3g} times too small in {found['rows']:,} rows would be found in half of all files"
    return f"{text}, {nearly:.3g} times in 95 %" if nearly is not None else text


def _with_p_values(findings: Sequence[Finding], results: Sequence[Result], count: str) -> tuple[Finding, ...]:
    """Return findings with the p-values of their regions."""
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
